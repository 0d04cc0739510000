"""Checks of workflows, which run nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from axil import AxilError, EdgeSpec, GraphSpec, NodeSpec, Problem, Workflow
from axil.plugin import (
    ENTRY,
    Compiler,
    Plan,
    Registry,
    Want,
    noting_wants,
    one_line,
    refusals_of,
)
from axil_journals.analysis.bounds import Bounds, bounds_of
from axil_journals.analysis.findings import findings
from axil_journals.pictures.scopes import PlanScope, walk_plan

_HEADS: Final = {
    "own": "without leave:",
    "granted": "with leave:",
    "missing": "needs leave:",
}
_MOST_PLACES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The findings of a check, and the plan where there is one."""

    problems: tuple[Problem, ...]
    plan: Plan | None = None
    wants: tuple[Want, ...] = ()
    """The actions of the file, granted or not."""

    @property
    def is_fine(self) -> bool:
        """True if the workflow can run."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def bounds(self) -> Bounds | None:
        """The most that a run of it may use; None: it has no plan."""
        return None if self.plan is None else bounds_of(self.plan)

    @property
    def cycles(self) -> list[PlanScope]:
        """Its cycles, nested ones and those of inner graphs included."""
        found = () if self.plan is None else walk_plan(self.plan)
        return [each.scope for each in found if each.kind == "open" and each.scope.kind == "cycle"]


def check_workflow(make: Callable[[], Workflow], registry: Registry) -> CheckResult:
    """Return all problems and wants of a workflow; nothing runs.

    Args:
        make: reads the workflow with the registry, as ``lambda: load("flow.yaml",
            registry=registry)`` does.
    """
    renamed: list[Problem] = []
    former, registry.warn = registry.warn, renamed.append
    try:
        with noting_wants() as wants:
            found = _examined(make, registry, renamed)
    finally:
        registry.warn = former
    problems = dict.fromkeys((*refusals_of(wants), *found.problems))
    return replace(found, problems=tuple(problems), wants=tuple(wants))


def _examined(
    make: Callable[[], Workflow], registry: Registry, renamed: list[Problem]
) -> CheckResult:
    try:
        workflow = make()
    except AxilError as error:
        placed = [each for each in renamed if each.where]
        return CheckResult(problems=(*placed, *_problems_of(error)))
    warnings: tuple[Problem, ...] = tuple(workflow.spec.extras.get("warnings", ()))
    compiler = Compiler(workflow.setting)
    plan = None
    try:
        plan = compiler.compile(workflow.spec)
        more = (*_double_entries(plan, registry), *findings(plan))
    except AxilError as error:
        more = _problems_of(error)
    placed = [each for each in renamed if each.where]
    found = dict.fromkeys((*warnings, *placed, *compiler.problems, *more))
    return CheckResult(problems=tuple(found), plan=plan)


def _problems_of(error: AxilError) -> tuple[Problem, ...]:
    several = getattr(error, "problems", None)
    if several:
        return tuple(several)
    return (getattr(error, "problem", None) or Problem(error.id, "", str(error)),)


def _double_entries(plan: Plan, registry: Registry) -> Iterator[Problem]:
    """Yield cycles that two nodes enter which both fire in every run: that fails with AX402."""
    for step in walk_plan(plan):
        scope = step.scope
        if (
            step.kind != "open"
            or scope.kind != "cycle"
            or scope.parent is None
            or scope.parent.kind != "graph"
            or len(scope.entries) < 2
        ):
            continue
        spec, members = scope.plan.graph.spec, set(scope.members)
        sure = _always(spec, members, registry)
        taken = [
            e
            for e in spec.edges
            if e.target in members and e.source not in members and e.source in sure and _is_plain(e)
        ]
        if len({edge.target for edge in taken}) > 1:
            ways = ", ".join(f"{edge.source} -> {edge.target}" for edge in taken)
            message = (
                f"{scope.name} is entered by {ways}, "
                "which are all taken in every run: that fails with AX402."
            )
            yield Problem(
                "AX402",
                str(taken[1].place or scope.name),
                message,
                "Let one edge enter it, or give the edges conditions.",
                "warning",
            )


def _is_plain(edge: EdgeSpec) -> bool:
    return edge.trigger and edge.condition is None and edge.router is None and edge.process is None


def _always(spec: GraphSpec, members: set[str], registry: Registry) -> set[str]:
    """Return ``@entry`` and the nodes outside the cycle that fire in every run, on all edges."""
    nodes = {
        node.id: node
        for node in spec.nodes
        if node.id not in members and not _chooses(node, registry)
    }
    sure = {ENTRY}
    waiting = [ENTRY]
    while waiting:
        source = waiting.pop()
        for edge in spec.edges:
            node = nodes.get(edge.target)
            if (
                edge.source == source
                and node is not None
                and node.id not in sure
                and node.join in (None, "gate")
                and _is_plain(edge)
            ):
                sure.add(node.id)
                waiting.append(node.id)
    return sure


def _chooses(node: NodeSpec, registry: Registry) -> bool:
    try:
        return (
            node.use is None
            or bool(node.wrappers)
            or hasattr(registry.resolve("nodes", node.use.type), "bind")
        )
    except AxilError:
        return True


def want_rows(wants: Iterable[Want]) -> list[dict[str, Any]]:
    """Return wants as plain data, one for each word: those that need no leave, those that were
    granted, those that are missing.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for each in wants:
        row = found.setdefault(
            (each.status, each.word), {"word": each.word, "status": each.status, "places": []}
        )
        if each.where and each.where not in row["places"]:
            row["places"].append(each.where)
    # a word that needs no leave at one place may need it at another
    return [row for status in _HEADS for (own, _), row in found.items() if own == status]


def want_lines(wants: Iterable[Want]) -> Iterator[str]:
    """Yield wants as lines for people."""
    last = ""
    for row in want_rows(wants):
        if row["status"] != last:
            last = row["status"]
            yield f"  {_HEADS[last]}"
        word = one_line(row["word"])
        shown = f"--allow {shlex.quote(word)}" if last == "missing" else word
        places = [one_line(each) for each in row["places"]]
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        yield f"    {shown:<28} {', '.join(places[:_MOST_PLACES])}{more}".rstrip()
