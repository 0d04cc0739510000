"""A server that is a program: messages are lines on its standard input and output.

The SDK has such a transport, too. This one differs in what it bounds: a line has a longest length
(the SDK gathers a line of any length, copying it again with every piece), what the program says on
its standard error is kept instead of being passed on, and the environment is exactly what is given.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from axil_mcp.config import MCPServer
from axil_mcp.texts import Tail
from axil_process import KILL, Child

_GRACE: Final = 2.0
"""Seconds for the program to end by itself when its input is closed, and again when it is asked to
end.
"""
_MARK: Final = "AXIL_MCP_STARTED"
"""The variable of the environment by which what the program starts is found again."""
_MOST_UNANSWERED: Final = 1000
"""Requests of a server that wait for an answer; one that makes more is given up."""
_LOOK: Final = 0.01
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program to start, and the receivers of its messages."""

    server: MCPServer
    environment: Mapping[str, str]
    tail: Tail
    """The text on its standard error."""
    lost: Callable[[], None]
    """Called when it closes its output, and nothing more will come; and when it does not take what
    is said to it.
    """
    unanswered: list[str | int] = field(default_factory=list[str | int])
    """The ids of its requests that have no answer yet, as often as it used them."""


@asynccontextmanager
async def stdio(program: Program) -> AsyncGenerator[Any]:
    """Start the program and give the streams of messages from and to it; at the end nothing of it
    is left.

    Raises: OSError: it cannot be started.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    server, mark = program.server, secrets.token_hex(16)
    child = await Child.start(
        server.argv,
        cwd=server.cwd or None,
        env={**program.environment, _MARK: mark},
        line_bytes=server.max_message_bytes,
        ends_with_parent=True,
    )
    process = child.process
    try:
        received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        async with received, read, write, to_send, anyio.create_task_group() as group:
            group.start_soon(_receive, process, program, received)
            group.start_soon(_send, process, program, to_send)
            group.start_soon(_overhear, process, program.tail)
            try:
                yield read, write
            finally:
                with anyio.CancelScope(shield=True):
                    await child.end(_GRACE)
                group.cancel_scope.cancel()
    finally:
        child.signal(KILL)  # where the conversation could not begin, it has not been ended
        child.close()  # before what may be cancelled
        await asyncio.to_thread(_kill_marked, mark)


async def _receive(process: asyncio.subprocess.Process, program: Program, received: Any) -> None:
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest

    assert process.stdout is not None
    try:
        async with received:
            while line := await process.stdout.readline():
                if not line.strip():
                    await asyncio.sleep(0)  # a flood of them holds up nobody else
                    continue
                try:
                    message = _message(line)
                except (ValueError, RecursionError):
                    program.tail.add(b"(not a message: " + line.strip()[:200] + b")\n")
                    await asyncio.sleep(0)
                    continue
                if isinstance(message, JSONRPCRequest):
                    program.unanswered.append(message.id)
                    if len(program.unanswered) > _MOST_UNANSWERED:
                        program.tail.add(b"(it sent requests without end)\n")
                        return
                await received.send(SessionMessage(message))
    except ValueError:
        program.tail.add(
            b"(a message was longer than %d bytes)\n" % program.server.max_message_bytes
        )
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        pass  # the reader has gone, or the pipe broke with the program
    finally:
        program.lost()


def _message(line: bytes) -> Any:
    """Return the message of a line.

    Halves of characters, which JavaScript leaves where it cuts a text, become question marks.
    Raises: ValueError, RecursionError: it is none.
    """
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        whole = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        if whole.count(b"?") == line.count(b"?"):
            raise
        return jsonrpc_message_adapter.validate_json(whole, by_name=False)


async def _send(process: asyncio.subprocess.Process, program: Program, to_send: Any) -> None:
    from mcp_types import JSONRPCError, JSONRPCResponse

    assert process.stdin is not None
    try:
        async for each in to_send:
            if isinstance(each.message, (JSONRPCResponse, JSONRPCError)):
                with suppress(ValueError):
                    program.unanswered.remove(cast("str | int", each.message.id))
            process.stdin.write(
                each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            )
            await process.stdin.drain()
    except ConnectionError:
        # the program is gone, or has closed its input: what was said will have no answer
        await asyncio.sleep(_GRACE)  # what it said before is still heard
        program.lost()


async def _overhear(process: asyncio.subprocess.Process, tail: Tail) -> None:
    assert process.stderr is not None
    while stated := await process.stderr.read(_CHUNK):
        tail.add(stated)


def _kill_marked(mark: str) -> None:
    """Kill what the program started in sessions of their own, where the system has /proc."""
    wanted, until = f"{_MARK}={mark}".encode(), time.monotonic() + _GRACE
    while (found := list(_marked(wanted))) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK)


def _marked(wanted: bytes) -> Iterator[int]:
    """Yield the processes that have this in their environment; one that has ended has none."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdecimal():
            with suppress(OSError):
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    yield int(name)
