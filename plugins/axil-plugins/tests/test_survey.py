"""Looking at what is installed: without an import, with everything broken, under any policy."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

BROKEN = "raise RuntimeError('boom')\n"


def rows(done, **wanted):
    return [
        row
        for row in done.data["components"]
        if all(row[key] == value for key, value in wanted.items())
    ]


def test_every_component_is_listed_with_its_standing(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T", "shared": "acme_a:S"})
    world.distribution("acme-b", "2.0", nodes={"shared": "acme_b:S"})
    world.distribution("acme-c", **{"nodes.v2": {"acme.new": "acme_c:N"}})
    done = axil("plugins", "list", "--format", "json")
    assert done.code == 0
    assert [row["status"] for row in rows(done, name="acme.tick")] == ["ok"]
    assert [(row["distribution"], row["status"]) for row in rows(done, name="shared")] == [
        ("acme-a", "conflict"),
        ("acme-b", "conflict"),
    ]
    (new,) = rows(done, name="acme.new")
    assert (new["status"], new["reason"]) == (
        "spec",
        "it is written for version 2.0 of node types, and this axil understands 1.0",
    )
    table = axil("plugins", "list", "--kind", "nodes")
    assert "acme.tick" in table.out
    assert table.out.splitlines()[0].split() == [
        "kind",
        "name",
        "distribution",
        "version",
        "spec",
        "status",
        "summary",
    ]
    assert all(line.split()[0] == "nodes" for line in table.out.splitlines()[1:])


def test_a_policy_is_shown_with_its_origin(world, axil, tmp_path, monkeypatch):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    (tmp_path / "axil.toml").write_text('[plugins]\nblock = ["acme-a"]\n')
    done = axil("plugins", "list", "--format", "json")
    (tick,) = rows(done, name="acme.tick")
    assert (tick["status"], tick["reason"]) == (
        "blocked",
        f"the policy blocks acme-a ({tmp_path / 'axil.toml'})",
    )
    assert done.data["policy"]["said_by"] == {"block": str(tmp_path / "axil.toml")}


@pytest.mark.parametrize("options", [["--no-plugins"], ["--only-plugins", "axil-control"]])
def test_plugins_are_listed_however_few_are_admitted(world, axil, options):
    done = axil(*options, "plugins", "list", "--format", "json")
    assert done.code == 0
    assert {row["status"] for row in rows(done, distribution="axil-journals")} == {"blocked"}
    assert {row["status"] for row in rows(done, distribution="axil-core")} == {"ok"}


def test_with_every_plugin_broken_one_can_still_look_and_mend(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"}, plugin={"acme-a": "acme_a"})
    world.package("acme_a", BROKEN, "{")
    (world.folder / "acme_bad-1.0.dist-info").mkdir()
    (world.folder / "acme_bad-1.0.dist-info" / "entry_points.txt").write_text(
        "[axil.nodes]\ngarbage"
    )
    for command in (
        ["list"],
        ["show", "acme-a"],
        ["doctor"],
        ["show", "nodes:acme.tick"],
        ["list", "--requirements"],
    ):
        assert axil("plugins", *command).code in (0, 2)
    reported = axil("plugins", "doctor").out
    assert "acme_bad-1.0.dist-info" in reported
    assert "acme-a: its manifest cannot be read" in reported
    assert "acme_a" not in sys.modules


def test_what_is_there_can_be_installed_again(world, axil):
    world.distribution("acme-a", "1.2.3", nodes={"acme.tick": "acme_a:T"})
    assert "acme-a==1.2.3" in axil("plugins", "list", "--requirements").out.splitlines()
    assert "acme-a==1.2.3" in axil("plugins", "list", "--requirements", "--format", "json").data


def test_a_distribution_is_shown(world, axil):
    world.distribution("acme-a", requires=("axil-core>=0.1",), nodes={"acme.tick": "acme_a:T"})
    done = axil("plugins", "show", "Acme_A")
    assert done.out.startswith(
        "acme-a 1.0\nfake acme-a\nrequires: axil-core>=0.1\nIt has no manifest"
    )
    said = axil("plugins", "show", "acme-a", "--format", "json").data
    assert [each["name"] for each in said["components"]] == ["acme.tick"]
    unknown = axil("plugins", "show", "acme-b")
    assert unknown.code == 2
    assert 'no plugin is called "acme-b". Did you mean "acme-a"?' in unknown.err


def test_a_component_without_its_kind_is_found(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    for name in ("acme.tick", "acme.tik"):
        assert "axil plugins show nodes:acme.tick." in axil("plugins", "show", name).err


@pytest.mark.parametrize("action", ["show", "manifest", "docs", "test", "doctor"])
def test_a_distribution_that_is_meant_is_named(axil, action):
    done = axil("plugins", action, "axil-agnt")
    assert done.code == 2
    assert done.err.startswith('error: AX301 no plugin is called "axil-agnt". Did you mean "axil-a')


def test_a_component_is_shown_from_its_manifest(axil):
    reported = axil("plugins", "show", "nodes:literal").out
    assert "content" in reported
    assert "required" in reported
    assert axil("plugins", "show", "node:literal", "--schema").data["required"] == ["content"]
    assert json.loads(axil("plugins", "show", "nodes:literal", "--example").out) == {
        "type": "literal",
        "config": {"content": "Go on."},
    }
    assert (
        axil("plugins", "show", "nodes:literal", "--format", "json").data["distribution"]
        == "axil-control"
    )


@pytest.mark.parametrize(
    ("what", "reported"),
    [
        (["nodes:litral"], 'Did you mean "literal"'),
        (["thing:x"], 'no kind of component is called "thing"'),
        (["axil-control", "--schema"], "AX730 --schema: expected a component, as kind:name."),
    ],
)
def test_what_cannot_be_shown_is_reported(axil, what, reported):
    done = axil("plugins", "show", *what)
    assert done.code == 2
    assert reported in done.err


def test_pages_are_made_of_a_manifest(axil, tmp_path):
    page = axil("plugins", "docs", "axil-control").out
    assert "# Node types of axil-control" in page
    assert "| `content` | text | required | The text of the message. |" in page
    done = axil("plugins", "docs", "axil-control", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "nodes.md").is_file()
    assert str(tmp_path / "out" / "nodes.md") in done.out.splitlines()


def test_pages_of_a_plugin_without_manifest_come_from_its_classes(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:Tick"})
    world.package("acme_a", 'class Tick:\n    """``acme.tick``: it ticks."""\n')
    assert "## acme.tick\n\nIt ticks." in axil("plugins", "docs", "acme-a").out


# --------------------------------------------------------------------------------------------------


def manifest(distribution: str, **names: list[str]) -> dict[str, Any]:
    """Return a manifest of node types of acme, each with its old names."""
    components = [
        {"kind": "nodes", "name": f"acme.{name}", "aliases": old} for name, old in names.items()
    ]
    return {"manifest": 1, "distribution": distribution, "components": components}


@pytest.fixture
def moved(world):
    """``acme.tick`` of acme-old is ``acme.tock`` of acme-new today."""
    world.distribution(
        "acme-new", "2.0", nodes={"acme.tock": "acme_new:T"}, plugin={"acme-new": "acme_new"}
    )
    world.package(
        "acme_new", manifest=manifest("acme-new", tock=["acme.tick", "acme-old/acme.tick"])
    )
    return world


def test_old_names_are_listed_with_the_new_one(moved, axil):
    done = axil("plugins", "list", "--format", "json")
    (old,) = rows(done, name="acme.tick")
    assert (old["distribution"], old["status"], old["summary"]) == (
        "acme-new",
        "alias",
        "old name of acme.tock",
    )
    assert [row["status"] for row in rows(done, name="acme-old/acme.tick")] == ["alias"]
    assert [row["status"] for row in rows(done, name="acme.tock")] == ["ok"]
    assert "old name of acme.tock" in axil("plugins", "list", "--kind", "nodes").out


def test_a_component_is_shown_by_its_old_name_and_with_it(moved, axil, caplog):
    assert (
        "formerly: acme.tick, acme-old/acme.tick" in axil("plugins", "show", "nodes:acme.tock").out
    )
    assert not caplog.records
    shown = axil("plugins", "show", "nodes:acme.tick", "--format", "json").data
    assert (shown["name"], shown["aliases"]) == ("acme.tock", ["acme.tick", "acme-old/acme.tick"])
    assert [each.getMessage().split()[0] for each in caplog.records] == ["AX326"]
    assert "Formerly: `acme.tick`" in axil("plugins", "docs", "acme-new").out


NOW = '{"graph": {"nodes": [{"id": "a", "type": "%s"}], "edges": [], "start": ["a"]}}'


@pytest.mark.parametrize("written", ["acme.tick", "acme-new/acme.tick", "acme-old/acme.tick"])
def test_why_says_what_an_old_name_is_now(moved, axil, flow, written):
    file = flow(NOW % written, "flow.json")
    distribution, _ = axil("plugins", "why", file, "--format", "json").data["distributions"]
    assert (distribution["distribution"], distribution["uses"][0]["now"]) == (
        "acme-new",
        "acme-new/acme.tock",
    )
    assert f"nodes:{written} (now acme-new/acme.tock)" in axil("plugins", "why", file).out


@pytest.mark.parametrize("written", ["acme.tock", "acme-new/acme.tock", "Acme_New/acme.tock"])
def test_why_says_nothing_of_a_name_of_today(moved, axil, flow, written):
    distribution, _ = axil(
        "plugins", "why", flow(NOW % written, "flow.json"), "--format", "json"
    ).data["distributions"]
    assert distribution["uses"][0]["now"] == ""


def test_check_warns_of_an_old_name_where_it_is_written(moved, axil, flow, caplog):
    (moved.folder / "acme_new" / "__init__.py").write_text(
        "class T:\n    def run(self, messages): return messages\n"
    )
    (each,) = axil("check", flow(NOW % "acme.tick", "flow.json"), "--format", "json").data["files"]
    (problem,) = each["problems"]
    assert (problem["id"], problem["severity"]) == ("AX326", "warning")
    assert "flow.json" in problem["where"]
    assert problem["hint"].startswith('Write "acme.tock"')
    assert not caplog.records


def test_the_doctor_names_old_names_that_are_not_what_they_were(moved, axil, monkeypatch):
    moved.distribution("acme-b", nodes={"acme.tack": "acme_b:T"}, plugin={"acme-b": "acme_b"})
    moved.package("acme_b", manifest=manifest("acme-b", tack=["acme.tick"]))
    moved.distribution("acme-old", nodes={"acme.tick": "acme_old:T"})
    monkeypatch.setenv("AXIL_BLOCK", "nodes:acme.gone")
    reported = axil("plugins", "doctor", "--format", "json").data["findings"]
    hidden = {
        each["distribution"]: each["severity"] for each in reported if each["check"] == "alias"
    }
    assert hidden == {"acme-new": "note", "acme-b": "note"}


def test_two_claims_to_an_old_name_are_a_conflict_of_names(moved, axil):
    moved.distribution("acme-b", nodes={"acme.tack": "acme_b:T"}, plugin={"acme-b": "acme_b"})
    moved.package("acme_b", manifest=manifest("acme-b", tack=["acme.tick"]))
    assert {
        row["status"] for row in rows(axil("plugins", "list", "--format", "json"), name="acme.tick")
    } == {"alias conflict"}
    reported = [
        each
        for each in axil("plugins", "doctor", "--format", "json").data["findings"]
        if each["check"] == "alias"
    ]
    assert {each["distribution"]: each["fix"] for each in reported} == {
        "acme-new": "Write acme-new/acme.tock in files that mean this one.",
        "acme-b": "Write acme-b/acme.tack in files that mean this one.",
    }


def test_a_block_of_an_old_name_is_reported_as_without_effect_on_the_new_one(
    moved, axil, monkeypatch
):
    monkeypatch.setenv("AXIL_BLOCK", "nodes:acme.tick")
    (reported,) = [
        each
        for each in axil("plugins", "doctor", "--format", "json").data["findings"]
        if each["check"] == "alias"
    ]
    assert (reported["severity"], reported["fix"]) == ("warning", "Block nodes:acme.tock, too.")


def test_a_rule_that_fits_nothing_is_found(moved, axil, monkeypatch):
    monkeypatch.setenv("AXIL_BLOCK", "acme-neww,nodes:acme.tock")
    (reported,) = [
        each
        for each in axil("plugins", "doctor", "--format", "json").data["findings"]
        if each["check"] == "rule"
    ]
    assert '"acme-neww"' in reported["message"]
    assert (reported["severity"], reported["fix"]) == ("warning", 'Did you mean "acme-new"?')


@pytest.fixture
def fading(world):
    """A node type that says of itself that it is deprecated."""
    stated = manifest("acme-new", tock=[])
    (described,) = stated["components"]
    described.update(stability="deprecated", replacement="acme.bell")
    world.distribution(
        "acme-new", nodes={"acme.tock": "acme_new:T"}, plugin={"acme-new": "acme_new"}
    )
    world.package("acme_new", "class T:\n    def run(self, messages): return messages\n", stated)


def test_check_and_run_warn_of_a_deprecated_component_where_it_is_used(fading, axil, flow, caplog):
    file = flow(NOW % "acme.tock", "flow.json")
    (each,) = axil("check", file, "--format", "json").data["files"]
    (problem,) = each["problems"]
    assert (problem["id"], problem["severity"]) == ("AX327", "warning")
    assert "flow.json" in problem["where"]
    assert problem["hint"] == "Use acme.bell instead."
    assert not caplog.records
    assert axil("run", file, "--input", "hello").code == 0
    assert [each.getMessage().split()[0] for each in caplog.records] == ["AX327"]


def test_list_and_doctor_name_deprecated_components_and_what_replaces_them(fading, axil):
    (row,) = rows(axil("plugins", "list", "--format", "json"), name="acme.tock")
    assert (row["status"], row["reason"]) == ("deprecated", "Use acme.bell instead.")
    assert "deprecated  Use acme.bell" in axil("plugins", "list", "--kind", "nodes").out
    reported = axil("plugins", "doctor", "--format", "json").data["findings"]
    found = {each["distribution"]: each for each in reported if each["check"] == "deprecated"}
    assert list(found) == ["acme-new"]
    assert (found["acme-new"]["severity"], found["acme-new"]["fix"]) == (
        "note",
        "Use acme.bell instead.",
    )
