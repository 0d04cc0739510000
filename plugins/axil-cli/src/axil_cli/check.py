"""``axil check``: what is wrong with workflows, what they want, and what they may use."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from axil import EdgeSpec
from axil_cli.arguments import JOURNAL_FOLDER, add_shared_arguments
from axil_cli.command import Exit, Session
from axil_cli.sarif import sarif_log, where_pattern
from axil_cli.source import TARGET, workflow_of
from axil_files import python_target
from axil_journals import (
    CheckResult,
    bound_data,
    bound_lines,
    check_workflow,
    cycle_bounds,
    estimate,
    want_lines,
    want_rows,
)


class Check:
    """Say everything that is wrong with workflows, files and graphs in Python, and what files want.

    Components are resolved and configured, cycles are folded, and what never happens is proved;
    nothing runs. Exit code 2 if there are errors in any file.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="WORKFLOW", help=TARGET)
        add_shared_arguments(parser, "--workflow", "--journal")
        parser.add_argument(
            "--format",
            choices=("text", "json", "sarif"),
            default="text",
            help="sarif: for editors and forges (SARIF 2.1.0)",
        )
        parser.add_argument(
            "--estimate",
            action="store_true",
            help="say what a run may use at most, and what recorded runs used",
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Check the files."""
        reading = session.reading(options)
        findings = [(file, _checked(file, session, reading)) for file in options.files]
        is_fine = all(result.is_fine for _, result in findings)
        if options.format == "sarif":
            session.say_json(sarif_log(findings))
            return Exit.DONE if is_fine else Exit.MISUSE
        journal = _journal(options, session) if options.estimate else None
        likely = [
            None if journal is None or result.plan is None else estimate(journal, result.plan)
            for _, result in findings
        ]
        if options.format == "json":
            files = [
                {**_data(file, result), **bound_data(result.bounds, guess)}
                for (file, result), guess in zip(findings, likely, strict=True)
            ]
            session.say_json({"fine": is_fine, "files": files})
        else:
            for (file, result), guess in zip(findings, likely, strict=True):
                session.say("\n".join(_lines(file, result)))
                if options.estimate and (bounds := result.bounds) is not None:
                    session.say("\n".join(bound_lines(bounds, guess)))
        return Exit.DONE if is_fine else Exit.MISUSE


def _journal(options: argparse.Namespace, session: Session) -> Any:
    """Return the journal with recorded runs; None: there is none."""
    from axil_cli.record import opened

    named = options.journal or os.environ.get("AXIL_JOURNAL")
    if not named and not os.path.isdir(JOURNAL_FOLDER):
        return None
    return opened(options, session, kept=True)


def _checked(file: str, session: Session, reading: Mapping[str, Any]) -> CheckResult:
    found = check_workflow(lambda: workflow_of(file, session, **reading), session.registry)
    folder = os.path.dirname(file)
    if not folder or python_target(file) is not None:
        return found

    def placed(where: str) -> str:
        """Return a place in a file that this one includes, whose name begins at its folder."""
        own = where_pattern.match(where)
        return where if own is None or own["file"] == file else os.path.join(folder, where)

    return replace(
        found,
        problems=tuple(replace(each, where=placed(each.where)) for each in found.problems),
        wants=tuple(replace(each, where=placed(each.where)) for each in found.wants),
    )


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
