"""A plan as a picture: in lines of text, as a mermaid flowchart, as an image, as a notebook shows
it.

Loops are folded: a cycle or a graph inside the graph is drawn as a box, or indented below its node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from axil import AxilError, ComponentRef, EdgeSpec
from axil.plugin import BACK, ENTRY, EXIT, OUTSIDE, Plan, PlanEdge, PlanNode
from axil_journals.pictures.scopes import PlanScope, cycle_bounds, edge_label, shortened, walk_plan

if TYPE_CHECKING:
    from axil import Workflow


def text_picture(plan: Plan) -> str:
    """Return a plan as lines of text, one for each edge."""
    return "\n".join(as_text(plan))


def mermaid_picture(plan: Plan) -> str:
    """Return a plan as a mermaid flowchart."""
    return "\n".join(as_mermaid(plan))


def svg_picture(plan: Plan) -> str:
    """Return a plan as an SVG image."""
    from axil_journals.pictures.vectors import as_svg

    return "\n".join(as_svg(plan))


def notebook_picture(workflow: Workflow) -> dict[str, str]:
    """Return the picture of a workflow by media type, as notebooks ask for it.

    A workflow that has no plan, because it is not built or something is wrong with it, has its
    ``repr`` and the reason instead.
    """
    try:
        plan = workflow.plan
    except AxilError as error:
        return {"text/plain": f"{workflow!r}\n{error}"}
    flowchart = mermaid_picture(plan)
    return {
        "text/plain": text_picture(plan),
        "text/markdown": f"```mermaid\n{flowchart}\n```",
        "text/vnd.mermaid": flowchart,
        "image/svg+xml": svg_picture(plan),
    }


# --------------------------------------------------------------------------------------------------


def as_text(plan: Plan) -> Iterator[str]:
    """Yield the plan in lines: level, name, type, and where its edges lead.

    ``→`` an edge, ``⇢`` one that does not trigger, ``↗`` one that leaves the cycle, ``↺`` one that
    comes back and starts the next round.
    """
    for step in walk_plan(plan):
        scope, margin = step.scope, "    " * step.scope.depth
        if step.kind == "open" and scope.kind == "graph":
            spec = scope.plan.graph.spec
            if scope.parent is None:
                yield f"{spec.id}" + (
                    f": {shortened(spec.description, 100)}" if spec.description else ""
                )
            entering = [edge for edge in spec.edges if edge.source == ENTRY]
            yield from _edges(
                scope, "", f"{margin}  in", [(_sign(edge), edge) for edge in entering]
            )
        elif step.kind == "open" and scope.node is not None:
            yield f"{margin[4:]}{scope.node.level:>4}  ⟳ {scope.name}  {cycle_bounds(scope)}"
        elif step.kind == "node" and step.node is not None and step.node.vertex.type != "cycle":
            yield from _node(scope, step.node, margin)


def _node(scope: PlanScope, node: PlanNode, margin: str) -> Iterator[str]:
    message, join = _type(scope, node), join_name(scope, node)
    if join != "gate":
        message = f"{message} join {join}".strip()
    arcs = [(_arc_sign(arc), scope.edge(arc.id)) for arc in node.out]
    yield from _edges(scope, f"  {message}", f"{margin}{node.level:>4}  {node.name}", arcs)


def _type(scope: PlanScope, node: PlanNode) -> str:
    """Return the node's type, and the wrappers around it, innermost first: ``python × map``."""
    spec = scope.specs.get(node.name)
    return " × ".join(
        [
            node.vertex.type.replace("<lambda>", "function"),
            *(use.type for use in reversed(spec.wrappers if spec is not None else ())),
        ]
    )


def _arc_sign(arc: PlanEdge) -> str:
    if not arc.trigger:
        return "⇢"
    return (
        "↺" if arc.port == BACK else "↗" if arc.port == OUTSIDE and arc.target_name != EXIT else "→"
    )


def _sign(edge: EdgeSpec) -> str:
    return "→" if edge.trigger else "⇢"


def _edges(
    scope: PlanScope, indent: str, head: str, edges: list[tuple[str, EdgeSpec]]
) -> Iterator[str]:
    """Yield a line with the first edge, and one for each further edge below it."""
    first = head + indent
    if not edges:
        yield first
        return
    for number, (sign, edge) in enumerate(edges):
        words = edge_label(scope, edge)
        yield f"{first if not number else ' ' * len(first)}  {sign} {edge.target}" + (
            f"  [{words}]" if words else ""
        )


# --------------------------------------------------------------------------------------------------

_ENTITIES = {
    "#": "#35;",
    "&": "#amp;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "\\": "#92;",
    "|": "#124;",
}


def escaped(text: str) -> str:
    r"""``text`` for a quoted label: whatever means something to mermaid, or to the page around it,
    as an entity.

    >>> escaped('say "hi" | <b>#1</b>')
    'say #quot;hi#quot; #124; #lt;b#gt;#35;1#lt;/b#gt;'
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "".join(_ENTITIES.get(c, c) for c in line) or " "


def as_mermaid(plan: Plan) -> Iterator[str]:
    """Yield the plan as a mermaid flowchart; nodes have neutral ids, so any name is allowed."""
    yield "flowchart TD"
    graph = 0  # the scope of the graph whose nodes are being drawn, for their ids
    inside: list[int] = []
    inner: dict[tuple[int, str], int] = {}  # nodes that are graphs → the scope that they are
    drawn: dict[int, dict[str, int]] = {}  # graphs → the numbers of their nodes
    edges: list[PlanScope] = []
    for step in walk_plan(plan):
        scope, margin = step.scope, "  " * (len(inside) + 1)
        if step.kind == "open":
            if scope.parent is not None:
                title = (
                    scope.name if scope.kind == "graph" else f"{scope.name}: {cycle_bounds(scope)}"
                )
                yield f'{margin}subgraph s{scope.id} ["{escaped(title)}"]'
            inside.append(graph)
            if scope.kind == "graph":
                if scope.parent is not None:
                    inner[graph, scope.name] = scope.id
                graph = scope.id
                edges.append(scope)
                drawn[graph] = {name: number for number, name in enumerate(scope.specs)}
                yield f'{margin}  g{graph}in(["{"in" if scope.parent else "input"}"])'
                yield f'{margin}  g{graph}out(["{"out" if scope.parent else "output"}"])'
        elif step.kind == "close":
            graph = inside.pop()
            if scope.parent is not None:
                yield f"{'  ' * (len(inside) + 1)}end"
        elif step.node is not None and not _is_scope(step.node):
            shape = f'["{escaped(step.node.name)}<br/>{escaped(_type(scope, step.node))}"]'
            yield f"{margin}g{graph}n{drawn[graph][step.node.name]}{shape}"
    for scope in edges:
        yield from _drawn(scope, inner, drawn[scope.id])


def _is_scope(node: PlanNode) -> bool:
    return node.vertex.body.mode == "scope"


def _drawn(
    scope: PlanScope, inner: dict[tuple[int, str], int], numbers: dict[str, int]
) -> Iterator[str]:
    """Yield the edges of one graph.

    What leads to an inner graph leads to where it begins, what leaves it starts where it ends.
    """

    def end(name: str, side: str) -> str:
        if name in (ENTRY, EXIT):
            return f"g{scope.id}{'in' if name == ENTRY else 'out'}"
        return (
            f"g{inner[scope.id, name]}{side}"
            if (scope.id, name) in inner
            else f"g{scope.id}n{numbers[name]}"
        )

    for edge in scope.plan.graph.spec.edges:
        words = edge_label(scope, edge)
        line = "-->" if edge.trigger else "-.->"
        yield (
            f"  {end(edge.source, 'out')} {line}"
            + (f'|"{escaped(words)}"|' if words else "")
            + f" {end(edge.target, 'in')}"
        )


def join_name(scope: PlanScope, node: PlanNode) -> str:
    """Return the name of a node's join: as its file has it, or what the join calls itself."""
    spec = scope.specs.get(node.name)
    if spec is not None and isinstance(spec.join, ComponentRef):
        return spec.join.type
    join = node.vertex.join
    return str(getattr(join, "name", "")) or type(join).__name__


__all__ = [
    "as_mermaid",
    "as_text",
    "escaped",
    "join_name",
    "mermaid_picture",
    "notebook_picture",
    "svg_picture",
    "text_picture",
]
