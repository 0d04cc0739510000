"""A plugin that explodes when it is imported costs only the workflows that use it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from axil import ComponentRef, GraphSpec, NodeSpec, PluginError, SpecError, Workflow
from axil.plugin import CompileOptions, Policy, Registry, use_registry

from .tools import edges, node


@dataclass
class Dist:
    name: str
    version: str = "1.0"
    requires: tuple[str, ...] = ()


@dataclass
class Entry:
    name: str
    group: str
    value: str
    dist: Any


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A registry with a sound plugin and some that explode, each in its own way."""
    sources = {
        "boom_raises": "raise RuntimeError('I explode')",
        "boom_syntax": "def (",
        "boom_imports": "import a_module_that_nobody_has",
        "boom_exits": "raise SystemExit(3)",
        "boom_lacks": "class Other: pass",
        "sound_part": "class Sound:\n    async def run(self, inputs):\n        return "
        "{'message': 'sound'}\n",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    entries = [
        Entry(
            name,
            "axil.nodes",
            f"{name}:{'Sound' if name == 'sound_part' else 'Boom'}",
            Dist(name.replace("_", "-")),
        )
        for name in sources
    ]
    yield Registry(Policy(), entry_points=entries)
    for name in sources:
        sys.modules.pop(name, None)


def using(shop: Registry, *types: str) -> Workflow:
    nodes = tuple(NodeSpec(id=name, use=ComponentRef(type=name)) for name in types)
    words = [word for name in types for word in (f"in>{name}", f"{name}>out")]
    return Workflow(
        GraphSpec(id="g", nodes=nodes, edges=edges(*words)), CompileOptions(registry=shop)
    )


EXPLODING = ["boom_raises", "boom_syntax", "boom_imports", "boom_lacks"]


def test_what_explodes_is_listed_and_not_imported(shop):
    assert set(EXPLODING) < set(shop.names("nodes"))
    assert not any(name in sys.modules for name in EXPLODING)


@pytest.mark.parametrize("name", EXPLODING)
def test_a_plugin_that_explodes_is_an_error_that_names_it(shop, name):
    with pytest.raises(PluginError, match="AX304") as error:
        shop.resolve("nodes", name)
    assert name.replace("_", "-") in str(error.value)


def test_a_workflow_that_uses_another_plugin_does_not_notice(shop):
    assert using(shop, "sound_part").invoke({})[0] == {"message": "sound"}
    assert "boom_raises" not in sys.modules


def test_all_that_explode_are_reported_together(shop):
    with pytest.raises(SpecError) as error:
        # compiled when it is first asked for
        using(shop, *EXPLODING, "sound_part").plan  # noqa: B018
    assert [problem.id for problem in error.value.problems] == ["AX304"] * len(EXPLODING)


def test_a_plugin_that_asks_to_leave_does_not_take_us_along(shop):
    with pytest.raises(SpecError, match="boom-exits"):
        using(shop, "boom_exits").plan  # noqa: B018  # compiled when it is first asked for


def test_the_kernel_needs_no_plugin_at_all(shop):
    with use_registry(shop):
        assert Workflow(GraphSpec(id="g", nodes=(node("a"),), edges=edges("in>a", "a>out"))).invoke(
            {}
        ) == ({}, {})
