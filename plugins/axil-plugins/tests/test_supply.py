"""Laws of what others supply: installed files that changed, names that were taken, folders and
wheels that mean harm.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import zipfile
from contextlib import suppress
from importlib.metadata import PathDistribution, distribution
from pathlib import Path
from typing import Any

import pytest

from axil import AxilError, ConfigError
from axil.plugin import Policy, Registry
from axil_plugins.builds import wheels

CODE = "class T:\n    pass\n"
FLOW = json.dumps({"graph": {"nodes": [{"id": "a", "type": "passthrough"}], "start": ["a"]}})
TICKING = json.dumps({"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "start": ["a"]}})
IN_PLACE = '"editable"' in str(distribution("axil-core").read_text("direct_url.json"))
REAL = subprocess.run
BUILT = wheels.built  # as for users: the tests of builds keep what they built
PIP = 'open("taken", "w").close()\nraise SystemExit(1)\n'


def hashed(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def recorded(folder: Path, info: str = "acme_a-1.0.dist-info") -> Path:
    """Write the RECORD of a distribution, as an installer does."""
    record = folder / info / "RECORD"
    rows = [
        f"{file.relative_to(folder).as_posix()},{hashed(file.read_bytes())},{file.stat().st_size}"
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != record
    ]
    record.write_text("\n".join([*rows, f"{info}/RECORD,,", ""]))
    return record


@pytest.fixture
def locked(world, axil, flow):
    """A locked workflow of a plugin that was installed from a wheel."""
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    world.package("acme_a", CODE)
    (world.folder / "acme_a/inner.py").write_text("X = 1\n")
    recorded(world.folder)
    file = flow(TICKING, "flow.json")
    assert axil("lock", file).code == 0
    assert axil("lock", file, "--check").code == 0
    return file


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [
        ("acme_a/__init__.py", "import os\n" + CODE, "acme_a/__init__.py is not what was"),
        ("acme_a/inner.py", "X = 2\n", "acme_a/inner.py is not what was installed"),
        ("acme_a/inner.py", None, "acme_a/inner.py is gone"),
        ("acme_a/inner.so", "x", "acme_a/inner.so was not installed"),
        ("acme_a/inner/__init__.py", "x", "acme_a/inner/__init__.py was not installed"),
        ("acme_a-1.0.dist-info/entry_points.txt", "[axil.nodes]\nacme.tick = acme_a:T\n# x\n",
         "entry_points.txt is not what was"),
    ],
)  # fmt: skip
def test_files_of_a_plugin_that_changed_after_it_was_locked_are_named(
    world, axil, locked, name, text, reported
):
    changed = world.folder / name
    changed.parent.mkdir(exist_ok=True)
    changed.unlink() if text is None else changed.write_text(text)
    done = axil("lock", locked, "--check")
    assert done.code == 2
    assert "acme-a 1.0 has other contents under the same version" in done.out
    assert reported in done.out
    refused = axil("run", locked, "--locked", "--input", "x")
    assert (refused.code, "AX737" in refused.err, reported in refused.err) == (2, True, True)


def test_a_lock_warns_of_files_that_changed_before_it(world, axil, locked):
    (world.folder / "acme_a/inner.py").write_text("X = 2\n")
    done = axil("lock", locked)
    assert done.code == 0
    assert "warning: acme-a: acme_a/inner.py is not what was installed" in done.err


@pytest.mark.parametrize("row", ["/etc/hosts,,", "../../../etc/hosts,,", "a/../../../../etc/x,,"])
def test_a_record_leads_a_lock_to_no_file_outside(world, axil, locked, row):
    record = world.folder / "acme_a-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + row + "\n")
    assert axil("lock", locked).code == 0
    assert axil("lock", locked, "--check").code == 0


@pytest.mark.parametrize("kind", ["nodes", "models", "tools", "channels", "wrappers"])
def test_a_plugin_that_takes_a_name_of_another_is_refused_and_both_are_named(
    world, axil, flow, kind
):
    names = {
        "nodes": "passthrough", "models": "scripted", "tools": "measure_text",
        "channels": "terminal", "wrappers": "retry",
    }  # fmt: skip
    world.distribution("acme-a", **{kind: {names[kind]: "acme_a:T"}})
    world.package("acme_a")

    with pytest.raises(AxilError, match=r"acme-a 1\.0") as caught:
        Registry(Policy()).resolve(kind, names[kind])
    assert caught.value.id == "AX302"
    if kind == "nodes":
        file = flow(FLOW, "flow.json")
        for command in (("check", file), ("run", file, "--input", "x"), ("lock", file)):
            done = axil(*command)
            assert "AX302" in done.out + done.err
            assert "axil-control" in done.out + done.err


def test_a_plugin_says_nothing_of_the_components_of_another(world, axil):
    """Neither a manifest that names another distribution, nor an entry point that does."""
    told = {"manifest": 1, "distribution": "axil-agent", "components": []}
    world.distribution("acme-a", plugin={"axil-agent": "acme_a"})
    world.package("acme_a", CODE, told)
    registry = Registry(Policy())
    assert registry.package("axil-agent") == "axil_agent"
    assert registry.manifest("axil-agent").components


def test_no_plugin_takes_the_place_of_a_command(world, axil, flow):
    world.distribution("acme-a", commands={"run": "acme_a:T", "lock": "acme_a:T"})
    world.package("acme_a")
    done = axil("run", flow(FLOW, "flow.json"), "--input", "x", "--journal", "off")
    assert "acme" in done.err + done.out or done.code == 0
    assert "must not be imported" not in done.err + done.out


def test_a_folder_brings_no_module_of_its_own_into_a_program_that_is_started_there(
    axil, flow, tmp_path, monkeypatch
):
    """Neither pip, nor the kit, nor a module of Python itself."""
    started: list[list[str]] = []

    def run(command: list[str], **options: Any) -> Any:
        started.append(command)
        asked = {**options, "text": True, "capture_output": True, "timeout": 60}
        return REAL([*command[: command.index(next(filter(is_code, command))) + 2], "-h"], **asked)

    def is_code(word: str) -> bool:
        return word in ("-m", "-c")

    for name in ("pip.py", "json.py", "axil_cli.py", "axil_testing.py"):
        (tmp_path / name).write_text(PIP)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(wheels, "built", BUILT)
    axil("build", flow(FLOW, "flow.json"), "--until", "lock")
    with suppress(ValueError):
        axil("lock", flow(FLOW, "flow.json"), "--pylock")
    axil("plugins", "doctor", "axil-sqlite", "--import")
    with suppress(Exception):
        axil("plugins", "test", "axil-sqlite")
    assert len(started) >= 3 + IN_PLACE  # what is in place is built
    assert not (tmp_path / "taken").exists()


CODED = {
    "functions": '[workflows]\nfiles = ["flow.json"]\nfunctions = "own"\n',
    "a graph in Python": '[workflows]\nfiles = ["own/made.py:graph"]\n',
    "sources": '[workflows]\nfiles = ["flow.json"]\n[sources]\naxil-control = "own"\n',
    "verify.allow_code": '[workflows]\nfiles = ["flow.json"]\n[verify]\nallow_code = true\n',
}


@pytest.mark.parametrize("part", CODED)
def test_a_build_file_runs_code_with_leave_only(axil, flow, tmp_path, part):
    touch = "import pathlib\npathlib.Path('taken').touch()\n"
    flow(FLOW, "flow.json")
    (tmp_path / "own").mkdir()
    for name in ("made.py", "processors.py", "backend.py"):
        (tmp_path / "own" / name).write_text(touch)
    (tmp_path / "own/pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (tmp_path / "axil-build.toml").write_text(CODED[part])
    done = axil("build", "axil-build.toml")
    assert (done.code, "AX700" in done.err) == (2, True)
    assert f"{part} is code" in " ".join(done.err.split())
    assert "--allow code" in done.err
    assert not (tmp_path / "taken").exists()
    allowed = axil("build", "axil-build.toml", "--allow", "code", "--until", "plan")
    assert "is code" not in allowed.err


@pytest.mark.parametrize("version", ["1\nRUN x", "../../x", "1/2", "1.0\nRequires-Dist: evil", ""])
def test_the_version_of_a_build_is_a_version(axil, flow, tmp_path, version):
    flow(FLOW, "flow.json")
    (tmp_path / "axil-build.toml").write_text(
        f'[dist]\nversion = {json.dumps(version)}\n[workflows]\nfiles = ["flow.json"]\n'
    )
    done = axil("build", "axil-build.toml", "--until", "plan")
    assert (done.code, "expected a version" in done.err) == (2, True)


def test_a_build_goes_through_no_link_out_of_the_folder(axil, flow, tmp_path):
    """The usual folder is not typed, so a link in its place was put there by somebody else."""
    flow(FLOW, "flow.json")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (outside / "flow").mkdir(parents=True)
    (outside / "flow/plan.json").write_text("{}")
    (tmp_path / "build").symlink_to(outside)
    done = axil("build", "flow.json", "--until", "lock")
    assert (done.code, "AX746" in done.err) == (2, True)
    assert [each.name for each in outside.rglob("*")] == ["flow", "plan.json"]


def test_a_build_packs_no_file_that_a_link_leads_to(axil, flow, tmp_path):
    secret = tmp_path.parent / f"{tmp_path.name}-secret.json"
    secret.write_text(FLOW)
    (tmp_path / "inner.json").symlink_to(secret)
    use = {"type": "file", "config": {"path": "inner.json"}}
    node = {"id": "s", "type": "subgraph", "config": use}
    file = flow(json.dumps({"graph": {"nodes": [node], "start": ["s"]}}), "flow.json")
    done = axil("build", file, "--until", "plan")
    assert (done.code, "AX117" in done.err) == (2, True)


def installed(folder: Path, rows: dict[str, str | None], content: str = "x") -> Any:
    """Make a distribution whose RECORD has these rows; a hash that is None is the right one."""
    info = folder / "site/tool-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    lines = ["tool-1.0.dist-info/METADATA,,", "tool-1.0.dist-info/WHEEL,,"]
    for path, digest in rows.items():
        lines.append(f"{path},{hashed(content.encode()) if digest is None else digest},")
    (info / "RECORD").write_text("\n".join(lines) + "\n")
    return PathDistribution(info)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    def pack(rows: dict[str, str | None], content: str = "x") -> Any:
        (tmp_path / "secret").write_text("a secret")
        metadata = installed(tmp_path, rows, content)
        monkeypatch.setattr(wheels, "metadata_of", lambda name: metadata)
        (tmp_path / "out").mkdir()
        return wheels.make(["tool"], tmp_path / "out", {})

    return pack


@pytest.mark.parametrize(
    "row", ["tool/../../secret", "./../secret", "../secret", "{tmp}/secret", "tool\\..\\..\\secret"]
)
def test_a_record_leads_a_build_to_no_file_outside(packed, tmp_path, row):
    with pytest.raises(ConfigError, match=r"AX742.*outside"):
        packed({row.format(tmp=tmp_path): ""})
    assert not list((tmp_path / "out").iterdir())


def test_a_link_among_installed_files_leads_a_build_nowhere(packed, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/tool.py").symlink_to(tmp_path / "secret")
    (tmp_path / "site").rename(tmp_path / "kept")
    with pytest.raises(ConfigError, match="AX742"):
        packed({"../kept/tool.py": ""})


def test_a_file_that_changed_after_it_was_installed_is_not_packed(packed, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/tool.py").write_text("other")
    (tmp_path / "site").rename(tmp_path / "before")
    made = installed(tmp_path, {"tool.py": None})
    (tmp_path / "before/tool.py").rename(tmp_path / "site/tool.py")
    with pytest.raises(ConfigError, match=r"AX742.*tool\.py is not what was installed"):
        wheels._packed("tool", made, tmp_path)


def wheel_of(
    folder: Path, files: dict[str, bytes], name: str = "tool-1.0-py3-none-any.whl"
) -> Path:
    info = "tool-1.0.dist-info"
    whole = {
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        **files,
    }
    whole[f"{info}/RECORD"] = wheels.record_of(whole, f"{info}/RECORD")
    path = folder / name
    with zipfile.ZipFile(path, "w") as made:
        for each, data in whole.items():
            made.writestr(each, data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../evil.py", "tool/../../evil.py", "/etc/evil", "C:/evil.py", "tool\\..\\evil.py",
        "tool-1.0.data/scripts/../../../evil", "tool-1.0.data/data/../../evil",
        "a\nb.py", "a\x1b.py",
    ],
)  # fmt: skip
def test_a_wheel_whose_files_lead_out_is_refused(tmp_path, name):
    given = wheel_of(tmp_path, {name: b"x"})
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match=r"AX742.*tool") as caught:
        wheels.make(["tool"], tmp_path / "out", {"tool": str(given)})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tool.whl", None),
        ("other-1.0-py3-none-any.whl", None),
        ("tool-1.0-py3-none-any.whl", b"no"),
    ],
)
def test_what_is_no_wheel_of_that_name_is_refused(tmp_path, name, data):
    given = wheel_of(tmp_path, {}, name)
    if data is not None:
        given.write_bytes(data)
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError, match="AX742"):
        wheels.make(["tool"], tmp_path / "out", {"tool": str(given)})


def test_a_build_says_what_its_wheels_start_and_put_elsewhere(tmp_path):
    given = wheel_of(
        tmp_path,
        {
            "tool.pth": b"import os\n",
            "tool-1.0.data/purelib/more.pth": b"import os\n",
            "tool-1.0.data/data/etc/tool.conf": b"x",
            "tool-1.0.data/scripts/tool": b"#!python\n",
        },
    )
    (tmp_path / "out").mkdir()
    [made] = wheels.make(["tool"], tmp_path / "out", {"tool": str(given)})
    assert made.notable == (
        "tool-1.0.data/data/etc/tool.conf", "tool-1.0.data/purelib/more.pth",
        "tool-1.0.data/scripts/tool", "tool.pth",
    )  # fmt: skip


@pytest.mark.skipif(not IN_PLACE, reason="axil-core is installed from a wheel")
def test_a_distribution_in_place_is_digested_whatever_its_package_is_called(axil, flow):
    """As the kernel is, whose package is called axil."""
    file = flow(FLOW, "flow.json")
    axil("lock", file)
    said = json.loads(Path(f"{file}.lock").read_text())["distributions"]["axil-core"]
    assert said["editable"]


GIVEN = {"url": "file:///w/acme_own-1.0-py3-none-any.whl", "archive_info": {"hashes": {}}}


@pytest.mark.parametrize("hashes", [{"sha256": "ab" * 32}, {}])
def test_what_came_from_no_index_is_asked_for_in_none(monkeypatch, hashes):
    from axil_plugins import pylock

    def asked(*given: Any, **more: Any) -> Any:
        raise AssertionError(f"an index was asked: {given}")

    monkeypatch.setattr(pylock.subprocess, "run", asked)
    direct = {**GIVEN, "archive_info": {"hashes": hashes}}
    locked = {"acme-own": {"version": "1.0", "source": "", "direct": direct}}
    if hashes:
        assert f'url = "{direct["url"]}"' in pylock.pylock_of(locked, "pylock.flow.toml")
    else:
        with pytest.raises(ConfigError, match=r"AX739.*acme-own came from no index"):
            pylock.pylock_of(locked, "pylock.flow.toml")
