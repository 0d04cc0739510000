"""Manifests: what is known of a component before it is imported."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from axil.errors import PluginContract
from axil.plugin import Policy, install_advice
from axil.registry.manifest import MANIFEST_FILE, Manifest, parse_manifest, read_manifest
from axil.registry.registry import Registry
from axil.spec.kinds import COMPONENT_KINDS, CONTRACT_VERSIONS, incompatibility

GIVEN = {
    "manifest": 1,
    "distribution": "acme-clocks",
    "spec": {"nodes": "1.0"},
    "components": [
        {
            "kind": "nodes",
            "name": "tick",
            "config_schema": {"type": "object"},
            "examples": [{"hours": 1}],
            "refs": [{"path": "/face", "kind": "formatters", "default": ["json"]}],
            "secrets": ["/key"],
            "a newer axil says": "more",
        }
    ],
}


@dataclass
class Dist:
    name: str
    version: str = "1.0"
    requires: list[str] = field(default_factory=list)


def entry(group: str, name: str, value: str, dist: Any) -> Any:
    return SimpleNamespace(group=group, name=name, value=value, dist=dist)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package that cannot be imported, with a manifest, and gives its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"kit_manifest_{tmp_path.name.replace('-', '_')}"

    def write(data: Any) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')")
        (tmp_path / name / MANIFEST_FILE).write_text(
            data if isinstance(data, str) else json.dumps(data)
        )
        return name

    yield write
    assert name not in sys.modules


def test_a_manifest_is_read_without_an_import(package):
    name = package(GIVEN)
    dist = Dist("Acme.Clocks")
    known = Registry(
        Policy(),
        [
            entry("axil.nodes", "tick", f"{name}:T", dist),
            entry("axil.plugin", "acme-clocks", name, dist),
        ],
    )
    manifest = known.manifest("acme_clocks")
    assert manifest is not None
    tick = manifest.find("nodes", "tick")
    assert tick is not None
    assert tick == GIVEN["components"][0]
    assert manifest.find("nodes", "tock") is None
    assert known.find("nodes", "tick").distribution == "acme-clocks"


def test_a_manifest_is_read_from_an_archive(tmp_path, monkeypatch):
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("kit_zipped_clock/__init__.py", "raise SystemExit")
        file.writestr(f"kit_zipped_clock/{MANIFEST_FILE}", json.dumps(GIVEN))
    monkeypatch.syspath_prepend(str(archive))
    found = read_manifest("kit_zipped_clock")
    assert found is not None
    assert found.distribution == "acme-clocks"
    assert "kit_zipped_clock" not in sys.modules


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        {"manifest": 2},
        {"manifest": 1},
        {"manifest": 1, "distribution": 3},
        {"manifest": 1, "distribution": "x", "components": [{"kind": "nodes"}]},
        {"manifest": 1, "distribution": "x", "components": 3},
        {"manifest": 1, "distribution": "x", "components": [3]},
        {"manifest": 1, "distribution": "x", "spec": {"nodes": 1}},
        {
            "manifest": 1,
            "distribution": "x",
            "components": [{"kind": "nodes", "name": "a", "aliases": "b"}],
        },
        {
            "manifest": 1,
            "distribution": "x",
            "components": [{"kind": "nodes", "name": "a", "refs": [{"path": "/b"}]}],
        },
    ],
)
def test_a_broken_manifest_costs_only_what_it_would_have_said(package, data):
    name = package(data)
    dist = Dist("acme-clocks")
    known = Registry(
        Policy(),
        [
            entry("axil.nodes", "tick", f"{name}:T", dist),
            entry("axil.plugin", "acme-clocks", name, dist),
        ],
    )
    assert known.find("nodes", "tick")
    assert known.manifest("acme-clocks") is None
    assert known.unreadable[0].startswith("acme-clocks: its manifest cannot be read")


@pytest.mark.parametrize("package_name", ["no_such_package_at_all", "json.decoder", "math", ""])
def test_where_there_is_no_manifest_nothing_is_known(package_name):
    assert read_manifest(package_name) is None


def test_a_component_for_another_contract_is_refused_before_it_is_imported(package):
    name = package({**GIVEN, "spec": {"nodes": "3.1"}})
    dist = Dist("acme-clocks", "4.0")
    known = Registry(
        Policy(),
        [
            entry("axil.nodes", "tick", f"{name}:T", dist),
            entry("axil.plugin", "acme-clocks", name, dist),
        ],
    )
    with pytest.raises(PluginContract) as caught:
        known.resolve("nodes", "tick", "flow.yaml:3")
    assert str(caught.value) == (
        'AX310 flow.yaml:3: the node type "tick" of acme-clocks 4.0 cannot be used: it is '
        "written for version 3.1 of node types, "
        "and this axil understands 1.0. Upgrade the older side: "
        + install_advice("axil-core", "acme-clocks", how="upgrade")
    )


def test_a_plugin_may_serve_two_kernels():
    dist = Dist("acme-clocks")
    for order in (1, -1):
        entries = [
            entry("axil.nodes", "tick", "json:loads", dist),
            entry("axil.nodes.v2", "tick", "json:dumps", dist),
        ][::order]
        assert Registry(Policy(), entries).resolve("nodes", "tick") is json.loads
    only_new = Registry(Policy(), [entry("axil.nodes.v2", "tick", "json:dumps", dist)])
    assert only_new.names("nodes") == ()
    with pytest.raises(PluginContract, match=r"AX310 .*version 2\.0 of node types"):
        only_new.resolve("nodes", "tick")


def test_every_kind_has_a_contract_and_a_window():
    assert set(CONTRACT_VERSIONS) == set(COMPONENT_KINDS)
    for kind, spec in CONTRACT_VERSIONS.items():
        assert incompatibility(kind, spec) == ""
        major = int(spec.split(".")[0])
        assert incompatibility(kind, f"{major + 1}.0")
        assert incompatibility(kind, "0.9")
        assert "is no version" in incompatibility(kind, "new")


def test_a_manifest_may_leave_out_all_but_its_distribution():
    assert parse_manifest({"manifest": 1, "distribution": "x"}) == Manifest(distribution="x")
