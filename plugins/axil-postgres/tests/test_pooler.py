"""Workers behind a real PgBouncer, which gives each transaction another connection."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from axil.plugin import JournalError
from axil_journals import LocalEngine
from axil_postgres import PostgresJournal

from . import chain

PROCESSES = 16 if chain.LONG else 4
RUNS, POOL = 10 * PROCESSES, 4
_PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
_WORKER = """
import asyncio, sys
sys.path.insert(0, sys.argv[3])
import chain
from axil_journals import LocalEngine
from axil_postgres import PostgresJournal

async def work():
    journal = PostgresJournal(sys.argv[1], direct_url=sys.argv[2], tables="pooled")
    async with LocalEngine(journal, [chain.chain()], loaded=10):
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(work())
"""


@pytest.fixture
def pooler(server: Any) -> Iterator[str]:
    """Start a pooler before the server, and return its address."""
    if _PROGRAM is None:
        pytest.skip("PgBouncer is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = server.folder / "pgbouncer.ini"  # which the user may read that it runs as
    settings.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port} user=axil\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = {POOL}\nmax_client_conn = 200\n"
    )
    user = server.user or {}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [_PROGRAM, str(settings)]
    process = subprocess.Popen(command, cwd="/", **quiet, **user)
    url = f"postgresql://axil@127.0.0.1:{port}/postgres"
    while process.poll() is None:
        with suppress(psycopg.OperationalError), psycopg.connect(url, prepare_threshold=None):
            break
    assert process.poll() is None, "PgBouncer did not start"
    yield url
    process.kill()
    process.wait()


def connections_of(pid: int) -> Counter[int]:
    """Return how many connections a process has, by the port at the other end."""
    open_files = Path(f"/proc/{pid}/fd").iterdir()
    inodes = set[str]()
    for each in open_files:
        with suppress(OSError):  # it was closed meanwhile
            inodes.add(os.readlink(each).removeprefix("socket:[").removesuffix("]"))
    found: Counter[int] = Counter()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, state, *_, inode = line.split()[:10]
        if state == "01" and inode in inodes:  # established
            found[int(remote.partition(":")[2], 16)] += 1
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="it counts sockets as Linux does")
def test_many_processes_share_a_few_connections_and_each_listens_by_one_of_its_own(
    server: Any, pooler: str, tmp_path: Path
) -> None:
    direct = {"direct_url": server.url, "tables": "pooled"}
    with pytest.raises(JournalError, match="search_path") as caught:
        PostgresJournal(pooler, **direct).runs()
    assert caught.value.id == "AX510"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute('alter role axil in database postgres set search_path = "pooled"')
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
            "and application_name = 'axil' and state = 'idle'"
        )
    log = tmp_path / "log"
    given = {**os.environ, "CHAIN_LOG": str(log), "CHAIN_STEPS": str(chain.STEPS)}
    folder = str(Path(chain.__file__).parent)
    words = [sys.executable, "-c", _WORKER, pooler, server.url, folder]
    workers = [subprocess.Popen(words, env=given, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
    journal = PostgresJournal(pooler, **direct)
    graph = chain.chain()
    ports = {"pooler": urlsplit(pooler).port, "server": urlsplit(server.url).port}
    seen: dict[str, set[int]] = {"pooler": set(), "server": set(), "all": set()}

    def look(watching: Any) -> None:
        """Count the connections of each worker, and those of the server."""
        for worker in workers:
            found = connections_of(worker.pid)
            assert found.keys() <= set(ports.values())
            for name, port in ports.items():
                seen[name].add(found[port])
        sql = "select count(*) from pg_stat_activity where application_name = 'axil'"
        seen["all"].add(watching.execute(sql).fetchone()[0])

    async def watch() -> None:
        with psycopg.connect(server.url, autocommit=True) as watching:
            while True:
                await asyncio.to_thread(look, watching)

    async def go() -> list[Any]:
        async with asyncio.timeout(500), LocalEngine(journal, [graph], loaded=0) as engine:
            watcher = asyncio.create_task(watch())
            ids = [f"r{n}" for n in range(RUNS)]
            given = ({"run": run_id, "n": 0} for run_id in ids)
            await asyncio.gather(*(engine.start(graph, one, run_id=one["run"]) for one in given))
            results = await asyncio.gather(*map(engine.result, ids))
            assert not watcher.done(), watcher
            watcher.cancel()
            return results

    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
        results = asyncio.run(go())
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
        journal.close()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("alter role axil in database postgres reset search_path")
    assert [result.status for result in results] == ["done"] * RUNS
    # at all times: one to the server, which listens, and up to two to the pooler
    assert max(seen["server"]) == 1
    assert max(seen["pooler"]) == 2
    # one of each process and of this one, and those of the pool
    assert max(seen["all"]) <= PROCESSES + 1 + POOL
    pids = {line.split()[2] for line in log.read_text().splitlines()}
    assert len(pids) > 1
