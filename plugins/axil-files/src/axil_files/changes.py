"""The differences between two versions of a graph, in words: for a run of the one and a file with
the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, cast

from axil import ComponentRef, EdgeSpec, GraphSpec, NodeSpec
from axil.plugin import FromEnvironment

_OF_NODES: Final = (
    "join",
    "lane",
    "effects",
    "wrappers",
    "pull",
    "push",
    "attributes",
    "merge",
)
_OF_GRAPHS: Final = (
    "payload",
    "end",
    "cycles",
    "cycle_limits",
    "loop",
    "limits",
    "attributes",
    "state_version",
)


def spec_changes(before: GraphSpec, now: GraphSpec) -> list[str]:
    """Return each difference that may matter to a run, in one line; descriptions and places do not.

    >>> from axil import ComponentRef, GraphSpec, NodeSpec
    >>> literal = lambda text: ComponentRef(type="literal", config={"content": text})
    >>> node = lambda text: NodeSpec(id="a", use=literal(text))
    >>> before = GraphSpec(id="g", nodes=(node("one"),))
    >>> spec_changes(before, GraphSpec(id="g", nodes=(node("two"), NodeSpec(id="b"))))
    ['node a: config.content changed', 'node b is new']
    """
    return [*_nodes(before, now), *_edges(before, now), *_state(before, now), *_others(before, now)]


def _nodes(before: GraphSpec, now: GraphSpec) -> Iterator[str]:
    were, are = ({node.id: node for node in spec.nodes} for spec in (before, now))
    for name, node in were.items():
        if name not in are:
            yield f"node {name} is gone"
        else:
            yield from (f"node {name}: {part}" for part in _node(node, are[name]))
    yield from (f"node {name} is new" for name in are if name not in were)


def _node(before: NodeSpec, now: NodeSpec) -> Iterator[str]:
    one, other = (
        before.use or ComponentRef(type=_name(before.body)),
        now.use or ComponentRef(type=_name(now.body)),
    )
    if one.type != other.type:
        yield f"its type was {one.type}, and is {other.type}"
    else:
        yield from (f"{path} changed" for path in _apart(one.config, other.config, "config"))
    for name in _OF_NODES:
        if _shown(getattr(before, name)) != _shown(getattr(now, name)):
            yield f"{name} changed"
    if before.extras.get("resources") != now.extras.get("resources"):
        yield "resources changed"


def _edges(before: GraphSpec, now: GraphSpec) -> Iterator[str]:
    were, are = (
        {(e.source, e.target, e.group, repr(_shown(e.condition))): e for e in spec.edges}
        for spec in (before, now)
    )
    gone, new = (
        [edge for key, edge in some.items() if key not in others]
        for some, others in ((were, are), (are, were))
    )
    arrows = {_arrow(edge) for edge in gone} & {_arrow(edge) for edge in new}
    yield from (f"edge {arrow}: its condition changed" for arrow in sorted(arrows))
    yield from (f"edge {_arrow(edge)} is gone" for edge in gone if _arrow(edge) not in arrows)
    yield from (f"edge {_arrow(edge)} is new" for edge in new if _arrow(edge) not in arrows)
    for key, edge in were.items():
        if key in are and _said(edge) != _said(are[key]):
            yield f"edge {_arrow(edge)}: what it carries changed"


def _arrow(edge: EdgeSpec) -> str:
    return f"{edge.source}->{edge.target}"


def _said(edge: EdgeSpec) -> Any:
    return [
        _shown(getattr(edge, name))
        for name in ("trigger", "keys", "process", "filter", "carry_data", "marks", "router")
    ]


def _state(before: GraphSpec, now: GraphSpec) -> Iterator[str]:
    were, are = ({} if spec.schema is None else dict(spec.schema.fields) for spec in (before, now))
    yield from (f"state: {name} is gone" for name in were if name not in are)
    yield from (f"state: {name} is new" for name in are if name not in were)
    declared = (cast("Mapping[str, Any]", spec.extras.get("state") or {}) for spec in (before, now))
    one, other = declared
    for name in were:
        if name in are and (
            were[name].reducer.name != are[name].reducer.name or one.get(name) != other.get(name)
        ):
            yield f"state: {name} is declared otherwise"


def _others(before: GraphSpec, now: GraphSpec) -> Iterator[str]:
    for name in _OF_GRAPHS:
        if _shown(getattr(before, name)) != _shown(getattr(now, name)):
            yield f"{name} changed"
    for name in ("memory",):
        if before.extras.get(name) != now.extras.get(name):
            yield f"{name} changed"


def _apart(one: Any, other: Any, path: str) -> Iterator[str]:
    """Yield the paths at which two settings differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        first, second = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        for name in dict.fromkeys([*first, *second]):
            yield from _apart(first.get(name), second.get(name), f"{path}.{name}")
    elif (
        isinstance(one, list)
        and isinstance(other, list)
        and len(cast("list[Any]", one)) == len(cast("list[Any]", other))
    ):
        for number, (a, b) in enumerate(
            zip(cast("list[Any]", one), cast("list[Any]", other), strict=True)
        ):
            yield from _apart(a, b, f"{path}[{number}]")
    elif _shown(one) != _shown(other):
        yield path


def _shown(value: Any) -> Any:
    """Return a value as it counts: what came from the environment as its placeholder, components by
    what they are called.
    """
    if isinstance(value, FromEnvironment):
        return value.template
    if isinstance(value, ComponentRef):
        return value.type, _shown(value.config)
    if isinstance(value, Mapping):
        return {str(name): _shown(item) for name, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in cast("Sequence[Any]", value)]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _shown(getattr(value, f.name)) for f in fields(value)}
    return _name(value) if callable(value) else value


def _name(given: Any) -> str:
    kind: Any = given if hasattr(given, "__qualname__") else cast("type[Any]", type(given))
    return f"{kind.__module__}:{kind.__qualname__}"
