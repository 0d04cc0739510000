"""The rules of queues, where a worker is dead, and what they cost where there is no queue."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from axil_journals import Entry, Queue, RunExists
from axil_postgres import PostgresJournal

Journals = Callable[..., PostgresJournal]


def test_the_runs_of_a_dead_worker_are_taken_over_by_the_rules_of_their_queue(
    journals: Journals,
) -> None:
    async def go() -> None:
        journal = journals()
        other = journals(tables=journal.config.tables)
        journal.set_queues([Queue(name="q", concurrency=1, calls=9, period_seconds=9.0)])
        for name in ("a", "b"):
            writer = journal.open(name)
            header = {"graph": "g", "digest": "", "place": {"queue": "q"}}
            writer.append(Entry("run", data=header))
            writer.append(Entry("resumed"))
            await writer.kept()
            writer.close()
        assert len(journal.take(9, 1.0)) == 1
        journal.set_queues([Queue(name="q", calls=9, period_seconds=9.0)])
        assert len(journal.take(9, 1.0)) == 1
        other.writer.database.hold()
        rows = other.writer.database.rows
        rows("update runs set holder = 0, status = 'running'")  # as when its process has died
        journal.set_queues([Queue(name="q", concurrency=1, calls=9, period_seconds=9.0)])
        assert len(other.take(9, 1.0, lost=True)) == 1
        assert list(other.take(9, 1.0, lost=True)) == []
        assert list(other.take(9, 1.0)) == []
        journal.set_queues([Queue(name="q", calls=1, period_seconds=9.0)])
        rows("update queues set saved = 0, saved_at = 1")
        assert list(other.take(9, 1.0, lost=True)) == []
        assert len(other.take(9, 10.0, lost=True)) == 1

    asyncio.run(go())


def test_a_run_that_is_released_and_the_next_of_its_name_may_be_written_in_one_transaction(
    journals: Journals,
) -> None:
    """The first one waits, so it gets the input of the second one, however busy the writer is."""

    async def go() -> None:
        journal = journals()
        place = {"queue": "q", "once": "save", "debounce_seconds": 5.0, "start_at": 50.0}
        header = {"graph": "g", "digest": "", "place": {**place, "longest_seconds": 1e9}}
        first, second = journal.open("a"), journal.open("b")
        first.append(Entry("run", data={**header, "input": 1}))
        if (waiting := first.kept()) is not None:
            await waiting
        second.append(Entry("run", data={**header, "input": 2}))
        with journal.writer.lock:
            first.close()
            journal.writer.commit([first, second])
        assert isinstance(second.fault, RunExists)
        second.close()
        assert [each.data["input"] for each in journal.entries("a")] == [2]

    asyncio.run(go())


def test_a_look_for_due_runs_takes_no_statement_more_because_there_might_be_queues(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One renews the lease and takes, one says when the next run is due."""
    asked: list[str] = []
    execute = psycopg.Connection.execute

    def counted(connection: Any, sql: Any, *values: Any, **more: Any) -> Any:
        if threading.current_thread() is threading.main_thread():  # others renew the lease
            asked.append(sql)
        return execute(connection, sql, *values, **more)

    journal = journals()
    journal.take(1, time.time())
    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    journal.take(1, time.time())
    journal.next_due(time.time())
    assert len(asked) == 2
    journal.set_queues([Queue(name="q")])
    journal.take(1, time.time())  # which finds out that there is one
    asked.clear()
    journal.take(1, time.time())
    journal.next_due(time.time())
    assert len(asked) == 5
