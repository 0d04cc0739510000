"""``axil runs prune`` and ``axil runs doctor``: forgetting runs, and mending a journal."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from axil.plugin import JournalError
from axil_cli import record
from axil_cli.command import Exit, Session, misuse
from axil_cli.folder import remove_folder
from axil_cli.picture import run_table
from axil_cli.plain import plain
from axil_journals import ReplayIndex, RunInfo

_AT_ONCE: Final = 1000
"""Runs that are read, or forgotten in one transaction, at most."""
_BATCH_SECONDS: Final = 0.05
"""The time that a transaction which forgets runs is to take."""


def prune(journal: Any, options: argparse.Namespace, session: Session) -> int:
    """Forget runs that have ended."""
    before, ended = time.time() - options.older_than * 86_400, options.status or ["done"]
    ids, is_dry = list[str](), options.dry_run
    for some in (_listed if is_dry else _pruned)(journal, before, ended):
        for info in some if options.files and not is_dry else ():
            remove_folder(options.files, info.run_id)
        for line in run_table(some, time.time()) if options.format != "json" else ():
            session.say(line)
        ids += [info.run_id for info in some]
    if not is_dry and hasattr(journal, "shrink"):
        journal.shrink()
    if options.format == "json":
        session.say_json(ids)
    else:
        session.tell(f"{len(ids)} run(s) {'would be' if is_dry else 'are'} forgotten.")
    return Exit.DONE


def repair(options: argparse.Namespace, session: Session) -> int:
    """Put a new database in the place of a damaged one; 1: something is lost."""
    journal = record.damaged(options, session)
    if not hasattr(journal, "repair"):
        message = "this journal is repaired with the means of its database."
        raise misuse("--repair", message, "Restore a backup.")
    try:
        with suppress(JournalError):  # else it cannot even be opened
            if not journal.examine():
                session.tell("Nothing is damaged.")
                return Exit.DONE
        found = journal.repair()
    finally:
        journal.close()
    if options.format == "json":
        lost = [each._asdict() for each in found.lost]
        session.say_json({**plain(found), "old": str(found.old), "lost": lost})
        return Exit.FAILED if found.lost else Exit.DONE
    session.say(f"Rescued: {found.runs} run(s), {found.entries} entries.")
    for each in found.lost:
        session.say(f"lost of {each.run_id or 'the database'}: {each.problem}")
    session.tell(f"The damaged database is kept: {found.old}")
    return Exit.FAILED if found.lost else Exit.DONE


def examine(journal: Any, options: argparse.Namespace, session: Session) -> int:
    """Look for damage, or drop what lies behind that of a run; 1: something is damaged."""
    if not hasattr(journal, "examine"):
        raise misuse("axil runs doctor", "this journal cannot be examined.")
    damages = journal.examine()
    if options.cut:
        there = [each for each in damages if each.run_id == options.cut]
        if not there:
            raise misuse("--cut", f'nothing is wrong with a run "{options.cut}".')
        journal.cut(options.cut, there[0].good)
        leave = record.needed_leave(ReplayIndex(journal.entries(options.cut)).origin)
        way = record.way_on(f"resume {options.cut}", session, options, leave)
        session.tell(f"{options.cut} continues from step {there[0].good}: {way}")
        return Exit.DONE
    if options.format == "json":
        session.say_json([each._asdict() for each in damages])
    for each in damages if options.format == "text" else ():
        session.say(f"{each.run_id or 'the database'}: {each.problem}")
    if not damages:
        session.tell("Nothing is damaged.")
    return Exit.FAILED if damages else Exit.DONE


def _listed(journal: Any, before: float, status: Sequence[str]) -> Iterator[Sequence[RunInfo]]:
    """Yield the runs that would be forgotten, page by page."""
    after = ""
    while some := journal.runs(status=status, before=before, after=after, limit=_AT_ONCE):
        yield some
        after = some[-1].run_id


def _pruned(journal: Any, before: float, status: Sequence[str]) -> Iterator[Sequence[RunInfo]]:
    """Forget runs in batches, and yield those of each."""
    size = 16
    while True:
        began = time.monotonic()
        some = journal.prune(before, status=status, limit=size)
        took = time.monotonic() - began
        if some:
            yield some
        if len(some) < size:
            return
        # others that write to SQLite wait for a batch; the next one comes after them
        size = min(_AT_ONCE, 2 * size) if took < _BATCH_SECONDS else max(1, size // 2)
        time.sleep(took)
