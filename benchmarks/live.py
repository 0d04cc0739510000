"""The time of a token from the model to the hand of a client: run, server, protocol, client.

    python benchmarks/live.py [--streams 100] [--tokens 100] [--rate 20] [--rounds 3]

A server in a process of its own has an agent whose model says so many tokens in each second, with
the time at which it said each. Clients in this process ask at once, each for a stream of its own,
through OpenAI's Chat Completions, through AG-UI, and, by hand, from a route that sends what the
same model says without a run. The ways take turns. Printed for each: the median and the 99th
percentile of the time of a token, and the processor's time of the server for one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

TOKEN: Final = "a token of the benchmark"
SPOKEN: Final = re.compile(rb"<([\d.]+)>")
PATHS: Final = {"chat": "/v1/chat/completions", "ag-ui": "/ag-ui/talk", "hand": "/hand"}


class Speaker:
    """A model that says when it says each token."""

    name = "speaker"

    def __init__(self, tokens: int, rate: float = 20) -> None:
        self.tokens, self._rate = tokens, rate

    async def said(self) -> AsyncGenerator[str]:
        """Yield the tokens, at the times at which they are due."""
        began = time.monotonic()
        for number in range(self.tokens):
            await asyncio.sleep(max(0.0, began + number / self._rate - time.monotonic()))
            yield f"<{time.monotonic():.6f}>"

    async def reply(self, request: Any, emit: Any, /) -> Any:
        """Say all of them."""
        from axil_models import Reply

        whole: list[str] = []
        async for text in self.said():
            emit({"kind": "text", "text": text})
            whole.append(text)
        return Reply(text="".join(whole))


def served(model: Speaker) -> tuple[Any, Any]:
    """Return a service of an agent with this model, and its application."""
    from axil import RootGraph
    from axil_agent import Agent
    from axil_journals import MemoryJournal
    from axil_serve import (
        Access,
        AgUi,
        Caller,
        ChatCompletions,
        Limits,
        RunService,
        app_of,
    )

    graph = RootGraph("talk")
    graph.create_node(Agent, name="talk", model=model, instructions="Talk.")
    graph.edge_from_entry("talk", {"message": ""})
    graph.edge_to_exit("talk", {"message": ""})
    service = RunService(MemoryJournal(), {"talk": graph.build()})
    access, most = Access.of_token(TOKEN, Caller(name="bench")), 10**6
    limits = Limits(requests_per_minute=1e9, burst=most, streams=most, streams_each=most)
    protocols = {"openai": ChatCompletions(), "ag-ui": AgUi()}
    return service, app_of(service, access, limits=limits, protocols=protocols)


async def serve(tokens: int, rate: float) -> None:
    """Serve until the process is ended; the port is printed."""
    import uvicorn
    from starlette.responses import StreamingResponse

    model = Speaker(tokens, rate)
    _, app = served(model)

    async def by_hand() -> AsyncGenerator[bytes]:
        async for text in model.said():
            choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
            yield f"data: {json.dumps({'choices': [choice]})}\n\n".encode()

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == PATHS["hand"]:
            await StreamingResponse(by_hand(), media_type="text/event-stream")(scope, receive, send)
        else:
            await app(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(outer, port=0, log_config=None, lifespan="on"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  # it has no event for it
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


def request(way: str) -> bytes:
    """Return the body of a request."""
    said = [{"role": "user", "content": "Talk.", "id": "1"}]
    if way == "ag-ui":
        return json.dumps({"threadId": "", "runId": "", "messages": said}).encode()
    return json.dumps({"model": "talk", "messages": said, "stream": True}).encode()


async def listen(port: int, way: str) -> list[float]:
    """Ask for a stream; return the seconds that each of its tokens took."""
    body = request(way)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"POST {PATHS[way]} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    found: list[float] = []
    last, rest = 0.0, b""
    while data := await reader.read(1 << 16):
        now = time.monotonic()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            for each in SPOKEN.findall(line):
                if (at := float(each)) > last:  # the whole output comes again at the end
                    last = at
                    found.append(now - at)
    writer.close()
    return found


def processor_seconds(pid: int) -> float:
    """Return the processor's time of a process; 0 where the system does not say so."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


async def measured(port: int, pid: int, way: str, streams: int) -> tuple[list[float], float]:
    """Return the times of all tokens of so many streams at once, and the server's time for each."""
    before = processor_seconds(pid)
    found = await asyncio.gather(*(listen(port, way) for _ in range(streams)))
    times = [each for several in found for each in several]
    return times, (processor_seconds(pid) - before) / max(1, len(times))


def figures(*, streams: int, tokens: int, rate: float, rounds: int) -> dict[str, Any]:
    """Return the figures of each way, of a server in a process of its own."""
    start = [sys.executable, __file__, "--serve", "--tokens", str(tokens), "--rate", str(rate)]
    times: dict[str, list[float]] = {way: [] for way in PATHS}
    work: dict[str, list[float]] = {way: [] for way in PATHS}
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            for number in range(rounds + 1):
                for way in PATHS:
                    found, each = asyncio.run(measured(port, server.pid, way, streams))
                    assert len(found) == streams * tokens, (way, len(found))
                    if number:  # the first round imports and connects
                        times[way] += found
                        work[way].append(each)
        finally:
            server.kill()
    shown: dict[str, Any] = {}
    for way in PATHS:
        parts = statistics.quantiles(times[way], n=100)
        shown[way] = {
            "p50_ms": round(parts[49] * 1e3, 3),
            "p99_ms": round(parts[98] * 1e3, 3),
            "processor_us_a_token": round(statistics.median(work[way]) * 1e6),
        }
    return shown


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("streams", 100), ("tokens", 100), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=20, help="Tokens a second, of each stream.")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = vars(parser.parse_args())
    if options.pop("serve"):
        asyncio.run(serve(options["tokens"], options["rate"]))
    else:
        print(json.dumps(figures(**options), indent=2))


if __name__ == "__main__":
    main()
