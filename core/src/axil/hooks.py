"""The eleven hooks, and how they are frozen into plain callables before a run.

pluggy is the switchboard: it finds, orders, checks and blocks implementations. It is not the wire: when a run starts,
``Observers.freeze`` turns each observer hook into ``None``, a function, or a short loop, and the run tests ``is None``.
An observer that raises is logged with its plugin's name and dropped for the rest of the run; it never changes the run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
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


OBSERVERS = ("run_started", "firing_started", "chunk", "firing_finished", "firing_failed", "firing_skipped", "run_finished")


_PARAMETERS = {name: tuple(inspect.signature(getattr(Hooks, name)).parameters)[1:] for name in OBSERVERS}


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


class Trusted:
    """An observer of the kernel's own that listens to all hooks with all they tell, and does not raise: nothing is put around it."""

    __slots__ = ()


class Observers:
    """The observer hooks of one run, each a plain callable or None."""

    __slots__ = OBSERVERS

    run_started: Callable[[str, Any], None] | None
    firing_started: Callable[[Any, str], None] | None
    chunk: Callable[[Any, Any], None] | None
    firing_finished: Callable[[Any, str, Any], None] | None
    firing_failed: Callable[[Any, str, BaseException], None] | None
    firing_skipped: Callable[[Any, str], None] | None
    run_finished: Callable[[str, Any], None] | None

    @classmethod
    def freeze(cls, hooks: pluggy.PluginManager | None, others: Iterable[Any] = ()) -> Observers:
        """Observers from registered plugins, in pluggy's order, then from ``others``: objects with methods named like hooks."""
        also = list(others)
        if hooks is None and not also:
            return _NONE
        self = cls()
        dropped: set[int] = set()
        for name, parameters in _PARAMETERS.items():
            calls = [_guarded(fn, names, parameters, who, plugin, dropped) for fn, names, who, plugin in _listeners(hooks, name)]
            for other in also:
                method: Any = getattr(other, name, None)
                if isinstance(other, Trusted):
                    calls.append(method)
                elif method is not None:
                    taken = tuple(p for p in inspect.signature(method).parameters if p in parameters)
                    calls.append(_guarded(method, taken, parameters, type(other).__name__, other, dropped))
            setattr(self, name, _one(calls))
        return self


_NONE = Observers()
for _name in OBSERVERS:
    setattr(_NONE, _name, None)


def _listeners(hooks: pluggy.PluginManager | None, name: str) -> Iterable[tuple[Callable[..., Any], tuple[str, ...], str, Any]]:
    if hooks is not None:
        for implementation in reversed(getattr(hooks.hook, name).get_hookimpls()):
            yield implementation.function, implementation.argnames, implementation.plugin_name, implementation.plugin


def _heard(call: Callable[..., Any], taken: tuple[str, ...], parameters: tuple[str, ...]) -> Callable[..., Any]:
    """``call``, which takes some of a hook's parameters, as a function of all of them."""
    if taken == parameters:
        return call
    positions = tuple(parameters.index(name) for name in taken)
    signature = inspect.signature(call).parameters
    if len(taken) == 1 and next(iter(signature)) in taken and signature[taken[0]].kind is not inspect.Parameter.KEYWORD_ONLY:
        (at,) = positions
        return lambda *values: call(values[at])
    return lambda *values: call(**{name: values[at] for name, at in zip(taken, positions, strict=True)})


def _guarded(
    call: Callable[..., Any], taken: tuple[str, ...], parameters: tuple[str, ...], who: str, plugin: Any, dropped: set[int]
) -> Callable[..., None]:
    """``call``, whatever it raises: then it is logged, and its plugin is dropped. Every hook has two parameters or three."""
    listen = _heard(call, taken, parameters)

    def failed() -> None:
        dropped.add(id(plugin))
        import logging

        logging.getLogger("axil.hooks").exception("observer %s failed and is dropped for the rest of the run", who)

    def of_two(one: Any, two: Any) -> None:
        if not dropped or id(plugin) not in dropped:
            try:
                listen(one, two)
            except Exception:  # noqa: BLE001  # an observer may raise anything: it is logged, and the run goes on
                failed()

    def of_three(one: Any, two: Any, three: Any) -> None:
        if not dropped or id(plugin) not in dropped:
            try:
                listen(one, two, three)
            except Exception:  # noqa: BLE001  # as above
                failed()

    return of_two if len(parameters) == 2 else of_three


def _one(calls: list[Callable[..., None]]) -> Callable[..., None] | None:
    if not calls:
        return None
    if len(calls) == 1:
        return calls[0]

    def all_of_them(*values: Any) -> None:
        for call in calls:
            call(*values)

    return all_of_them
