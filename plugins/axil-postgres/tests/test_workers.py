"""Workers in processes of their own: killed, answered from outside, stopped and woken."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from axil import RootGraph
from axil.plugin import JournalError
from axil_cli.main import main
from axil_journals import Aes, Entry, LocalEngine, ReplayIndex
from axil_postgres import PostgresJournal

from . import chain

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
WORKERS, RUNS, KILLS, RESTARTS = (4, 1000, 100, 2) if LONG else (2, 12, 1, 0)
SECONDS = 2400 if LONG else 120
Journals = Callable[..., PostgresJournal]


class Workers:
    """Processes that run ``chain.py``."""

    def __init__(self, url: str, tables: str, log: Path) -> None:
        self._words = [sys.executable, chain.__file__, url, tables]
        self._env = {**os.environ, "CHAIN_LOG": str(log), "CHAIN_STEPS": str(chain.STEPS)}
        self.alive: list[subprocess.Popen[bytes]] = []
        self.killed: set[int] = set()

    def begin(self, count: int) -> None:
        """Start so many, and wait until they are ready."""
        for each in [self.add() for _ in range(count)]:
            assert each.stdout is not None
            assert each.stdout.readline() == b"ready\n"

    def add(self) -> subprocess.Popen[bytes]:
        """Start another one."""
        self.alive.append(subprocess.Popen(self._words, env=self._env, stdout=subprocess.PIPE))
        return self.alive[-1]

    def kill(self, pid: int) -> None:
        """Kill a process that has worked, or another one if it is gone."""
        victim = next((each for each in self.alive if each.pid == pid), self.alive[0])
        self.alive.remove(victim)
        self.killed.add(victim.pid)
        self._end(victim)

    def close(self) -> None:
        for each in self.alive:
            self._end(each)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def count(log: Path) -> int:
    """Return how many steps were done."""
    return log.stat().st_size // chain.LINE if log.exists() else 0


def done(log: Path, last: int = 0) -> list[tuple[str, str, int]]:
    """Return the steps that were done: the run, the step and the process of each.

    ``last``: only so many of the last ones.
    """
    first = max(0, count(log) - last) if last else 0
    with log.open() as file:
        file.seek(first * chain.LINE)
        lines = file.read().splitlines()
    return [(run, step, int(pid)) for run, step, pid in map(str.split, lines)]


def recorded_steps(journal: PostgresJournal) -> list[tuple[str, str]]:
    """Return the steps that the journal has as done."""
    sql = "select runs.run, who from entries join runs on runs.id = entries.run where kind = 'done'"
    return [(run, json.loads(who)[1][1:]) for run, who in journal.writer.database.rows(sql)]


def test_of_two_that_begin_one_run_of_a_thread_at_once_the_second_finds_it_begun(
    server: Any, journals: Journals
) -> None:
    """It is refused as a run that another holds, not as one whose thread another run is at."""

    async def go() -> list[Any]:
        first = journals()
        second = journals(tables=first.config.tables)
        header = Entry("run", data={"graph": "g", "digest": "d", "thread": "t", "after": ""})
        writers = [each.open("r") for each in (first, second)]
        with psycopg.connect(server.url) as connection:
            lock = "select pg_advisory_xact_lock(hashtextextended('t', 0))"
            connection.execute(lock)
            for writer in writers:
                writer.append(header)
            kept = [asyncio.ensure_future(writer.kept()) for writer in writers]
            sql = "select 1 from pg_locks where locktype = 'advisory' and not granted"
            async with asyncio.timeout(60.0):
                while len(connection.execute(sql).fetchall()) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        found = await asyncio.gather(*kept, return_exceptions=True)
        for writer in writers:
            writer.close()
        return found

    found = asyncio.run(go())
    assert [each.id for each in found if isinstance(each, JournalError)] == ["AX506"]


def test_a_killed_worker_loses_no_run_and_no_completed_step_is_repeated(
    server: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    log, chance = tmp_path / "log", random.Random(5)
    recorded: dict[tuple[str, str], int] = {}  # steps, and how many were done when that was known
    workers = Workers(server.url, "chaos", log)
    workers.begin(WORKERS)

    async def go() -> list[Any]:
        journal, graph = chain.journal(server.url, "chaos"), chain.chain()
        async with asyncio.timeout(SECONDS), LocalEngine(journal, [graph], loaded=0) as engine:
            ids = [f"r{number}" for number in range(RUNS)]
            given = ({"run": run_id, "n": 0} for run_id in ids)
            await asyncio.gather(*(engine.start(graph, one, run_id=one["run"]) for one in given))
            for kill in range(1, KILLS + 1):
                enough = kill * RUNS * chain.STEPS / (KILLS + 3)
                while count(log) < enough:  # noqa: ASYNC110  # other processes write it
                    await asyncio.sleep(0.005)
                if kill % 10 == 1:
                    found = await asyncio.to_thread(recorded_steps, journal)
                    at = count(log)
                    recorded.update({each: at for each in found if each not in recorded})
                workers.kill(chance.choice(done(log, 40))[2])
                if LONG:  # while it starts, the others go on; without others, no kill comes
                    workers.add()
                if RESTARTS and kill % (KILLS // (RESTARTS + 1)) == 0 and kill < KILLS - RESTARTS:
                    await asyncio.to_thread(server.end)
                    await asyncio.to_thread(server.begin)
            ended = await asyncio.gather(*map(engine.result, ids))
            records = {run_id: ReplayIndex(journal.entries(run_id)) for run_id in ids}
        journal.close()
        assert {len(replay.done) for replay in records.values()} == {chain.STEPS}
        return ended

    try:
        ended = asyncio.run(go())
    finally:
        workers.close()
    assert [result.output["n"] for result in ended] == [chain.STEPS] * RUNS
    by_step: dict[tuple[str, str], list[int]] = defaultdict(list)
    for run, step, pid in done(log):
        by_step[run, step].append(pid)
    assert len(by_step) == RUNS * chain.STEPS
    record_property("done again", sum(len(pids) - 1 for pids in by_step.values()))
    for number, (run, step, _) in enumerate(done(log)):
        assert number < recorded.get((run, step), sys.maxsize), f"{run} {step} was recorded"
    # a step that was done twice was at work when its process was killed, before it was recorded
    for pids in by_step.values():
        if not RESTARTS:  # a restart may break off a run as well
            assert set(pids[:-1]) <= workers.killed
    assert workers.killed & {pid for *_, pid in done(log)}


def test_a_holder_that_was_stopped_and_taken_over_is_refused(
    journals: Journals, server: Any
) -> None:
    """A process that shows no sign of life for a while loses its runs, also if it wakes."""

    async def go() -> None:
        first = journals(lease_seconds=0.3)
        second = journals(lease_seconds=0.3, tables=first.config.tables)
        writer = first.open("r")
        writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
        await writer.kept()
        assert second.take(1, 1.0) == []
        # as SIGSTOP would: nothing of the first process renews its lease
        database = first.writer.database
        database._renew = lambda connection: None  # type: ignore[method-assign]  # a stopped thread
        since = 0
        while not (taken := second.take(1, 1.0, lost=True)):
            since = await second.changed(since, 0.2)
        assert taken == ["r"]
        writer.append(Entry("clock", data={"call": 1, "value": 1.0}))
        with pytest.raises(JournalError, match="AX506"):
            await writer.kept()
        writer.close()
        heir = second.open("r")
        heir.append(Entry("clock", data={"call": 2, "value": 2.0}))
        await heir.kept()
        heir.close()
        assert [entry.kind for entry in second.entries("r")] == ["run", "clock"]

    asyncio.run(go())


def test_what_a_run_waited_for_outlives_a_crash_of_the_server(
    journals: Journals, server: Any
) -> None:
    journal = journals()

    async def write() -> None:
        writer = journal.open("r")
        writer.append(Entry("run", data={"graph": "g", "digest": "d"}))
        for call in range(1, 20):
            writer.append(Entry("clock", data={"call": call, "value": 1.0}))
            await writer.kept()
        server.end("immediate")
        server.begin()
        assert len(journal.entries("r")) == 20
        writer.close()

    asyncio.run(write())


@pytest.mark.skipif(not LONG, reason="twenty seconds: make thorough")
def test_a_server_that_is_away_for_most_of_the_patience_is_waited_for(
    journals: Journals, server: Any
) -> None:
    journal = journals(patience_seconds=26.0)
    journal.runs()
    server.end()
    later = threading.Timer(16.5, server.begin)
    later.start()
    try:
        assert journal.runs() == []
    finally:
        later.join()


@pytest.mark.skipif(not LONG, reason="a minute: make thorough")
def test_a_worker_that_is_stopped_for_a_minute_and_woken_changes_nothing(
    server: Any, tmp_path: Path
) -> None:
    log, tables = tmp_path / "log", "stopped"
    workers = Workers(server.url, tables, log)
    workers.begin(1)
    (stopped,) = workers.alive

    def facts(run_id: str) -> list[Any]:
        return [(entry.kind, str(entry.activation)) for entry in journal.entries(run_id)]

    async def go() -> None:
        async with asyncio.timeout(SECONDS), LocalEngine(journal, [graph], loaded=0) as engine:
            await engine.start(graph, {"run": "r", "n": 0}, run_id="r")
            while count(log) < 2:  # noqa: ASYNC110  # another process writes it
                await asyncio.sleep(0.005)
            stopped.send_signal(signal.SIGSTOP)
            before, begun = done(log), time.monotonic()
            await asyncio.to_thread(workers.begin, 1)
            assert (await engine.result("r")).output["n"] == chain.STEPS
            recorded = facts("r")
            await asyncio.sleep(begun + 60.0 - time.monotonic())
            workers.kill(workers.alive[-1].pid)
            stopped.send_signal(signal.SIGCONT)
            await engine.start(graph, {"run": "next", "n": 0}, run_id="next")
            assert (await engine.result("next")).output["n"] == chain.STEPS  # it is awake
            assert facts("r") == recorded
            own = [step for run, step, pid in done(log) if (run, pid) == ("r", stopped.pid)]
            # the step that was at work when it was stopped, and no other one
            assert len(own) <= len(before) + 1

    journal, graph = chain.journal(server.url, tables), chain.chain()
    try:
        asyncio.run(go())
    finally:
        workers.close()
        journal.close()


def test_a_lost_connection_is_made_again_and_nothing_is_written_twice(journals: Journals) -> None:
    async def go() -> None:
        journal = journals()
        writer = journal.open("r")
        for number in range(20):
            entry = Entry("clock", data={"call": number, "value": 0.0})
            writer.append(entry if number else Entry("run"))
            await writer.kept()
            if number % 5 == 0:  # all connections but the one that ends them
                sql = (
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                    "where application_name = 'axil' and pid <> pg_backend_pid()"
                )
                journal.writer.database.rows(sql)
        writer.close()
        assert [entry.data.get("call", 0) for entry in journal.entries("r")] == list(range(20))

    asyncio.run(go())


def test_values_are_encrypted_where_there_is_a_cipher(
    journals: Journals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AXIL_JOURNAL_KEY", base64.b64encode(b"k" * 32).decode())
    journal = journals(cipher=Aes())

    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"said": await ctx.ask("the secret question?", name="q")}

    graph = RootGraph("secret")
    node = graph.create_node(ask, name="ask")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"said": ""})
    graph.build()

    async def go() -> None:
        async with LocalEngine(journal, [graph]) as engine:
            run_id = await engine.start(graph, {"n": "the secret input"})
            await engine.idle()
            journal.post(run_id, Entry("answer", data={"id": "ask?q", "value": "a secret answer"}))
            assert (await engine.result(run_id)).output == {"said": "a secret answer"}

    asyncio.run(go())
    rows = journal.writer.database.rows
    kept = json.dumps([rows("select * from entries"), rows("select * from mail")], default=str)
    assert "secret" not in kept
    with pytest.raises(JournalError, match="AX515"):
        journals(tables=journal.config.tables).runs()


def test_ended_runs_are_forgotten_after_a_time(journals: Journals) -> None:
    async def go() -> None:
        journal = journals(retain_days=1.0)
        for name, status in (("old", "done"), ("waits", "paused"), ("new", "done")):
            writer = journal.open(name)
            writer.append(Entry("run"))
            writer.append(Entry("ended", data={"status": status}))
            await writer.kept()
            writer.close()
        rows = journal.writer.database.rows
        rows("update runs set touched = touched - 90000 where run <> 'new' returning 1")
        journal.writer.database.prune()  # as its thread does, which may have done it already
        assert {info.run_id for info in journal.runs()} == {"waits", "new"}

    asyncio.run(go())


def test_the_command_works_off_what_was_submitted(
    server: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AXIL_JOURNAL", server.url)
    (tmp_path / "app.py").write_text(Path(chain.__file__).read_text())
    target = ("app.py:chain", "--allow", "code")

    def runs() -> list[Any]:
        assert main(["runs", "list", "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert main(["submit", *target, "--input", '{"run": "r", "n": 0}', "--run-id", "one"]) == 0
    assert capsys.readouterr().out.strip() == "one"
    assert [(info["run_id"], info["status"]) for info in runs()] == [("one", "open")]
    assert main(["worker", *target, "--drain"]) == 0
    capsys.readouterr()
    assert [(info["run_id"], info["status"]) for info in runs()] == [("one", "done")]
    (tmp_path / "triggers.toml").write_text(
        '[daily]\nworkflow = "app.py:chain"\ncron = "* * * * *"\ninput = {run = "{time}", n = 0}\n'
    )
    triggers = ("--allow", "code", "--triggers", "triggers.toml", "--drain")
    for _ in range(2):  # a minute may have passed, and no more
        assert main(["worker", *triggers]) == 0
        capsys.readouterr()
    made = {info["run_id"]: info["status"] for info in runs()}
    assert len(made) in (2, 3)
    assert set(made.values()) == {"done"}
    assert main(["runs", "prune", "--older-than", "0"]) == 0
    capsys.readouterr()
    assert runs() == []
