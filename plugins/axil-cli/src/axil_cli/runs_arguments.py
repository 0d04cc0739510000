"""The arguments of ``axil runs``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from axil_cli.arguments import add_shared_arguments
from axil_cli.folder import RUNS
from axil_cli.run import add_watching_arguments

Parser = argparse.ArgumentParser
OPEN: Final = ("open", "paused", "failed", "limited", "cancelled", "parked")
"""Statuses of runs that have not reached their end."""
STATUSES: Final = ("running", "done", *OPEN)


def add_runs_arguments(parser: Parser) -> list[tuple[Parser, str]]:
    """Add what can be done with runs; return the parsers that take options of a run, and where."""
    doing = parser.add_subparsers(dest="doing", metavar="WHAT", required=True)
    made: dict[str, Parser] = {}
    for name, (help, add, *shared) in _DOING.items():
        made[name] = doing.add_parser(name, help=help, description=help, allow_abbrev=False)
        add_shared_arguments(made[name], "--journal", *shared)
        add(made[name])
    return [(made[name], "run") for name in ("resume", "answer")]


def _list(parser: Parser) -> None:
    parser.add_argument("--thread", default="", metavar="NAME", help="only those of a conversation")
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        choices=STATUSES,
        help="only those with this status; may be repeated",
    )
    parser.add_argument(
        "--limit", type=int, default=30, metavar="N", help="the most that are shown; 0: all"
    )


def _show(parser: Parser) -> None:
    _run(parser)
    parser.add_argument("--steps", action="store_true", help="what happened, step by step")
    parser.add_argument(
        "--prompts", action="store_true", help="what models were asked, where it is kept"
    )
    parser.add_argument(
        "--json", action="store_const", dest="format", const="json", help="as --format json"
    )
    parser.add_argument(
        "--at",
        type=int,
        metavar="N",
        help="the run after step N: its state, and the next steps",
    )


def _fork(parser: Parser) -> None:
    _run(parser)
    parser.add_argument("--at", type=int, metavar="N", help="up to step N; without it all")
    parser.add_argument("--as", dest="new", metavar="ID", default="", help="the new run's name")
    parser.add_argument(
        "--current",
        action="store_true",
        help="with today's files: another prompt, other edges, other code",
    )
    parser.add_argument(
        "--input", metavar="TEXT", help="with another input; without --at from the beginning"
    )
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with a field of the state set at step N; may be repeated",
    )
    parser.add_argument("--output", metavar="JSON", help="with another outcome of step N")
    parser.add_argument(
        "--route",
        action="store_true",
        help="the edges of step N decide again what they carry of the --output",
    )


def _diff(parser: Parser) -> None:
    _run(parser)
    parser.add_argument("other", metavar="OTHER")


def _export(parser: Parser) -> None:
    _run(parser)
    parser.add_argument(
        "--html",
        action="store_true",
        help="as one page for a browser, which needs no server; with axil-serve",
    )


def _prune(parser: Parser) -> None:
    parser.add_argument(
        "--older-than",
        type=float,
        default=30.0,
        metavar="DAYS",
        help="those untouched for so long; 30",
    )
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        choices=STATUSES,
        help="those with this status; done. May be repeated",
    )
    parser.add_argument(
        "--files",
        metavar="DIR",
        help=f"also remove their folders in DIR ({RUNS} of axil run and axil serve)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print which, and delete none")


def _doctor(parser: Parser) -> None:
    mending = parser.add_mutually_exclusive_group()
    mending.add_argument(
        "--repair",
        action="store_true",
        help="put a new database in the place of a damaged one, with all that can be read of "
        "it; the old one stays beside it. No other process may use it meanwhile",
    )
    mending.add_argument(
        "--cut",
        metavar="RUN",
        help="drop the entries behind the damage in RUN, so that it can be resumed",
    )


def _run(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN")


def _resume(parser: Parser) -> None:
    _run(parser)
    _resuming(parser)


def _answer(parser: Parser) -> None:
    _run(parser)
    parser.add_argument(
        "answers_given",
        metavar="ANSWER",
        nargs="*",
        help="in the order of the questions, or ID=ANSWER",
    )
    _resuming(parser)


def _resuming(parser: Parser) -> None:
    add_watching_arguments(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--current",
        action="store_true",
        help="resume with today's files, if the graph is the same",
    )
    which.add_argument(
        "--migrate",
        action="store_true",
        help="resume with today's files and plugins, whatever has changed, "
        "and keep them for this run",
    )


_DOING: Final[dict[str, tuple[str, Callable[[Parser], None], *tuple[str, ...]]]] = {
    "list": ("the runs, newest first", _list, "--format"),
    "show": (
        "a run in short: its nodes, what they used, what it waits for; or step by step",
        _show,
        "--format",
        "--workflow",
    ),
    "resume": ("resume a run: finished work is not repeated", _resume, "--workflow"),
    "answer": ("answer a paused run, and resume it", _answer, "--workflow"),
    "fork": (
        "branch off: a new run that has done what a run had done up to a step",
        _fork,
        "--format",
        "--workflow",
    ),
    "cancel": ("end a run, whatever its status", _run),
    "diff": ("where two runs differ, node by node", _diff, "--format"),
    "export": ("the whole record of a run, one JSON object a line", _export, "--workflow"),
    "prune": ("forget runs that have ended", _prune, "--format"),
    "doctor": ("look for damage", _doctor, "--format"),
}
"""The acts on runs: the help of each, its own arguments, and the shared ones."""
