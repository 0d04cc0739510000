"""Costs of looking for plugins: processor time for each installed distribution, beyond reading the
metadata itself.

    python benchmarks/plugins.py [COUNT]

The guard that holds on any machine is a count of calls and of files, in axil-plugins
(``test_scale.py``).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from axil.plugin import Policy, Registry

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.internals import internal

rows = internal("survey").rows

ASKED = 30.0
"""Microseconds for each distribution, beyond the interpreter's scan: less than this is what was
asked for.
"""


def fill(folder: Path, count: int, *, described: bool = False) -> None:
    """Metadata of ``count`` plugins with two node types each; ``described``: with a manifest each,
    too.
    """
    for i in range(count):
        info = folder / f"fake_{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-{i}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[axil.nodes]\nfake.n{i} = fake_{i}:N\nfake.m{i} = "
            f"fake_{i}:M\n[axil.plugin]\nfake-{i} = fake_{i}\n"
        )
        if described:
            components = [
                {"kind": "nodes", "name": f"fake.{letter}{i}", "summary": "It does nothing."}
                for letter in "nm"
            ]
            (folder / f"fake_{i}").mkdir()
            said = {
                "manifest": 1,
                "distribution": f"fake-{i}",
                "spec": {"nodes": "1.0"},
                "components": components,
            }
            (folder / f"fake_{i}" / "axil-plugin.json").write_text(json.dumps(said))


def least(act: Callable[[], object], times: int = 25) -> float:
    """Microseconds of processor time, the least of many: whatever else the machine does only
    adds.
    """
    act()
    taken: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        act()
        taken.append((time.process_time() - begun) * 1e6)
    return min(taken)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    scan = "the interpreter's scan"
    subjects: dict[str, Callable[[], object]] = {
        scan: lambda: list(metadata.entry_points()),
        "the registry, as axil check": lambda: Registry(Policy()).candidates(),
        "axil plugins list": lambda: rows(Registry(Policy())),
    }
    before = {name: least(act) for name, act in subjects.items()}
    print(
        f"{count} distributions, {2 * count} node types; microseconds for each distribution; "
        f"asked: less than {ASKED:g} beyond the scan"
    )
    for described in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), count, described=described)
            sys.path.insert(0, folder)
            after = {name: least(act) for name, act in subjects.items()}
            sys.path.remove(folder)
        print("each with a manifest" if described else "without manifests")
        for name in subjects:
            grown = (after[name] - before[name]) / count
            own = grown - (after[scan] - before[scan]) / count
            print(
                f"    {name:<28} {grown:7.1f}"
                + ("" if name == scan else f"   {own:6.1f} beyond the scan")
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
