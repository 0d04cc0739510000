"""LangGraph: a state graph without a saver; asynchronous, as its documentation recommends for
servers.
"""

from __future__ import annotations

import itertools

TITLE = "LangGraph"
KIND = "peer"
REQUIRES = ("langgraph>=1", "langgraph-checkpoint-sqlite>=3")
PACKAGE = "langgraph"
IMPORT = "langgraph.graph"


def options(steps, **more):
    """Return how a run is begun: in a thread of its own, and how many supersteps it may take."""
    return {
        "config": {"configurable": {"thread_id": f"r{next(_ids)}"}, "recursion_limit": steps + 10},
        **more,
    }


_ids = itertools.count()


def counter():
    """Return the state of a counter."""
    from typing_extensions import TypedDict

    return TypedDict("Counter", {"n": int})


async def add(state):
    return {"n": state["n"] + 1}


def add_at_once(state):
    return {"n": state["n"] + 1}


def row(size, state, body, checkpointer):
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(state)
    for i in range(size):
        graph.add_node(f"n{i}", body)
    graph.add_edge(START, "n0")
    for i in range(1, size):
        graph.add_edge(f"n{i - 1}", f"n{i}")
    graph.add_edge(f"n{size - 1}", END)
    return graph.compile(checkpointer=checkpointer)


class Abilities:
    """The abilities of a LangGraph column, with a saver that ``saver`` makes."""

    def __init__(self, saver):
        self.saver = saver

    def chain(self, case):
        graph = row(case.size, counter(), add, self.saver())

        async def go():
            return (await graph.ainvoke({"n": 0}, **options(case.size)))["n"]

        return go

    def plain(self, case):
        graph = row(case.size, counter(), add_at_once, self.saver())
        return lambda: graph.invoke({"n": 0}, **options(case.size))["n"]

    def typed(self, case):
        from pydantic import BaseModel

        class Count(BaseModel):
            n: int = 0

        async def step(state):
            return {"n": state.n + 1}

        graph = row(case.size, Count, step, self.saver())

        async def go():
            return (await graph.ainvoke({"n": 0}, **options(case.size)))["n"]

        return go

    def watched(self, case):
        from langchain_core.callbacks import AsyncCallbackHandler

        class Tracer(AsyncCallbackHandler):
            begun = 0

            async def on_chain_start(self, *args, **kwargs):
                self.begun += 1

            async def on_chain_end(self, *args, **kwargs):
                pass

        graph = row(case.size, counter(), add, self.saver())

        async def go():
            tracer, how = Tracer(), options(case.size)
            how["config"]["callbacks"] = [tracer]
            result = await graph.ainvoke({"n": 0}, **how)
            assert tracer.begun > case.size
            return result["n"]

        return go

    def streamed(self, case):
        graph = row(case.size, counter(), add, self.saver())

        async def go():
            last = None
            async for chunk in graph.astream({"n": 0}, stream_mode="updates", **options(case.size)):
                last = chunk
            return next(iter(last.values()))["n"]

        return go

    def fan(self, case):
        import operator
        from typing import Annotated

        from langgraph.graph import END, START, StateGraph
        from typing_extensions import TypedDict

        async def work(state):
            await case.wait()
            return {"n": 1}

        async def nothing(state):
            return {}

        names = [f"n{i}" for i in range(case.size)]
        graph = StateGraph(TypedDict("Sum", {"n": Annotated[int, operator.add]}))
        graph.add_node("begin", nothing)
        graph.add_node("end", nothing)
        graph.add_edge(START, "begin")
        for name in names:
            graph.add_node(name, work)
            graph.add_edge("begin", name)
        graph.add_edge(names, "end")
        graph.add_edge("end", END)
        compiled = graph.compile(checkpointer=self.saver())

        async def go():
            return (await compiled.ainvoke({"n": 0}, **options(10)))["n"]

        return go

    def dag(self, case):
        import operator
        from typing import Annotated

        from langgraph.graph import END, START, StateGraph
        from typing_extensions import TypedDict

        async def work(state):
            return {"n": 1}

        inside, leads_on = {}, set()
        for a, b in case.edges:
            inside.setdefault(b, []).append(f"n{a}")
            leads_on.add(a)
        graph = StateGraph(TypedDict("Sum", {"n": Annotated[int, operator.add]}))
        for i in range(case.size):
            graph.add_node(f"n{i}", work)
        graph.add_edge(START, "n0")
        for i in range(1, case.size):
            graph.add_edge(inside[i], f"n{i}")
        for i in set(range(case.size)) - leads_on:
            graph.add_edge(f"n{i}", END)
        compiled = graph.compile(checkpointer=self.saver())

        async def go():
            return (await compiled.ainvoke({"n": 0}, **options(case.size)))["n"]

        return go

    def loop(self, case):
        from langgraph.graph import END, START, StateGraph

        async def same(state):
            return {}

        graph = StateGraph(counter())
        graph.add_node("a", add)
        graph.add_node("b", same)
        graph.add_edge(START, "a")
        graph.add_edge("a", "b")
        graph.add_conditional_edges(
            "b", lambda state: END if state["n"] >= case.size else "a", ["a", END]
        )
        compiled = graph.compile(checkpointer=self.saver())

        async def go():
            return (await compiled.ainvoke({"n": 0}, **options(2 * case.size)))["n"]

        return go

    def nested(self, case):
        """Return an inner loop inside an outer one, in one graph, as ours."""
        from langgraph.graph import END, START, StateGraph
        from typing_extensions import TypedDict

        most = case.size * 10

        async def outer(state):
            return {"k": 0}

        async def inner(state):
            return {"n": state["n"] + 1, "k": state["k"] + 1}

        graph = StateGraph(TypedDict("Two", {"n": int, "k": int}))
        graph.add_node("outer", outer)
        graph.add_node("inner", inner)
        graph.add_edge(START, "outer")
        graph.add_edge("outer", "inner")
        graph.add_conditional_edges(
            "inner",
            lambda state: "inner" if state["k"] < 10 else END if state["n"] >= most else "outer",
            ["inner", "outer", END],
        )
        compiled = graph.compile(checkpointer=self.saver())

        async def go():
            return (await compiled.ainvoke({"n": 0, "k": 0}, **options(2 * most)))["n"]

        return go

    def mapped(self, case):
        import operator
        from typing import Annotated

        from langgraph.graph import END, START, StateGraph
        from langgraph.types import Send
        from typing_extensions import TypedDict

        async def work(state):
            return {"n": state["item"] + 1}

        graph = StateGraph(TypedDict("Sum", {"items": list, "n": Annotated[int, operator.add]}))
        graph.add_node("work", work)
        graph.add_conditional_edges(
            START, lambda state: [Send("work", {"item": item}) for item in state["items"]], ["work"]
        )
        graph.add_edge("work", END)
        compiled = graph.compile(checkpointer=self.saver())

        async def go():
            return (
                await compiled.ainvoke({"items": list(range(case.size)), "n": 0}, **options(10))
            )["n"]

        return go

    def growing(self, case):
        compiled = log_loop(case, self.saver(), "m")

        async def go():
            return len((await compiled.ainvoke({"n": 0, "log": []}, **options(case.size)))["log"])

        return go

    def payload(self, case):
        from typing_extensions import TypedDict

        records = case.records
        graph = row(50, TypedDict("Loaded", {"n": int, "data": list}), add, self.saver())

        async def go():
            result = await graph.ainvoke({"n": 0, "data": records}, **options(50))
            return result["n"], len(result["data"])

        return go

    def crowd(self, case):
        import asyncio

        async def step(state):
            await case.wait()
            return {"n": state["n"] + 1}

        graph = row(10, counter(), step, self.saver())

        async def go():
            results = await asyncio.gather(
                *(graph.ainvoke({"n": 0}, **options(10)) for _ in range(case.size))
            )
            return [result["n"] for result in results]

        return go

    def agent(self, case):
        compiled = asking(case, self.saver())

        async def go():
            return await asked(case, compiled)

        return go

    def first(self):
        import asyncio

        graph = row(2, counter(), add, self.saver())
        assert (
            asyncio.run(graph.ainvoke({"n": 0}, {"configurable": {"thread_id": "one"}}))["n"] == 2
        )


def log_loop(case, checkpointer, message, *, is_async=True):
    """Return one node that leads back to itself, and adds a message to a list, if there is one."""
    import operator
    from typing import Annotated

    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    def step(state):
        case.mark()
        n = state["n"] + 1
        return {"n": n, "log": [message]} if message else {"n": n}

    async def later(state):
        return step(state)

    graph = StateGraph(TypedDict("Log", {"n": int, "log": Annotated[list, operator.add]}))
    graph.add_node("step", later if is_async else step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges(
        "step", lambda state: END if state["n"] >= case.size else "step", ["step", END]
    )
    return graph.compile(checkpointer=checkpointer)


def caller(case):
    """Return a chat model that wants its tool until that has counted far enough."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Caller(BaseChatModel):
        @property
        def _llm_type(self):
            return "caller"

        def bind_tools(self, tools, **kwargs):
            return self.bind(tools=tools)

        def _generate(self, messages, stop=None, run_manager=None, **kwargs):
            raise NotImplementedError

        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            await case.wait()
            last = messages[-1]
            n = int(last.content) if last.type == "tool" else 0
            calls = [{"id": f"c{n}", "name": "add_one", "args": {"n": n}}]
            said = AIMessage("", tool_calls=calls) if n < case.size else AIMessage(str(n))
            return ChatResult(generations=[ChatGeneration(message=said)])

    return Caller()


def asking(case, checkpointer):
    """Return an agent as the documentation builds it: a model, its tools, and the way between."""
    from langchain_core.messages import SystemMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    @tool
    async def add_one(n: int) -> int:
        """Add one to a number."""
        return n + 1

    model = caller(case).bind_tools([add_one])
    told = SystemMessage("You count with your tool." + case.message)

    async def ask(state):
        return {"messages": [await model.ainvoke([told, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([add_one]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile(checkpointer=checkpointer)


async def asked(case, compiled, **more):
    """Return how far an agent has counted."""
    message = {"role": "user", "content": f"Count to {case.size}."}
    how = options(2 * case.size + 2, **more)
    return int((await compiled.ainvoke({"messages": [message]}, **how))["messages"][-1].content)


COLUMN = Abilities(lambda: None)
