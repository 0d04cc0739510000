"""LlamaIndex Workflows: steps that take and give events.

A chain has a class of events for each step.
"""

from __future__ import annotations

import itertools

TITLE = "LlamaIndex Workflows"
KIND = "peer"
REQUIRES = ("llama-index-workflows>=2",)
PACKAGE = "llama-index-workflows"
IMPORT = "workflows"


def row(size, wait=None):
    """Return a workflow of ``size`` steps in a row."""
    from workflows import Workflow, step
    from workflows.events import Event, StartEvent, StopEvent

    kinds = [
        StartEvent,
        *(type(f"E{i}", (Event,), {"__annotations__": {"n": int}}) for i in range(1, size)),
        StopEvent,
    ]

    def made(taken, given):
        async def run(self, ev):
            if wait is not None:
                await wait()
            n = ev.n + 1
            return StopEvent(result=n) if given is StopEvent else given(n=n)

        run.__annotations__ = {"ev": taken, "return": given}
        return run

    body = {}
    for i, (taken, given) in enumerate(itertools.pairwise(kinds)):
        function = made(taken, given)
        function.__name__, function.__qualname__ = f"n{i}", f"Row.n{i}"
        body[f"n{i}"] = step(function)
    return type("Row", (Workflow,), body)(timeout=None)


def chain(case):
    workflow = row(case.size)

    async def go():
        return await workflow.run(n=0)

    return go


def streamed(case):
    workflow = row(case.size)

    async def go():
        handler, seen = workflow.run(n=0), 0
        async for _ in handler.stream_events(expose_internal=True):
            seen += 1
        assert seen >= case.size
        return await handler

    return go


def spread(case, item_of, work):
    """Return a step that gives a list of events, a step for each, and one that collects."""
    from workflows import Workflow, step
    from workflows.events import Event, StartEvent, StopEvent

    class Item(Event):
        n: int

    class Done(Event):
        n: int

    async def begin(self, ev):
        return [Item(n=item_of(i)) for i in range(case.size)]

    async def each(self, ev):
        return Done(n=await work(ev.n))

    async def end(self, evs):
        return StopEvent(result=sum(ev.n for ev in evs))

    begin.__annotations__ = {"ev": StartEvent, "return": list[Item]}
    each.__annotations__ = {"ev": Item, "return": Done}
    end.__annotations__ = {"evs": list[Done], "return": StopEvent}
    for function in (begin, each, end):
        # a method, as far as the decorator looks
        function.__qualname__ = f"Spread.{function.__name__}"
    kinds = {"begin": step(begin), "each": step(num_workers=case.size)(each), "end": step(end)}
    workflow = type("Spread", (Workflow,), kinds)(timeout=None)

    async def go():
        return await workflow.run()

    return go


def fan(case):
    async def work(n):
        await case.wait()
        return n

    return spread(case, lambda i: 1, work)


def mapped(case):
    async def work(n):
        return n + 1

    return spread(case, lambda i: i, work)


def turning(case, body, result):
    """Two steps, of which the second leads back."""
    from workflows import Context, Workflow, step
    from workflows.events import Event, StartEvent, StopEvent

    class A(Event):
        n: int

    class B(Event):
        n: int

    async def begin(self, ev):
        return A(n=0)

    async def a(self, ctx, ev):
        await body(ctx)
        return B(n=ev.n + 1)

    async def b(self, ctx, ev):
        return A(n=ev.n) if ev.n < case.size else StopEvent(result=await result(ctx, ev.n))

    begin.__annotations__ = {"ev": StartEvent, "return": A}
    a.__annotations__ = {"ctx": Context, "ev": A, "return": B}
    b.__annotations__ = {"ctx": Context, "ev": B, "return": A | StopEvent}
    for function in (begin, a, b):
        function.__qualname__ = f"Turning.{function.__name__}"
    return type("Turning", (Workflow,), {"begin": step(begin), "a": step(a), "b": step(b)})(
        timeout=None
    )


def loop(case):
    async def nothing(ctx):
        pass

    async def reported(ctx, n):
        return n

    workflow = turning(case, nothing, reported)

    async def go():
        return await workflow.run()

    return go


def growing(case):
    async def add(ctx):
        case.mark()
        async with ctx.store.edit_state() as state:
            state.log = [*state.get("log", []), "m"]

    async def reported(ctx, n):
        return len(await ctx.store.get("log"))

    workflow = turning(case, add, reported)

    async def go():
        return await workflow.run()

    return go


def crowd(case):
    import asyncio

    workflow = row(10, case.wait)

    async def go():
        return list(await asyncio.gather(*(workflow.run(n=0) for _ in range(case.size))))

    return go


def first():
    import asyncio

    async def go():
        return await row(2).run(n=0)

    assert asyncio.run(go()) == 2
