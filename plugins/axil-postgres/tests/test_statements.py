"""Tests of the statements that reach the database: how many, from which thread, by which plan."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from axil import RootGraph
from axil.plugin import JournalError, keep_secret
from axil_journals import Entry, LocalEngine, answer_entry
from axil_postgres import PostgresJournal
from axil_postgres.database import Database
from axil_postgres.listing import NAMED, PRUNE, listing, pruned
from axil_postgres.taking import KEYS, TAKE_AT_ONCE, TAKE_OTHERS

Journals = Callable[..., PostgresJournal]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Transactions of this process, by the thread that waits for them."""
    found: Counter[int] = Counter()
    transact = Database.transact

    def counted(database: Database, *values: Any, **more: Any) -> Any:
        found[threading.get_ident()] += 1
        return transact(database, *values, **more)

    monkeypatch.setattr(Database, "transact", counted)
    return found


def asking() -> RootGraph:
    graph = RootGraph("asking")

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"said": await ctx.ask("go on?", name="q")}

    node = graph.create_node(ask, name="ask")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"said": ""})
    return graph.build()


def test_no_row_holds_a_secret_of_the_process(journals: Journals, server: Any) -> None:
    """Neither of input, question, answer and output, nor of an answer in the mail."""
    secret = f"canary-{random.getrandbits(64):x}"
    keep_secret(secret, "${KEY}")
    graph = RootGraph("telling")

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"said": await ctx.ask(f"is {secret} it?", name="q")}

    node = graph.create_node(ask, name="ask")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"said": ""})
    built = graph.build()
    journal = journals(tables="secretive")

    async def go() -> Any:
        asked = await built.run({"n": f"Bearer {secret}"}, journal=journal, run_id="r")
        (question,) = asked.questions
        journal.post("r", answer_entry(question.id, f"yes, {secret}"))
        answers = {question.id: f"yes, {secret}"}
        return await built.resume("r", journal=journal, answers=answers)

    result = asyncio.run(go())
    assert result.status == "done"
    with psycopg.connect(server.url) as connection:
        found = connection.execute(
            "select table_schema, table_name from information_schema.tables"
            " where table_schema || '.' || table_name like '%secretive%'"
        ).fetchall()
        rows = [
            str(connection.execute(f'select t::text from "{schema}"."{name}" t').fetchall())
            for schema, name in found
        ]
    assert "Bearer ${KEY}" in "".join(rows)
    assert secret not in "".join(rows)


def test_the_loop_never_waits_for_the_database(journals: Journals, asked: Counter[int]) -> None:
    """However far away it is, other bodies go on."""
    journal, graph = journals(), asking()

    async def go() -> int:
        async with asyncio.timeout(60), LocalEngine(journal, [graph]) as engine:
            first = await engine.start(graph, {"n": 1})
            second = await engine.start(graph, {"n": 2})
            await engine.idle()
            await engine.answer(first, {"ask?q": "yes"})
            assert (await engine.result(first)).output == {"said": "yes"}
            await engine.cancel(second)
            assert (await engine.result(second)).status == "cancelled"
        return threading.get_ident()

    loop = asyncio.run(go())
    assert sum(asked.values()) > 10
    assert asked[loop] == 0


def test_an_idle_worker_asks_three_times_when_something_has_changed(
    journals: Journals, asked: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements of many workers follow from these: many-machines.md has the sum."""
    journal, looks = journals(), list[float]()
    next_due = journal.next_due

    def looked(now: float) -> float | None:
        looks.append(now)
        return next_due(now)

    monkeypatch.setattr(journal, "next_due", looked)

    async def go() -> None:
        async with asyncio.timeout(60), LocalEngine(journal, recheck_seconds=50) as engine:
            await engine.idle()
            asked.clear()
            looks.clear()
            journal.writer.database.work.notify()
            while not looks:  # noqa: ASYNC110  # another thread looks
                await asyncio.sleep(0.005)
            await engine.idle()
            assert sum(asked.values()) == 3 * len(looks)

    asyncio.run(go())


def test_runs_that_ended_or_wait_for_people_cost_a_look_nothing(journals: Journals) -> None:
    """The index of due runs holds the others alone."""
    journal = journals()
    rows = journal.writer.database.rows
    rows(
        "insert into runs (run, status, epoch, due, begun, touched) select 'r' || n, 'done', n, "
        "null, 0, 0 from generate_series(1, 20000) as n returning 1"
    )
    rows("insert into runs (run, epoch, due, begun, touched) values ('due', 1, 0, 0, 0)")
    rows("analyze runs")
    given = {"now": time.time(), "most": 10, "without": [], "unknown": [], "digests": None}
    given |= {"holder": 1, "lease": 6.0}
    for sql in (TAKE_OTHERS, TAKE_AT_ONCE):

        def planned(connection: Any, sql: str = sql) -> Any:
            return connection.execute(f"explain (format json) {sql}", given).fetchone()[0]

        assert "runs_by_turn" in json.dumps(journal.writer.database.transact(planned))
    (pages,) = rows("select pg_relation_size('runs_by_turn') / 8192")[0]
    assert pages <= 2
    assert journal.take(10, time.time()) == ["due"]


def examined(plan: Any) -> float:
    """Return how many rows a statement read from tables and indexes."""
    own = 0.0
    if "Relation Name" in plan:
        seen = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        own = seen * plan["Actual Loops"]
    return own + sum(map(examined, plan.get("Plans", ())))


def test_pages_and_batches_read_what_is_on_them_however_many_runs_there_are(
    journals: Journals,
) -> None:
    journal = journals()
    database = journal.writer.database
    database.rows(
        "insert into runs (run, status, epoch, due, begun, touched) select 'r' || n, "
        "case when mod(n, 100) = 0 then 'failed' when n < 10000 then 'done' else 'paused' end, n, "
        "case when mod(n, 3) = 0 then 1e10 + n end, 0, n from generate_series(1, 20000) as n"
    )
    database.rows("vacuum analyze runs")
    page = {"all": True, "status": [], "touched": 5000.0, "id": 5000, "before": 9000, "most": 50}
    some = {**page, "all": False}
    first = listing(is_after=False, is_before=False)
    middle = listing(is_after=True, is_before=True)
    asked: dict[str, tuple[str, Any, int]] = {
        "the first page": (first, page, 250),
        "a page in the middle": (middle, page, 250),
        "a rare status": (first, {**some, "status": ["failed"]}, 150),
        "a status that no run has": (first, {**some, "status": ["parked"]}, 50),
        "a name that no run has": (NAMED, ("nope", 6), 20),
        "a batch to be forgotten": (PRUNE, (["done", "failed"], 9000.0, 50, 50), 400),
    }
    for what, (sql, given, most) in asked.items():

        def planned(connection: Any, sql: str = sql, given: Any = given) -> Any:
            with connection.transaction(force_rollback=True):
                explained = f"explain (analyze, format json) {sql}"
                return connection.execute(explained, given).fetchone()[0][0]

        assert examined(database.transact(planned)["Plan"]) <= most, what
    assert [info.run_id for info in journal.runs(limit=2)] == ["r20000", "r19999"]
    found = journal.runs(after="r5000", before=9000, limit=2, status=["done"])
    assert [info.run_id for info in found] == ["r4999", "r4998"]


def test_a_queue_is_read_no_further_than_what_is_taken(journals: Journals) -> None:
    """Nor are the runs of no queue, however many wait in queues."""
    journal = journals()
    database = journal.writer.database
    database.rows(
        "insert into runs (run, status, epoch, due, begun, touched, queue, key) select 'r' || n, "
        "'open', n, case when mod(n, 2) = 0 then 0 else 1e10 + n end, 0, n, 'q', case when n < "
        "10000 then 'a' else 'k' || mod(n, 100) end from generate_series(1, 20000) as n"
    )
    database.rows("vacuum analyze runs")
    given = {"now": 1e9, "without": [], "unknown": [], "digests": None, "most": 10}
    given |= {"queue": "q", "holder": 1}
    asked: dict[str, tuple[str, Any]] = {
        "its keys in turn": (KEYS, {**given, "after": None, "keys": 20}),
        "the runs of no queue": (TAKE_OTHERS, given),
        "these in one statement": (TAKE_AT_ONCE, {**given, "lease": 6.0}),
    }
    for what, (sql, values) in asked.items():

        def planned(connection: Any, sql: str = sql, values: Any = values) -> Any:
            with connection.transaction(force_rollback=True):
                explained = f"explain (analyze, format json) {sql}"
                return connection.execute(explained, values).fetchone()[0][0]

        assert examined(database.transact(planned)["Plan"]) <= 500, what
    database.rows("insert into queues (name) values ('q')")
    assert len(journal.take(10, 1e9)) == 10


def test_a_process_prunes_nothing_while_another_one_does(journals: Journals) -> None:
    journal = journals(retain_days=1.0)
    database = journal.writer.database
    sql = "insert into runs (run, status, epoch, begun, touched) values ('r', 'done', 1, 0, 0)"
    database.rows(sql)
    given = (1.0, ["failed"], 1)

    def beside(connection: Any) -> int:
        with connection.transaction():
            pruned(connection, given)
            return database.prune()

    assert database.transact(beside) == 0
    assert database.prune() == 1


def test_many_runs_are_begun_taken_read_and_claimed_in_as_many_statements_as_one(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    execute = psycopg.Connection.execute

    def counted(connection: Any, sql: Any, *values: Any, **more: Any) -> Any:
        if threading.current_thread() is threading.main_thread():  # others renew the lease
            asked.append(sql)
        return execute(connection, sql, *values, **more)

    async def statements(count: int) -> int:
        """Return how many statements so many runs take, from their beginning until their end."""
        journal = journals()
        journal.writer.database.hold()
        fresh = [journal.open(f"r{number}") for number in range(count)]
        monkeypatch.setattr(psycopg.Connection, "execute", counted)
        asked.clear()
        for writer in fresh:
            writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
            writer.closing = True  # as ``close`` does, which has the thread of the writer commit
        journal.writer.commit(fresh)
        taken = [journal.open(run_id) for run_id in journal.take(count, time.time())]
        assert [writer.entries[0].kind for writer in taken] == ["run"] * count
        for writer in taken:
            writer.append(Entry("ended", data={"status": "done"}))
            writer.closing = True
        journal.writer.commit(taken)
        monkeypatch.undo()
        statuses = {info.status for info in journal.runs()}
        assert statuses == {"done"}
        return len(asked)

    async def go() -> None:
        assert await statements(30) == await statements(1)

    asyncio.run(go())


def test_the_record_of_a_taken_run_is_read_again_once_it_was_used(journals: Journals) -> None:
    async def go() -> None:
        journal = journals()
        writer = journal.open("r")
        writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
        await append(writer, Entry("clock", data={"call": 1, "value": 1.0}))
        assert journal.take(1, time.time()) == ["r"]
        await append(journal.open("r"), Entry("clock", data={"call": 2, "value": 2.0}))
        assert len(journal.open("r").entries) == 3
        assert journal.take(1, time.time()) == ["r"]
        journal.release("r")
        assert journal.open("r").seen[1] == 3

    async def append(writer: Any, entry: Entry) -> None:
        writer.append(entry)
        await writer.kept()
        writer.close()
        writer._group.finish_now()

    asyncio.run(go())


def test_a_letter_wakes_the_holder_of_its_run_and_an_end_wakes_callers_alone(
    journals: Journals,
) -> None:
    async def go() -> None:
        holder = journals()
        other = journals(tables=holder.config.tables)
        both = [journal.writer.database for journal in (holder, other)]
        writer = holder.open("r")
        writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
        await writer.kept()
        other.take(1, time.time())
        for database in both:
            while database.changes._count < 2:  # its thread listens  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        before = [database.work._count for database in both]
        since = await other.changed(0, 60.0)
        other.post("r", Entry("answer", data={"id": "q", "value": 1}))
        since = await other.changed(since, 60.0)
        await holder.changed(-before[0], 60.0, is_work=True)
        assert [database.work._count for database in both] == [before[0] + 1, before[1]]
        writer.append(Entry("ended", data={"status": "done"}))
        writer.close()
        await other.changed(since, 60.0)
        assert other.infos(["r"])[0].status == "done"
        assert [database.work._count for database in both] == [before[0] + 1, before[1]]

    asyncio.run(go())


def test_a_due_run_wakes_some_of_many_workers(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = journals().writer.database
    chance = random.Random(5)
    monkeypatch.setattr("axil_postgres.database.random.random", chance.random)

    def woken(holders: int) -> int:
        database.holders, before = holders, database.work._count
        for _ in range(1000):
            database.notify("due")
        return database.work._count - before

    assert woken(3) == 1000
    assert 0 < woken(1000) < 50


def test_a_run_follows_one_that_is_released_by_the_same_transaction(journals: Journals) -> None:
    journal = journals()

    async def go() -> list[str]:
        first = journal.open("first")
        first.append(Entry("run", data={"thread": "t", "after": ""}))
        if (waiting := first.kept()) is not None:
            await waiting
        with journal.writer.lock:  # nothing else commits meanwhile
            first.append(Entry("ended", data={"status": "done"}))
            first.close()
            second = journal.open("second")
            second.append(Entry("run", data={"thread": "t", "after": "first"}))
            journal.writer.commit([first, second])
        if (waiting := second.kept()) is not None:
            await waiting
        second.close()
        return list(journal.thread("t"))

    assert asyncio.run(go()) == ["first", "second"]


def test_a_database_that_cannot_be_opened_is_an_error_with_the_servers_reason(server: Any) -> None:
    for url, reason in [
        (server.url.replace("/postgres", "/gone"), 'database "gone" does not exist'),
        (server.url.replace("axil@", "bob@"), 'role "bob" does not exist'),
        ("postgresql://axil@127.0.0.1:1/axil", "Connection refused"),
    ]:
        with pytest.raises(JournalError, match=reason) as caught:
            PostgresJournal(url, patience_seconds=0.0).runs()
        assert caught.value.id == "AX510"
