"""Each thing that can be wrong with an installation is found, with why it matters and how to mend
it.
"""

from __future__ import annotations

import json
import re
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from axil.plugin import Component, install_advice
from axil_plugins.doctor import imported


def findings(done, check):
    return [each for each in done.data["findings"] if each["check"] == check]


def doctor(axil, *more):
    return axil("plugins", "doctor", *more, "--format", "json")


MANIFEST = {
    "manifest": 1,
    "distribution": "acme-a",
    "components": [{"kind": "nodes", "name": "acme.tick"}],
}


def test_an_installation_in_order_has_no_errors(axil):
    done = doctor(axil)
    here = {"axil-core", "axil-cli", "axil-control", "axil-plugins", "axil-testing", "axil-files"}
    assert [
        each
        for each in done.data["findings"]
        if each["severity"] == "error" and each["distribution"] in here
    ] == []


@pytest.mark.parametrize(
    ("check", "make"),
    [
        ("no-manifest", lambda w: w.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})),
        (
            "conflict",
            lambda w: [w.distribution(f"acme-{x}", nodes={"acme.tick": "m:T"}) for x in "ab"],
        ),
        ("spec", lambda w: w.distribution("acme-a", **{"nodes.v3": {"acme.tick": "m:T"}})),
        ("bare-name", lambda w: w.distribution("acme-a", nodes={"tick": "m:T"})),
        ("name", lambda w: w.distribution("acme-a", nodes={"Acme.Tick": "m:T"})),
        (
            "missing",
            lambda w: w.distribution(
                "acme-a", requires=("no-such-thing>=1",), nodes={"acme.tick": "m:T"}
            ),
        ),
        (
            "version",
            lambda w: w.distribution(
                "acme-a", requires=("axil-core>=99",), nodes={"acme.tick": "m:T"}
            ),
        ),
        (
            "pin",
            lambda w: w.distribution(
                "acme-a", requires=("pydantic==2.0",), nodes={"acme.tick": "m:T"}
            ),
        ),
        (
            "pin",
            lambda w: w.distribution(
                "acme-a", requires=("axil-core<99",), nodes={"acme.tick": "m:T"}
            ),
        ),
        (
            "requirement",
            lambda w: w.distribution(
                "acme-a", requires=("not a requirement !",), nodes={"acme.tick": "m:T"}
            ),
        ),
    ],
)
def test_what_is_wrong_with_metadata_is_found(world, axil, check, make):
    make(world)
    found = findings(doctor(axil, "acme-a"), check)
    assert found
    assert all(each["why"] and each["fix"] and each["message"] for each in found)
    assert {each["distribution"] for each in found} == {"acme-a"}


def test_of_two_that_provide_a_name_none_is_preferred(world, axil):
    for each in ("acme-a", "acme-b"):
        world.distribution(each, nodes={"acme.tick": "m:T"})
    fixes = {each["distribution"]: each["fix"] for each in findings(doctor(axil), "conflict")}
    assert set(fixes) == {"acme-a", "acme-b"}
    assert all(f'"nodes:acme.tick" = "{name}"' in fix for name, fix in fixes.items())


@pytest.mark.parametrize(
    ("kind", "name", "fix"),
    [
        ("nodes", "Acme.Tick", "Call it vendor.acme_tick."),
        ("options", "quiet_run", "Call it command.quiet-run."),
        ("protocols", "acme.Long_Poll", "Call it vendor.acme-long-poll."),
    ],
)
def test_each_kind_has_its_own_form_of_names(world, axil, kind, name, fix):
    world.distribution("acme-a", **{kind: {name: "m:T"}})
    (found,) = findings(doctor(axil, "acme-a"), "name")
    assert found["fix"] == fix


def test_a_group_that_nothing_reads_is_found_and_the_one_that_is_meant(world, axil):
    world.distribution("acme-a", nodez={"acme.tick": "m:T"})
    (found,) = findings(doctor(axil), "group")
    assert (found["severity"], found["distribution"]) == ("error", "acme-a")
    assert "the group axil.nodez, which nothing reads" in found["message"]
    assert found["fix"] == 'Did you mean "axil.nodes"?'
    for action in ("show", "test", "doctor"):
        said = axil("plugins", action, "acme-a").err
        assert said.startswith('error: AX301 "acme-a" registers no component: ')
        assert 'Did you mean "axil.nodes"?' in said


def test_a_manifest_that_describes_something_else_is_found(world, axil):
    world.distribution("acme-a", nodes={"acme.tock": "acme_a:T"}, plugin={"acme-a": "acme_a"})
    world.package("acme_a", manifest=MANIFEST)
    (found,) = findings(doctor(axil, "acme-a"), "stale-manifest")
    assert (
        "nodes:acme.tock is registered and not described; nodes:acme.tick is described and not "
        "registered" in found["message"]
    )


def test_a_plugin_that_is_there_twice_is_found(world, axil, tmp_path, monkeypatch):
    world.distribution("acme-a", nodes={"acme.tick": "m:T"})
    other = type(world)(tmp_path / "other")
    other.folder.mkdir()
    monkeypatch.syspath_prepend(str(other.folder))
    other.distribution("acme-a", "2.0", nodes={"acme.tick": "m:T"})
    assert findings(doctor(axil, "acme-a"), "twice")


@pytest.mark.parametrize(
    ("source", "check"),
    [('[project.entry-points."axil.nodes"]\n"acme.new" = "m:T"\n', "stale"), (None, "orphan")],
)
def test_an_editable_installation_that_is_behind_its_source_is_found(
    world, axil, tmp_path, source, check
):
    world.distribution("acme-a", nodes={"acme.tick": "m:T"})
    folder = tmp_path / "source"
    if source is not None:
        folder.mkdir()
        (folder / "pyproject.toml").write_text(source)
    said = {"url": folder.as_uri(), "dir_info": {"editable": True}}
    (world.folder / "acme_a-1.0.dist-info" / "direct_url.json").write_text(json.dumps(said))
    (found,) = findings(doctor(axil, "acme-a"), check)
    assert found["severity"] == "error"


def test_a_sites_index_that_cannot_be_read_is_found(world, axil, monkeypatch, tmp_path):
    monkeypatch.setenv("AXIL_INDEX", str(tmp_path / "none.json"))
    assert findings(doctor(axil), "index")


@pytest.mark.parametrize(
    ("code", "check"),
    [
        ("raise RuntimeError('boom')", "import"),
        ("print('hello')\nclass T: ...", "output"),
        ("x = 1", "import"),
        ("T = None", "import"),
        ("import os; os._exit(3)", "import"),
    ],
)
def test_an_import_that_goes_wrong_is_found_in_another_process(
    world, axil, monkeypatch, code, check
):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    world.package("acme_a", code + "\n")
    monkeypatch.setenv("PYTHONPATH", str(world.folder))
    assert findings(doctor(axil, "acme-a"), "import") == []
    (found,) = findings(doctor(axil, "acme-a", "--import"), check)
    assert "acme.tick" in found["message"]


@pytest.mark.parametrize(
    ("taken", "reported"), [((4.0, 0.3), []), ((4.0, 3.0), ["3.0"]), ((0.3,), [])]
)
def test_an_import_is_slow_that_is_slow_twice(monkeypatch, taken, reported):
    """The first time may be that of a cold disk."""
    each = iter(taken)

    def run(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(
            returncode=0,
            stdout=json.dumps({"seconds": next(each), "modules": 9, "printed": ""}),
            stderr="",
        )

    monkeypatch.setattr(subprocess, "run", run)
    component = Component(
        kind="nodes", name="acme.tick", distribution="acme-a", version="1", value="acme_a:T"
    )
    found = [each.message for each in imported(component, "acme_a", "T") if each.check == "slow"]
    assert [re.search(r"takes (\S+) seconds", message)[1] for message in found] == reported
    assert list(each) == []


def test_the_exit_code_says_whether_something_is_wrong(world, axil):
    world.distribution("acme-a", nodes={"tick": "m:T"})
    assert axil("plugins", "doctor", "acme-a").code == 0
    assert axil("plugins", "doctor", "acme-a", "--strict").code == 2
    world.distribution("acme-b", requires=("axil-core>=99",), nodes={"acme.x": "m:T"})
    done = axil("plugins", "doctor", "acme-b")
    assert done.code == 2
    assert f"fix: {install_advice('axil-core>=99')}" in done.out
    assert "policy: everything that is installed may be used" in done.out
