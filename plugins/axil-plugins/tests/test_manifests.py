"""Manifests come from the classes, and are checked against them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Literal

import pytest
from pydantic import BaseModel

from axil.plugin import Component, default_registry
from axil_plugins.manifests import (
    _component,
    fields,
    manifest_of,
    references,
    secrets,
    summary_of,
)

PLUGIN = '''
from pydantic import BaseModel, Field
from axil.plugin import Secret, refers_to

class Inner(BaseModel, extra="forbid"):
    model: str | None = Field(None, json_schema_extra=refers_to("models", default=["openai"]))
    again: "Inner | None" = None

class Tick:
    """``acme.tick``: it ticks. Twice."""

    capabilities = ("varies",)
    stability, replacement = "deprecated", "acme.clock"
    aliases = ("acme.old", "acme-before/acme.tick")

    class Config(BaseModel, extra="forbid"):
        hours: int
        key: Secret | None = None
        inner: Inner = Inner()
        tools: list[Inner] = []
        named: dict[str, Inner] = {}

        model_config = {"json_schema_extra": {"examples": [{"hours": 1}]}}

    def __init__(self, config):
        self.config = config
'''


@pytest.fixture
def tick(world):
    world.distribution("acme-a", nodes={"acme.tick": "acme_a:Tick"}, plugin={"acme-a": "acme_a"})
    world.package("acme_a", PLUGIN)
    return world


def test_all_that_the_classes_say_is_in_it(tick, axil):
    (component,) = axil("plugins", "manifest", "acme-a").data["components"]
    assert component["summary"] == "It ticks."
    assert component["examples"] == [{"hours": 1}]
    assert component["secrets"] == ["/key"]
    assert component["capabilities"] == ["varies"]
    assert (component["stability"], component["replacement"]) == ("deprecated", "acme.clock")
    assert (
        "Stability: deprecated; use `acme.clock` instead." in axil("plugins", "docs", "acme-a").out
    )
    assert component["aliases"] == ["acme-before/acme.tick", "acme.old"]
    paths = {ref["path"] for ref in component["refs"]}
    assert {"/inner/model", "/tools/*/model", "/named/*/model"} <= paths
    assert all(ref["default"] == ["openai"] for ref in component["refs"])


def test_it_is_written_checked_and_found_stale(tick, axil):
    file = tick.folder / "acme_a" / "axil-plugin.json"
    assert axil("plugins", "manifest", "acme-a", "--check").code == 2
    assert axil("plugins", "manifest", "acme-a", "--write").out == f"{file}: written\n"
    assert axil("plugins", "manifest", "acme-a", "--write").out == f"{file}: current\n"
    assert axil("plugins", "manifest", "acme-a", "--check", "--format", "json").data[0]["current"]
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "components": []}))
    assert axil("plugins", "manifest", "acme-a", "--check").code == 2
    assert axil("plugins", "show", "nodes:acme.tick").code == 0


def test_the_same_classes_give_the_same_text(tick):
    from axil.plugin import Policy, Registry

    first, second = (json.dumps(manifest_of("acme-a", Registry(Policy()))) for _ in range(2))
    assert first == second


def test_the_order_of_choices_is_not_that_of_who_named_them_first():
    class Config(BaseModel):
        # typing gives whichever was named first of this and Literal["sap", "wood"] | None
        optional: Literal["wood", "sap"] | None = None
        declared: Literal["wood", "sap"] = "sap"

    found = SimpleNamespace(Config=Config)
    shown = _component(Component(kind="tools", name="axle", distribution="axle"), found)
    properties = shown["config_schema"]["properties"]
    assert properties["optional"]["anyOf"][0]["enum"] == ["sap", "wood"]
    assert properties["declared"]["enum"] == ["wood", "sap"]


def test_a_distribution_without_an_index_gets_a_hint_how_to_state_it(world, axil):
    world.distribution("acme-b", nodes={"acme.tick": "json:JSONDecoder"})
    done = axil("plugins", "manifest", "acme-b", "--write")
    assert done.code == 2
    assert '[project.entry-points."axil.plugin"] acme-b = "acme_b"' in done.err


def test_a_model_that_contains_itself_is_entered_once():
    schema = {
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "string"}}}},
    }
    assert [pointer for pointer, _ in fields(schema)] == ["/a", "/a/a", "/a/b"]
    assert list(references(schema)) == list(secrets(schema)) == []


def test_summaries_of_things_without_words():
    assert summary_of(object()) == ""
    assert summary_of(lambda text, name: None) == ""
    assert default_registry().manifest("axil-core") is not None
