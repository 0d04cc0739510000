"""Laws of connections: who opens, who closes, and what is left when somebody goes at an unlucky
moment.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axil_mcp import CallFailed, MCPTools, Unreachable, stdio
from axil_testing.members import ends

from .kit import SERVERS, VARIOUS, children, is_alive, until

LATE = (
    "import os, runpy, sys, time\nwhile not os.path.exists(sys.argv[1]): "
    "time.sleep(0.01)\nrunpy.run_path(sys.argv[2], run_name='__main__')"
)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "gate"


@pytest.fixture
def late(various: dict[str, Any], gate: Path) -> dict[str, Any]:
    """Settings of a server that does not begin before the gate is there."""
    return {
        **various,
        "command": [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            LATE,
            str(gate),
            VARIOUS[-1],
        ],
    }


def test_a_connection_without_waiting_requests_is_used_and_closed(late, gate, note, tidy):
    async def main() -> list[bool]:
        toolset = MCPTools(**late)
        first, line = asyncio.ensure_future(toolset.tools()), toolset._link.line_of()
        await until(lambda: line._connecting)
        first.cancel()
        gate.touch()
        await until(lambda: line._connecting.done())
        await toolset.tools()
        await toolset.close()
        return [is_alive(pid) for pid in note.pids]

    assert asyncio.run(main()) == [False]


def test_an_unused_connection_is_closed_too(late, gate, note, tidy):
    async def main() -> list[bool]:
        toolset = MCPTools(**late)
        first, line = asyncio.ensure_future(toolset.tools()), toolset._link.line_of()
        await until(lambda: line._connecting)
        first.cancel()
        gate.touch()
        await until(lambda: line._connecting.done())
        await toolset.close()
        return [is_alive(pid) for pid in note.pids]

    assert asyncio.run(main()) == [False]


def test_a_connection_that_a_waiting_call_opened_again_is_closed_by_the_next_close(
    various, note, tidy, monkeypatch
):
    monkeypatch.setattr(stdio, "_GRACE", 0.1)

    async def main() -> list[bool]:
        toolset = MCPTools(**various, concurrency=1)
        tools = {tool.name: tool for tool in await toolset.tools()}
        one = asyncio.ensure_future(tools["v__slow"]({"seconds": 3600, "mark": "a"}))
        await until(lambda: note.count("slow a begun"))
        two = asyncio.ensure_future(tools["v__add"]({"a": 1, "b": 2}))
        await asyncio.sleep(0)  # it waits for its turn
        await toolset.close()
        with pytest.raises(CallFailed, match="AX924"):
            await one
        assert await two == "3"
        await toolset.close()
        return [is_alive(pid) for pid in note.pids]

    assert asyncio.run(main()) == [False, False]


def test_a_waiter_for_a_closed_connection_gets_the_error_though_another_begins_at_once(
    late, gate, monkeypatch
):
    monkeypatch.setattr(stdio, "_GRACE", 0.1)

    async def main() -> None:
        toolset = MCPTools(**late)
        line = toolset._link.line_of()
        first = asyncio.ensure_future(toolset.tools())
        await until(lambda: line._connecting)

        async def again() -> Any:
            await asyncio.wait({line._connecting})
            return await toolset.tools()

        other = asyncio.ensure_future(again())
        await asyncio.sleep(0)
        last = asyncio.ensure_future(toolset.tools())  # wakes after the other
        await asyncio.sleep(0)
        await toolset.close()
        gate.touch()
        for waiting in (first, last):
            with pytest.raises(Unreachable, match=r"AX920.*was closed"):
                await waiting
        assert await other
        await toolset.close()

    asyncio.run(main())


def test_a_server_that_stops_reading_is_reported_at_once(tidy, monkeypatch):
    monkeypatch.setattr(stdio, "_GRACE", 0.1)

    async def main() -> None:
        async with MCPTools(
            name="d",
            command=[sys.executable, str(SERVERS / "deaf.py")],
            connect_timeout_seconds=120,
        ) as toolset:
            (tool,) = await toolset.tools()
            with pytest.raises(CallFailed, match="AX924"):
                await asyncio.wait_for(tool({}), 60)  # its own limit is longer
            # by another one, which has not listed its tools and hears
            with pytest.raises(CallFailed, match="AX927"):
                await tool({})

    asyncio.run(main())


CLIENT = """
import asyncio, os, sys
from axil_mcp import MCPTools


async def main():
    async with MCPTools(name="d", command=sys.argv[1:]) as toolset:
        await toolset.tools()
        print("ready", flush=True)
        await asyncio.sleep(600)


asyncio.run(main())
"""


def test_a_server_that_heeds_no_end_of_its_input_ends_with_a_client_that_is_killed(tmp_path):
    own = tmp_path / "pid"
    starts = f"import os, sys; open({str(own)!r}, 'w').write(str(os.getpid()))"
    start = f"{starts}; os.execv(sys.executable, [sys.executable, {str(SERVERS / 'deaf.py')!r}])"
    command = [sys.executable, "-c", CLIENT, sys.executable, "-c", start]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"ready\n"
        assert is_alive(server := int(own.read_text()))
        client.kill()
    assert ends(server)


def test_a_connection_that_two_close_while_it_is_being_made_is_closed_when_either_says_so(
    late, monkeypatch
):
    monkeypatch.setattr(stdio, "_GRACE", 0.1)

    async def main() -> list[set[str]]:
        before, toolset = children(), MCPTools(**late)
        first = asyncio.ensure_future(toolset.tools())
        await until(lambda: children() - before)

        async def close(turns: int) -> set[str]:
            for _ in range(turns):
                await asyncio.sleep(0)
            await toolset.close()
            return children() - before

        left = await asyncio.gather(close(0), close(5))
        with pytest.raises(Unreachable, match="AX920"):
            await first
        return left

    assert asyncio.run(main()) == [set(), set()]
