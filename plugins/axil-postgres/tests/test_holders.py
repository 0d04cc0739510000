"""Laws of holders: every run that is held is held by a process that is there, or is freed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from axil import RootGraph
from axil_journals import Entry, LocalEngine
from axil_postgres import PostgresJournal

Journals = Callable[..., PostgresJournal]


def adding() -> RootGraph:
    graph = RootGraph("adding")
    node = graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="add")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    return graph.build()


def submitted(journal: PostgresJournal, *run_ids: str) -> None:
    """Store runs that no engine executes yet."""
    graph = adding()

    async def go() -> None:
        async with LocalEngine(journal, loaded=0) as engine:
            for run_id in run_ids:
                await engine.start(graph, {"n": 1}, run_id=run_id)

    asyncio.run(go())


def orphaned(journals: Journals) -> PostgresJournal:
    """Return a journal with a run whose holder is not there, and no thread that clears it away."""
    journal = journals()
    submitting = journals(tables=journal.config.tables)
    submitted(submitting, "orphan")
    submitting.close()
    journal.writer.database.rows("update runs set holder = 987654321")
    return journal


def held_by_none(journal: PostgresJournal) -> list[str]:
    sql = (
        "select run from runs where holder <> 0 "
        "and holder not in (select id from holders where until > now())"
    )
    return [run for (run,) in journal.writer.database.rows(sql)]


def cleared_away(journal: PostgresJournal, by: PostgresJournal) -> None:
    """Let the lease of a process pass, and another one clear it away, before it can renew it."""
    reaping = by.writer.database

    def clear(connection: Any) -> None:
        sql = "update holders set until = now() - interval '1 hour' where id <> %s"
        with connection.transaction():
            connection.execute(sql, (reaping.holder,))
            reaping._renew(connection)

    reaping.transact(clear)


def test_a_process_that_wakes_after_its_lease_takes_runs_as_a_living_holder(journals: Journals):
    asleep = journals()
    other = journals(tables=asleep.config.tables)
    submitted(other, "a", "b")
    assert list(asleep.take(1, 1.0)) == ["a"]
    before = asleep.writer.database.holder
    cleared_away(asleep, by=other)
    assert held_by_none(other) == []
    # before its thread has renewed anything; the one that it had is lost, the other is not
    assert list(asleep.take(9, 1.0, lost=True)) == ["a"]
    assert list(asleep.take(9, 1.0)) == ["b"]
    assert asleep.writer.database.holder != before
    assert held_by_none(other) == []


def test_a_process_that_wakes_after_its_lease_claims_runs_as_a_living_holder(journals: Journals):
    asleep = journals()
    other = journals(tables=asleep.config.tables)
    submitted(asleep, "first")
    cleared_away(asleep, by=other)
    writer = asleep.open("second")
    writer.append(Entry("run", data={"graph": "adding", "digest": "d"}))

    async def kept() -> None:
        waiting = writer.kept()
        assert waiting is not None
        await waiting

    asyncio.run(kept())
    assert other.writer.database.rows("select run from runs where holder <> 0") == [("second",)]
    assert held_by_none(other) == []
    writer.close()


def test_a_run_whose_holder_is_not_there_is_named_freed_and_done(journals: Journals):
    journal = orphaned(journals)
    database = journal.writer.database
    [damage] = journal.examine()
    assert damage.run_id == "orphan"
    assert "not there" in damage.problem
    graph = adding()

    async def go() -> None:
        async with asyncio.timeout(60), LocalEngine(journal, [graph]) as engine:
            database.transact(database._renew)  # what the thread of each process does in turn
            assert (await engine.result("orphan")).output == {"n": 2}

    asyncio.run(go())
    assert journal.examine() == []


def test_the_doctor_frees_a_run_whose_holder_is_not_there(journals: Journals):
    journal = orphaned(journals)
    [damage] = journal.examine()
    journal.cut(damage.run_id, damage.good)
    assert list(journal.take(9, 1.0)) == ["orphan"]
