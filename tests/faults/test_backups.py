"""Backups of journals with runs under way: what is restored goes on, and repeats nothing."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.databases import postgres_server

from axil import RootGraph
from axil_journals import LocalEngine, ReplayIndex
from axil_postgres import PostgresJournal
from axil_sqlite import SqliteJournal

PAGE = (Path(__file__).parents[2] / "docs/how-to/back-up-and-restore.md").read_text("utf-8")
RUNS, STEPS = 6, 4
LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def stepping(done: Counter[tuple[str, int]], gate: asyncio.Event) -> RootGraph:
    """Return a chain of which the last half waits for a gate."""

    def step(number: int) -> Any:
        async def body(inputs: dict[str, Any]) -> dict[str, Any]:
            if number >= STEPS // 2:
                await gate.wait()
            done[inputs["run"], number] += 1
            return {"run": inputs["run"]}

        return body

    graph = RootGraph("stepping")
    before = None
    for number in range(STEPS):
        node = graph.create_node(step(number), name=f"s{number}")
        if before is None:
            graph.edge_from_entry(node, {"run": ""})
        else:
            graph.create_edge(before, node, {"run": ""})
        before = node
    assert before is not None
    graph.edge_to_exit(before, {"run": ""})
    return graph.build()


async def restored_goes_on(
    journal: Any, back_up: Callable[[], None], restored: Callable[[], Any]
) -> None:
    """Back up in the middle of runs, let the first journal go, and finish on the restored one."""
    gate, done = asyncio.Event(), Counter[tuple[str, int]]()
    ids = [f"r{n}" for n in range(RUNS)]
    engine = LocalEngine(journal, [stepping(done, gate)])
    async with asyncio.timeout(90), engine:
        graph = next(iter(engine._workflows.values()))
        for run_id in ids:
            await engine.start(graph, {"run": run_id}, run_id=run_id)
        while len(done) < RUNS * STEPS // 2:  # noqa: ASYNC110  # bodies note it
            await asyncio.sleep(0.01)
        while not all(  # noqa: ASYNC110  # and it is recorded
            len(ReplayIndex(journal.entries(run_id)).done) == STEPS // 2 for run_id in ids
        ):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(back_up)
    journal.close()
    again = await asyncio.to_thread(restored)
    assert list(again.examine()) == [] or all("not there" in d.problem for d in again.examine())
    gate.set()
    async with asyncio.timeout(90), LocalEngine(again, [graph], recheck_seconds=0.2) as engine:
        for run_id in ids:
            assert (await engine.result(run_id)).status == "done"
    again.close()
    assert set(done.values()) == {1}


def part(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def commands(heading: str) -> list[str]:
    return re.findall(r"^    (.*)$", part(heading), re.MULTILINE)


def test_a_dump_of_a_database_goes_on_elsewhere(tmp_path: Path) -> None:
    dump, _, restore = commands("PostgreSQL")
    with postgres_server() as server:
        other = server.url.replace("/postgres", "/other")

        def called(command: str, url: str) -> None:
            words = [re.sub("postgresql://.*", url, word) for word in shlex.split(command)]
            words[0] = str(server.programs / words[0])
            subprocess.run(words, check=True, cwd=tmp_path)

        def restored() -> PostgresJournal:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("create database other")  # as createdb does
            called(restore, other)
            with psycopg.connect(other) as connection:  # as when six seconds have passed
                connection.execute("update axil.holders set until = now() - interval '1 minute'")
            return PostgresJournal(other, lease_seconds=60.0)

        if not (server.programs / "pg_dump").exists():
            pytest.skip("there is no pg_dump")
        journal = PostgresJournal(server.url, lease_seconds=60.0)
        asyncio.run(restored_goes_on(journal, lambda: called(dump, server.url), restored))


@pytest.mark.skipif(not LONG, reason="three starts of a server: make thorough")
def test_a_server_goes_on_from_any_point_in_time() -> None:
    heading = "PostgreSQL, at any point in time"
    base, signal, start = commands(heading)
    archiving, recovering = re.findall(r"```\n(.*?)```", part(heading), re.DOTALL)
    with postgres_server() as server:
        if not (server.programs / "pg_basebackup").exists():
            pytest.skip("there is no pg_basebackup")
        archive, backup = server.folder / "archive", server.folder / "backup"
        archive.mkdir()
        shutil.chown(archive, server.user.get("user"))

        def here(text: str) -> str:
            text = text.replace("/archive", str(archive)).replace("/backup", str(backup))
            return re.sub("postgresql://[^ ]*", server.url, text)

        def called(command: str) -> None:
            server._call(*shlex.split(here(command)))

        def asked(sql: str) -> Any:
            with psycopg.connect(server.url, autocommit=True) as connection:
                return (connection.execute(sql).fetchone() or [None])[0]

        with (server.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(here(archiving))
        server.end("fast")
        server.begin()
        called(base)
        times: list[str] = []

        def back_up() -> None:
            """Note the time, write something later, and have all of it in the archive."""
            times.append(asked("select clock_timestamp()::text"))
            late = PostgresJournal(server.url)
            asyncio.run(submitted(late, "late"))
            late.close()
            last = asked("select pg_walfile_name(pg_switch_wal())")
            while not (archive / last).exists():
                time.sleep(0.05)

        def restored() -> PostgresJournal:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            with (backup / "postgresql.conf").open("a") as file:
                text = re.sub("(recovery_target_time = ).*", rf"\1'{times[0]}'", here(recovering))
                file.write(f"{text}port = {port}\narchive_mode = off\n")
            subprocess.run(shlex.split(here(signal)), check=True, **server.user)
            called(f"{start} -w -l {server.folder}/restored.log")
            url = server.url.replace(str(server.port), str(port))
            with psycopg.connect(url, autocommit=True) as connection:
                while connection.execute("select pg_is_in_recovery()").fetchone() != (False,):
                    time.sleep(0.05)
                # as when six seconds have passed
                connection.execute("update axil.holders set until = now() - interval '1 minute'")
            journal = PostgresJournal(url, lease_seconds=60.0)
            assert {info.run_id for info in journal.runs()} == {f"r{n}" for n in range(RUNS)}
            return journal

        journal = PostgresJournal(server.url, lease_seconds=60.0)
        try:
            asyncio.run(restored_goes_on(journal, back_up, restored))
        finally:
            if (backup / "postmaster.pid").exists():
                called("pg_ctl --pgdata /backup -m immediate stop")


async def submitted(journal: Any, run_id: str) -> None:
    async with LocalEngine(journal, loaded=0) as engine:
        graph = stepping(Counter(), asyncio.Event())
        await engine.start(graph, {"run": run_id}, run_id=run_id)


def test_a_copy_of_a_file_goes_on_elsewhere(tmp_path: Path) -> None:
    (command,) = commands("SQLite")
    sql = shlex.split(command)[2].replace("/backup/", f"{tmp_path}/backup/")

    def back_up() -> None:
        (tmp_path / "backup").mkdir()
        with closing(sqlite3.connect(tmp_path / "journal" / "runs.db")) as connection:
            connection.execute(sql)

    def restored() -> SqliteJournal:
        with closing(sqlite3.connect(tmp_path / "backup" / "runs.db")) as connection:
            connection.execute("update runs set beat = 0")  # as when a minute has passed
            connection.commit()
        return SqliteJournal(tmp_path / "backup")

    journal = SqliteJournal(tmp_path / "journal")
    asyncio.run(restored_goes_on(journal, back_up, restored))
