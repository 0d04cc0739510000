"""Users' functions on edges (conditions, processors, merges, routers) as the plan calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from axil.compiler.bodies import arranged, first_of, parameters_of
from axil.compiler.edges import EdgeInput, OfState, filtered
from axil.contract.views import StateView, values_of, without_views
from axil.errors import BodyError, RouteError, did_you_mean, format_names
from axil.kernel.plan import Filter, Merge, Router
from axil.kernel.state import Schema, State
from axil.kernel.tokens import EXIT
from axil.kernel.values import isolate
from axil.spec.graph import RouterSpec


def edge_function(component: object) -> Any:
    """Return a condition or processor as a function of ``EdgeInput``; plain functions are given the
    text, and the state as a second parameter.

    A plain function may return ``{"content": …, "metadata": …, "drop": …}``, as DevAll's do: the
    message with another content, with more fields, or none.
    """
    if not inspect.isfunction(component):
        return component
    function = cast("Callable[..., Any]", component)

    def asked(seen: EdgeInput) -> object:
        return _carried(function(seen.text), seen)

    def asked_with_state(seen: EdgeInput) -> object:
        return _carried(function(seen.text, StateView(seen.state)), seen)

    return asked_with_state if _wants_state(function) else asked


def _carried(given: object, seen: EdgeInput) -> object:
    if not isinstance(given, Mapping) or _PARTS.isdisjoint(cast("Mapping[str, Any]", given)):
        return cast("Any", given)
    data = cast("Mapping[str, Any]", given)
    if data.get("drop"):
        return None
    before = dict[str, Any](seen.fields) if isinstance(seen.payload, Mapping) else dict[str, Any]()
    metadata: Mapping[str, object] = data.get("metadata") or {}
    return {**before, **metadata, "content": data.get("content", seen.text)}


_PARTS = frozenset({"content", "metadata", "drop"})


def _wants_state(function: Callable[..., object]) -> bool:
    """Return whether the second parameter is required, or has the name that DevAll gives it."""
    second = [*parameters_of(function).items()][1:2]
    return any(required or name == "_context" for name, required in second)


def merge_of(merge: Callable[[Sequence[Any]], object]) -> Merge:
    """Return a custom merge as a function of states, which raises BodyError where it gave no
    values.
    """

    def values(states: Sequence[State]) -> Mapping[str, object]:
        given = merge(
            [state.schema.view(state) if state.schema.view else state for state in states]
        )
        found = values_of(given)
        if found is None:
            raise BodyError(
                f"a merge gave {type(given).__name__}; expected the values of the merged state."
            )
        return without_views(found)

    return values


def asked_by_name(
    function: Callable[..., object],
    view: Callable[[State], object] | None,
    where: str,
    *,
    typed: bool,
) -> Callable[[EdgeInput], object]:
    """Return a callable on an edge, which may ask for ``payload`` (``output``), ``state``, ``text``
    or ``fields`` by name; by position it is given payload and state, in a typed graph the state
    first.
    """
    ways: Mapping[str, Callable[[EdgeInput], object]] = {
        "payload": lambda seen: isolate(seen.payload),
        "output": lambda seen: isolate(seen.payload),
        "message": lambda seen: isolate(seen.payload),
        "state": OfState(view or StateView),
        "attributes": OfState(StateView),
        "text": lambda seen: seen.text,
        "fields": lambda seen: seen.fields,
        "seen": lambda seen: seen,
    }
    places = ("state", "payload") if typed else ("payload", "state")
    call, wanted = arranged(function, ways, places, where, _EDGE_NAMES)
    if len(wanted) == 1 and first_of(call) in wanted:
        way = ways[next(iter(wanted.values()))]
        return way.then(call) if isinstance(way, OfState) else lambda seen: call(way(seen))
    return lambda seen: call(**{name: ways[way](seen) for name, way in wanted.items()})


_EDGE_NAMES = {"message": "payload", "output": "payload", "attributes": "state"}


def of_state(
    function: Callable[..., object], view: Callable[[State], object] | None, where: str
) -> Callable[[State], object]:
    """Return a callable that is asked about the state alone, such as a router.

    Raises: SpecError (AX162, AX163).
    """
    call, wanted = arranged(function, ("state", "attributes"), ("state",), where)
    shown = view or StateView
    if len(wanted) == 1 and first_of(call) in wanted:
        return lambda state: call(shown(state))
    return lambda state: call(**{name: shown(state) for name in wanted})


def router_of(spec: RouterSpec, schema: Schema, exits: Collection[str]) -> Router:
    """Return a router's function, whose answer is a mapping of targets to filters.

    Args:
        exits: other names of the graph's exit.

    Raises: SpecError (AX162, AX163).
    """
    ask = of_state(spec.ask, schema.view, f'router of "{spec.source}"')

    def route(output: object, state: State) -> Mapping[str, Filter | None]:
        answer = ask(state)
        if answer is None:
            raise RouteError(
                f'the router of "{spec.source}" gave None; expected one or more of '
                f"{format_names(spec.targets)}.",
                hint="Return [] to send nothing.",
            )
        taken: dict[str, Any] = {}
        for one in _answers(answer):
            name, keep = cast("tuple[Any, Any]", one) if isinstance(one, tuple) else (one, None)
            name = EXIT if name in exits else name
            if name not in spec.targets:
                hint = did_you_mean(str(name), spec.targets)
                raise RouteError(
                    f'the router of "{spec.source}" gave {name!r}; its targets are '
                    f"{format_names(spec.targets)}.",
                    hint=hint,
                )
            taken[name] = _seeing(keep, schema)
        return taken

    return route


def _answers(answer: object) -> Iterable[Any]:
    if isinstance(answer, str):
        return (answer,)
    if isinstance(answer, tuple):
        pair = cast("tuple[Any, ...]", answer)
        if len(pair) == 2 and isinstance(pair[0], str) and (callable(pair[1]) or pair[1] is None):
            return (pair,)
        return pair
    if isinstance(answer, (list, set, frozenset)):
        several = cast("Sequence[Any]", answer)
        return several if isinstance(answer, list) else sorted(several)
    raise RouteError(f"a router gave {type(answer).__name__}; expected names of targets.")


def _seeing(keep: Any, schema: Schema) -> Any:
    if keep is None:
        return None

    def values(state: State) -> Mapping[str, object]:
        return filtered(keep(schema.view(state) if schema.view else state))

    return values
