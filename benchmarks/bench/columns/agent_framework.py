"""Microsoft Agent Framework: executors that send messages along the edges of a workflow, in
supersteps.
"""

from __future__ import annotations

TITLE = "Agent Framework"
KIND = "peer"
REQUIRES = ("agent-framework-core>=1",)
PACKAGE = "agent-framework-core"
IMPORT = "agent_framework"


def executor(name, taken, context, body):
    """Return an executor whose handler takes messages of one type."""
    from agent_framework import Executor, handler

    async def handle(self, message, ctx):
        await body(message, ctx)

    handle.__annotations__ = {"message": taken, "ctx": context, "return": None}
    kind = type(f"Executor_{name}", (Executor,), {"handle": handler(handle)})
    return kind(id=name)


def row(size, wait=None):
    from typing import Never

    from agent_framework import WorkflowBuilder, WorkflowContext

    async def add(n, ctx):
        if wait is not None:
            await wait()
        await ctx.send_message(n + 1)

    async def last(n, ctx):
        if wait is not None:
            await wait()
        await ctx.yield_output(n + 1)

    nodes = [executor(f"n{i}", int, WorkflowContext[int], add) for i in range(size - 1)]
    nodes.append(executor(f"n{size - 1}", int, WorkflowContext[Never, int], last))
    builder = WorkflowBuilder(start_executor=nodes[0], max_iterations=size + 10)
    return (builder.add_chain(nodes) if size > 1 else builder).build()


def chain(case):
    workflow = row(case.size)

    async def go():
        return (await workflow.run(0)).get_outputs()[0]

    return go


def streamed(case):
    workflow = row(case.size)

    async def go():
        seen, last = 0, None
        async for event in workflow.run(0, stream=True):
            seen += 1
            if event.type == "output":
                last = event.data
        assert seen >= case.size
        return last

    return go


def fan(case):
    from typing import Never

    from agent_framework import WorkflowBuilder, WorkflowContext

    async def begin(n, ctx):
        await ctx.send_message(n)

    async def work(n, ctx):
        await case.wait()
        await ctx.send_message(1)

    async def end(ns, ctx):
        await ctx.yield_output(sum(ns))

    start = executor("begin", int, WorkflowContext[int], begin)
    nodes = [executor(f"n{i}", int, WorkflowContext[int], work) for i in range(case.size)]
    join = executor("end", list[int], WorkflowContext[Never, int], end)
    builder = (
        WorkflowBuilder(start_executor=start)
        .add_fan_out_edges(start, nodes)
        .add_fan_in_edges(nodes, join)
    )
    workflow = builder.build()

    async def go():
        return (await workflow.run(0)).get_outputs()[0]

    return go


def turning(case, body, reported):
    """Two executors, of which the second sends back."""
    from agent_framework import WorkflowBuilder, WorkflowContext

    async def a(n, ctx):
        body(ctx)
        await ctx.send_message(n + 1)

    async def b(n, ctx):
        if n < case.size:
            await ctx.send_message(n)
        else:
            await ctx.yield_output(reported(ctx, n))

    first, second = (
        executor("a", int, WorkflowContext[int], a),
        executor("b", int, WorkflowContext[int, int], b),
    )
    builder = WorkflowBuilder(start_executor=first, max_iterations=2 * case.size + 10)
    return builder.add_edge(first, second).add_edge(second, first).build()


def loop(case):
    workflow = turning(case, lambda ctx: None, lambda ctx, n: n)

    async def go():
        return (await workflow.run(0)).get_outputs()[0]

    return go


def growing(case):
    def add(ctx):
        case.mark()
        ctx.set_state("log", [*(ctx.get_state("log") or []), "m"])

    async def go():
        workflow = turning(case, add, lambda ctx, n: len(ctx.get_state("log")))
        return (await workflow.run(0)).get_outputs()[0]

    return go


def crowd(case):
    """Return a workflow for each run: one workflow runs once at a time."""
    import asyncio

    workflows = [row(10, case.wait) for _ in range(case.size)]

    async def go():
        return [
            result.get_outputs()[0]
            for result in await asyncio.gather(*(workflow.run(0) for workflow in workflows))
        ]

    return go


def asking(case, **options):
    """Return an agent whose model wants its tool until that has counted far enough."""
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatResponse,
        Content,
        FunctionInvocationLayer,
        Message,
    )

    class Caller(FunctionInvocationLayer, BaseChatClient):
        async def _inner_get_response(self, *, messages, stream, options, **kwargs):
            await case.wait()
            last = messages[-1]
            n = int(last.contents[-1].result) if last.role == "tool" else 0
            call = Content.from_function_call(f"c{n}", "add_one", arguments={"n": n})
            contents = [call] if n < case.size else [str(n)]
            return ChatResponse(messages=[Message(role="assistant", contents=contents)])

    async def add_one(n: int) -> int:
        """Add one to a number."""
        return n + 1

    most = {"max_iterations": case.size + 2}
    client = Caller(function_invocation_configuration=most)
    return Agent(
        client, instructions="You count with your tool." + case.message, tools=[add_one], **options
    )


def agent(case):
    counting = asking(case)

    async def go():
        return int((await counting.run(f"Count to {case.size}.")).text)

    return go


def kept_agent(case):
    """Return an agent whose messages are appended to a file when a run ends."""
    from agent_framework import AgentSession, FileHistoryProvider

    counting = asking(case, context_providers=[FileHistoryProvider(case.folder)])

    async def go():
        return int((await counting.run(f"Count to {case.size}.", session=AgentSession())).text)

    return go


def first():
    import asyncio

    async def go():
        return (await row(2).run(0)).get_outputs()[0]

    assert asyncio.run(go()) == 2
