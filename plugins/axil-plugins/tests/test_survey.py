"""Looking at what is installed: without an import, with everything broken, under any policy."""

from __future__ import annotations

import json
import sys

import pytest

BROKEN = "raise RuntimeError('boom')\n"


def rows(done, **wanted):
    return [row for row in done.data["components"] if all(row[key] == value for key, value in wanted.items())]


def test_every_component_is_listed_with_its_standing(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T", "shared": "acme_a:S"})
    world.distribution("acme-b", "2.0", nodes={"shared": "acme_b:S"})
    world.distribution("acme-c", **{"nodes.v2": {"acme.new": "acme_c:N"}})
    done = axil("plugins", "list", "--format", "json")
    assert done.code == 0
    assert [row["status"] for row in rows(done, name="acme.tick")] == ["ok"]
    assert [(row["distribution"], row["status"]) for row in rows(done, name="shared")] == [("acme-a", "conflict"), ("acme-b", "conflict")]
    (new,) = rows(done, name="acme.new")
    assert (new["status"], new["reason"]) == ("spec", "it is written for version 2.0 of node types, and this axil understands 1.0")
    table = axil("plugins", "list", "--kind", "nodes")
    assert "acme.tick" in table.out
    assert table.out.splitlines()[0].split() == ["kind", "name", "distribution", "version", "spec", "status", "summary"]
    assert all(line.split()[0] == "nodes" for line in table.out.splitlines()[1:])


def test_policy_is_told_with_whoever_said_it(world, axil, tmp_path, monkeypatch):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"})
    (tmp_path / "axil.toml").write_text('[plugins]\nblock = ["acme-a"]\n')
    done = axil("plugins", "list", "--format", "json")
    (tick,) = rows(done, name="acme.tick")
    assert (tick["status"], tick["reason"]) == ("blocked", f"the policy blocks acme-a ({tmp_path / 'axil.toml'})")
    assert done.data["policy"]["said_by"] == {"block": str(tmp_path / "axil.toml")}


@pytest.mark.parametrize("options", [["--no-plugins"], ["--only-plugins", "axil-control"]])
def test_plugins_are_listed_however_few_are_admitted(world, axil, options):
    done = axil(*options, "plugins", "list", "--format", "json")
    assert done.code == 0
    assert {row["status"] for row in rows(done, distribution="axil-yaml")} == {"blocked"}
    assert {row["status"] for row in rows(done, distribution="axil")} == {"ok"}


def test_with_every_plugin_broken_one_can_still_look_and_mend(world, axil):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:T"}, plugin={"acme-a": "acme_a"})
    world.package("acme_a", BROKEN, "{")
    (world.folder / "acme_bad-1.0.dist-info").mkdir()
    (world.folder / "acme_bad-1.0.dist-info" / "entry_points.txt").write_text("[axil.nodes]\ngarbage")
    for command in (["list"], ["show", "acme-a"], ["doctor"], ["show", "nodes:acme.tick"], ["list", "--requirements"]):
        assert axil("plugins", *command).code in (0, 2)
    told = axil("plugins", "doctor").out
    assert "acme_bad-1.0.dist-info" in told
    assert "acme-a: its manifest cannot be read" in told
    assert "acme_a" not in sys.modules


def test_what_is_there_can_be_installed_again(world, axil):
    world.distribution("acme-a", "1.2.3", nodes={"acme.tick": "acme_a:T"})
    assert "acme-a==1.2.3" in axil("plugins", "list", "--requirements").out.splitlines()
    assert "acme-a==1.2.3" in axil("plugins", "list", "--requirements", "--format", "json").data


def test_a_distribution_is_shown(world, axil):
    world.distribution("acme-a", requires=("axil>=0.1",), nodes={"acme.tick": "acme_a:T"})
    done = axil("plugins", "show", "Acme_A")
    assert done.out.startswith("acme-a 1.0\nfake acme-a\nrequires: axil>=0.1\nIt has no manifest")
    said = axil("plugins", "show", "acme-a", "--format", "json").data
    assert [each["name"] for each in said["components"]] == ["acme.tick"]
    unknown = axil("plugins", "show", "acme-b")
    assert unknown.code == 2
    assert 'no plugin is called "acme-b". Did you mean "acme-a"?' in unknown.err


def test_a_component_is_shown_from_its_manifest(axil):
    told = axil("plugins", "show", "nodes:literal").out
    assert "content" in told
    assert "required" in told
    assert axil("plugins", "show", "node:literal", "--schema").data["required"] == ["content"]
    assert json.loads(axil("plugins", "show", "nodes:literal", "--example").out) == {"type": "literal", "config": {"content": "Go on."}}
    assert axil("plugins", "show", "nodes:literal", "--format", "json").data["distribution"] == "axil-control"


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (["nodes:litral"], 'Did you mean "literal"'),
        (["thing:x"], 'no kind of component is called "thing"'),
        (["axil-control", "--schema"], "AX730 --schema: expected a component, as kind:name."),
    ],
)
def test_what_cannot_be_shown_is_told(axil, what, told):
    done = axil("plugins", "show", *what)
    assert done.code == 2
    assert told in done.err


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
