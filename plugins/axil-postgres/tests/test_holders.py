"""Laws of holders: every run that is held is held by a process that is there, or is freed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

import axil_postgres.journal
from axil import RootGraph
from axil.plugin import JournalError
from axil_journals import Entry, LocalEngine, Place
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


def test_a_lease_is_kept_though_for_a_while_no_connection_is_had(journals: Journals, monkeypatch):
    journal = journals(lease_seconds=1.0)
    database = journal.writer.database
    before, is_refused = database.hold(), threading.Event()
    transact = database.transact

    def refused(doing: Any, **options: Any) -> Any:
        is_refused.set()
        monkeypatch.setattr(database, "transact", transact)
        raise database.unusable(psycopg.OperationalError("too many clients"), reading=False)

    is_renewed, registered = threading.Event(), database._registered

    def register(connection: Any) -> int:
        is_renewed.set()
        return registered(connection)

    monkeypatch.setattr(database, "_registered", register)
    with psycopg.connect(database.url, **database._made) as connection:
        monkeypatch.setattr(database, "transact", refused)
        connection.execute("delete from holders where id = %s", (before,))
    assert is_refused.wait(30)
    assert is_renewed.wait(30)


def test_a_process_forgets_old_runs_though_a_storage_has_failed(journals: Journals, monkeypatch):
    monkeypatch.setattr("axil_postgres.database._PRUNE_SECONDS", 0.0)
    database = journals(retain_days=1.0).writer.database
    tries, is_again = list[int](), threading.Event()

    def prune() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the bucket is away")
        is_again.set()
        return 0

    monkeypatch.setattr(database, "prune", prune)
    database.listen()
    assert is_again.wait(30)


def test_who_waits_while_a_journal_is_closed_is_answered(journals: Journals):
    journal = journals()

    async def go() -> None:
        claimed, other = journal.open("claimed"), journal.open("other")
        claimed.append(Entry("run", data={"graph": "g"}))
        await_claimed = claimed.kept()
        assert await_claimed is not None
        await await_claimed
        claimed.append(Entry("done", (), "n", (), {}))
        other.append(Entry("run", data={"graph": "g"}))
        waiting = [claimed.kept(), other.kept()]
        journal.close()
        done = await asyncio.gather(*filter(None, waiting), return_exceptions=True)
        assert [type(each) for each in done] == [type(None), JournalError]

    asyncio.run(go())
    assert len(journal.entries("claimed")) == 2
    assert journal.infos(["other"]) == []


def test_pages_behind_a_name_that_no_run_has_are_empty(journals: Journals):
    journal = journals()
    assert [list(journal.runs(after=name)) for name in ("none", "a\0b", "\ud800")] == [[]] * 3


def test_a_process_that_was_stopped_within_a_transaction_holds_up_no_other(journals: Journals):
    asleep = journals(lease_seconds=0.5)
    other = journals(tables=asleep.config.tables)
    submitted(asleep, "a")
    times: list[int] = []

    def take(connection: Any) -> list[Any]:
        times.append(1)
        with connection.transaction():
            database.renewed(connection)
            found = connection.execute("update runs set holder = 1 returning run").fetchall()
            if len(times) == 1:  # stopped here: the lock on its lease would last as long
                other.writer.database.rows("update holders set until = now() + interval '1 hour'")
            return list(found)

    database = asleep.writer.database
    database.hold()
    assert database.transact(take) == [("a",)]
    assert len(times) == 2


def test_a_process_that_wakes_within_a_step_ends_it_late_and_begins_no_other(journals: Journals):
    door, said = asyncio.Event(), list[str]()

    async def first(inputs: dict[str, Any]) -> dict[str, Any]:
        said.append("first begins")
        if len(said) == 1:
            await door.wait()
        said.append("first ends")
        return {"n": 1}

    async def second(inputs: dict[str, Any]) -> dict[str, Any]:
        said.append("second begins")
        return {"n": 2}

    graph = RootGraph("steps")
    one, two = graph.create_node(first, name="first"), graph.create_node(second, name="second")
    graph.edge_from_entry(one, {"n": ""})
    graph.create_edge(one, two, {"n": ""})
    graph.edge_to_exit(two, {"n": ""})
    flow, asleep = graph.build(), journals()
    other = journals(tables=asleep.config.tables)

    async def go() -> None:
        async with asyncio.timeout(60), LocalEngine(asleep, [flow]) as engine:
            await engine.start(flow, {"n": 0}, run_id="r")
            while not said:  # noqa: ASYNC110  # the engine loads it
                await asyncio.sleep(0.01)
            other.writer.database.hold()
            await asyncio.to_thread(cleared_away, asleep, other)
            async with LocalEngine(other, [flow]) as heir:
                assert (await heir.result("r")).output == {"n": 2}
            entries = len(other.entries("r"))
            assert said == ["first begins", "first begins", "first ends", "second begins"]
            door.set()
            await engine.idle()
            assert said[4:] == ["first ends"]
            assert len(other.entries("r")) == entries

    asyncio.run(go())


@asynccontextmanager
async def renewing(journal: PostgresJournal) -> AsyncGenerator[None]:
    """Renew the lease again and again, as the thread does now and then."""

    async def renew() -> None:
        database = journal.writer.database
        while True:
            await asyncio.to_thread(database.transact, database._renew)

    task = asyncio.create_task(renew())
    try:
        yield
    finally:
        task.cancel()


def failing_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, error: Exception) -> None:
    """Let a function fail behind what it does, the first time that it does something."""
    inner, failed = getattr(owner, name), list[bool]()

    def fails(*given: Any) -> Any:
        found = inner(*given)
        if found and not failed:
            failed.append(True)
            raise error
        return found

    monkeypatch.setattr(owner, name, fails)


def test_runs_that_were_taken_when_the_connection_was_lost_are_taken_again(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
):
    journal = journals()
    submitted(journal, "a", "b")
    failing_once(monkeypatch, axil_postgres.journal, "with_records", psycopg.OperationalError())

    async def go() -> None:
        engine = LocalEngine(journal, [adding()])
        async with asyncio.timeout(60), engine, renewing(journal):
            assert [(await engine.result(each)).output for each in "ab"] == [{"n": 2}] * 2

    asyncio.run(go())


def test_a_run_whose_server_was_away_for_too_long_is_taken_again(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
):
    journal, graph, away = journals(), RootGraph("slow"), JournalError("it is away.", id="AX512")
    begun = list[asyncio.Event]()

    async def body(inputs: dict[str, int]) -> dict[str, int]:
        begun.append(goes_on := asyncio.Event())
        await goes_on.wait()
        return {"n": inputs["n"] + 1}

    node = graph.create_node(body, name="add")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"n": ""})
    graph.build()

    def fails(*_: Any) -> Any:
        monkeypatch.undo()
        raise away

    async def until(times: int) -> None:
        while len(begun) < times:  # noqa: ASYNC110  # the engine loads it
            await asyncio.sleep(0.01)

    async def go() -> None:
        async with asyncio.timeout(60), LocalEngine(journal, [graph]) as engine:
            await engine.start(graph, {"n": 1}, run_id="r")
            async with renewing(journal):
                await until(1)
                monkeypatch.setattr(journal.writer, "_put", fails)
                begun[0].set()
                await until(2)
                begun[1].set()
                assert (await engine.result("r")).output == {"n": 2}

    asyncio.run(go())


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


class Suspect:
    """A run that was lost three times, held by an engine that executes another one still."""

    def __init__(self, journals: Journals) -> None:
        self.journal = journals()
        self.other = journals(tables=self.journal.config.tables)
        self.door, self.begun = asyncio.Event(), list[str]()

        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            self.begun.append(inputs["name"])
            if inputs["name"] == "long":
                await self.door.wait()
            return {"name": inputs["name"]}

        graph = RootGraph("suspect")
        node = graph.create_node(body, name="body")
        graph.edge_from_entry(node, {"name": ""})
        graph.edge_to_exit(node, {"name": ""})
        self.flow = graph.build()

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[tuple[LocalEngine, LocalEngine]]:
        """Yield the engine that holds it, and one of another process that only submits."""
        rows = self.other.writer.database.rows
        async with (
            asyncio.timeout(60),
            LocalEngine(self.other, [self.flow], loaded=0) as other,
            LocalEngine(self.journal, [self.flow], recheck_seconds=0.05) as engine,
        ):
            await engine.start(self.flow, {"name": "long"}, run_id="long")
            while "long" not in self.begun:  # noqa: ASYNC110  # the engine loads it
                await asyncio.sleep(0.01)
            later = Place(start_at=1e12)  # the engine does not take it before it is lost
            await other.start(self.flow, {"name": "suspect"}, run_id="suspect", place=later)
            writer = self.other.open("suspect")
            for _ in range(3):  # each process died before the first step was done
                writer.append(Entry("resumed"))
            writer.close()
            self.other.entries("suspect")
            rows("update runs set status = 'running', due = 0 where run = 'suspect'")
            self.other.wake("suspect")
            while not engine._alone:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            yield engine, other


def test_a_run_that_waits_until_its_worker_is_idle_is_cancelled_by_another_process(
    journals: Journals,
):
    async def go() -> None:
        suspect = Suspect(journals)
        async with suspect.held() as (engine, other):
            await other.cancel("suspect")
            assert other.get("suspect").info.status == "cancelled"
            suspect.door.set()
            assert (await engine.result("long")).status == "done"
            await engine.idle()
        assert suspect.begun == ["long"]
        assert suspect.journal.infos(["suspect"])[0].status == "cancelled"

    asyncio.run(go())


def test_a_run_that_waits_until_its_worker_is_idle_is_left_to_who_took_it_meanwhile(
    journals: Journals,
):
    async def go() -> None:
        suspect = Suspect(journals)
        async with suspect.held() as (engine, _):
            await asyncio.to_thread(cleared_away, suspect.journal, suspect.other)
            assert "suspect" in suspect.other.take(9, 1.0, lost=True)
            writer = suspect.other.open("suspect")
            writer.append(Entry("ended", data={"status": "failed"}))
            writer.close()
            suspect.other.release("long")
            count = len(suspect.other.entries("suspect"))
            suspect.door.set()
            await engine.idle()
        assert suspect.begun.count("suspect") == 0
        assert len(suspect.other.entries("suspect")) == count

    asyncio.run(go())


def test_a_run_that_waits_until_its_worker_is_idle_is_free_when_that_one_ends(journals: Journals):
    async def go() -> None:
        suspect = Suspect(journals)
        async with suspect.held():
            pass
        assert list(suspect.other.take(1, 1.0, lost=True)) == ["suspect"]

    asyncio.run(go())
