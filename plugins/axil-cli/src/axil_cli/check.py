"""``axil check``: everything that is wrong with workflow files, and their cycles' bounds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from axil import AxilError, EdgeSpec, GraphSpec, NodeSpec, Problem
from axil.driver import PlanScope, cycle_bounds, walk_plan
from axil.plugin import ENTRY, Compiler, Plan, Want, noting_wants, refusals_of
from axil_cli.command import Exit, Session, allowing, equipped, problems_of
from axil_cli.plain import as_json
from axil_cli.source import TARGET, settings, workflow_of
from axil_cli.wants import lines, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The findings of one file."""

    file: str
    problems: tuple[Problem, ...]
    plan: Plan | None = None
    wants: tuple[Want, ...] = ()

    @property
    def is_fine(self) -> bool:
        """True if the file can run."""
        return not any(problem.severity == "error" for problem in self.problems)

    @property
    def cycles(self) -> list[PlanScope]:
        """Its cycles, nested ones and those of inner graphs included."""
        return (
            []
            if self.plan is None
            else [
                step.scope
                for step in walk_plan(self.plan)
                if step.kind == "open" and step.scope.kind == "cycle"
            ]
        )


class Check:
    """Say everything that is wrong with workflows, files and graphs in Python, and what files want.

    Components are resolved and configured, cycles are folded; nothing runs. Exit code 2 if there
    are errors in any file.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="WORKFLOW", help=TARGET)
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=VALUE", help="as for axil run"
        )
        allowing(parser)
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Check the files."""
        variables = settings(options.set)
        with equipped(options, session) as here:
            findings = [
                finding(file, here, vars=variables, allow=frozenset(options.allow))
                for file in options.files
            ]
        if options.format == "json":
            session.say(
                as_json(
                    {
                        "fine": all(each.is_fine for each in findings),
                        "files": [_data(each) for each in findings],
                    }
                )
            )
        else:
            for each in findings:
                _tell(each, session)
        return Exit.DONE if all(each.is_fine for each in findings) else Exit.MISUSE


def finding(file: str, session: Session, **reading: Any) -> Finding:
    """Everything that can be known of a file without running it."""
    renamed: list[Problem] = []
    telling, session.registry.tell = session.registry.tell, renamed.append
    try:
        with noting_wants() as wants:
            found = _examined(file, session, renamed, reading)
    finally:
        session.registry.tell = telling
    problems = dict.fromkeys((*refusals_of(wants), *found.problems))
    return replace(found, problems=tuple(problems), wants=tuple(wants))


def _examined(
    file: str, session: Session, renamed: list[Problem], reading: dict[str, Any]
) -> Finding:
    try:
        workflow = workflow_of(file, session, **reading)
    except AxilError as error:
        return Finding(
            file=file, problems=(*(each for each in renamed if each.where), *problems_of(error))
        )
    warnings: tuple[Problem, ...] = tuple(workflow.spec.extras.get("warnings", ()))
    planner = Compiler(workflow.setting)
    plan = None
    report: tuple[Problem, ...] = ()
    try:
        plan = planner.compile(workflow.spec)
    except AxilError as error:
        report = problems_of(error)
    unsure = () if plan is None else tuple(_at_once(plan, session))
    found = dict.fromkeys(
        (*warnings, *(each for each in renamed if each.where), *planner.problems, *report, *unsure)
    )
    return Finding(file=file, problems=tuple(found), plan=plan)


def _at_once(plan: Plan, session: Session) -> Iterator[Problem]:
    """Find cycles that two nodes enter which both fire in every run: that fails with AX402."""
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
        sure = _always(spec, members, session)
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


def _always(spec: GraphSpec, members: set[str], session: Session) -> set[str]:
    """``@entry``, and nodes outside the cycle that fire in every run and do not choose where their
    output goes.
    """
    nodes = {
        node.id: node
        for node in spec.nodes
        if node.id not in members and not _chooses(node, session)
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


def _chooses(node: NodeSpec, session: Session) -> bool:
    try:
        return (
            node.use is None
            or bool(node.wrappers)
            or hasattr(session.registry.resolve("nodes", node.use.type), "bind")
        )
    except AxilError:
        return True


def _tell(each: Finding, session: Session) -> None:
    for problem in each.problems:
        session.say(f"{problem.severity}: {problem}")
    errors = sum(1 for problem in each.problems if problem.severity == "error")
    warnings = len(each.problems) - errors
    counts = ", ".join(
        _counted(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n
    )
    if each.plan is None:
        hidden = any(problem.id != "AX100" for problem in each.problems)
        session.say(
            f"{each.file}: {counts}" + ("; more may follow once these are mended" if hidden else "")
        )
        _tell_wants(each, session)
        return
    spec, cycles = each.plan.graph.spec, each.cycles
    size = [
        _counted(len(spec.nodes), "node"),
        _counted(sum(map(_is_written, spec.edges)), "edge"),
        *([_counted(len(cycles), "cycle")] if cycles else []),
    ]
    session.say(f"{each.file}: {counts or 'fine'}; {', '.join(size)}")
    for cycle in cycles:
        session.say(
            f"{'  ' * cycle.depth}{cycle.name}: {', '.join(cycle.members)}; {cycle_bounds(cycle)}"
        )
    _tell_wants(each, session)


def _tell_wants(each: Finding, session: Session) -> None:
    for line in lines(each.wants):
        session.say(line)


def _is_written(edge: EdgeSpec) -> bool:
    """Return whether an edge was written as one: those that ``start`` and ``end`` mean were not."""
    return edge.place is None or "edges" in edge.place.keys


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _data(each: Finding) -> dict[str, Any]:
    return {
        "file": each.file,
        "fine": each.is_fine,
        "problems": [asdict(problem) for problem in each.problems],
        "wants": rows(each.wants),
        "cycles": [
            {
                "name": cycle.name,
                "members": list(cycle.members),
                "depth": cycle.depth,
                "entries": [
                    {
                        "node": name,
                        "rounds": cycle.limits[name].rounds,
                        "at_limit": cycle.limits[name].at_limit,
                    }
                    for name in cycle.entries
                ],
            }
            for cycle in each.cycles
        ],
    }
