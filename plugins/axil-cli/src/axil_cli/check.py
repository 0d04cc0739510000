"""``axil check``: everything that is wrong with workflow files, and their cycles' bounds."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from axil import EdgeSpec
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session
from axil_cli.source import TARGET, workflow_of
from axil_journals import CheckResult, check_workflow, cycle_bounds, want_lines, want_rows


class Check:
    """Say everything that is wrong with workflows, files and graphs in Python, and what files want.

    Components are resolved and configured, cycles are folded; nothing runs. Exit code 2 if there
    are errors in any file.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="WORKFLOW", help=TARGET)
        add_shared_arguments(parser, "--workflow", "--format")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Check the files."""
        reading = session.reading(options)
        findings = [(file, _checked(file, session, reading)) for file in options.files]
        is_fine = all(result.is_fine for _, result in findings)
        if options.format == "json":
            files = [_data(file, result) for file, result in findings]
            session.say_json({"fine": is_fine, "files": files})
        else:
            for file, result in findings:
                session.say("\n".join(_lines(file, result)))
        return Exit.DONE if is_fine else Exit.MISUSE


def _checked(file: str, session: Session, reading: Mapping[str, Any]) -> CheckResult:
    return check_workflow(lambda: workflow_of(file, session, **reading), session.registry)


def _lines(file: str, result: CheckResult) -> Iterator[str]:
    for problem in result.problems:
        yield f"{problem.severity}: {problem}"
    severities = [problem.severity for problem in result.problems]
    counts = ", ".join(
        _counted(n, word) for word in ("error", "warning") if (n := severities.count(word))
    )
    if result.plan is None:
        is_partial = any(problem.id != "AX100" for problem in result.problems)
        more = "; more may follow once these are mended" if is_partial else ""
        yield f"{file}: {counts}{more}"
    else:
        spec, cycles = result.plan.graph.spec, result.cycles
        size = [
            _counted(len(spec.nodes), "node"),
            _counted(sum(map(_is_written, spec.edges)), "edge"),
            *([_counted(len(cycles), "cycle")] if cycles else []),
        ]
        yield f"{file}: {counts or 'fine'}; {', '.join(size)}"
        for cycle in cycles:
            margin, members = "  " * cycle.depth, ", ".join(cycle.members)
            yield f"{margin}{cycle.name}: {members}; {cycle_bounds(cycle)}"
    yield from want_lines(result.wants)


def _is_written(edge: EdgeSpec) -> bool:
    """Return whether an edge was written as one: those that ``start`` and ``end`` mean were not."""
    return edge.place is None or "edges" in edge.place.keys


def _counted(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _data(file: str, result: CheckResult) -> dict[str, Any]:
    return {
        "file": file,
        "fine": result.is_fine,
        "problems": [asdict(problem) for problem in result.problems],
        "wants": want_rows(result.wants),
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
            for cycle in result.cycles
        ],
    }
