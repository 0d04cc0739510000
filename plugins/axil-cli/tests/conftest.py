"""Workflow files made of a few small nodes, and the command run in this process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from axil import Context, Out
from axil.plugin import Message, Registry, message, use_registry
from axil_cli.main import main
from axil_testing.members import command_runner


class Say:
    """Says its text."""

    class Config(BaseModel, extra="forbid"):
        text: str

    def __init__(self, config: Config) -> None:
        self.config = config

    def run(self) -> str:
        return self.config.text


class Echo:
    """Repeats what came."""

    def run(self, payloads: list[Any]) -> Any:
        return Out(
            payloads[0] if len(payloads) == 1 else [m for payload in payloads for m in payload]
        )


class Talk:
    """Prints, and shows chunks."""

    def run(self, ctx: Context) -> str:
        print("printed by a body")  # noqa: T201  # what bodies should not do, and do
        ctx.emit("one ")
        ctx.emit("two")
        return "said"


class Fail:
    """Raises."""

    def run(self) -> None:
        raise ValueError("it broke\x1b[2J")


class Ask:
    """Asks a person."""

    async def run(self, ctx: Context) -> str:
        return f"the answer is {await ctx.ask('how much?')}"


class Odd:
    """Gives what JSON has no word for."""

    def run(self) -> list[Message]:
        return [
            message(
                {
                    "nan": float("nan"),
                    "set": {1},
                    "bytes": b"abc",
                    "object": object(),
                    "half": "\ud800",
                    3: "key",
                },
                "assistant",
            )
        ]


class Hang:
    """Is interrupted by a person while it waits."""

    async def run(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()


def third(text: str) -> bool:
    """Return a condition."""
    return text.startswith("yes")


class Hello:
    """say hello"""

    def configure(self, parser: Any) -> None:
        parser.add_argument("name")

    def run(self, options: Any, session: Any) -> int:
        session.say(f"hello {options.name}")
        return 7


NODES = {
    "say": Say,
    "echo": Echo,
    "talk": Talk,
    "fail": Fail,
    "askt": Ask,
    "odd": Odd,
    "hang": Hang,
}


@pytest.fixture
def registry() -> Iterator[Registry]:
    known = Registry()
    for name, node in NODES.items():
        known.register("nodes", name, node)
    known.register("conditions", "yes", third)
    known.register("commands", "hello", Hello)
    with use_registry(known):
        yield known


@pytest.fixture
def axil(registry, capsys, monkeypatch):
    """``axil("run", path)``: the exit code and what was printed."""
    monkeypatch.delenv("AXIL_DEBUG", raising=False)
    monkeypatch.setenv("AXIL_JOURNAL", "off")

    return command_runner(main, capsys)


@pytest.fixture
def flow(tmp_path):
    """Writes a workflow file: nodes as ``"name type"`` or mappings, edges as ``"a b"`` or
    mappings.
    """

    def write(
        nodes: list[Any], edges: list[Any] = (), name: str = "flow.json", **graph: Any
    ) -> str:
        def node(given: Any) -> Any:
            return (
                {"id": given.split()[0], "type": given.split()[1]}
                if isinstance(given, str)
                else given
            )

        def edge(given: Any) -> Any:
            return (
                {"from": given.split()[0], "to": given.split()[1]}
                if isinstance(given, str)
                else given
            )

        made = [node(each) for each in nodes]
        root = {key: graph.pop(key) for key in ("vars", "version") if key in graph}
        if graph.get("payload", "messages") == "messages":
            graph.setdefault("start", [made[0]["id"]])
        data = {**root, "graph": {"nodes": made, "edges": [edge(each) for each in edges], **graph}}
        (tmp_path / name).write_text(json.dumps(data))
        return str(tmp_path / name)

    return write
