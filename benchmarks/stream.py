"""``make bench STREAM=1``: the event stream of a server, under a flood of events.

python benchmarks/stream.py [--rate 10000] [--seconds 60] [--readers 1] [--slow 1]

A server in a process of its own executes one run that shows so many chunks in each second. Readers
follow it; slow ones read 1 kB in each second. Printed: what each reader received, the largest
delay of a reader that is not slow, and the memory of the server before and at its highest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from axil import Context, RootGraph, Workflow
from axil_journals import MemoryJournal

TOKEN: Final = "a token of the benchmark"
_TICK: Final = 0.01
_SLOW_BYTES: Final = 1_000


def flood() -> Workflow:
    """Return a graph that shows chunks at a constant rate."""
    graph = RootGraph("flood")

    async def show(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        rate, total = inputs["rate"], inputs["rate"] * inputs["seconds"]
        began, shown = time.monotonic(), 0
        while shown < total:
            due = min(total, int((time.monotonic() - began) * rate) + 1)
            for number in range(shown, due):
                ctx.emit({"kind": "text", "text": f"{number} ", "at": time.time()})
            shown = due
            await asyncio.sleep(_TICK)
        return {"shown": shown, "took": time.monotonic() - began}

    graph.create_node(show, name="show")
    graph.edge_from_entry("show", {"rate": "", "seconds": ""})
    graph.edge_to_exit("show", {"shown": "", "took": ""})
    return graph.build()


async def serve() -> None:
    """Serve until the process is ended; the port is printed."""
    import uvicorn

    from axil_serve import Access, Caller, Limits, RunService, app_of

    service = RunService(MemoryJournal(), {"flood": flood()})
    access = Access.of_token(TOKEN, Caller(name="bench"))
    app = app_of(service, access, limits=Limits(requests_per_minute=1e9, burst=10**6))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  # it has no event for it
        await asyncio.sleep(_TICK)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


@dataclass(slots=True, kw_only=True)
class Reader:
    """Counts of one reader."""

    is_slow: bool
    chunks: int = 0
    lag: float = 0.0
    """The largest delay of a chunk, in seconds."""
    has_ended: bool = False
    number: int = -1


async def follow(port: int, run_id: str, reader: Reader, stop: asyncio.Event) -> None:
    """Read the stream of a run; a slow reader stops when the others have ended."""
    connection, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(_request("GET", f"/v1/runs/{run_id}/events"))
    pattern = re.compile(rb'"text": "(\d+) ", "at": ([\d.]+)')
    rest = b""
    try:
        while not (reader.is_slow and stop.is_set()):
            data = await connection.read(_SLOW_BYTES if reader.is_slow else 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                reader.has_ended = reader.has_ended or line == b"event: end"
                if found := pattern.search(line):
                    reader.chunks += 1
                    assert int(found[1]) > reader.number, "chunks are out of order"
                    reader.number = int(found[1])
                    reader.lag = max(reader.lag, time.time() - float(found[2]))
            if reader.has_ended:
                break
            if reader.is_slow:
                await asyncio.sleep(1)
    finally:
        writer.close()


async def measure(port: int, pid: int, *, rate: int, seconds: int, fast: int, slow: int) -> Any:
    """Start the run and follow it; return the figures."""
    readers = [Reader(is_slow=number >= fast) for number in range(fast + slow)]
    before = peak = _memory(pid)
    body = {"workflow": "flood", "input": {"rate": rate, "seconds": seconds}}
    run_id = (await _post(port, "/v1/runs", body))["run_id"]
    stop = asyncio.Event()
    tasks = [asyncio.create_task(follow(port, run_id, reader, stop)) for reader in readers]
    while not all(task.done() for task in tasks[:fast]):
        await asyncio.wait(tasks[:fast], timeout=0.2)
        peak = max(peak, _memory(pid))
    stop.set()
    for task in tasks:
        with contextlib.suppress(ConnectionError):
            await task
    quick = [reader for reader in readers if not reader.is_slow]
    return {
        "events": rate * seconds,
        "received": [reader.chunks for reader in quick],
        "ended": [reader.has_ended for reader in quick],
        "lag_seconds": round(max(reader.lag for reader in quick), 3),
        "received_slow": [reader.chunks for reader in readers if reader.is_slow],
        "memory_mb": {"before": before >> 20, "highest": peak >> 20},
    }


def figures(*, rate: int, seconds: int, readers: int, slow: int) -> Any:
    """Return the figures of a server in a process of its own."""
    start = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            measuring = measure(
                port, server.pid, rate=rate, seconds=seconds, fast=readers, slow=slow
            )
            return asyncio.run(measuring)
        finally:
            server.kill()


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _post(port: int, path: str, body: Any) -> Any:
    connection, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request("POST", path, json.dumps(body).encode()))
    whole = await connection.read()
    writer.close()
    return json.loads(whole.partition(b"\r\n\r\n")[2])


def _memory(pid: int) -> int:
    """Return the bytes of memory that a process has; 0 where the system does not say so."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("rate", 10_000), ("seconds", 60), ("readers", 1), ("slow", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    if options.pop("serve"):
        asyncio.run(serve())
    else:
        print(json.dumps(figures(**options), indent=2))


if __name__ == "__main__":
    main()
