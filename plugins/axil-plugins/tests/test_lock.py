"""A lock lists the parts of a workflow; every change since then is reported."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tomllib
import zipfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from axil import ConfigError
from axil_plugins.pylock import pylock_of


def one(type: str, config: object) -> str:
    return json.dumps(
        {
            "graph": {
                "nodes": [{"id": "a", "type": type, "config": config}],
                "edges": [],
                "start": ["a"],
            }
        }
    )


FLOW = one("subgraph", {"type": "file", "config": {"path": "inner.json"}})
INNER = one("passthrough", {})
AGENT = one("agent", {"model": {"type": "scripted", "config": {"name": "MODEL"}}})


@pytest.fixture
def locked(axil, flow):
    flow(INNER, "inner.json")
    file = flow(FLOW, "flow.json")
    assert axil("lock", file).out == f"{file}.lock: written\n"
    return file


def test_a_lock_names_everything_with_its_digest(axil, locked):
    said = json.loads(Path(f"{locked}.lock").read_text())
    assert {"axil-core", "axil-control", "pydantic"} <= set(said["distributions"])
    assert said["distributions"]["axil-control"]["named"]
    assert not said["distributions"]["pydantic"]["named"]
    assert set(said["files"]) == {"flow.json", "inner.json"}
    assert all(each["digest"].startswith("sha256:") for each in said["distributions"].values())
    assert "axil-agent" not in said["distributions"]


def test_the_same_workflow_has_the_same_lock(axil, locked):
    assert axil("lock", locked).out == f"{locked}.lock: current\n"
    assert axil("lock", locked, "--check").out == f"{locked}: as locked\n"
    assert axil("run", locked, "--locked", "--input", "hello").out == "hello\n"


def test_a_file_that_changed_is_reported(axil, locked):
    inner = Path(locked).with_name("inner.json")
    inner.write_text(inner.read_text().replace('"a"', '"b"'))
    done = axil("lock", locked, "--check")
    assert (done.code, done.out) == (
        2,
        f"{locked}: changed:\n    the file inner.json has changed.\n",
    )
    refused = axil("run", locked, "--locked", "--input", "hello")
    assert refused.code == 2
    assert (
        f"AX737 {locked}.lock: the file inner.json has changed. If that is meant: axil lock "
        f"{locked}" in refused.err
    )
    assert axil("run", locked, "--input", "hello").code == 0


def test_a_lock_that_is_no_text_is_written_anew(axil, locked):
    place = Path(f"{locked}.lock")
    before = place.read_bytes()
    place.write_bytes(before[:100] + b"\xc3")  # cut off inside a letter
    assert axil("lock", locked).out == f"{locked}.lock: written\n"
    assert place.read_bytes() == before


def test_what_cannot_be_written_is_as_it_was(axil, locked, monkeypatch):
    """A lock, and the workflow itself."""

    def full(file: Path, *given: str, **more: str) -> None:
        file.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Path(locked).with_name("inner.json").write_text(INNER + "\n")
    before = digests(Path(locked).parent)
    monkeypatch.setattr(Path, "write_text", full)
    for command in (("lock", locked), ("plugins", "freeze", locked, "--write")):
        assert "AX955" in axil(*command).err
        assert digests(Path(locked).parent) == before


def digests(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


@pytest.mark.parametrize(
    ("bend", "reported"),
    [
        (
            lambda d: d["axil-control"].update(version="9.9"),
            "the distribution axil-control was 9.9, and is 0.1.0.",
        ),
        (
            lambda d: d["axil-control"].update(digest="sha256:0"),
            "the distribution axil-control 0.1.0 has other contents under the same version.",
        ),
        (lambda d: d["pydantic"].update(editable=True), "is installed from a wheel now."),
        (lambda d: d["pydantic"].update(named=True), "pydantic is needed by others."),
        (lambda d: d.pop("pydantic"), "the distribution pydantic is needed and was not."),
        (
            lambda d: d.update(gone={**d["pydantic"], "version": "1"}),
            "the distribution gone is not installed or needed any more.",
        ),
    ],
)
def test_a_distribution_that_changed_is_reported(axil, locked, bend, reported):
    place = Path(f"{locked}.lock")
    said = json.loads(place.read_text())
    bend(said["distributions"])
    place.write_text(json.dumps(said))
    done = axil("lock", locked, "--check", "--format", "json")
    assert done.code == 2
    assert reported in " ".join(done.data[0]["changed"])


def test_another_model_is_reported(axil, flow):
    file = flow(AGENT.replace("MODEL", "small"), "agent.json")
    axil("lock", file)
    flow(AGENT.replace("MODEL", "large"), "agent.json")
    assert (
        "the models changed: scripted:small became scripted:large."
        in axil("lock", file, "--check").out
    )


def test_what_is_needed_and_missing_is_drift(world, axil, flow):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    file = flow(
        '{"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "edges": [], "start": ["a"]}}',
        "flow.json",
    )
    assert axil("lock", file).code == 0
    (world.folder / "acme_a-1.0.dist-info" / "entry_points.txt").write_text("")
    assert "something that it needs is not there any more" in axil("lock", file, "--check").out
    assert axil("lock", file).code == 2


def test_a_wheels_digest_is_that_of_its_record(world, axil, flow):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    record = world.folder / "acme_a-1.0.dist-info" / "RECORD"
    record.write_text(
        "acme_a/__init__.py,sha256=abc,10\nacme_a-1.0.dist-info/INSTALLER,sha256=x,4\n"
        "acme_a/__pycache__/x.pyc,,\n"
    )
    file = flow(
        '{"graph": {"nodes": [{"id": "a", "type": "acme.tick"}], "edges": [], "start": ["a"]}}',
        "flow.json",
    )
    axil("lock", file)
    record.write_text(
        "acme_a/__init__.py,sha256=abc,10\nacme_a-1.0.dist-info/INSTALLER,sha256=y,4\n"
    )
    assert axil("lock", file, "--check").code == 0
    record.write_text("acme_a/__init__.py,sha256=other,10\n")
    assert (
        "acme-a 1.0 has other contents under the same version" in axil("lock", file, "--check").out
    )


def test_components_may_pin_what_is_outside(world, axil, flow, monkeypatch):
    world.distribution("acme-a", tools={"acme.remote": "acme_a:Remote"})
    (world.folder / "acme_a.py").write_text(
        "class Remote:\n    tools = {'read': 'a' * 64, 'stop': 'b' * 64}\n    @classmethod\n    "
        "def pinned(cls, config, allow):\n"
        "        if 'mcp' not in allow:\n"
        "            from axil.plugin import ComponentBlocked\n"
        "            raise ComponentBlocked('it would start a server.')\n"
        "        return {'server': config['url'], 'tools': cls.tools}\n"
    )
    tool = '{"type": "acme.remote", "config": {"url": "stdio"}}'
    file = flow(AGENT.replace('"model":', f'"tools": [{tool}], "model":'), "agent.json")
    assert axil("lock", file).err == "error: AX303 it would start a server.\n"
    assert axil("lock", file, "--allow", "mcp").code == 0
    (place, pinned), *_ = json.loads(Path(f"{file}.lock").read_text())["outside"].items()
    assert (place, pinned["server"], set(pinned["tools"])) == (
        "agent.json nodes[0].config.tools[0]",
        "stdio",
        {"read", "stop"},
    )
    monkeypatch.chdir(Path(file).parent)
    assert axil("lock", "agent.json", "--check", "--allow", "mcp").code == 0
    assert axil("lock", file, "--check").err == "error: AX303 it would start a server.\n"
    import acme_a

    acme_a.Remote.tools = {"read": "c" * 64, "write": "d" * 64}
    changed = (
        "agent.json nodes[0].config.tools[0]: tools.read has changed, tools.stop is gone, "
        "tools.write is new."
    )
    assert changed in axil("lock", file, "--check", "--allow", "mcp").out
    assert (
        f"AX737 {file}.lock: {changed}"
        in axil("run", file, "--locked", "--allow", "mcp", "--input", "x").err
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        "[]",
        '{"lock": 2}',
        "[" * 100_000,
        '{"lock": 1, "distributions": {"axil-core": {}}}',
        '{"lock": 1, "distributions": []}',
        '{"lock": 1, "files": {"flow.json": 3}}',
        '{"lock": 1, "models": [3]}',
    ],
)
def test_a_lock_that_cannot_be_used_is_reported(axil, locked, text):
    place = Path(f"{locked}.lock")
    place.unlink() if text is None else place.write_text(text)
    for command in (["lock", locked, "--check"], ["run", locked, "--locked"]):
        done = axil(*command)
        assert done.code == 2
        assert f"AX736 {place}" in done.err


@pytest.mark.parametrize("part", ["files", "models", "outside", "wants", "distributions"])
def test_a_part_of_a_lock_that_has_another_name_is_damage(axil, locked, part):
    """It would be compared with nothing."""
    place = Path(f"{locked}.lock")
    said = json.loads(place.read_text())
    for changed in ({**said, f"{part}s": said[part]}, {**said}):
        changed.pop(part)
        place.write_text(json.dumps(changed))
        done = axil("lock", locked, "--check")
        assert (done.code, f"AX736 {place}" in done.err) == (2, True)
        assert part in done.err


def test_a_pylock_says_where_installers_find_what_is_locked(tmp_path, monkeypatch):
    wheel = tmp_path / "index" / "acme_shout-1.2-py3-none-any.whl"
    wheel.parent.mkdir()
    about, metadata = "acme_shout-1.2.dist-info", "Metadata-Version: 2.1\nName: acme-shout\n"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr(f"{about}/METADATA", f"{metadata}Version: 1.2\n")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    locked = {
        "acme-shout": {"version": "1.2", "source": ""},
        "acme-own": {"version": "0.1", "source": "../own"},
    }
    text = pylock_of(locked, "pylock.flow.toml")
    with suppress(ModuleNotFoundError):  # of packaging 26
        import_module("packaging.pylock").Pylock.from_dict(tomllib.loads(text))
    shout, own = tomllib.loads(text)["packages"]
    assert shout["wheels"] == [
        {
            "name": wheel.name,
            "url": wheel.as_uri(),
            "hashes": {"sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()},
        }
    ]
    assert own == {"name": "acme-own", "directory": {"path": "../own", "editable": True}}
    with pytest.raises(ConfigError, match=r"AX739 pylock\.flow\.toml: pip does not find"):
        pylock_of({"acme-none": {"version": "9", "source": ""}}, "pylock.flow.toml")
