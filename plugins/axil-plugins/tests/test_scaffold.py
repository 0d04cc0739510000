"""A project of ``axil plugins new`` builds, installs, passes its tests and runs in a workflow, with
no edit, for every kind.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
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


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A distribution of each kind, built as a wheel and installed from it into one folder; the
    results of their tests are beside it.
    """
    folder = tmp_path_factory.mktemp("made")
    for kind in TEMPLATES:
        assert (
            main(
                ["plugins", "new", f"acme-{kind}", "--kind", kind, "--into", str(folder / "source")]
            )
            == 0
        )
    sources = sorted((folder / "source").iterdir())
    subprocess.run([*WHEEL, "--wheel-dir", folder / "wheels", *sources], check=True, timeout=600)
    subprocess.run(
        [*INSTALL, "--target", folder / "site", *(folder / "wheels").iterdir()],
        check=True,
        timeout=600,
    )
    tests = [source / "tests" for source in sources]
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
    command = [sys.executable, "-P", "-m", "pytest", "-c", os.devnull, *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder / "site")}
    subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, timeout=600, check=False
    )
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


@pytest.mark.parametrize("kind", TEMPLATES)
def test_its_tests_pass_from_the_wheel(made, kind):
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


@pytest.mark.parametrize("kind", TEMPLATES)
def test_it_passes_the_kit_without_a_line_of_code_and_its_manifest_is_current(made, kind):
    done = in_it(made, "-m", "axil_cli.main", "plugins", "test", f"acme-{kind}")
    assert done.returncode == 0, done.stdout + done.stderr
    laws = [
        line for line in done.stdout.splitlines() if line.startswith(f"ok    {TEMPLATES[kind]}:")
    ]
    assert laws
    assert int(re.search(r"(\d+) passed", laws[0])[1]) >= 6, laws
    written = made / "site" / f"acme_{kind}" / "axil-plugin.json"
    source = made / "source" / f"acme-{kind}" / "src" / f"acme_{kind}" / "axil-plugin.json"
    assert written.read_text("utf-8") == source.read_text("utf-8")


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
