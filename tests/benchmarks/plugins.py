"""What looking for plugins costs: processor time for each installed distribution, beyond reading the metadata itself.

    python tests/benchmarks/plugins.py [COUNT]

The guard that holds on any machine is a count of calls and of files, in axil-plugins (``test_scale.py``).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import importlib_metadata

from axil.registry import Policy, Registry
from axil_plugins.survey import rows


def fill(folder: Path, count: int) -> None:
    """Metadata of ``count`` plugins with two node types each."""
    for i in range(count):
        info = folder / f"fake_{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-{i}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[axil.nodes]\nfake.n{i} = fake_{i}:N\nfake.m{i} = fake_{i}:M\n[axil.plugin]\nfake-{i} = fake_{i}\n"
        )


def median(act: Callable[[], object], times: int = 9) -> float:
    """Microseconds of processor time."""
    act()
    taken: list[float] = []
    for _ in range(times):
        begun = time.process_time()
        act()
        taken.append((time.process_time() - begun) * 1e6)
    return statistics.median(taken)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    subjects: dict[str, Callable[[], object]] = {
        "the interpreter's scan": lambda: list(importlib_metadata.entry_points()),
        "the registry": lambda: Registry(Policy()).candidates(),
        "axil plugins list": lambda: rows(Registry(Policy())),
    }
    before = {name: median(act) for name, act in subjects.items()}
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), count)
        sys.path.insert(0, folder)
        after = {name: median(act) for name, act in subjects.items()}
        sys.path.remove(folder)
    scan = "the interpreter's scan"
    print(f"{count} distributions, {2 * count} node types; microseconds for each distribution")
    for name in subjects:
        grown = (after[name] - before[name]) / count
        own = grown - (after[scan] - before[scan]) / count
        print(f"{name:<24} {grown:7.1f}" + ("" if name == scan else f"   {own:6.1f} beyond the scan"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
