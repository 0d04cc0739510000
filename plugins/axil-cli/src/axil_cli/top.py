"""``axil top``: what a journal has to do, in the terminal, again and again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from axil_cli import record
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session
from axil_cli.picture import ago, run_table
from axil_cli.plain import table_lines
from axil_journals import RunCount, RunInfo

_STATES: Final = ("due", "held", "waiting", "parked")
_CLEAR: Final = "\x1b[H\x1b[2J"
_RUNS: Final = 10


class Top:
    """Show what waits, what is at work and what changed last, until the process is interrupted.

    The journal is only read.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="show it once")
        parser.add_argument(
            "--every", type=float, default=2.0, metavar="SECONDS", help="between two looks (2)"
        )
        add_shared_arguments(parser, "--journal")

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Show it."""
        journal: Any = record.opened(options, session, needed="axil top", kept=True)
        try:
            while True:
                lines = list(_frame(journal, time.time()))
                if options.once:
                    for line in lines:
                        session.say(line)
                    return Exit.DONE
                session.say("\n".join([_CLEAR, *lines]))
                time.sleep(max(0.1, options.every))
        except KeyboardInterrupt:
            return Exit.DONE
        finally:
            journal.close()


def _frame(journal: Any, now: float) -> Iterator[str]:
    counts: Sequence[RunCount] = journal.counts(now)
    totals = {state: sum(each.runs for each in counts if each.state == state) for state in _STATES}
    yield "  ".join(f"{state} {runs}" for state, runs in totals.items())
    yield ""
    yield from table_lines(_rows(counts, now))
    limits = [queue for queue in journal.queues() if queue.concurrency or queue.calls]
    for queue in limits:
        most = "" if queue.concurrency is None else f" at most {queue.concurrency} at work"
        rate = "" if queue.calls is None else f" {queue.calls} each {queue.period_seconds:g} s"
        yield f"queue {queue.name}:{most}{rate}"
    yield ""
    parked: Sequence[RunInfo] = journal.runs(status=["parked"], limit=_RUNS)
    yield from run_table([*parked, *journal.runs(limit=_RUNS)], now)


def _rows(counts: Sequence[RunCount], now: float) -> list[tuple[str, ...]]:
    """Return the rows of a table by queue and graph."""
    found: dict[tuple[str, str], dict[str, RunCount]] = {}
    for each in counts:
        found.setdefault((each.queue, each.graph), {})[each.state] = each
    rows: list[tuple[str, ...]] = [("QUEUE", "GRAPH", *map(str.upper, _STATES), "OLDEST DUE")]
    for (queue, graph), states in sorted(found.items()):
        numbers = (str(states[state].runs) if state in states else "0" for state in _STATES)
        oldest = ago(now - states["due"].oldest) if "due" in states else "-"
        rows.append((queue or "-", graph, *numbers, oldest))
    return rows
