"""A plan opened: its graph, its cycles and the graphs inside it, and what edges and nodes are
called for people.

Nesting may be deep, so it is walked with a stack, never with recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from axil import ComponentRef, CycleLimit, EdgeSpec, NodeSpec
from axil.plugin import CycleBody, FromEnvironment, Plan, PlanNode, SubgraphBody, render

_LONGEST = 60
_PLAIN = ("pattern", "name", "template")
"""Settings whose values say by themselves what they are."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanScope:
    """One level of a plan: the whole graph, a graph inside it, or the body of a cycle."""

    kind: Literal["graph", "cycle"]
    id: int
    name: str
    """Of the graph, or of the cycle: ``cycle(a,b)``."""
    plan: Plan
    depth: int
    specs: Mapping[str, NodeSpec]
    """The specs of the nodes, by name."""
    parent: PlanScope | None = None
    node: PlanNode | None = None
    """The node of ``parent`` that this is the inside of."""
    cycle: CycleBody | None = None
    entries: tuple[str, ...] = ()
    """Nodes at which the cycle can be entered; the body is shown as entered at the first one."""
    limits: Mapping[str, CycleLimit] = field(default_factory=dict[str, CycleLimit])
    """By entry."""

    @property
    def members(self) -> tuple[str, ...]:
        """The names of a cycle's nodes, or of a graph's, in order of declaration."""
        graph = self.plan.graph
        return tuple(
            graph.vertices[v].name
            for v in (self.cycle.members if self.cycle else range(len(graph.vertices)))
        )

    def edge(self, id: int) -> EdgeSpec:
        """Return the description of an edge in the file."""
        return self.plan.graph.spec.edges[id]


@dataclass(frozen=True, slots=True)
class Step:
    """Something on the walk through a plan: a scope begins, a node of it is met, a scope ends."""

    kind: Literal["open", "node", "close"]
    scope: PlanScope
    node: PlanNode | None = None


def walk_plan(plan: Plan) -> Iterator[Step]:
    """Everything in a plan, in plan order; what is inside a node comes right after it."""
    made = 0
    top = PlanScope(
        kind="graph", id=0, name=plan.graph.spec.id, plan=plan, depth=0, specs=_specs(plan)
    )
    stack: list[tuple[PlanScope, Iterator[PlanNode]]] = [(top, iter(plan.nodes))]
    yield Step("open", top)
    while stack:
        scope, nodes = stack[-1]
        node = next(nodes, None)
        if node is None:
            stack.pop()
            yield Step("close", scope)
            continue
        yield Step("node", scope, node)
        inner = _inside(scope, node, made + 1)
        if inner is not None:
            made += 1
            stack.append((inner, iter(inner.plan.nodes)))
            yield Step("open", inner)


def _inside(scope: PlanScope, node: PlanNode, id: int) -> PlanScope | None:
    body: Any = node.vertex.body
    if isinstance(body, SubgraphBody):
        specs = _specs(body.plan)
        return PlanScope(
            kind="graph",
            id=id,
            name=node.name,
            plan=body.plan,
            depth=scope.depth + 1,
            specs=specs,
            parent=scope,
            node=node,
        )
    if not isinstance(body, CycleBody):
        return None
    doors = list(dict.fromkeys(edge.target for edge in body.entrances() if edge.trigger))
    names = tuple(body.graph.vertices[door].name for door in doors)
    return PlanScope(
        kind="cycle",
        id=id,
        name=body.name,
        plan=body.body(doors[0] if doors else body.members[0]),
        depth=scope.depth + 1,
        specs=scope.specs,
        parent=scope,
        node=node,
        cycle=body,
        entries=names,
        limits={name: body.graph.cycle_limit(name) for name in names},
    )


def _specs(plan: Plan) -> dict[str, NodeSpec]:
    return {node.id: node for node in plan.graph.spec.nodes}


def plan_scopes(
    plan: Plan, details: Callable[[PlanScope, PlanNode], Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return a plan as nested scopes: nodes by level, edges with labels.

    A cycle and a graph inside a node are the ``inside`` of that node. ``details``: what is added to
    the data of a node.
    """
    scopes: dict[int, dict[str, Any]] = {}
    nodes: dict[tuple[int, str], dict[str, Any]] = {}
    for step in walk_plan(plan):
        scope, node = step.scope, step.node
        if step.kind == "open":
            made = scopes[scope.id] = _scope(scope)
            if scope.parent is not None and scope.node is not None:
                nodes[scope.parent.id, scope.node.name]["inside"] = made
        elif node is not None:
            made = nodes[scope.id, node.name] = {
                "name": node.name,
                "level": node.level,
                "type": node.vertex.type.replace("<lambda>", "function"),
                **(details(scope, node) if details is not None else {}),
            }
            scopes[scope.id]["nodes"].append(made)
    return scopes[0]


def _scope(scope: PlanScope) -> dict[str, Any]:
    members, graph = set(scope.members), scope.plan.graph
    edges = [
        {
            "name": graph.edges[number].name,
            "source": edge.source,
            "target": edge.target,
            "label": edge_label(scope, edge),
            "trigger": edge.trigger,
        }
        for number, edge in enumerate(graph.spec.edges)
        if scope.kind == "graph" or (edge.source in members and edge.target in members)
    ]
    bounds = re.split("; | [|] ", cycle_bounds(scope)) if scope.kind == "cycle" else []
    return {
        "kind": scope.kind,
        "name": scope.name,
        "title": "\n".join([scope.name, *bounds]),
        "entries": list(scope.entries),
        "nodes": list[Any](),
        "edges": edges,
    }


# --------------------------------------------------------------------------------------------------


def cycle_bounds(scope: PlanScope) -> str:
    """Say how a cycle is entered and bounded: ``entered at check; at most 100 rounds``."""
    if not scope.entries:
        return "never entered"
    lines = [f"entered at {entry}; {_limit(scope, entry)}" for entry in scope.entries]
    return " | ".join(lines) + (
        "; fails with AX402 if several are taken at once" if len(lines) > 1 else ""
    )


def _limit(scope: PlanScope, entry: str) -> str:
    limit = scope.limits[entry]
    if limit.rounds is None:
        spec = scope.specs.get(entry)
        most = getattr(spec.body, "most", None) if spec is not None else None
        if isinstance(most, int):  # a controller that counts by itself
            return f"at most {most} round{'s' if most != 1 else ''} by its controller, then out"
        return "no limit of its own"
    return (
        f"at most {limit.rounds} round{'s' if limit.rounds != 1 else ''}, then "
        f"{'out' if limit.at_limit == 'exit' else 'limited'}"
    )


def use_label(use: object, others: str = "function") -> str:
    """Name a component and the gist of its config: ``keyword: any ACCEPTED``, ``regex: ^OK``."""
    if not isinstance(use, ComponentRef):
        return str(getattr(use, "__name__", others)).replace("<lambda>", others)
    config = {key: value for key, value in use.config.items() if value not in (None, "", [], {})}
    if not config:
        return use.type
    return shortened(
        f"{use.type}: "
        + ", ".join(
            _value(v) if k in (use.type, *_PLAIN) else f"{k} {_value(v)}" for k, v in config.items()
        )
    )


def _value(value: Any) -> str:
    if isinstance(value, FromEnvironment):
        return value.template
    if isinstance(value, (list, tuple)):
        return " | ".join(_value(item) for item in cast("list[Any]", value))
    return render(value)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def edge_label(scope: PlanScope, edge: EdgeSpec) -> str:
    """Return the label of an edge: its condition, and what it carries."""
    parts: list[str] = []
    if edge.condition is not None:
        parts.append(use_label(edge.condition, "condition"))
    chosen = _chosen(scope.specs.get(edge.source), edge.target)
    if chosen:
        parts.append(chosen)
    if edge.router is not None:
        parts.append("router")
    if edge.keys and list(edge.keys) != ["message"]:
        parts.append(shortened("{" + ", ".join(edge.keys) + "}"))
    if edge.process is not None:
        parts.append("→ " + use_label(edge.process, "process"))
    if not edge.carry_data or (
        edge.keys is not None and not edge.keys and scope.plan.graph.spec.payload != "state"
    ):
        parts.append("no data")
    if edge.group:
        parts.append(f"group {edge.group}")
    return ", ".join(parts)


def _chosen(node: NodeSpec | None, target: str) -> str:
    """Find the condition that a node's own config, as a switch's ``routes``, has for a target."""
    config: Mapping[str, Any] = node.use.config if node is not None and node.use is not None else {}
    if (
        isinstance(config.get("by"), str)
        and node is not None
        and node.use is not None
        and node.use.type == "router"
    ):
        return _named(config, target)
    routes = config.get("routes")
    if not isinstance(routes, Mapping) or target not in routes:
        return ""
    given: Any = cast("Mapping[str, Any]", routes)[target]
    if isinstance(given, Mapping):
        named = cast("Mapping[str, Any]", given)
        return use_label(
            ComponentRef(type=str(named.get("type")), config=named.get("config") or {})
        )
    return shortened(render(given))


def _named(config: Mapping[str, Any], target: str) -> str:
    """For which values a router names a target."""
    names = cast("Mapping[str, Any]", config.get("names") or {})
    values = [
        value
        for value, stands_for in names.items()
        if target in ([stands_for] if isinstance(stands_for, str) else stands_for)
    ]
    lines = [f"{config['by']} = {' | '.join(values)}"] if values else []
    lines += ["otherwise"] if config.get("otherwise") == target else []
    return shortened(", ".join(lines) or f"{config['by']} = {target}")
