"""The cost of pages, names and batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axil_sqlite import SqliteJournal


def test_pages_and_batches_read_what_is_on_them_however_many_runs_there_are(
    tmp_path: Path,
) -> None:
    """Counted in instructions of SQLite's machine, of which there are the same for ten times the
    runs.
    """

    def counted(many: int) -> dict[str, int]:
        journal = SqliteJournal(tmp_path / f"{many}")
        store, counts = journal.writer.store, Counter[str]()
        store.connection.execute(
            "with recursive n(n) as (select 1 union all select n + 1 from n where n < ?) insert "
            "into runs (run, status, begun, touched, due, epoch) select 'r' || n, case when n % 50 "
            "= 0 then 'failed' when n % 3 then 'done' else 'paused' end, 0, n, null, n from n",
            (many,),
        )
        store.connection.execute("insert into mail (run, kind, body) select id, '', '' from runs")
        acts: dict[str, Callable[[], Any]] = {
            "the first page": lambda: journal.runs(limit=20),
            "a page in the middle": lambda: journal.runs(after=f"r{many // 2}", limit=20),
            "a rare status": lambda: journal.runs(status=["failed"], before=many / 2, limit=5),
            "a status that no run has": lambda: journal.runs(status=["parked"], limit=20),
            "a name that no run has": lambda: journal.named("nope", 6),
            "a batch to be forgotten": lambda: journal.prune(many / 2, limit=20),
        }
        for what, act in acts.items():
            for connection in (store.connection, store.reader):
                connection.set_progress_handler(lambda what=what: counts.update([what]), 10)
            act()
        journal.close()
        return counts

    few, many = counted(500), counted(5000)
    assert all(many[what] <= 1.2 * few[what] + 20 for what in many), (few, many)
