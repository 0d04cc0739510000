"""Bodies that can be imported: some compute, some crash."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from axil import Question


def double(inputs: Any) -> dict[str, Any]:
    return {"n": 2 * inputs["n"], "pid": os.getpid()}


def positional(given: Any, values: Any) -> dict[str, Any]:
    values["seen"] = given["n"]
    return {"n": given["n"], "pid": os.getpid()}


def loud(inputs: Any) -> dict[str, Any]:
    sys.stdout.write("this is not for the pipe\n")
    sys.stdout.flush()
    os.write(1, b"nor this\n")
    return {"n": inputs["n"]}


def counting(inputs: Any, attributes: Any, local: Any) -> dict[str, Any]:
    attributes["total"] = attributes["total"] + inputs["n"]
    local["times"] = local.get("times", 0) + 1
    return {"n": inputs["n"], "times": local["times"]}


def dies(inputs: Any) -> dict[str, Any]:
    if inputs["n"] < 0:
        how = {
            -1: lambda: os._exit(7),
            -2: lambda: ctypes.string_at(0),
            -3: lambda: os.kill(os.getpid(), signal.SIGKILL),
        }
        how[inputs["n"]]()
    return {"n": inputs["n"]}


def forks(inputs: Any) -> dict[str, Any]:
    """Leaves a copy of this process behind, one that says who it is, and dies."""
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        if inputs["is_daemon"]:
            os.setsid()
        os.write(writes, b".")
        time.sleep(600)
    os.read(reads, 1)
    Path(inputs["file"]).write_text(str(child), "utf-8")
    os._exit(7)


def forks_by_mistake(inputs: Any) -> dict[str, Any]:
    """Fork, and let the copy go on as if it were the body, too."""
    if (child := os.fork()) == 0:
        return {"n": "the copy"}
    return {"n": os.waitpid(child, 0)[0] - child}


async def sleeps_on(inputs: Any, ctx: Any) -> dict[str, Any]:
    """Leaves a task behind that waits, and says how many the last one left."""
    known = len(ctx._firing.host._waiting)
    left.append(asyncio.create_task(ctx.sleep(1e6)))
    await asyncio.sleep(0)
    return {"n": known}


def raises(inputs: Any) -> dict[str, Any]:
    raise {
        "value": ValueError,
        "exit": SystemExit,
        "own": Own,
        "unicode": lambda reported: b"\xff".decode(),
    }[inputs["kind"]]("no such thing")


class Own(Exception):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I cannot be told")


def unspeakable(inputs: Any) -> dict[str, Any]:
    raise Unspeakable


def busy(inputs: Any) -> dict[str, Any]:
    """Says who it is, starts a child, and computes for ever."""
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], os.environ
    )
    path = Path(inputs["file"])
    path.with_suffix(".new").write_text(f"{os.getpid()} {child}", "utf-8")
    path.with_suffix(".new").replace(path)
    while True:
        time.sleep(0)


def greedy(inputs: Any) -> dict[str, Any]:
    return {"n": len(bytearray(inputs["n"] * 2**20))}


def noted(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("fetched\n")


async def asks_for_a_minute(inputs: Any, ctx: Any) -> dict[str, Any]:
    return {"n": await ctx.ask(Question(text="how many?", default=4, within_seconds=60))}


async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
    async def fetched() -> Any:
        ctx.emit("inside")
        noted(inputs["file"])
        return {"page": await ctx.ask("which page?", name="page"), "at": ctx.now()}

    before = ctx.now()
    got = await ctx.step("fetch", fetched)
    ctx.emit("behind")
    ctx.spend(input_tokens=3, cost=0.5)
    await ctx.sleep(100)
    answer = await ctx.ask("how many?", name="many")
    return {
        "page": got["page"],
        "many": answer,
        "key": ctx.key("k"),
        "slept": ctx.now() - before,
        "who": str(ctx.activation),
    }


async def fails_inside(inputs: Any, ctx: Any) -> dict[str, Any]:
    async def failing() -> Any:
        raise LookupError("inside")

    try:
        await ctx.step("s", failing)
    except LookupError as error:
        return {"n": str(error)}
    return {}


def refused(inputs: Any, ctx: Any) -> dict[str, Any]:
    return {"deps": ctx.deps}


async def asks_two(inputs: Any, ctx: Any) -> dict[str, Any]:
    first, second = await asyncio.gather(ctx.ask("a?", name="a"), ctx.ask("b?", name="b"))
    return {"n": first + second}


left: list[asyncio.Task[Any]] = []


async def leaves_a_task(inputs: Any, ctx: Any) -> dict[str, Any]:
    async def late() -> Any:
        await asyncio.sleep(0)
        ctx.emit("late")
        ctx.spend(cost=1.0)
        return await ctx.ask("late?")

    if not left:
        left.append(asyncio.create_task(late()))
        return {"n": 0}
    await asyncio.wait(left)
    return {"n": str(left[0].exception())}


class Talk(BaseModel):
    topic: str = ""
    lines: list[str] = []


def says(state: Talk) -> dict[str, Any]:
    assert isinstance(state, Talk)
    return {"lines": [*state.lines, f"on {state.topic} in {os.getpid()}"]}


def environment(inputs: Any) -> dict[str, Any]:
    return {"seen": sorted(name for name in os.environ if name.startswith("AXIL_T_"))}


class Plain:
    """A node that a file can name by its import path."""

    def run(self, messages: list[Any]) -> list[Any]:
        """Return what came."""
        return messages


async def asks_a_model(inputs: Any, ctx: Any) -> dict[str, Any]:
    """Ask a model, as agents do: in a step."""

    async def call() -> str:
        Path(inputs["seen"]).touch()  # noqa: ASYNC240  # it is a small file
        return "hello"

    return {"text": await ctx.step("model:1", call, kind="model")}
