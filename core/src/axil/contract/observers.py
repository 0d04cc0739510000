"""The hooks that only listen, frozen into plain callables before a run.

pluggy finds, orders, checks and blocks implementations (see ``hooks``). When a run starts,
``Observers.freeze`` turns each hook into ``None``, a function, or a short loop, and the run tests
``is None``. An observer that raises is logged with its plugin's name and dropped for the rest of
the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from axil.kernel.tokens import ENTRY, Activation
from axil.kernel.values import isolate
from axil.signatures import signature_of

if TYPE_CHECKING:
    import pluggy

    from axil.kernel.plan import Plan, ResolvedGraph

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "run_started": ("run_id", "plan", "inputs"),
    "firing_started": ("activation", "kind"),
    "firing_received": ("activation", "payloads"),
    "chunk": ("activation", "chunk"),
    "firing_finished": ("activation", "kind", "output"),
    "firing_sent": ("activation", "payloads"),
    "firing_failed": ("activation", "kind", "error"),
    "firing_skipped": ("activation", "kind"),
    "step_started": ("activation", "step", "request", "kind"),
    "step_finished": ("activation", "step", "result", "kind"),
    "step_failed": ("activation", "step", "error", "kind"),
    "run_finished": ("run_id", "result"),
}
"""The parameters of each hook (see ``hooks.Hooks``); plugins may ask for ``run_id`` too."""
OBSERVER_HOOKS = tuple(PARAMETERS)
_REPORTS = ("started", "finished", "sent", "failed", "skipped")


class EdgePayload(NamedTuple):
    """The payload of one edge: a copy, unless it is immutable."""

    edge: str
    """``a->b``, with ``#1`` and so on for further edges between the same two."""
    source: str
    """The name of its node, or ``@entry``."""
    target: str
    """The name of its node, or ``@exit``."""
    payload: Any


def edge_payloads(
    graph: ResolvedGraph, carried: Iterable[tuple[Any, ...]]
) -> tuple[EdgePayload, ...]:
    """Return what edges carried as observers receive it.

    Args:
        carried: tuples that begin with an edge's position in the graph and its payload.
    """
    found: list[EdgePayload] = []
    for each in carried:
        position: int = each[0]
        payload: object = each[1]
        edge = graph.edges[position]
        source = ENTRY if edge.source < 0 else graph.vertices[edge.source].name
        found.append(EdgePayload(edge.name, source, edge.target_name, isolate(payload)))
    return tuple(found)


class Trusted:
    """An observer of core's own, which is called directly: it takes all arguments and does not
    raise.
    """

    __slots__ = ()


class Observers:
    """The observer hooks of one run, each a plain callable or None."""

    __slots__ = (*OBSERVER_HOOKS, "receivers", "reports")

    run_started: Callable[[str, Plan, object], None] | None
    firing_started: Callable[[Activation, str], None] | None
    firing_received: Callable[[Activation, tuple[EdgePayload, ...]], None] | None
    chunk: Callable[[Activation, object], None] | None
    firing_finished: Callable[[Activation, str, object], None] | None
    firing_sent: Callable[[Activation, tuple[EdgePayload, ...]], None] | None
    firing_failed: Callable[[Activation, str, BaseException], None] | None
    firing_skipped: Callable[[Activation, str], None] | None
    step_started: Callable[[Activation, str, object, str], None] | None
    step_finished: Callable[[Activation, str, object, str], None] | None
    step_failed: Callable[[Activation, str, BaseException, str], None] | None
    run_finished: Callable[[str, object], None] | None
    receivers: Mapping[str, Callable[..., None]]
    """The receiver of each kind of report of the scheduler, which does nothing where there is none.
    """
    reports: frozenset[str]
    """The kinds that have a receiver; ``started`` too where ``firing_received`` has one."""

    @classmethod
    def freeze(
        cls, hooks: pluggy.PluginManager | None, others: Iterable[object] = (), run_id: str = ""
    ) -> Observers:
        """Return the observers of a run: registered plugins in pluggy's order, then ``others``,
        objects with methods named like hooks.
        """
        also = list(others)
        unfit = [o for o in also if not any(hasattr(o, name) for name in PARAMETERS)]
        if unfit:
            wanted = "an object with methods that are named as hooks, as firing_started"
            raise TypeError(f"observers: expected {wanted}, found {unfit[0]!r:.80}.")
        self = cls()
        dropped: set[int] = set()
        for name, parameters in PARAMETERS.items():
            calls = [
                _guarded(fn, names, parameters, who, plugin, dropped)
                for fn, names, who, plugin in _listeners(hooks, name, run_id)
            ]
            for other in also:
                method: Any = getattr(other, name, None)
                if method is None:
                    continue
                if isinstance(other, Trusted):
                    calls.append(method)
                else:
                    taken = tuple(p for p in signature_of(method).parameters if p in parameters)
                    calls.append(
                        _guarded(method, taken, parameters, type(other).__name__, other, dropped)
                    )
            setattr(self, name, _one(calls))
        if self.chunk is not None:
            from axil.contract.chunks import ChunkCover

            chunks = ChunkCover(self.chunk)
            self.chunk = chunks
            for name in ("firing_finished", "firing_failed"):
                setattr(self, name, chunks.before(getattr(self, name)))
        found: dict[str, Any] = {kind: getattr(self, f"firing_{kind}") for kind in _REPORTS}
        self.receivers = {kind: call or _ignored for kind, call in found.items()}
        wanted = {kind for kind, call in found.items() if call is not None}
        self.reports = frozenset(wanted if self.firing_received is None else {*wanted, "started"})
        return self


def _ignored(*_: object) -> None:
    """Ignore a report that no observer asks for."""


def _listeners(
    hooks: pluggy.PluginManager | None, name: str, run_id: str
) -> Iterable[tuple[Callable[..., object], tuple[str, ...], str, object]]:
    if hooks is not None:
        known = PARAMETERS[name]
        for implementation in reversed(getattr(hooks.hook, name).get_hookimpls()):
            call, names = implementation.function, implementation.argnames
            if "run_id" in names and "run_id" not in known:
                call = partial(call, run_id=run_id)
            taken = tuple(each for each in names if each in known)
            yield call, taken, implementation.plugin_name, implementation.plugin


def _of_all_parameters(
    call: Callable[..., object], taken: tuple[str, ...], parameters: tuple[str, ...]
) -> Callable[..., object]:
    """Return ``call``, which takes some of a hook's parameters, as a function of all of them."""
    signature = signature_of(call).parameters.values()
    positional = [each.name for each in signature if each.kind is not each.KEYWORD_ONLY]
    positions = tuple(parameters.index(name) for name in taken)
    if tuple(positional[: len(taken)]) != taken:
        return lambda *values: call(
            **{name: values[at] for name, at in zip(taken, positions, strict=True)}
        )
    if taken == parameters:
        return call
    if len(positions) == 1:  # the usual case, in one call less
        (position,) = positions
        return lambda *values: call(values[position])
    return lambda *values: call(*[values[at] for at in positions])


def _guarded(
    call: Callable[..., object],
    taken: tuple[str, ...],
    parameters: tuple[str, ...],
    who: str,
    plugin: object,
    dropped: set[int],
) -> Callable[..., None]:
    """Return ``call``; where it raises, it is logged, and its plugin is dropped."""
    listen = _of_all_parameters(call, taken, parameters)

    def guarded(*values: object) -> None:
        if not dropped or id(plugin) not in dropped:
            try:
                listen(*values)
            except Exception:
                # an observer may raise anything: it is logged, and the run goes on
                import logging

                dropped.add(id(plugin))
                logging.getLogger("axil.hooks").exception(
                    "observer %s failed and is dropped for the rest of the run", who
                )

    return guarded


def _one(calls: list[Callable[..., None]]) -> Callable[..., None] | None:
    if not calls:
        return None
    if len(calls) == 1:
        return calls[0]

    def all_of_them(*values: object) -> None:
        for call in calls:
            call(*values)

    return all_of_them


NO_OBSERVERS = Observers.freeze(None)
