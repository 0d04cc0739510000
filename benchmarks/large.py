"""Large ends: many waiting runs, long journals, long runs, large files, many documents.

    python benchmarks/large.py [ROW ...] [--size N] [--folder DIR]

Each row is measured in a process of its own and prints what was asked, what was reached, and the
same by hand, where there is such a thing. It needs minutes and gigabytes of disk; tests hold the
same laws by counts of calls (``test_large_counts.py``). Without a row: all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure."""

    what: str
    asked: str
    reached: str
    by_hand: str = ""


def least(act: Callable[[], Any], times: int = 5) -> float:
    """Return the seconds of the fastest of several."""
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return min(found)


def resident() -> float:
    """Return the megabytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


# ---------------------------------------------------------------------------------- journals


def asking() -> Any:
    """Return a workflow whose one node asks a person."""
    from axil import Context, RootGraph

    async def ask(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"n": await ctx.ask("How many?")}

    graph = RootGraph("asking")
    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", ["n"])
    graph.edge_to_exit("ask", ["n"])
    return graph.build()


def chain(nodes: int) -> Any:
    """Return a workflow of so many nodes, the last of which asks a person."""
    from axil import Context, RootGraph

    async def ask(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"n": await ctx.ask("How many?")}

    graph = RootGraph("chain")
    for i in range(nodes - 1):
        graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name=f"n{i}", inline=True)
    graph.create_node(ask, name=f"n{nodes - 1}")
    graph.edge_from_entry("n0", ["n"])
    for i in range(1, nodes):
        graph.create_edge(f"n{i - 1}", f"n{i}", ["n"])
    graph.edge_to_exit(f"n{nodes - 1}", ["n"])
    return graph.build()


def fill(folder: Path, workflow: Any, runs: int) -> int:
    """Make a journal of so many equal runs, all but one of them copied within the database; return
    the number of entries.
    """
    from axil_sqlite import SqliteJournal

    journal = SqliteJournal(folder, sync="normal")
    result = asyncio.run(workflow.run({"n": 0}, journal=journal, run_id="run-0"))
    assert result.status == "paused"
    journal.close()
    with sqlite3.connect(folder / "runs.db") as connection:
        columns = [row[1] for row in connection.execute("pragma table_info(runs)")][2:]
        given = {
            "status": "case when i % 10 then status else 'done' end",
            "epoch": "epoch + i",
            "touched": "touched - i",
        }
        connection.execute(
            "with recursive numbers(i) as (select 1 union all select i + 1 from numbers "
            f"where i < {runs - 1}) insert into runs (run, {', '.join(columns)}) "
            f"select 'run-' || i, {', '.join(given.get(name, name) for name in columns)} "
            "from numbers, runs where run = 'run-0'"
        )
        connection.execute(
            "insert into entries (run, seq, kind, who, body, crc) "
            "select runs.id, seq, kind, who, body, crc from runs, entries "
            "where entries.run = 1 and runs.id > 1"
        )
        (entries,) = connection.execute("select count(*) from entries").fetchone()
    connection.close()
    return int(entries)


def journal(folder: Path, size: int) -> Iterator[Figure]:
    """Measure a journal of 10,000,000 entries: a page of runs, one run resumed, and old runs that
    are pruned while another process writes.
    """
    from axil_sqlite import SqliteJournal

    workflow = chain(97)
    entries = fill(folder, workflow, size // 100)
    kept = SqliteJournal(folder)
    kept.infos([])
    name = f"{entries:,} entries, {size // 100:,} runs"

    def by_hand(sql: str, *values: Any) -> float:
        connection = sqlite3.connect(folder / "runs.db")
        taken = least(lambda: connection.execute(sql, values).fetchall())
        connection.close()
        return taken

    for what, status in (("a page of 30 runs", ()), ("a page of 30 that are done", ("done",))):
        taken = least(lambda status=status: kept.runs(limit=30, status=status))
        hand = by_hand("select * from runs order by touched desc, id desc limit 30")
        yield Figure(f"{name}: {what}", "≤ 50 ms", ms(taken), ms(hand))

    run_id = f"run-{size // 200 + 1}"

    def resumed() -> None:
        result = asyncio.run(workflow.run({"n": 0}, journal=kept, run_id=run_id))
        assert result.status == "paused"

    workflow.plan  # noqa: B018  # made before
    sql = "select who, body from entries where run = (select id from runs where run = ?)"
    hand = by_hand(sql, run_id)
    yield Figure(f"{name}: one run resumed", "≤ 20 ms", ms(least(resumed)), ms(hand))

    # another process writes runs of its own meanwhile, and says how long each of them took
    writer = subprocess.Popen(
        [sys.executable, __file__, "--writing", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    alone = json.loads(writer.stdout.readline())
    # the oldest: each run was touched a second before the one in front of it
    oldest = kept.runs(status=["done"])[-max(2, size // 10_000) :]
    days = (time.time() - oldest[0].touched) / 86_400
    prune = [str(Path(sys.executable).with_name("axil")), "runs", "prune", "--format", "json"]
    prune += ["--journal", str(folder), "--older-than", repr(days)]
    began = time.perf_counter()
    old = json.loads(command(folder, *prune))
    taken = time.perf_counter() - began
    writer.stdin.write("\n")
    writer.stdin.flush()
    beside = json.loads(writer.stdout.readline())
    writer.wait()
    yield Figure(
        f"{name}: {len(old):,} runs pruned, the slowest step of another process meanwhile",
        "no process stops",
        f"{ms(beside)} (in {taken:.3g} s)",
        f"{ms(alone)} without pruning",
    )
    kept.close()


def writing(folder: Path) -> None:
    """Write short runs until a line comes; print the seconds of the slowest, before and after."""
    from axil_sqlite import SqliteJournal

    journal, workflow = SqliteJournal(folder), asking()
    numbers = iter(range(10**9))

    def slowest(seconds: float, is_over: Callable[[], bool]) -> float:
        ends, found = time.perf_counter() + seconds, 0.0
        while time.perf_counter() < ends or not is_over():
            name = f"other-{next(numbers)}"
            began = time.perf_counter()
            asyncio.run(workflow.run({"n": 0}, journal=journal, run_id=name))
            found = max(found, time.perf_counter() - began)
        return found

    import select

    slowest(0.0, lambda: True)  # imports
    print(json.dumps(slowest(2.0, lambda: True)), flush=True)
    print(json.dumps(slowest(0.0, lambda: bool(select.select([sys.stdin], [], [], 0)[0]))))
    journal.close()


def firings(folder: Path, size: int) -> Iterator[Figure]:
    """Measure a run of 1,000,000 firings, a loop of two nodes, resumed from its journal; and a
    chain, of which nothing is superseded.
    """
    from axil import Context, RootGraph
    from axil_sqlite import SqliteJournal

    async def ask(state: dict[str, Any], ctx: Context) -> dict[str, Any]:
        await ctx.ask("Go on?")
        return {}

    graph = RootGraph("loop", attributes={"n": 0}, cycles="allow")
    graph.create_node(
        lambda state: {"n": state["n"] + 1}, name="a", push_keys={"n": ""}, inline=True
    )
    graph.create_node(lambda state: {}, name="b", inline=True)
    graph.create_node(ask, name="c")
    graph.edge_from_entry("a", {})
    graph.create_edge("a", "b", {})
    graph.create_edge("b", "a", {}, when=lambda state: state["n"] < size // 2)
    graph.create_edge("b", "c", {}, when=lambda state: state["n"] >= size // 2)
    graph.edge_to_exit("c", {})
    graph.set_cycle_limit("a", None)
    for name, workflow, given, firings in (
        ("a loop", graph.build(), None, size),
        ("a chain", chain(max(100, size // 50)), {"n": 0}, max(100, size // 50)),
    ):
        journal = SqliteJournal(folder, sync="normal")

        def run(workflow: Any = workflow, given: Any = given, name: str = name) -> Any:
            result = asyncio.run(workflow.run(given, journal=journal, run_id=name))  # noqa: B023
            assert result.status == "paused", result

        run()
        entries = len(journal.entries(name))
        taken = least(run, 3)
        sql = "select who, body from entries where run = (select id from runs where run = ?)"

        def by_hand(name: str = name, sql: str = sql) -> None:
            with sqlite3.connect(folder / "runs.db") as connection:
                for who, body in connection.execute(sql, (name,)):
                    decoded = json.loads(who or "[]"), json.loads(body)
                    assert decoded

        yield Figure(
            f"{name} of {firings:,} firings resumed, {entries:,} entries",
            "≤ 5 s for 1,000,000",
            f"{taken:.3g} s",
            f"{least(by_hand, 3):.3g} s to read and decode the rows",
        )
        journal.close()


# ---------------------------------------------------------------------------------- engines


def waiting(folder: Path, size: int) -> Iterator[Figure]:
    """Measure an engine process with 100,000 runs that wait for a person, killed and started
    again.
    """
    fill(folder, asking(), size)
    with sqlite3.connect(folder / "runs.db") as connection:
        connection.execute("update runs set status = 'paused'")
    connection.close()
    before = resident()
    for number, what in enumerate(("started", "started again after a kill")):
        began = time.perf_counter()
        engine = subprocess.Popen(
            [sys.executable, __file__, "--engine", str(folder), f"run-{number + 1}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert engine.stdout is not None
        said = json.loads(engine.stdout.readline())
        taken = time.perf_counter() - began
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        assert said["output"] == {"n": 7}, said
        yield Figure(
            f"{size:,} runs that wait, the engine {what}: until one of them is answered and done",
            "≤ 60 s",
            f"{taken:.3g} s",
        )
        if number:
            yield Figure(
                f"{size:,} runs that wait: memory of the engine's process",
                "≤ 300 MB",
                f"{said['resident']:.0f} MB",
                f"{before:.0f} MB without an engine",
            )


async def engine(folder: Path, run_id: str) -> None:
    """Run an engine, answer one run, and wait to be killed."""
    from axil_journals import LocalEngine
    from axil_sqlite import SqliteJournal

    async with LocalEngine(SqliteJournal(folder), [asking()]) as engine:
        (question,) = engine.get(run_id).questions
        await engine.answer(run_id, {question.id: 7})
        result = await engine.result(run_id)
        gc.collect()
        print(json.dumps({"output": result.output, "resident": resident()}), flush=True)
        await asyncio.sleep(3600)


# ------------------------------------------------------------------------------------ files


def document(nodes: int) -> dict[str, Any]:
    """Return a workflow file as data: a chain of nodes that pass on what they get."""
    return {
        "graph": {
            "id": "large",
            "start": ["n0"],
            "end": [f"n{nodes - 1}"],
            "nodes": [{"id": f"n{i}", "type": "passthrough"} for i in range(nodes)],
            "edges": [{"from": f"n{i - 1}", "to": f"n{i}"} for i in range(1, nodes)],
        }
    }


def file(folder: Path, size: int) -> Iterator[Figure]:
    """Measure a workflow file of 50,000 nodes, checked, drawn and run by the command."""
    path = folder / "large.json"
    path.write_text(json.dumps(document(size)))
    axil = str(Path(sys.executable).with_name("axil"))
    small = folder / "small.json"
    small.write_text(json.dumps(document(2)))
    hand = least(lambda: json.loads(path.read_text()), 3)
    for words in (
        ["check", str(path)],
        ["show", str(path), "--format", "mermaid"],
        ["run", str(path), "--input", "x", "--journal", "off"],
    ):
        few = [word.replace(str(path), str(small)) for word in words]
        taken = processor(folder, axil, *words) - processor(folder, axil, *few)
        yield Figure(
            f"a file of {size:,} nodes: axil {words[0]}, beyond that of a file of 2",
            "≤ 60 µs a node" if words[0] == "check" else "works",
            f"{taken:.3g} s of processor time, {taken / size * 1e6:.3g} µs a node",
            f"{ms(hand)} to parse the JSON",
        )


def processor(folder: Path, *words: str) -> float:
    """Return the seconds of processor time that a command takes."""
    before = sum(os.times()[2:4])
    command(folder, *words)
    return sum(os.times()[2:4]) - before


def command(folder: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -------------------------------------------------------------------------------- documents


def documents(folder: Path, size: int) -> Iterator[Figure]:
    """Measure context from 1,000,000 documents: blocks that match any of a question's words."""
    from axil_context import KeywordRetriever
    from axil_models import ContextBlock, ContextQuery

    def block(i: int) -> ContextBlock:
        topics = " ".join(f"topic{(i * step) % 5_000}" for step in (1, 7, 31))
        return ContextBlock(text=f"Note {i} about {topics}.", uri=f"note/{i}", chunk_id="0")

    retriever = KeywordRetriever(path=str(folder / "notes.db"))
    began = time.perf_counter()
    for at in range(0, size, 10_000):
        retriever.put([block(i) for i in range(at, min(size, at + 10_000))])
    put = time.perf_counter() - began
    yield Figure(f"{size:,} documents put", "linear", f"{put / size * 1e6:.3g} µs each")
    for what, question in (
        ("a question of three rare words", "topic17 topic4000 topic333"),
        ("a question with a word that all have", "Which note is about topic17?"),
    ):
        found = retriever.get_blocks(ContextQuery(question), 8)
        assert len(found) == 8
        with sqlite3.connect(folder / "notes.db") as connection:
            words = " OR ".join(question.lower().strip("?").split()[-3:])
            sql = "select rowid from words where words match ? order by rank limit 8"
            hand = least(lambda: connection.execute(sql, (words,)).fetchall(), 3)  # noqa: B023
        taken = least(lambda: retriever.get_blocks(ContextQuery(question), 8), 3)  # noqa: B023
        yield Figure(f"{size:,} documents: {what}", "works", ms(taken), ms(hand))
    retriever.close()


ROWS: Final[dict[str, tuple[Callable[[Path, int], Iterator[Figure]], int]]] = {
    "journal": (journal, 10_000_000),
    "firings": (firings, 1_000_000),
    "waiting": (waiting, 100_000),
    "file": (file, 50_000),
    "documents": (documents, 1_000_000),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--size", type=int, default=0, help="instead of the size of the row")
    parser.add_argument("--folder", help="where the data lies, instead of a temporary folder")
    parser.add_argument("--writing", help=argparse.SUPPRESS)
    parser.add_argument("--engine", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.writing:
        writing(Path(options.writing))
    elif options.engine:
        asyncio.run(engine(Path(options.engine[0]), options.engine[1]))
    elif len(options.rows) == 1:
        measure, size = ROWS[options.rows[0]]
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for each in measure(Path(folder), options.size or size):
                print(
                    f"| {each.what} | {each.asked} | {each.reached} | {each.by_hand} |", flush=True
                )
    else:
        print("| what | asked | reached | by hand |\n|---|---:|---:|---:|", flush=True)
        for name in options.rows or ROWS:
            own = [name, *(["--folder", options.folder] if options.folder else [])]
            own += ["--size", str(options.size)] if options.size else []
            subprocess.run([sys.executable, __file__, *own], check=True)


if __name__ == "__main__":
    main()
