"""With 400 plugins installed: looking imports none of them, and asks the disk for each a bounded
number of times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MANY = 400

COUNTING = """
import collections, json, os, sys
folder, argv = sys.argv[1], sys.argv[2:]
opened = collections.Counter()
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(folder):
        opened[os.path.basename(arguments[0])] += 1
sys.addaudithook(note)
from axil_cli.main import main
code = main(argv)
fakes = [name for name in sys.modules if name.startswith("fake_plugin")]
sys.stderr.write(json.dumps({"code": code, "opened": opened, "fakes": fakes}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Metadata of many plugins, each with a package that must not be imported."""
    folder = tmp_path_factory.mktemp("many")
    for i in range(MANY):
        info = folder / f"fake_plugin_{i}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: fake-plugin-{i}\nVersion: 1.0\n"
        )
        nodes = f"[axil.nodes]\nfake.n{i} = fake_plugin_{i}:N\nfake.m{i} = fake_plugin_{i}:M\n"
        points = f"{nodes}[axil.plugin]\nfake-plugin-{i} = fake_plugin_{i}\n"
        (info / "entry_points.txt").write_text(points)
        (folder / f"fake_plugin_{i}").mkdir()
        (folder / f"fake_plugin_{i}" / "__init__.py").write_text("raise SystemExit('imported')\n")
        if i % 2:
            said = {
                "manifest": 1,
                "distribution": f"fake-plugin-{i}",
                "components": [{"kind": "nodes", "name": f"fake.n{i}"}],
            }
            (folder / f"fake_plugin_{i}" / "axil-plugin.json").write_text(json.dumps(said))
    return folder


def asked(site: Path, *arguments: str) -> tuple[str, dict[str, object]]:
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n{COUNTING}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(site), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = json.loads(done.stderr.strip().rpartition("\n")[2])
    return done.stdout, said


def test_listing_imports_no_plugin_and_reads_each_once(site):
    out, said = asked(site, "plugins", "list", "--format", "json")
    assert said["code"] == 0
    assert said["fakes"] == []
    assert sum(row["name"].startswith("fake.") for row in json.loads(out)["components"]) == 2 * MANY
    opened = said["opened"]
    assert opened["entry_points.txt"] == MANY
    assert opened["axil-plugin.json"] <= MANY
    assert opened.get("METADATA", 0) == 0
    assert set(opened) <= {"entry_points.txt", "axil-plugin.json"}


def test_checking_a_workflow_imports_no_plugin_that_it_does_not_name(site, tmp_path):
    flow = tmp_path / "flow.json"
    flow.write_text(
        '{"graph": {"nodes": [{"id": "a", "type": "passthrough"}], "edges": [], "start": ["a"]}}'
    )
    _, said = asked(site, "check", str(flow))
    assert (said["code"], said["fakes"]) == (0, [])
    assert set(said["opened"]) == {"entry_points.txt"}
    # once by us, and once by pydantic, which looks for plugins of its own
    assert said["opened"]["entry_points.txt"] <= 2 * MANY


def test_the_doctor_and_why_import_none_either(site, tmp_path):
    flow = tmp_path / "flow.json"
    flow.write_text(
        '{"graph": {"nodes": [{"id": "a", "type": "fake.n1"}], "edges": [], "start": ["a"]}}'
    )
    for arguments in (
        ["plugins", "doctor", "fake-plugin-1"],
        ["plugins", "why", str(flow)],
        ["plugins", "show", "nodes:fake.n1"],
    ):
        assert asked(site, *arguments)[1]["fakes"] == []


def test_a_scan_makes_few_calls_for_each_distribution(site, monkeypatch):
    """Calls are counted, those that read the metadata left out."""
    from importlib import metadata

    from axil.plugin import Policy, Registry

    monkeypatch.syspath_prepend(str(site))

    def calls(act) -> int:
        count = 0

        def tally(frame, event, arg) -> None:
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(tally)
        try:
            act()
        finally:
            sys.setprofile(before)
        return count

    entries = [e for each in metadata.distributions() for e in each.entry_points]
    own = calls(lambda: Registry(Policy(), entries).candidates())
    assert own / MANY < 40
