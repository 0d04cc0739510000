"""Durable steps by hand, 100 runs at once of 50 steps that add 1 KB, synced; each line does more
than the one above; µs and bytes.
"""

# `rows` inserts a text that is there already, a hundred rows a transaction; `and their text` makes
# a step's JSON and checksum; `and tasks` has a task of asyncio for each run, which hands its row to
# a writing thread and waits until it is safe; `axil` has a
# graph: state, conditions, rounds, who holds the run, what a resumed run needs.

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import statistics
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..case import Case
from ..columns.axil import durable_in
from ..table import number

RUNS, BYTES, TIMES = 100, 1000, 7
SIZES, QUICK = (50,), (2,)
"""Steps of a run."""

TABLE = (
    "create table entries (id integer primary key, run integer, seq integer, kind text, who "
    "text, body text, crc integer);"
    "create unique index entries_by_run on entries (run, seq);"
)
INSERT = (
    "insert into entries (run, seq, kind, who, body, crc) values "
    f"{', '.join(['(?, ?, ?, ?, ?, ?)'] * 50)}"
)
Row = tuple[int, int, str, str, str, int]


def opened(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "runs.db", isolation_level=None, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.executescript(TABLE)
    return connection


def commit(connection: sqlite3.Connection, rows: list[Row]) -> None:
    connection.execute("begin immediate")
    for at in range(0, len(rows), 50):
        connection.execute(INSERT, [value for row in rows[at : at + 50] for value in row])
    connection.execute("commit")


def row_of(run: int, step: int) -> Row:
    """Return a step as a row: what it wrote, what its edge carried, when."""
    who = json.dumps([["cycle(step)", step], "step", []], separators=(",", ":"))
    data = {
        "delta": {"n": step, "log": ["m" * BYTES]},
        "sends": [["step->step", {}, None]],
        "at": 0.001,
        "used": {"firings": step},
    }
    body = json.dumps(data, separators=(",", ":"))
    return run, step, "done", who, body, zlib.crc32(f"{step}\0done\0{who}\0{body}".encode())


def rows(folder: Path, steps: int) -> None:
    ready, connection = row_of(0, 0)[2:], opened(folder)
    for step in range(steps):
        commit(connection, [(run, step, *ready) for run in range(RUNS)])
    connection.close()


def texts(folder: Path, steps: int) -> None:
    connection = opened(folder)
    for step in range(steps):
        commit(connection, [row_of(run, step) for run in range(RUNS)])
    connection.close()


def tasks(folder: Path, steps: int) -> None:
    connection = opened(folder)
    waiting: queue.SimpleQueue[list[tuple[Row, asyncio.Future[None]]] | None] = queue.SimpleQueue()
    asked: list[tuple[Row, asyncio.Future[None]]] = []

    def write(loop: asyncio.AbstractEventLoop) -> None:
        while (several := waiting.get()) is not None:
            commit(connection, [row for row, _ in several])
            loop.call_soon_threadsafe(settle, several)

    def settle(several: list[tuple[Row, asyncio.Future[None]]]) -> None:
        for _, future in several:
            future.set_result(None)

    def turn() -> None:
        waiting.put(asked.copy())
        asked.clear()

    async def run(number: int) -> int:
        loop, log = asyncio.get_running_loop(), list[str]()
        for step in range(steps):
            row, future = row_of(number, step), loop.create_future()
            if not asked:
                loop.call_soon(turn)
            asked.append((row, future))
            await future
            log.append("m" * BYTES)
        return len(log)

    async def go() -> None:
        writer = threading.Thread(target=write, args=(asyncio.get_running_loop(),))
        writer.start()
        assert await asyncio.gather(*map(run, range(RUNS))) == [steps] * RUNS
        waiting.put(None)
        writer.join()

    asyncio.run(go())
    connection.close()


def axil(folder: Path, steps: int) -> None:
    case = Case(steps, bytes=BYTES, runs=RUNS, folder=folder)
    assert asyncio.run(durable_in("full")(case)()) == steps
    for close in case.closing:
        close()


LINES: dict[str, Callable[[Path, int], Any]] = {
    "rows": rows,
    "and their text": texts,
    "and tasks": tasks,
    "axil": axil,
}


def once(act: Callable[[Path, int], Any], steps: int) -> tuple[float, float, float]:
    """Processor time and time of a step in µs, and its bytes on the disk."""
    with tempfile.TemporaryDirectory() as folder:
        work, begin = time.process_time(), time.perf_counter()
        act(Path(folder), steps)
        work, wall = time.process_time() - work, time.perf_counter() - begin
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return work * 1e6 / RUNS / steps, wall * 1e6 / RUNS / steps, size / RUNS / steps


def table(sizes: Sequence[int]) -> str:
    """Medians; the lines take turns, and the first turn, which pays for imports, does not count."""
    shown = [
        "| a durable step | processor, µs | time, µs | on the disk, bytes |",
        "|---|---:|---:|---:|",
    ]
    for steps in sizes:
        found = [{name: once(act, steps) for name, act in LINES.items()} for _ in range(TIMES + 1)][
            1:
        ]
        for name in LINES:
            work, wall, size = (
                statistics.median(turn[name][i] for turn in found) for i in range(3)
            )
            shown.append(f"| {name} | {number(work)} | {number(wall)} | {number(size)} |")
    return "\n".join(shown)
