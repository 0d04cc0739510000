"""Laws of acting and remembering: tools, memories, context, histories."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from axil import NodeFailed, RootGraph, run_sync
from axil.plugin import keep_secret
from axil_agent import Agent, ContextPolicy, HistoryMemory, Scripted, SingleAgent
from axil_agent.converse import act
from axil_agent.errors import TurnLimit
from axil_agent.standalone import StandaloneContext
from axil_control import Loop
from axil_journals import MemoryJournal
from axil_models import ContextError, Reply, Tool, ToolCall, ToolError


def single(model: Any, **settings: Any) -> SingleAgent:
    return SingleAgent(model, **{"output_keys": ["o"], **settings})


def last(model: Scripted, call: int = -1) -> str:
    return str(model.requests[call].messages[-1]["content"])


# ---------------------------------------------------------------------- act


def test_a_tools_error_a_wrong_argument_and_an_unknown_tool_are_reported_to_the_model():
    def divide(a: int, b: int) -> float:
        return a / b

    calls = [
        {"name": "divide", "arguments": {"a": 1, "b": 0}},
        {"name": "divide", "arguments": {"a": "x"}},
        {"name": "divid", "arguments": {}},
        {"name": "divide", "arguments": {"a": 1, "b": 2}},
    ]
    model = Scripted([{"tool_calls": calls}, '{"o": 1}'])
    single(model, tools=[divide]).invoke({})
    results = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert results[0] == "Error: ZeroDivisionError: division by zero"
    assert results[1].startswith("Error: wrong arguments: a: Input should be a valid integer")
    assert results[2] == 'Error: there is no tool "divid". Did you mean "divide"?'
    assert results[3] == "0.5"


def test_calls_of_one_turn_run_side_by_side_and_are_reported_in_order():
    async def run():
        at_work, both = 0, asyncio.Event()

        async def wait(n: int) -> int:
            nonlocal at_work
            at_work += 1
            if at_work == 2:
                both.set()
            await both.wait()
            return n

        model = Scripted(
            [{"tool_calls": [{"name": "wait", "arguments": {"n": n}} for n in (2, 1)]}, '{"o": 1}']
        )
        await asyncio.wait_for(single(model, tools=[wait]).run({}), 60)
        return [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]

    assert asyncio.run(run()) == ["2", "1"]


def test_a_tool_that_exits_ends_no_run():
    def leave() -> None:
        raise SystemExit(3)

    model = Scripted([{"tool_calls": [{"name": "leave"}]}, '{"o": 1}'])
    assert single(model, tools=[leave]).invoke({}) == {"o": 1}
    assert model.requests[1].messages[-1]["content"] == "Error: RuntimeError: SystemExit: 3"


def test_a_tool_given_by_name_is_made_once_when_the_graph_is_built_and_closed(registry, script):
    made: list[Any] = []

    class Counter:
        def __init__(self, start: int = 0) -> None:
            made.append(self)
            self.start, self.closed = start, False

        def __call__(self) -> int:
            """Count."""
            self.start += 1
            return self.start

        async def close(self) -> None:
            self.closed = True

    registry.register("tools", "counter", Counter)
    model = script({"tool_calls": [{"name": "Counter"}, {"name": "Counter"}]}, '{"o": 1}')
    g = RootGraph("g")
    w = g.create_node(Agent, name="w", model=model, tools=[{"type": "counter", "start": 6}])
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()
    assert len(made) == 1
    g.invoke({"message": "x"})
    assert sorted(m["content"] for m in model.requests[1].messages if m["role"] == "tool") == [
        "7",
        "8",
    ]
    assert made[0].closed


def test_turns_with_tools_are_bounded():
    def again() -> str:
        return "again"

    model = Scripted([{"tool_calls": [{"name": "again"}]}])
    with pytest.raises(TurnLimit, match="more than 3 times"):
        single(model, tools=[again], max_turns=3).invoke({})
    assert len(model.requests) == 4


def test_too_many_turns_name_the_last_error_of_a_tool_and_its_place():
    def inner() -> str:
        return {}["gone"]

    def look() -> str:
        return inner()

    model = Scripted([{"tool_calls": [{"name": "look"}]}])
    with pytest.raises(TurnLimit, match=r"look: KeyError: 'gone' \(at .*:\d+ in inner"):
        single(model, tools=[look], max_turns=3).invoke({})
    assert "test_acting" not in str(model.requests)  # the model is not told where the code lies


def test_a_required_tool_choice_is_free_after_the_first_turn():
    model = Scripted([{"tool_calls": [{"name": "f"}]}, '{"o": 1}'])

    def f() -> str:
        return ""

    single(model, tools=[f], model_settings={"tool_choice": "required"}).invoke({})
    assert [r.settings["tool_choice"] for r in model.requests] == ["required", "auto"]


def test_the_same_tool_name_twice_is_an_error():
    def f() -> None: ...

    with pytest.raises(ToolError, match=r'AX656.*"f"'):
        Agent(tools=[f, Tool(name="f", description="", parameters={}, call=f)])


def test_a_tool_may_ask_a_person_and_nothing_is_done_twice(script):
    done: list[str] = []

    def look(q: str) -> str:
        done.append(q)
        return "found"

    async def ask_person(question: str, ctx: Any) -> str:
        return await ctx.ask(question)

    calls = [
        {"name": "ask_person", "arguments": {"question": "sure?"}},
        {"name": "look", "arguments": {"q": "x"}},
    ]
    model = script({"tool_calls": calls}, '{"o": "yes"}')
    g = RootGraph("g")
    w = g.create_node(
        Agent, name="w", model=model, tools=[look, ask_person], memories=[HistoryMemory()]
    )
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()

    async def run():
        journal = MemoryJournal()
        paused = await g.run({"message": "x"}, journal=journal)
        assert paused.status == "paused"
        assert [q.text for q in paused.questions] == ["sure?"]
        answers = {paused.questions[0].id: "yes, sure"}
        return await g.resume(paused.run_id, journal=journal, answers=answers)

    result = asyncio.run(run())
    assert result.output == {"o": "yes"}
    assert done == ["x"]
    assert len(model.requests) == 2
    assert [m["content"] for m in model.requests[1].messages if m["role"] == "tool"] == [
        "yes, sure",
        "found",
    ]
    assert "ctx" not in model.requests[0].tools[1].parameters["properties"]


def test_a_toolset_is_asked_when_it_is_needed():
    class Set:
        async def tools(self):
            def f() -> str:
                return "done"

            return [f]

    model = Scripted([{"tool_calls": [{"name": "f"}]}, '{"o": 1}'])
    assert single(model, tools=[Set()]).invoke({}) == {"o": 1}
    assert model.requests[1].messages[-1]["content"] == "done"


def test_the_questions_of_two_tools_are_asked_together_and_each_gets_its_answer():
    asked: list[str] = []

    def asks(name: str) -> Tool:
        class Asking(Tool):
            async def __call__(self, arguments: Any, ctx: Any = None) -> str:
                asked.append(name)
                return f"{name}: {await ctx.ask(f'{name}?')}"

        return Asking(name=name, description="", parameters={"type": "object"}, call=lambda: None)

    model = Scripted([{"tool_calls": [{"name": "a"}, {"name": "b"}]}, '{"o": 1}'])
    g = RootGraph("g")
    w = g.create_node(Agent, name="w", model=model, tools=[asks("a"), asks("b")])
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build()

    async def run() -> Any:
        journal = MemoryJournal()
        paused = await g.run({"message": "x"}, journal=journal)
        assert [q.text for q in paused.questions] == ["a?", "b?"]
        first = {paused.questions[1].id: "for b"}
        paused = await g.resume(paused.run_id, journal=journal, answers=first)
        assert [q.text for q in paused.questions] == ["a?"]
        return await g.resume(
            paused.run_id, journal=journal, answers={paused.questions[0].id: "for a"}
        )

    assert asyncio.run(run()).output == {"o": 1}
    assert [m["content"] for m in model.requests[1].messages if m["role"] == "tool"] == [
        "a: for a",
        "b: for b",
    ]
    assert asked == ["a", "b", "a", "b", "a"]  # what was answered and recorded is not done again


def test_a_toolset_and_a_provider_may_know_the_firing_that_they_work_for():
    class Known:
        context_label = "DOCS"
        seen: tuple[Any, ...] = ()

        async def tools(self, ctx: Any) -> list[Any]:
            self.seen += (ctx.allows("read"),)
            return []

        async def get_blocks(self, query: Any, top_k: int = 8, ctx: Any = None) -> list[str]:
            self.seen += (ctx.allows("read"),)
            return []

    known = Known()
    g = RootGraph("g")
    w = g.create_node(
        Agent, name="w", model=Scripted(['{"o": 1}']), tools=[known], retrievers=known
    )
    g.edge_from_entry(w)
    g.edge_to_exit(w, ["o"])
    g.build().invoke({"message": "x"}, allow=frozenset({"read"}))
    # asked for tools as a toolset and as a provider, and for blocks
    assert known.seen == (True, True, True)


def test_a_tool_may_give_the_parts_of_a_content():
    class Camera(Tool):
        async def __call__(self, arguments: Any, ctx: Any = None) -> list[dict[str, Any]]:
            return [{"type": "text", "text": "a leaf"}]

    model = Scripted([{"tool_calls": [{"name": "look"}]}, '{"o": 1}'])
    single(
        model, tools=[Camera(name="look", description="", parameters={}, call=lambda: None)]
    ).invoke({})
    assert model.requests[1].messages[-1]["content"] == [{"type": "text", "text": "a leaf"}]


# ---------------------------------------------------------------------- memory and context


def test_a_memory_receives_each_step():
    class Notes:
        def __init__(self) -> None:
            self.reported: list[tuple[dict[str, Any], str]] = []

        def insert(self, key: str, value: str) -> None:
            self.reported.append((json.loads(key), value))

    notes = Notes()
    agent = single(Scripted(['{"o": 1}']), name="ann")
    agent.add_memory(notes)
    agent.invoke({"q": "x"})
    assert notes.reported == [({"input": {"q": "x"}, "role_name": "ann", "turn": 1}, '{"o": 1}')]


def test_a_provider_that_fails_is_never_swallowed(script):
    class Broken:
        context_label = "DB"

        def get_blocks(self, query, top_k=8):
            raise OSError("gone")

    with pytest.raises(ContextError, match=r"AX658.*DB.*OSError: gone"):
        single(script(), retrievers=[Broken()]).invoke({})
    chunks: list[Any] = []
    agent = single(
        script('{"o": 1}'), retrievers=Broken(), context=ContextPolicy(failures="report")
    )
    assert asyncio.run(agent.run({}, on_chunk=chunks.append)) == {"o": 1}
    assert chunks[0]["kind"] == "context_failed"


def test_context_has_a_budget_and_is_asked_what_the_task_says():
    class Long:
        def __init__(self) -> None:
            self.queries: list[Any] = []

        async def get_blocks(self, query):
            self.queries.append(query)
            return ["a" * 40, {"text": "b" * 400}, "c" * 40, "", "a" * 40]

    policy = ContextPolicy(budget_tokens=25)
    long = Long()
    user = (
        Agent(retrievers=[long], context=policy, name="n")
        .observe({"z": 1, "question": "why?"})
        .user
    )
    assert user.endswith(f"Context:\n[Context]\n(Long) {'a' * 40}\n(Long) {'c' * 40}")
    assert (long.queries[0].query_text, long.queries[0].node_name) == ("why?", "n")


def test_histories_of_concurrent_runs_do_not_mix():
    class Echo:
        async def reply(self, request, emit):
            await asyncio.sleep(0)
            said = [m["content"] for m in request.messages if m["role"] == "user"]
            return Reply(text=json.dumps({"message": str(len(said))}))

    g = RootGraph("g")
    loop = g.create_node(Loop, name="loop", max_iterations=3)
    w = loop.create_node(Agent, name="w", model=Echo(), memories=[HistoryMemory()])
    loop.edge_from_controller(w)
    loop.edge_to_controller(w)
    g.edge_from_entry(loop)
    g.edge_to_exit(loop)
    g.build()

    async def many():
        return await asyncio.gather(*(g.run({"message": "same"}) for _ in range(50)))

    assert {result.output["message"] for result in asyncio.run(many())} == {"3"}


def test_a_history_goes_on_in_the_next_run_of_the_same_thread_and_in_no_other():
    heard: list[list[str]] = []

    class Ear:
        async def reply(self, request, emit):
            heard.append([m["role"] for m in request.messages])
            return Reply(text=json.dumps({"message": "yes"}))

    g = RootGraph("talk")
    w = g.create_node(Agent, name="w", model=Ear(), memories=[HistoryMemory()])
    g.edge_from_entry(w, keys={"message": ""})
    g.edge_to_exit(w, keys={"message": ""})
    g.build()
    journal = MemoryJournal()

    def said(message: str, thread: str) -> list[str]:
        asyncio.run(g.run({"message": message}, journal=journal, thread=thread))
        return heard[-1]

    assert said("hi", "ada") == ["user"]
    assert said("and?", "ada") == ["user", "assistant", "user"]
    assert said("hi", "bob") == ["user"]


def test_repeated_messages_stay_and_only_so_many_are_sent():
    async def run():
        memory = HistoryMemory(top_k=3, memory_size=6)
        kept: list[Any] = []
        for _ in range(4):
            kept = await memory.remember(
                kept,
                [{"role": "user", "content": "yes"}, {"role": "assistant", "content": "ok"}],
                None,
            )
        return kept, memory.recall(kept)

    kept, sent = asyncio.run(run())
    assert len(kept) == 6
    assert [m["role"] for m in sent] == ["user", "assistant"]
    assert HistoryMemory(top_k=-1).recall(kept) == []
    assert len(HistoryMemory(top_k=0).recall(kept)) == 6


def test_what_falls_out_of_a_history_may_be_summarised():
    model = Scripted(
        {
            "rules": [
                {"match": {"system_contains": "Summarise"}, "replies": ["they met"]},
                {"replies": ['{"o": 1}']},
            ]
        }
    )
    agent = single(model, memories=HistoryMemory(memory_size=4, summarise=True))
    for _ in range(4):
        agent.invoke({}, thread="t")
    asked = [r.messages for r in model.requests if r.messages[0]["role"] == "user"]
    assert [len(messages) for messages in asked] == [1, 3, 5, 4]
    assert asked[-1][0]["content"].endswith("they met")


@pytest.mark.parametrize("where", ["in a result", "in the input", "in an answer"])
def test_a_conversation_with_a_secret_goes_on_where_it_paused(where):
    """A journal does not have the secret; what was asked is the same all the same."""
    secret = f'canary-{len(where)}-"q" é/'
    keep_secret(secret, "${CANARY}")

    def look() -> str:
        looked.append(1)
        return f"it is {secret}" if where == "in a result" else "it is there"

    async def ask(ctx: Any) -> Any:
        return await ctx.ask("which?")

    def graph(model: Scripted) -> Any:
        made = RootGraph("g")
        made.create_node(Agent, name="w", model=model, tools=[look, ask])
        made.edge_from_entry("w")
        made.edge_to_exit("w", ["o"])
        return made.build()

    async def whole() -> Any:
        given = f"it is {secret}" if where == "in the input" else "?"
        paused = await graph(Scripted(calls)).run({"message": given}, journal=journal, run_id="r")
        for model in (second, last):
            answer = f"use {secret}" if where == "in an answer" else "that"
            answers = {paused.questions[0].id: answer}
            paused = await graph(model).resume("r", journal=journal, answers=answers)
        return paused

    calls = [{"tool_calls": [{"name": name}]} for name in ("look", "ask", "ask")]
    looked, journal = list[int](), MemoryJournal()
    second, last = Scripted(calls[2:]), Scripted(['{"o": 1}'])
    assert asyncio.run(whole()).output == {"o": 1}
    assert [len(looked), len(second.requests), len(last.requests)] == [1, 1, 1]
    roles = [m["role"] for m in last.requests[0].messages if m["role"] != "system"]
    assert roles == ["user", *["assistant", "tool"] * 3]


def test_what_an_agent_did_is_not_done_again_where_it_is_offered_other_tools():
    paid: list[str] = []

    def pay() -> str:
        paid.append("a bill")
        return "paid"

    def look() -> str:
        return "seen"

    class Cut(Scripted):
        """A model that is reached once."""

        async def reply(self, request: Any, emit: Any) -> Reply:
            if self.requests:
                raise RuntimeError("power cut")
            return await super().reply(request, emit)

    def asking(model: Scripted, *tools: Any) -> Any:
        graph = RootGraph("g")
        graph.create_node(Agent, name="w", model=model, tools=list(tools))
        graph.edge_from_entry("w", {"message": ""})
        graph.edge_to_exit("w", ["o"])
        return graph.build()

    journal, model = MemoryJournal(), Scripted(['{"o": 1}'])
    first = asking(Cut([{"tool_calls": [{"name": "pay"}]}]), pay)
    with pytest.raises(NodeFailed, match="power cut"):
        first.invoke({"message": "x"}, journal=journal, run_id="r")
    result = run_sync(asking(model, look).resume("r", journal=journal, migrate=True))
    assert (result.output, paid) == ({"o": 1}, ["a bill"])
    [request] = model.requests
    assert [m["content"] for m in request.messages if m["role"] == "tool"] == ["paid"]
    assert [tool.name for tool in request.tools] == ["look"]


def test_what_a_person_says_came_of_a_call_is_its_result_whatever_it_is_called():
    class Resumed(StandaloneContext):
        async def step(self, name: str, call: Any, /, **options: Any) -> Any:
            return {"content": "sent"}

    tool = Tool(name="send", description="", parameters={}, call=print, effects="external")
    calls = [ToolCall(id="c", name="send")]
    [result] = asyncio.run(act(calls, {"send": tool}, Resumed(), 1, []))
    assert result["content"] == '{"content": "sent"}'
