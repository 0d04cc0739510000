"""``axil check``: everything that is wrong with workflow files, and their cycles' bounds."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

from axil import EdgeSpec
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session
from axil_cli.plain import as_json
from axil_cli.source import TARGET, settings, workflow_of
from axil_journals import CheckResult, check_workflow, cycle_bounds, want_lines, want_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The findings of one file."""

    file: str
    result: CheckResult


class Check:
    """Say everything that is wrong with workflows, files and graphs in Python, and what files want.

    Components are resolved and configured, cycles are folded; nothing runs. Exit code 2 if there
    are errors in any file.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="WORKFLOW", help=TARGET)
        add_shared_arguments(parser, "--workflow")
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Check the files."""
        variables = settings(options.set)
        findings = [
            finding(file, session, vars=variables, allow=frozenset(options.allow))
            for file in options.files
        ]
        if options.format == "json":
            session.say(
                as_json(
                    {
                        "fine": all(each.result.is_fine for each in findings),
                        "files": [_data(each) for each in findings],
                    }
                )
            )
        else:
            for each in findings:
                _tell(each, session)
        return Exit.DONE if all(each.result.is_fine for each in findings) else Exit.MISUSE


def finding(file: str, session: Session, **reading: Any) -> Finding:
    """Everything that can be known of a file without running it."""
    result = check_workflow(lambda: workflow_of(file, session, **reading), session.registry)
    return Finding(file=file, result=result)


def _tell(each: Finding, session: Session) -> None:
    for problem in each.result.problems:
        session.say(f"{problem.severity}: {problem}")
    errors = sum(1 for problem in each.result.problems if problem.severity == "error")
    warnings = len(each.result.problems) - errors
    counts = ", ".join(
        _counted(n, word) for n, word in ((errors, "error"), (warnings, "warning")) if n
    )
    if each.result.plan is None:
        hidden = any(problem.id != "AX100" for problem in each.result.problems)
        session.say(
            f"{each.file}: {counts}" + ("; more may follow once these are mended" if hidden else "")
        )
        _tell_wants(each, session)
        return
    spec, cycles = each.result.plan.graph.spec, each.result.cycles
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
    for line in want_lines(each.result.wants):
        session.say(line)


def _is_written(edge: EdgeSpec) -> bool:
    """Return whether an edge was written as one: those that ``start`` and ``end`` mean were not."""
    return edge.place is None or "edges" in edge.place.keys


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _data(each: Finding) -> dict[str, Any]:
    return {
        "file": each.file,
        "fine": each.result.is_fine,
        "problems": [asdict(problem) for problem in each.result.problems],
        "wants": want_rows(each.result.wants),
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
            for cycle in each.result.cycles
        ],
    }
