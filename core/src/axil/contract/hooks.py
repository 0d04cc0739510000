"""The hooks. Four act when a graph is compiled or a registry is filled, twelve listen
(``observers`` is how a run calls them), four decide about firings (``decisions``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

import pluggy

from axil.errors import PluginContract

if TYPE_CHECKING:
    from axil.contract.decisions import Admission, Firing, Outcome, Retry
    from axil.contract.observers import EdgePayload
    from axil.errors import LimitReached, Problem
    from axil.kernel.plan import Body, Plan
    from axil.kernel.tokens import Activation
    from axil.spec.graph import GraphSpec, NodeSpec

PROJECT = "axil"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook it is named after."""


class Hooks:
    """The hooks that a plugin may implement; every argument may be left out."""

    @hookspec
    def register(self, registry: object) -> None:
        """Add components that no entry point names: ``registry.register("nodes", "tick",
        Tick)``.
        """

    @hookspec
    def check(self, spec: GraphSpec) -> list[Problem]:  # type: ignore[empty-body]
        """Return problems of a graph that only this plugin can see."""

    @hookspec
    def wrap_body(self, spec: NodeSpec, body: Body) -> Body | None:
        """Return another body, around the one given; None: leave it. Called once per node."""

    @hookspec
    def plan_compiled(self, plan: Plan) -> None:
        """React to a plan that was made."""

    @hookspec
    def run_started(self, run_id: str, plan: Plan, inputs: object) -> None:
        """React to the beginning of a run; ``inputs`` are those that it began with."""

    @hookspec
    def firing_started(self, activation: Activation, kind: str, run_id: str) -> None:
        """React to the beginning of a firing; ``kind`` is ``node``, ``graph`` or ``cycle``."""

    @hookspec
    def firing_received(
        self, activation: Activation, payloads: tuple[EdgePayload, ...], run_id: str
    ) -> None:
        """React to the payloads that a firing begins with: those of its live in-edges."""

    @hookspec
    def chunk(self, activation: Activation, chunk: object, run_id: str) -> None:
        """React to a chunk that a body showed with ``ctx.emit``."""

    @hookspec
    def firing_finished(
        self, activation: Activation, kind: str, output: object, run_id: str
    ) -> None:
        """React to a firing that ended well; its tokens are on their way."""

    @hookspec
    def firing_sent(
        self, activation: Activation, payloads: tuple[EdgePayload, ...], run_id: str
    ) -> None:
        """React to the payloads that the live out-edges of a firing carry; ``@entry`` sends the
        inputs.
        """

    @hookspec
    def firing_failed(
        self, activation: Activation, kind: str, error: BaseException, run_id: str
    ) -> None:
        """React to a firing that raised."""

    @hookspec
    def firing_skipped(self, activation: Activation, kind: str, run_id: str) -> None:
        """React to a node that will not fire in this frame."""

    @hookspec
    def step_started(
        self, activation: Activation, step: str, request: object, kind: str, run_id: str
    ) -> None:
        """React to a step that a body takes; ``kind`` is ``model``, ``tool`` or empty.

        ``request`` is the plain data that says what is asked for, or None. A step whose recorded
        result is used is not reported.
        """

    @hookspec
    def step_finished(
        self, activation: Activation, step: str, result: object, kind: str, run_id: str
    ) -> None:
        """React to a step that ended well, before its result is recorded."""

    @hookspec
    def step_failed(
        self, activation: Activation, step: str, error: BaseException, kind: str, run_id: str
    ) -> None:
        """React to a step that raised, was cancelled, or pauses its run."""

    @hookspec(firstresult=True)
    def admit_firing(self, firing: Firing) -> Admission | None:
        """Decide whether a firing may start now; None: no opinion. May be asked several times."""

    @hookspec(firstresult=True)
    def choose_firing(self, due: Sequence[Firing]) -> Firing | None:
        """Choose which of the firings that may start is next; None: the first that was due.

        Asked before each start, also where only one may start.
        """

    @hookspec(firstresult=True)
    def firing_failure(self, firing: Firing, error: Exception) -> Retry | Outcome | None:
        """Decide what becomes of a body that raised; None: its node fails."""

    @hookspec(firstresult=True)
    def limit_reached(self, limit: LimitReached, of: str) -> int | str | None:
        """Decide what becomes of a limit; None: it ends the run.

        ``of`` is ``cycle`` (``"exit"``: the cycle ends as if nothing in it were left to do) or
        ``firings`` (a number: so many further firings may start).
        """

    @hookspec
    def run_finished(self, run_id: str, result: object) -> None:
        """React to the end of a run; ``result.status`` says how it ended."""


def hook_manager(plugins: Iterable[object] = (), names: Iterable[str] = ()) -> pluggy.PluginManager:
    """Return a plugin manager with ``plugins`` registered, under ``names`` if there are some.

    Raises: PluginContract (AX305): one implements a hook that there is not, or asks it for an
        argument that it has not.
    """
    made = pluggy.PluginManager(PROJECT)
    made.add_hookspecs(Hooks)
    for plugin, name in zip_longest(plugins, names):
        shown = f'"{name}"' if name else getattr(plugin, "__name__", type(plugin).__name__)
        try:
            made.register(plugin, name)
            made.check_pending()
        except pluggy.PluginValidationError as error:
            why = str(error).splitlines()[-1].partition(" in plugin ")[0]
            message = f"the hook plugin {shown} does not fit the hooks: {why}."
            hooks = ", ".join(each for each in vars(Hooks) if not each.startswith("_"))
            raise PluginContract(message, hint=f"There are: {hooks}.") from error
    return made


_introduced: WeakKeyDictionary[pluggy.PluginManager, WeakSet[object]] = WeakKeyDictionary()


def introduce(hooks: pluggy.PluginManager, registry: object) -> None:
    """Let plugins add their components to ``registry``, once for each registry."""
    met = _introduced.setdefault(hooks, WeakSet())
    if registry not in met:
        met.add(registry)
        hooks.hook.register(registry=registry)
