"""Laws of thinking around a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from pydantic import BaseModel

from axil import NodeFailed, RootGraph, run_sync
from axil.plugin import Message
from axil_agent import Agent, Reflection, Scripted, SingleAgent, ask, models_through
from axil_journals import MemoryJournal
from axil_models import ModelError, Reply, Retry, ShownThoughts, Tool, persevere


def writer(model: Scripted, **settings: Any) -> RootGraph:
    g = RootGraph("g")
    w = g.create_node(
        Agent, name="w", model=model, instructions="You write.", formatters="twins", **settings
    )
    g.edge_from_entry(w, ["topic"])
    g.edge_to_exit(w, ["text"])
    return g.build()


def said(model: Scripted, number: int) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in model.requests[number].messages]


def test_a_reply_that_is_looked_over_is_asked_for_again_with_itself():
    model = Scripted(["draft", "final"])
    assert writer(model, thinking=Reflection(after="Shorter!")).invoke({"topic": "x"})[0] == {
        "text": "final"
    }
    first, then = said(model, 0), said(model, 1)
    assert then == [*first, ("assistant", "draft"), ("user", "Shorter!")]


def test_a_reply_that_is_looked_over_does_not_count_where_it_was_shown():
    def look() -> str:
        """Look."""
        return "seen"

    model = Scripted([{"tool_calls": [{"name": "look"}]}, "a draft", "final"])
    g = writer(model, thinking=Reflection(after="Shorter!"), tools=[look])
    counted: list[Any] = []

    async def watch() -> None:
        async for event in g.stream({"topic": "x"}):
            if event.kind == "chunk" and event.data["kind"] == "reset":
                del counted[len(counted) - event.data["chunks"] :]
            elif event.kind == "chunk":
                counted.append(event.data)

    asyncio.run(watch())
    assert [each["kind"] for each in counted if each["kind"] != "text"] == [
        "tool_call",
        "tool_result",
    ]
    assert "".join(each["text"] for each in counted if each["kind"] == "text") == "final"


def test_thoughts_before_a_reply_are_put_before_it():
    model = Scripted(["1. look", "text"])
    assert writer(model, thinking=Reflection(before="Plan first.")).invoke({"topic": "x"})[0] == {
        "text": "text"
    }
    first, then = said(model, 0), said(model, 1)
    assert first[-1] == ("user", "Plan first.")
    assert then == [*first, ("assistant", "1. look"), ("user", "Now reply.")]


def test_what_is_asked_around_a_reply_has_no_tools():
    tool = Tool(
        name="look",
        description="",
        parameters={"type": "object", "properties": {}},
        call=lambda: "seen",
    )
    model = Scripted(["plan", {"tool_calls": [{"name": "look"}]}, "draft", "final"])
    g = writer(model, thinking=Reflection(before="Plan.", after="Again."), tools=[tool])
    assert g.invoke({"topic": "x"})[0] == {"text": "final"}
    assert [[spec.name for spec in request.tools] for request in model.requests] == [
        [],
        ["look"],
        ["look"],
        [],
    ]


def test_several_thoughts_act_in_their_order_and_one_may_let_the_reply_stand():
    class Twice:
        async def after(self, messages: Sequence[Message], reply: str) -> list[Message] | None:
            return (
                None if reply.startswith("ok") else [{"role": "user", "content": f"mend {reply}"}]
            )

    model = Scripted(["bad", "ok mended", "last"])
    assert writer(model, thinking=[Twice(), Twice()]).invoke({"topic": "x"})[0] == {
        "text": "ok mended"
    }
    assert len(model.requests) == 2


def test_a_resumed_run_repeats_no_thought_that_was_recorded():
    model = Scripted(["plan", "draft", {"status": 400}, "final"])
    journal = MemoryJournal()
    g = writer(model, thinking=Reflection(before="Plan.", after="Again."))
    with pytest.raises(NodeFailed):
        run_sync(g.run({"topic": "x"}, journal=journal, run_id="r"))
    result = run_sync(g.run(None, journal=journal, run_id="r", resuming=True))
    assert (result.output, len(model.requests)) == ({"text": "final"}, 4)


def test_a_tool_that_is_not_recorded_is_called_again_by_a_resumed_body():
    called: list[str] = []

    def tool(name: str, **more: bool) -> Tool:
        return Tool(
            name=name,
            description="",
            parameters={"type": "object"},
            call=lambda: called.append(name),
            **more,
        )

    tools = [tool("switch", recorded=False), tool("work")]
    model = Scripted(
        [
            {"tool_calls": [{"name": "switch"}]},
            {"tool_calls": [{"name": "work"}]},
            {"status": 400},
            "done",
        ]
    )
    journal = MemoryJournal()
    g = writer(model, tools=tools)
    with pytest.raises(NodeFailed):
        run_sync(g.run({"topic": "x"}, journal=journal, run_id="r"))
    assert run_sync(g.run(None, journal=journal, run_id="r", resuming=True)).output == {
        "text": "done"
    }
    assert called == ["switch", "work", "switch"]


def test_models_are_asked_outside_an_agent():
    one, two = Scripted(["a"]), Scripted(["b"])

    async def both() -> list[str]:
        replies = await asyncio.gather(
            ask(one, "why?"),
            ask(
                two, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"}]
            ),
        )
        return [reply.text for reply in replies]

    assert asyncio.run(both()) == ["a", "b"]
    assert said(one, 0) == [("user", "why?")]
    assert said(two, 0) == [("system", "Be brief."), ("user", "x")]
    with models_through(lambda meant, written: Scripted([f"instead of {written}"])):
        assert asyncio.run(ask("openai", "why?")).text == "instead of openai"


def test_a_model_that_a_body_asks_is_a_step_of_its_run():
    model, journal = Scripted(["a", "b"]), MemoryJournal()

    async def body(ctx: Any) -> dict[str, str]:
        return {"text": (await ask(model, "x", ctx=ctx)).text}

    g = RootGraph("g")
    g.create_node(body, name="b")
    g.edge_from_entry("b", {})
    g.edge_to_exit("b", ["text"])
    g.build()
    assert run_sync(g.run({}, journal=journal, run_id="r")).output == {"text": "a"}
    assert run_sync(g.run({}, journal=journal, run_id="r")).output == {"text": "a"}
    assert len(model.requests) == 1


def test_each_reply_can_be_looked_at_and_replaced():
    def look() -> str:
        """Look."""
        return "seen"

    seen: list[tuple[int, int]] = []

    def on_reply(reply: Reply, messages: Sequence[Message]) -> Reply | None:
        seen.append((len(reply.tool_calls), len(messages)))
        return None if reply.tool_calls else replace(reply, text=reply.text.upper())

    model = Scripted([{"tool_calls": [{"name": "look", "arguments": {}}]}, "text"])
    graph = writer(model, tools=[look], on_reply=on_reply)
    assert graph.invoke({"topic": "x"})[0] == {"text": "TEXT"}
    assert seen == [(1, 2), (0, 4)]


def test_thoughts_are_shown_whole_in_letters_that_lower_case_makes_longer():
    shown: list[Any] = []
    show = ShownThoughts(shown.append)
    show({"kind": "text", "text": "<think>\u0130\u0130\u0130</think>Answer"})
    show.end()
    assert shown == [
        {"kind": "reasoning", "text": "\u0130\u0130\u0130"},
        {"kind": "text", "text": "Answer"},
    ]


def test_what_is_taken_back_is_all_that_was_shown_of_a_reply_that_broke_off():
    class Again:
        async def reply(self, request: Any, emit: Any, /) -> Reply:
            async def attempt(show: Any) -> Reply:
                for text in ("<th", "ink>Hm", ".</think>", '{"a": 1', ', "b": 2}'):
                    show({"kind": "text", "text": text})
                tries.append(1)
                if len(tries) == 1:
                    raise ModelError("busy", transient=True)
                return Reply(text='{"a": 1, "b": 2}')

            retry = Retry(first_wait_seconds=0)
            return await persevere(attempt, retry, emit, lambda error: cast("Any", error))

    class Two(BaseModel):
        a: int
        b: int

    tries: list[int] = []
    shown: list[Any] = [{"kind": "before"}]

    def show(chunk: Any) -> None:
        if chunk["kind"] == "reset":
            del shown[len(shown) - chunk["chunks"] :]
        elif chunk["kind"] != "retry":
            shown.append(chunk)

    agent = SingleAgent(Again(), output_type=Two)
    asyncio.run(agent.run("?", on_chunk=show))
    assert [each.get("text") for each in shown if each["kind"] != "output"] == [
        None, "Hm.", '{"a": 1', ', "b": 2}',
    ]  # fmt: skip
    assert shown[0] == {"kind": "before"}
