"""The points that a process passes while a run is at work; and a run that passes all there is."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from axil import Result, RootGraph
from axil.plugin import KernelBug
from axil_journals import LocalEngine, claimed_error, fork

from ..internals import internal
from .tools import add_loop

RunServices: Any = internal("RunServices")
RUN, ASIDE = "r", "fork of r"
LOCKED = ("sql", "closing")
"""Parts of the names of points at which the lock between processes is held: nothing is taken over
before it is free.
"""

# --------------------------------------------------------------------------------------------------


class Points:
    """The points that this process has passed, with an act at one of them."""

    def __init__(self, at: str = "", act: Callable[[], bool] = lambda: False) -> None:
        self.at, self.act = at, act
        self.passed: list[str] = []
        self._times = Counter[str]()
        self._lock = threading.Lock()

    def reach(self, name: str) -> bool:
        """Pass a point; whether who passes it is to wait for ever."""
        with self._lock:
            self._times[name] += 1
            point = f"{name} #{self._times[name]}"
            self.passed.append(point)
        return point == self.at and self.act()


def watch(points: Points, safe: Callable[[int], None]) -> None:
    """Make a point of all that this process does to its journal.

    ``safe`` gets the number of entries that a run was promised to be kept.
    """

    def around(owner: Any, name: str, said: Callable[..., str], *, after: bool = True) -> None:
        inner = getattr(owner, name)

        def call(*values: Any, **more: Any) -> Any:
            what = said(*values, **more)
            if what:
                points.reach(f"before {what}")
            given = inner(*values, **more)
            if what and after:
                points.reach(f"after {what}")
            return given

        setattr(owner, name, call)

    class Connection(sqlite3.Connection):
        """Points before each statement that writes, and behind each that ends a transaction."""

        def execute(self, sql: str, *values: Any) -> Any:
            return self._done(super().execute, sql, *values)

        def executemany(self, sql: str, *values: Any) -> Any:
            return self._done(super().executemany, sql, *values)

        def executescript(self, sql: str) -> Any:
            return self._done(super().executescript, sql)

        def _done(self, do: Any, sql: str, *values: Any) -> Any:
            what = f"sql {' '.join(sql.split(None, 3)[:3])}"
            if sql.startswith(("select", "pragma query_only")):
                return do(sql, *values)
            points.reach(f"before {what}")
            given = do(sql, *values)
            if "commit" in sql:
                points.reach(f"after {what}")
            return given

    connect = sqlite3.connect
    sqlite3.connect = lambda *values, **more: connect(*values, factory=Connection, **more)
    around(
        internal("sqlite_journal").SqliteRunWriter,
        "append",
        lambda writer, entry: f"entry {entry.kind} {entry.activation if entry.node else ''}",
    )
    around(internal("sqlite_store").Store, "close", lambda store: "closing")
    kept = RunServices.kept

    async def reported(services: Any) -> None:
        appended = getattr(getattr(services.recorder, "_writer", None), "_next", 0)
        await kept(services)
        safe(appended)
        points.reach("after safe")

    RunServices.kept = reported


# --------------------------------------------------------------------------------------------------


@dataclass
class World:
    """The effects of bodies, as lines of a file, with an act while they happen."""

    path: Path
    who: str
    points: Points = field(default_factory=Points)
    cancel: Callable[[], Any] = lambda: None
    """Cancels the run; from any thread."""

    def write(self, line: dict[str, Any]) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(handle, json.dumps(line).encode() + b"\n")
        os.close(handle)

    def lines(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]
            if self.path.exists()
            else []
        )

    def tell(self, ctx: Any, say: str, key: str) -> None:
        """From a thread."""
        what = f"{say} of {ctx.activation}"
        if self.points.reach(f"before {what}"):
            threading.Event().wait()
        self.write({"who": self.who, "activation": str(ctx.activation), "say": say, "key": key})
        if self.points.reach(f"after {what}"):
            threading.Event().wait()

    async def say(self, ctx: Any, say: str, key: str = "") -> None:
        what = f"{say} of {ctx.activation}"
        if self.points.reach(f"before {what}"):
            await asyncio.Event().wait()
        self.write(
            {
                "who": self.who,
                "activation": str(ctx.activation),
                "say": say,
                "key": key or ctx.key(),
            }
        )
        if self.points.reach(f"after {what}"):
            await asyncio.Event().wait()


SENT = {"pays": {"paid": 5}, "posts": 7}
"""The results of actions that must not happen twice."""


def orders() -> RootGraph:
    """Return a fan of a body, a step, a question, a large value, two with effects outside and a
    loop; a body in a thread joins them.
    """

    async def start(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "start")
        return {"n": inputs["n"]}

    async def plain(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "plain")
        return {"plain": inputs["n"]}

    async def steps(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "steps")

        async def doubled() -> int:
            await ctx.deps.say(ctx, "step", ctx.key("double"))
            return 2 * int(inputs["n"])

        return {"steps": await ctx.step("double", doubled) + 1}

    async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "asks")
        return {"asks": await ctx.ask("how much?", name="n")}

    async def large(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "large")
        return {"large": "x" * 70_000}

    async def pays(inputs: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "pays")
        return SENT["pays"]

    async def posts(inputs: Any, ctx: Any) -> dict[str, Any]:
        async def posted() -> int:
            await ctx.deps.say(ctx, "posts", ctx.key("post"))
            return SENT["posts"]

        return {"posted": await ctx.step("post", posted, effects="external")}

    async def turn(attributes: Any, ctx: Any) -> dict[str, Any]:
        await ctx.deps.say(ctx, "turn")
        attributes["turns"] += 1
        return {"said": attributes["turns"]}

    def end(inputs: Any, attributes: Any, ctx: Any) -> dict[str, Any]:
        ctx.deps.tell(ctx, "end", ctx.key())
        numbers = [inputs[name] for name in ("plain", "steps", "asks", "paid", "posted")]
        return {"sum": sum(numbers) + len(inputs["large"]) + 3, "turns": attributes["turns"]}

    graph = RootGraph("orders", attributes={"turns": 0})
    first, last = (
        graph.create_node(start, name="start"),
        graph.create_node(end, name="end", pull_keys={"turns": ""}),
    )
    graph.edge_from_entry(first, {"n": ""})
    for body, key in (
        (plain, "plain"),
        (steps, "steps"),
        (asks, "asks"),
        (large, "large"),
        (pays, "paid"),
        (posts, "posted"),
    ):
        node = graph.create_node(
            body, name=body.__name__, effects="external" if body is pays else None
        )
        graph.create_edge(first, node, {"n": ""})
        graph.create_edge(node, last, {key: ""})
    add_loop(graph, first, last, turn, 2)
    return graph


ORDERS = orders()


def answered(question: Any, world: World) -> Any:
    """Return what a person says, who looks at the world before they say that something is to be
    done again.
    """
    if question.kind != "uncertain":
        return 2
    done = [line["say"] for line in world.lines() if line.get("key") == question.data["key"]]
    return {"output": SENT[done[0]]} if done else "retry"


async def by_itself(journal: Any, world: World) -> Result:
    """Have the run go on to its end, as its client would who knows nothing of what went before."""
    answers: dict[str, Any] = {}
    while True:
        run = ORDERS.start({"n": 20}, run_id=RUN, journal=journal, deps=world, answers=answers)
        world.cancel = run.cancel
        result = await run.result()
        if result.status != "paused":
            return result
        world.write({"who": world.who, "acknowledged": "paused"})
        answers = {question.id: answered(question, world) for question in result.questions}


async def by_engine(journal: Any, world: World) -> Result:
    """Return the same, by an engine."""
    loop = asyncio.get_running_loop()
    async with LocalEngine(journal, [ORDERS], deps=world) as engine:
        world.cancel = lambda: (
            asyncio.run_coroutine_threadsafe(engine.cancel(RUN), loop)
            if loop.is_running()
            else None
        )
        await engine.start(ORDERS, {"n": 20}, run_id=RUN)
        await engine.resume(RUN)
        result = asyncio.ensure_future(engine.result(RUN))
        while True:
            await asyncio.sleep(0)
            await engine.idle()
            await asyncio.sleep(0.001)
            if result.done():
                return result.result()
            standing = engine.get(RUN)
            if standing.info.status == "running" and not engine.loaded:
                raise claimed_error(RUN, "another process")  # an engine would wait for it
            if standing.info.status == "paused":
                world.write({"who": world.who, "acknowledged": "paused"})
                await engine.answer(
                    RUN, {question.id: answered(question, world) for question in standing.questions}
                )


async def by_the_tidy(journal: Any, world: World) -> Result:
    """By itself; then it is forked, the fork is forgotten, and the space it took given back."""
    result = await by_itself(journal, world)
    known = {info.run_id for info in journal.runs()}
    for name in (ASIDE, f"{ASIDE} again"):
        if name not in known:
            await fork(journal, RUN, name, at=9)
    first, second = (
        [(entry.kind, str(entry.activation)) for entry in journal.entries(name)]
        for name in (ASIDE, f"{ASIDE} again")
    )
    if first != second:
        raise KernelBug(f"{first} is a part of a fork, and not the whole, which is {second}")
    for name in (ASIDE, f"{ASIDE} again"):
        journal.forget(name)
    journal.shrink()
    return result


OWNERS = {"run": by_itself, "engine": by_engine, "tidy": by_the_tidy}
