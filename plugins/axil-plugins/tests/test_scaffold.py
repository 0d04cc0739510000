"""A project of ``axil plugins new`` builds, installs, passes its tests and runs in a workflow, with
no edit, for every kind.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as xml
import zipfile
import zlib
from pathlib import Path

import pytest

from axil import ConfigError
from axil_cli.main import main
from axil_plugins.scaffold import TEMPLATES, scaffold

WHEEL = [
    sys.executable,
    "-m",
    "pip",
    "--disable-pip-version-check",
    "wheel",
    "--quiet",
    "--no-deps",
    "--no-index",
    "--no-build-isolation",
]
INSTALL = [
    sys.executable,
    "-m",
    "pip",
    "--disable-pip-version-check",
    "install",
    "--quiet",
    "--no-deps",
    "--no-index",
]


WHOLE = "node"
"""The kind that is built and installed by pip; of the others only the metadata is written down."""
LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
KINDS = [kind for kind in TEMPLATES if LONG or kind == WHOLE or not zlib.crc32(kind.encode()) % 3]
"""The kinds whose tests and laws are tried: every third, ``make thorough`` takes all."""
LAWS = """
import json, sys
from axil_testing.kit import check, kits_for
for name in sys.argv[1:]:
    about, kit, why = next(kits_for(name))
    outcomes = check(kit).outcomes
    faults = [f"{each.law}: {each.reason}" for each in outcomes if each.verdict == "failed"]
    print(json.dumps([about, sum(each.verdict == "passed" for each in outcomes), faults]))
"""
"""The laws of distributions; those of its component are among the tests of each."""


def install(source: Path, site: Path) -> None:
    """Lay a distribution into a folder as an installer does, without building it."""
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    shutil.copytree(source / "src", site, dirs_exist_ok=True)
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    fields = {
        "Metadata-Version": "2.4",
        "Name": project["name"],
        "Version": project["version"],
        "Summary": project["description"],
        "License-Expression": project["license"],
        "Requires-Python": project["requires-python"],
    }
    lines = [f"{key}: {value}\n" for key, value in fields.items()]
    lines += [f"Requires-Dist: {each}\n" for each in project["dependencies"]]
    for extra, wanted in project["optional-dependencies"].items():
        lines += [f"Requires-Dist: {each}; extra == '{extra}'\n" for each in wanted]
    (info / "METADATA").write_text("".join(lines), "utf-8")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in table.items())
        for group, table in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points), "utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A distribution of each kind in one folder, one of them built as a wheel and installed from
    it; the results of their tests are beside it.
    """
    folder = tmp_path_factory.mktemp("made")
    source, site = folder / "source", folder / "site"
    for kind in TEMPLATES:
        words = ["plugins", "new", f"acme-{kind}", "--kind", kind, "--into", str(source)]
        assert main(words) == 0
    whole = source / f"acme-{WHOLE}"
    subprocess.run([*WHEEL, "--wheel-dir", folder / "wheels", whole], check=True, timeout=600)
    wheels = (folder / "wheels").iterdir()
    subprocess.run([*INSTALL, "--target", site, *wheels], check=True, timeout=600)
    for kind in TEMPLATES:
        if kind != WHOLE:
            install(source / f"acme-{kind}", site)
    tests = [source / f"acme-{kind}" / "tests" for kind in sorted(KINDS)]
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
        "-W",
        "error",
        f"--junitxml={folder / 'report.xml'}",
        f"--rootdir={folder}",
    ]
    in_it(folder, "-m", "pytest", "-c", os.devnull, *options, *tests)
    return folder


def in_it(made: Path, *command: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(made / "site")}
    return subprocess.run(
        [sys.executable, "-P", *map(str, command)],
        cwd=made,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_its_tests_pass(made, kind):
    cases = [
        case
        for case in xml.parse(made / "report.xml").iter("testcase")
        if f"acme_{kind}" in str(case.get("classname"))
    ]
    bad = {
        case.get("name"): (part.get("message") or "")[:500]
        for case in cases
        for part in case
        if part.tag in ("failure", "error")
    }
    assert bad == {}
    names = {str(case.get("name")) for case in cases}
    assert "test_a_workflow_uses_it" in names
    assert "test_making_it_has_no_effects" in names


def test_they_hold_the_laws_of_distributions(made):
    names = [f"acme-{kind}" for kind in KINDS]
    done = in_it(made, "-c", LAWS, *names)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, _, _ in found] == names
    assert [fault for _, _, faults in found for fault in faults] == []
    assert min(passed for _, passed, _ in found) >= 6


def test_their_manifests_are_current(made):
    names = [f"acme-{kind}" for kind in TEMPLATES]
    done = in_it(made, "-m", "axil_cli.main", "plugins", "manifest", "--check", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(names)


def test_the_command_runs_the_kit(made):
    done = in_it(made, "-m", "axil_cli.main", "plugins", "test", f"acme-{WHOLE}")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(rf"^ok    {TEMPLATES[WHOLE]}:.*: (\d+) passed", done.stdout, re.MULTILINE)
    assert passed, done.stdout
    assert int(passed[1]) >= 6


def test_a_wheel_holds_the_licence_and_finds_itself_by_a_keyword(made):
    (wheel,) = (made / "wheels").iterdir()
    archive = zipfile.ZipFile(wheel)
    info = "acme_node-0.1.0.dist-info"
    assert archive.read(f"{info}/licenses/LICENSE").decode().startswith("MIT License\n")
    keywords = re.search(r"^Keywords: (.*)$", archive.read(f"{info}/METADATA").decode(), re.M)
    assert keywords
    assert "axil-plugin" in keywords[1].split(",")


def test_the_author_is_whom_git_knows(tmp_path, monkeypatch):
    config = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)
    config.write_text('[user]\n\tname = Ada \\"A\\" Doe\n\temail = ada@example.org\n', "utf-8")
    known = scaffold("acme-known", "tool", tmp_path).folder
    project = tomllib.loads((known / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["authors"] == [{"name": 'Ada "A" Doe', "email": "ada@example.org"}]
    assert 'Ada "A" Doe' in (known / "LICENSE").read_text("utf-8")
    config.write_text("", "utf-8")
    unknown = scaffold("acme-unknown", "tool", tmp_path).folder
    project = tomllib.loads((unknown / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["authors"] == [{"name": "the acme-unknown authors"}]


def test_nothing_was_left_to_be_filled_in(made):
    for file in (made / "source").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert not re.search(r"@[a-z]+@", file.read_text("utf-8")), file


def test_the_command_runs_its_workflow(made):
    flow = made / "source" / "acme-node" / "examples" / "flow.json"
    done = in_it(made, "-m", "axil_cli.main", "run", flow, "--input", "hello")
    assert (done.stdout, done.returncode) == ("1: HELLO!!\n", 0), done.stderr
    counted = in_it(
        made,
        "-m",
        "axil_cli.main",
        "--hook",
        "acme.hook",
        "run",
        made / "source" / "acme-hook" / "examples" / "flow.json",
    )
    assert counted.returncode == 0, counted.stderr


def test_its_manifest_is_made_where_it_lies(made):
    manifest = made / "site" / "acme_node" / "axil-plugin.json"
    reported = manifest.read_text("utf-8")
    manifest.unlink()
    done = in_it(made, "-m", "axil_cli.main", "plugins", "manifest", "acme-node", "--write")
    assert done.returncode == 0, done.stderr
    assert manifest.read_text("utf-8") == reported
    why = in_it(
        made,
        "-m",
        "axil_cli.main",
        "plugins",
        "why",
        made / "source" / "acme-node" / "examples" / "flow.json",
    )
    assert why.stdout.startswith("acme-node  0.1.0\n    nodes:acme.node")


PATIENT = """
import sys
from axil_cli.main import main
from axil_plugins import doctor
doctor.SLOW_SECONDS = 300.0
sys.exit(main(sys.argv[1:]))
"""


def test_the_doctor_finds_nothing_wrong_with_it(made):
    """On a slow disk any import may take longer than a doctor likes."""
    done = in_it(made, "-c", PATIENT, "plugins", "doctor", "acme-condition", "--import", "--strict")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "kind", "id"),
    [("Acme Shout", "node", "AX733"), ("acme-", "node", "AX733"), ("acme-x", "nod", "AX734")],
)
def test_what_cannot_be_made_is_reported(tmp_path, name, kind, id):
    with pytest.raises(ConfigError, match=id):
        scaffold(name, kind, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_touched(tmp_path):
    (tmp_path / "acme-x").mkdir()
    (tmp_path / "acme-x" / "mine").write_text("precious")
    with pytest.raises(ConfigError, match="AX735"):
        scaffold("acme-x", "node", tmp_path)
    assert [file.name for file in (tmp_path / "acme-x").iterdir()] == ["mine"]


def full(file: Path, *given: str) -> None:
    file.touch()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        with pytest.raises(ConfigError, match=r"AX955 .*No space left"):
            scaffold("acme-shout", "node", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert scaffold("acme-shout", "node", tmp_path).files


def test_of_two_at_once_one_is_made_and_the_other_is_refused(tmp_path, monkeypatch):
    rename = Path.rename

    def late(file: Path, target: Path) -> Path:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Path, "rename", rename)
            scaffold("acme-shout", "journal", tmp_path)
        return rename(file, target)

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(ConfigError, match=r"AX735 .*exists already"):
        scaffold("acme-shout", "node", tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["acme-shout"]
    assert "axil.journals" in (tmp_path / "acme-shout/pyproject.toml").read_text("utf-8")


def test_names_follow_from_the_distributions(tmp_path):
    assert scaffold("acme-loud-voice", "nodes", tmp_path).component == "acme.loud_voice"
    assert scaffold("solo", "formatter", tmp_path).component == "solo.solo"
    assert scaffold("acme-lines", "loader", tmp_path).component == "lines"
