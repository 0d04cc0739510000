"""``axil show``: a picture of a workflow with its loops folded, as text, as a mermaid flowchart, or
as data.
"""

from __future__ import annotations

import argparse
from typing import Any

from axil import AxilError, EdgeSpec
from axil.plugin import BACK, ENTRY, OUTSIDE, Plan, PlanEdge, PlanNode, default_registry
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session, can_show
from axil_cli.plain import plain
from axil_cli.sketch import sketched
from axil_cli.source import TARGET, workflow_of
from axil_files import python_target
from axil_journals import PlanScope, edge_label, join_name, walk_plan

_BARE = {"→": "->", "⇢": "~>", "↺": "<-", "↗": "^", "⟳": "@", "▣": "#", "×": "x", "…": "..."}
"""Replacements for signs that the terminal lacks."""


class Show:
    """Draw a workflow with its loops folded.

    text: one line a node, by level; cycles and inner graphs are indented below their node. mermaid:
    a flowchart with a box for each cycle and inner graph. svg: the same as an image. json: the plan
    as data.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="WORKFLOW", help=TARGET)
        add_shared_arguments(parser, "--workflow")
        parser.add_argument("--format", choices=("text", "mermaid", "svg", "json"), default="text")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Draw it."""
        plan = self._plan(options, session)
        if options.format == "json":
            session.say_json(as_data(plan))
            return Exit.DONE
        picture: str = default_registry().resolve("pictures", options.format)(plan)
        if options.format != "svg" and not can_show(session.stdout, "".join(_BARE)):
            for sign, bare in _BARE.items():
                picture = picture.replace(sign, bare)
        session.say(picture)
        return Exit.DONE

    def _plan(self, options: argparse.Namespace, session: Session) -> Plan:
        """Return the plan; of a workflow that cannot run here, its shape."""
        reading = session.reading(options)
        try:
            return workflow_of(options.file, session, **reading).plan
        except AxilError as error:
            if python_target(options.file) is not None:
                raise
            try:
                plan = sketched(options.file, registry=session.registry, **reading)
            except AxilError:
                raise error from None
        session.tell(f"warning: {options.file} cannot run here as it is; axil check says why.")
        return plan


# --------------------------------------------------------------------------------------------------


def as_data(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain data: its scopes, the whole graph first, each with its nodes; ``in``
    says which scope is around.
    """
    scopes: list[dict[str, Any]] = []
    for step in walk_plan(plan):
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


def _vertex(scope: PlanScope, node: PlanNode) -> dict[str, Any]:
    spec = scope.specs.get(node.name)
    return {
        "name": node.name,
        "type": node.vertex.type,
        "level": node.level,
        "join": join_name(scope, node),
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


def _edge(scope: PlanScope, edge: EdgeSpec) -> dict[str, Any]:
    return {
        "from": edge.source,
        "to": edge.target,
        "trigger": edge.trigger,
        "label": edge_label(scope, edge),
    }
