"""The costs of forgetting runs in PostgreSQL: in batches, as it is done, or by dropped partitions.

    python benchmarks/forgetting.py [--runs 20000 --steps 10 --bytes 2000 --compression off]

It starts a server in a folder of its own, which writes whole pages to its log as servers do, but
does not wait for its disk. `docs/decisions/0029-runs-are-forgotten-in-batches.md` has the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).resolve()
if str(HERE.parents[1]) not in sys.path:
    sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.cluster import database  # noqa: E402

from axil_postgres import PostgresJournal  # noqa: E402

SETTINGS = ("full_page_writes = on", "max_wal_size = '4GB'", "autovacuum = off")
_RUNS = """
insert into runs (run, graph, digest, status, epoch, begun, touched, next)
select 'r' || g || md5(g::text), 'letters', md5('d'), 'done', 1, g / 100.0, g / 100.0, %s
from generate_series(1, %s) g
"""
_ENTRIES = """
insert into {} select runs.id, seq, 'done', 'node',
    (select string_agg(md5((runs.id * seq * part)::text), '') from generate_series(1, %s) part),
    null, 1
from runs, generate_series(1, %s) seq
"""
_PARTS = """
create table parts (like entries, primary key (run, seq)) partition by range (run);
create table oldest partition of parts for values from (minvalue) to (maxvalue);
"""


def measure(url: str, runs: int, steps: int, size: int) -> None:
    """Forget runs both ways, and print the time and the log of each."""
    journal = PostgresJournal(url)
    journal.runs()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set search_path = axil")
        connection.execute("set session_replication_role = replica")  # to fill the tables fast

        def fill(table: str) -> None:
            connection.execute(_RUNS, (steps + 2, runs))
            sql = _ENTRIES.format(table).encode()
            connection.execute(sql, (max(1, size // 32), steps + 2))
            connection.execute(f"vacuum analyze runs, {table}".encode())
            connection.execute("checkpoint")

        @contextmanager
        def measured(what: str) -> Iterator[None]:
            before, began = _log(connection), time.monotonic()
            yield
            seconds, log = time.monotonic() - began, _log(connection) - before
            each = f"{seconds / runs * 1e6:.0f} µs and {log / runs / 1024:.1f} KiB of log a run"
            print(f"{what}: {seconds:.1f} s, {log / 2**20:.0f} MiB of log; {each}")

        def prune() -> None:
            while journal.prune(float(runs), limit=1000):
                pass

        fill("entries")
        with measured("runs deleted in batches"):
            prune()
        with measured("and their space made free by vacuum"):
            connection.execute("vacuum runs, entries")
        connection.execute("truncate runs, entries cascade")
        connection.execute(_PARTS.encode())
        fill("parts")
        with measured("only the rows of runs deleted in batches"):
            prune()
        with measured("the partition of their entries dropped"):
            connection.execute("drop table oldest")
    journal.close()


def _log(connection: Any) -> int:
    sql = "select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
    return int(connection.execute(sql).fetchone()[0])


def main() -> int:
    """Measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, given in (("runs", 20_000), ("steps", 10), ("bytes", 2000)):
        parser.add_argument(f"--{name}", type=int, default=given)
    parser.add_argument("--compression", choices=("off", "pglz", "lz4"), default="off")
    options = parser.parse_args()
    with database() as server:
        if server is None:
            print("No PostgreSQL can be started here.")
            return 1
        with psycopg.connect(server.url, autocommit=True) as connection:
            for each in (*SETTINGS, f"wal_compression = {options.compression}"):
                connection.execute(f"alter system set {each}".encode())
        server.end("fast")
        server.begin()
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        measure(server.url, options.runs, options.steps, options.bytes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
