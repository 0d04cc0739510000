"""The structure of a workflow, as spans show it: the nodes that each node waits for, the models of
agents, and which firings have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from axil import Activation
from axil.plugin import Plan, SubgraphBody

T = TypeVar("T")
Frame = tuple[str | int, ...]
_MOST = 10_000
"""So many ended firings of a run are known."""
_NO_SOURCES: Mapping[str, tuple[str, ...]] = {}
_PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini"}
"""The names of providers in the conventions, by the adapters of their services."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The edges and models of a workflow, graphs inside it included."""

    sources: dict[str, dict[str, tuple[str, ...]]]
    """By the path of a graph and the name of a node in it: the nodes with edges to that one."""
    models: dict[str, tuple[str, str]]
    """The providers and the models of agents by path, as far as the settings of a file name them;
    empty: not named.
    """


_known: WeakKeyDictionary[Any, Structure] = WeakKeyDictionary()


def structure_of(plan: Plan) -> Structure:
    """Return the structure of a workflow."""
    found = _known.get(plan.graph)
    if found is None:
        found = _known[plan.graph] = Structure({}, {})
        _add(plan, "", found)
    return found


def _add(plan: Plan, path: str, structure: Structure) -> None:
    graph = plan.graph
    names = [vertex.name for vertex in graph.vertices]
    into: dict[str, dict[str, None]] = {}
    for edge in graph.edges:
        if edge.source >= 0 and edge.target >= 0:
            into.setdefault(names[edge.target], {})[names[edge.source]] = None
    structure.sources[path] = {name: tuple(sources) for name, sources in into.items()}
    for node in graph.spec.nodes:
        model = _model_of({} if node.use is None else node.use.config)
        if model is not None:
            structure.models[f"{path}/{node.id}" if path else node.id] = model
    for vertex in graph.vertices:
        if isinstance(vertex.own, SubgraphBody):
            _add(vertex.own.plan, f"{path}/{vertex.name}" if path else vertex.name, structure)


def _model_of(settings: Mapping[str, Any]) -> tuple[str, str] | None:
    model = settings.get("model")
    if isinstance(model, str):
        model = {"type": model}
    elif not isinstance(model, Mapping):
        model = {"type": settings.get("provider"), "name": settings.get("name")}
    given = cast("Mapping[str, Any]", model)
    inner = cast("Mapping[str, Any]", given.get("config") or given)
    provider, name = given.get("type"), inner.get("name")
    if not isinstance(provider, str) or not provider:
        return None
    return _PROVIDERS.get(provider, provider), name if isinstance(name, str) else ""


def opener(frame: Frame) -> Activation | None:
    """Return the firing that opens a frame; None: the frame ends with a round or an index.

    >>> opener(("team", "#1.0")), opener(("cycle(a,b)", 2))
    (Activation(frame=(), node='team', ordinal=(1, 0)), None)
    """
    last = frame[-1]
    if isinstance(last, int):
        return None
    if not last.startswith("#"):
        return Activation(frame[:-1], last)
    return Activation(frame[:-2], str(frame[-2]), tuple(map(int, last[1:].split("."))))


class Ended(Generic[T]):
    """The firings of a run that have ended: the last one of each node in each frame; for what is
    behind a cycle, the last one in its rounds.
    """

    def __init__(self, sources: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
        self._sources = sources
        self._last: dict[tuple[Frame, str], T] = {}

    def add(self, activation: Activation, value: T) -> None:
        """Note that a firing has ended."""
        last, node = self._last, activation.node
        frame: Frame | None = activation.frame
        while frame is not None:
            last.pop((frame, node), None)
            last[frame, node] = value
            frame = _around_cycle(frame) if frame else None
        while len(last) > _MOST:
            del last[next(iter(last))]

    def before(self, activation: Activation) -> dict[str, T]:
        """Return what is known of the nodes that a firing waited for, by name."""
        frame, node, _ = activation
        path = Activation(frame, "").path.rstrip("/") if frame else ""
        names = self._sources.get(path, _NO_SOURCES).get(node, ())
        if not frame:
            last = self._last
            return {name: last[frame, name] for name in names if (frame, name) in last}
        found = {name: self._find(frame, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _find(self, frame: Frame, name: str) -> T | None:
        found = self._last.get((frame, name))
        outer = _around_cycle(frame)
        if found is not None or outer is None:
            return found
        if frame[-1]:  # a later round: what it begins with is from the one before
            return self._last.get(((*frame[:-1], int(frame[-1]) - 1), name))
        return self._find(outer, name)


def _around_cycle(frame: Frame) -> Frame | None:
    """Return the frame around that of a round; None: the frame is not that of a round."""
    is_round = len(frame) > 1 and isinstance(frame[-1], int) and str(frame[-2]).startswith("cycle(")
    return frame[:-2] if is_round else None
