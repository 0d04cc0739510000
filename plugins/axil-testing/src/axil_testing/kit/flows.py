"""Workflows that kits have engines run; their bodies say in lists of the test what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from axil import Context, CycleLimit, EdgeSpec, GraphSpec, NodeSpec, Question, Workflow


def _flow(id: str, bodies: Mapping[str, Any], *edges: EdgeSpec, **attributes: Any) -> Workflow:
    nodes = tuple(NodeSpec(id=name, body=body) for name, body in bodies.items())
    return Workflow(
        GraphSpec(
            id=id,
            nodes=nodes,
            edges=edges,
            attributes=attributes,
            cycle_limits={"": CycleLimit(rounds=50)},
        )
    )


def _edge(source: str, target: str, *keys: str, **more: Any) -> EdgeSpec:
    return EdgeSpec(source=source, target=target, keys=dict.fromkeys(keys, ""), **more)


def plain(ran: list[Any]) -> Workflow:
    """Gives back what it is given."""

    async def body(inputs: Mapping[str, Any]) -> dict[str, Any]:
        ran.append(inputs["n"])
        return {"n": inputs["n"]}

    return _flow("plain", {"a": body}, _edge("@entry", "a", "n"), _edge("a", "@exit", "n"))


def turning() -> Workflow:
    """Return a cycle that counts its turns in the state."""

    async def turn(inputs: Mapping[str, Any], attributes: Any) -> dict[str, Any]:
        attributes["turns"] += attributes["by"]
        return {"n": inputs["n"] + attributes["by"]}

    def least(payload: Any) -> bool:
        return payload["n"] < 10

    def most(payload: Any) -> bool:
        return payload["n"] >= 10

    edges = (
        _edge("@entry", "turn", "n"),
        _edge("turn", "turn", "n", condition=least),
        _edge("turn", "@exit", "n", condition=most),
    )
    return _flow("turning", {"turn": turn}, *edges, turns=0, by=1)


class _Held:
    """Something that a body holds on to."""


def asking(times: int = 1, held: Any = None) -> Workflow:
    """Asks so many times, and adds up. ``held``: receives the objects that the body holds."""

    async def asks(inputs: Mapping[str, Any], attributes: Any, ctx: Context) -> dict[str, Any]:
        own = _Held()
        if held is not None:
            held.add(own)
        total = inputs["n"]
        for n in range(times):
            total += await ctx.ask(
                Question(text=f"number {n}?", kind="choice", options=("1", "2")), name=f"m{n}"
            )
        attributes["times"] += 1
        del own
        return {"sum": total}

    return _flow(
        "asking",
        {"asks": asks},
        _edge("@entry", "asks", "n"),
        _edge("asks", "@exit", "sum"),
        times=0,
    )


def versions() -> tuple[Workflow, Workflow]:
    """Return two versions of one workflow, which ask and then say which version they are."""

    def version(number: int) -> Workflow:
        async def asks(inputs: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
            return {"sum": inputs["n"] + await ctx.ask("how many?", name="m"), "version": number}

        edges = (_edge("@entry", "asks", "n"), _edge("asks", "@exit", "sum", "version"))
        return _flow("versions", {"asks": asks}, *edges, version=number)

    return version(1), version(2)


def branching(ran: list[str]) -> tuple[Workflow, asyncio.Event]:
    """Return one branch asks, the other is at work until it is let go on."""
    go = asyncio.Event()

    async def asks(inputs: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
        ran.append("asks")
        return {"sum": inputs["n"] + await ctx.ask("how many?", name="m")}

    async def works(inputs: Mapping[str, Any]) -> dict[str, Any]:
        ran.append("works")
        await go.wait()
        return {"m": inputs["n"]}

    edges = (
        _edge("@entry", "asks", "n"),
        _edge("@entry", "works", "n"),
        _edge("asks", "@exit", "sum"),
        _edge("works", "@exit", "m"),
    )
    return _flow("branching", {"asks": asks, "works": works}, *edges), go


def sleeping(ran: list[str], seconds: float) -> Workflow:
    """Takes a step, and sleeps."""

    async def sleeps(inputs: Mapping[str, Any], ctx: Context) -> dict[str, Any]:
        async def before() -> int:
            ran.append("before")
            return int(inputs["n"]) + 1

        n = await ctx.step("before", before)
        await ctx.sleep(seconds)
        ran.append("after")
        return {"n": n}

    return _flow(
        "sleeping",
        {"sleeps": sleeps},
        _edge("@entry", "sleeps", "n"),
        _edge("sleeps", "@exit", "n"),
    )


def stuck(gone: list[str]) -> Workflow:
    """Never ends by itself, and not in the moment in which it is cancelled."""

    async def stuck(inputs: Mapping[str, Any]) -> None:
        gone.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(50):  # it takes its leave
                await asyncio.sleep(0)
            gone.append("cancelled")

    return _flow("stuck", {"stuck": stuck}, _edge("@entry", "stuck"))


def _line(id: str, ran: list[str], second: Callable[[], Any]) -> Workflow:
    """Return a body, and another one behind it that may take its time."""

    async def one(inputs: Mapping[str, Any]) -> dict[str, Any]:
        ran.append("first")
        return {"n": inputs["n"]}

    async def two(inputs: Mapping[str, Any]) -> dict[str, Any]:
        ran.append("second")
        await second()
        return {"n": inputs["n"]}

    return _flow(
        id,
        {"one": one, "two": two},
        _edge("@entry", "one", "n"),
        _edge("one", "two", "n"),
        _edge("two", "@exit", "n"),
    )


def failing(ran: list[str]) -> tuple[Workflow, list[str]]:
    """Return a workflow whose second body fails as long as the list is empty, and the list."""
    mended: list[str] = []

    async def fails() -> None:
        if not mended:
            raise LookupError("not today")

    return _line("failing", ran, fails), mended


def held(ran: list[str]) -> tuple[Workflow, asyncio.Event]:
    """Return a workflow whose second body works until its event is set."""
    go = asyncio.Event()
    return _line("held", ran, go.wait), go
