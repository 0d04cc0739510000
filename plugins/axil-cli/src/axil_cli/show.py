"""``axil show``: a picture of a workflow with its loops folded, as text, as a mermaid flowchart, or
as data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from axil import AxilError, EdgeSpec, Use, load
from axil.plugin import BACK, ENTRY, EXIT, OUTSIDE, Plan, PlanEdge, PlanNode
from axil_cli.command import Exit, Session, allowing, can_show, equipped
from axil_cli.plain import as_json, plain
from axil_cli.run import settings
from axil_cli.scopes import Scope, bounded, label, shortened, walk
from axil_cli.sketch import sketched

_BARE = {"→": "->", "⇢": "~>", "↺": "<-", "↗": "^", "⟳": "@", "▣": "#", "×": "x", "…": "..."}
"""What stands for a sign where the terminal lacks it."""


class Show:
    """Draw a workflow with its loops folded.

    text: one line a node, by level; cycles and inner graphs are indented below their node. mermaid:
    a flowchart with a box for each cycle and inner graph. json: the plan as data.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a workflow file")
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="as for axil run"
        )
        allowing(parser)
        parser.add_argument("--format", choices=("text", "mermaid", "json"), default="text")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Draw it."""
        with equipped(options, session) as here:
            plan = self._plan(options, here)
        if options.format == "json":
            session.say(as_json(as_data(plan)))
            return Exit.DONE
        picture = "\n".join(as_mermaid(plan) if options.format == "mermaid" else as_text(plan))
        if not can_show(session.stdout, "".join(_BARE)):
            for sign, bare in _BARE.items():
                picture = picture.replace(sign, bare)
        session.say(picture)
        return Exit.DONE

    def _plan(self, options: argparse.Namespace, session: Session) -> Plan:
        """The plan; of a workflow that cannot run here, its shape."""
        reading: dict[str, Any] = {
            "vars": settings(options.set),
            "registry": session.registry,
            "allow": frozenset(options.allow),
        }
        try:
            return load(options.file, hooks=session.hooks, **reading).plan
        except AxilError as error:
            try:
                plan = sketched(options.file, **reading)
            except AxilError:
                raise error from None
        session.tell(f"warning: {options.file} cannot run here as it is; axil check says why.")
        return plan


# --------------------------------------------------------------------------------------------------


def as_text(plan: Plan) -> Iterator[str]:
    """The plan in lines: level, name, type, and where its edges lead.

    ``→`` an edge, ``⇢`` one that does not trigger, ``↗`` one that leaves the cycle, ``↺`` one that
    comes back and starts the next round.
    """
    for step in walk(plan):
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
            yield f"{margin[4:]}{scope.node.level:>4}  ⟳ {scope.name}  {bounded(scope)}"
        elif step.kind == "node" and step.node is not None and step.node.vertex.type != "cycle":
            yield from _node(scope, step.node, margin)


def _node(scope: Scope, node: PlanNode, margin: str) -> Iterator[str]:
    told, join = _type(scope, node), _join(scope, node)
    if join != "gate":
        told = f"{told} join {join}".strip()
    arcs = [(_arc_sign(arc), scope.edge(arc.id)) for arc in node.out]
    yield from _edges(scope, f"  {told}", f"{margin}{node.level:>4}  {node.name}", arcs)


def _type(scope: Scope, node: PlanNode) -> str:
    """The node's type, and the wrappers around it, innermost first: ``python × map``."""
    spec = scope.specs.get(node.name)
    return " × ".join(
        [
            node.vertex.type,
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


def _edges(scope: Scope, told: str, head: str, edges: list[tuple[str, EdgeSpec]]) -> Iterator[str]:
    """A line with the first edge, and one for each further edge below it."""
    first = head + told
    if not edges:
        yield first
        return
    for number, (sign, edge) in enumerate(edges):
        words = label(scope, edge)
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
    """The plan as a mermaid flowchart; nodes have neutral ids, so any name is allowed."""
    yield "flowchart TD"
    graph = 0  # the scope of the graph whose nodes are being drawn, for their ids
    inside: list[int] = []
    inner: dict[tuple[int, str], int] = {}  # nodes that are graphs → the scope that they are
    drawn: dict[int, dict[str, int]] = {}  # graphs → the numbers of their nodes
    edges: list[Scope] = []
    for step in walk(plan):
        scope, margin = step.scope, "  " * (len(inside) + 1)
        if step.kind == "open":
            if scope.parent is not None:
                title = scope.name if scope.kind == "graph" else f"{scope.name}: {bounded(scope)}"
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
    scope: Scope, inner: dict[tuple[int, str], int], numbers: dict[str, int]
) -> Iterator[str]:
    """The edges of one graph.

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
        words = label(scope, edge)
        line = "-->" if edge.trigger else "-.->"
        yield (
            f"  {end(edge.source, 'out')} {line}"
            + (f'|"{escaped(words)}"|' if words else "")
            + f" {end(edge.target, 'in')}"
        )


# --------------------------------------------------------------------------------------------------


def as_data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data: its scopes, the whole graph first, each with its nodes; ``in`` says
    which scope is around.
    """
    scopes: list[dict[str, Any]] = []
    for step in walk(plan):
        scope = step.scope
        if step.kind == "open":
            data: dict[str, Any] = {
                "id": scope.id,
                "kind": scope.kind,
                "name": scope.name,
                "in": scope.parent.id if scope.parent else None,
            }
            if scope.kind == "cycle":
                data["entries"] = [
                    {
                        "node": n,
                        "rounds": scope.limits[n].rounds,
                        "at_limit": scope.limits[n].at_limit,
                    }
                    for n in scope.entries
                ]
            else:
                spec = scope.plan.graph.spec
                data["entry"] = [_edge(scope, edge) for edge in spec.edges if edge.source == ENTRY]
                data["payload"] = spec.payload
            scopes.append({**data, "nodes": []})
        elif step.node is not None:
            # ids count scopes in the order of the walk
            scopes[scope.id]["nodes"].append(_vertex(scope, step.node))
    return {
        "graph": plan.graph.spec.id,
        "description": plan.graph.spec.description,
        "scopes": scopes,
    }


def _join(scope: Scope, node: PlanNode) -> str:
    """Return the name of a node's join: as its file has it, or what the join calls itself."""
    spec = scope.specs.get(node.name)
    if spec is not None and isinstance(spec.join, Use):
        return spec.join.type
    join = node.vertex.join
    return str(getattr(join, "name", "")) or type(join).__name__


def _vertex(scope: Scope, node: PlanNode) -> dict[str, Any]:
    spec = scope.specs.get(node.name)
    return {
        "name": node.name,
        "type": node.vertex.type,
        "level": node.level,
        "join": _join(scope, node),
        "config": plain(spec.use.config, hide=True)
        if spec is not None and spec.use is not None
        else None,
        "wrappers": [
            {"type": use.type, "config": plain(use.config, hide=True)}
            for use in (spec.wrappers if spec is not None else ())
        ],
        "edges": []
        if node.vertex.type == "cycle"
        else [{**_edge(scope, scope.edge(a.id)), "leads": _leads(a)} for a in node.out],
    }


def _leads(arc: PlanEdge) -> str:
    return {BACK: "back", OUTSIDE: "out"}.get(arc.port, "on")


def _edge(scope: Scope, edge: EdgeSpec) -> dict[str, Any]:
    return {
        "from": edge.source,
        "to": edge.target,
        "trigger": edge.trigger,
        "label": label(scope, edge),
    }
