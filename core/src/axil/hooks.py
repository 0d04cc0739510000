"""The eleven hooks. pluggy finds, orders, checks and blocks what implements them; ``observers`` is how a run hears those that listen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import pluggy

if TYPE_CHECKING:
    from axil.errors import Problem
    from axil.plan import Body, Plan
    from axil.spec import GraphSpec, NodeSpec
    from axil.tokens import Activation

PROJECT = "axil"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook it is named after."""


class Hooks:
    """What a plugin may implement; every argument may be left out."""

    @hookspec
    def register(self, registry: Any) -> None:
        """Add components that no entry point names: ``registry.register("nodes", "tick", Tick)``."""

    @hookspec
    def check(self, spec: GraphSpec) -> list[Problem]:  # type: ignore[empty-body]
        """Problems of a graph that only this plugin can see; they are reported with all others."""

    @hookspec
    def wrap_body(self, spec: NodeSpec, body: Body) -> Body | None:
        """Another body to use instead, around the one given; None: leave it. Called once per node, when the plan is made."""

    @hookspec
    def plan_compiled(self, plan: Plan) -> None:
        """A plan was made."""

    @hookspec
    def run_started(self, run_id: str, plan: Plan) -> None:
        """A run begins."""

    @hookspec
    def firing_started(self, activation: Activation, kind: str) -> None:
        """A firing begins; ``kind`` is ``node``, ``graph`` or ``cycle``."""

    @hookspec
    def chunk(self, activation: Activation, chunk: Any) -> None:
        """A body showed something with ``ctx.emit``."""

    @hookspec
    def firing_finished(self, activation: Activation, kind: str, output: Any) -> None:
        """A firing ended well; its tokens are on their way."""

    @hookspec
    def firing_failed(self, activation: Activation, kind: str, error: BaseException) -> None:
        """A firing raised."""

    @hookspec
    def firing_skipped(self, activation: Activation, kind: str) -> None:
        """A node will not fire in this frame: nothing live came."""

    @hookspec
    def run_finished(self, run_id: str, result: Any) -> None:
        """A run ended, in whatever way; ``result.status`` says how."""


def manager(plugins: Iterable[Any] = ()) -> pluggy.PluginManager:
    """A plugin manager with the hooks and ``plugins`` registered."""
    made = pluggy.PluginManager(PROJECT)
    made.add_hookspecs(Hooks)
    for plugin in plugins:
        made.register(plugin)
    return made


_introduced: WeakKeyDictionary[pluggy.PluginManager, WeakSet[Any]] = WeakKeyDictionary()


def introduce(hooks: pluggy.PluginManager, registry: Any) -> None:
    """Let plugins add their components to ``registry``, once for each registry."""
    met = _introduced.setdefault(hooks, WeakSet())
    if registry not in met:
        met.add(registry)
        hooks.hook.register(registry=registry)
