"""Models that reason, in the shape of each provider: their thoughts are kept, shown, never taken
for the answer, and go back to the provider that refuses a request without them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from axil import RootGraph
from axil_agent import Agent, Scripted, SingleAgent
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_journals import MemoryJournal, fork
from axil_models import Reply, Request
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import DIALECTS, Act, Call, Stub

SEALED = "c2VhbGVk"
SIGNED = {"google": {"thought_signature": SEALED}}
ENCRYPTED = {"type": "reasoning.encrypted", "data": SEALED, "id": "r1", "index": 1}
CALL = {
    "index": 0,
    "id": "call_0",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
}


class Said(type(DIALECTS["chat"])):  # type: ignore[misc]  # a class of the package
    """Chat Completions of a service that sends these pieces, then calls ``add``, then answers."""

    def __init__(self, *pieces: Mapping[str, Any], answer: Any = "three") -> None:
        self.pieces, self.answer, self.count = pieces, answer, 0

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Any:
        self.count += 1
        deltas = [*self.pieces, {"content": self.answer}]
        if self.count == 1:
            called = any("tool_calls" in piece for piece in self.pieces)
            deltas = [*self.pieces, *([] if called else [{"tool_calls": [CALL]}])]
        for delta in deltas:
            yield self._chunk({key: each for key, each in delta.items() if self._is_due(key)})
        yield self._chunk({}, "tool_calls" if self.count == 1 else "stop")

    def _is_due(self, key: str) -> bool:
        return key != "tool_calls" or self.count == 1


def acted(body: Any) -> list[dict[str, Any]]:
    """Return the messages of a request in which a model calls tools."""
    return [each for each in body["messages"] if each.get("tool_calls")]


def has(name: str, value: Any) -> Callable[[Any], str]:
    """Return what refuses messages with calls that lack a field, as DeepSeek and Kimi do."""

    def refuses(body: Any) -> str:
        lacks = any(each.get(name) != value for each in acted(body))
        return f"{name} is missing in the assistant message" if lacks else ""

    return refuses


def signed_call(body: Any) -> str:
    calls = [call for each in acted(body) for call in each["tool_calls"]]
    lacks = any(call.get("extra_content") != SIGNED for call in calls)
    return "Function call is missing a thought_signature" if lacks else ""


def listed(body: Any) -> str:
    inner = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, leaves."}]}
    lacks = any(each.get("content") != [inner] for each in acted(body))
    return "the thinking chunk is missing" if lacks else ""


def untagged(body: Any) -> str:
    return "thoughts come back" if "Hm, leaves" in json.dumps(acted(body)) else ""


def whole(kind: str, where: Callable[[Any], list[Any]]) -> Callable[[Any], str]:
    """Return what refuses calls without the sealed block before them."""

    def refuses(body: Any) -> str:
        called = kind in json.dumps(body)
        return "it is missing" if called and SEALED not in json.dumps(where(body)) else ""

    return refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The thoughts of a provider's models, and what it refuses."""

    dialect: Callable[[], Any]
    refuses: Callable[[Any], str]
    model: Any = OpenAIModel
    first: Act | None = None
    last: Act | None = None
    thought: str = "Hm, leaves."


def chat(*pieces: Mapping[str, Any], answer: Any = "three", **more: Any) -> Shape:
    return Shape(dialect=lambda: Said(*pieces, answer=answer), **more)


def other(dialect: str, model: Any, refuses: Callable[[Any], str]) -> Shape:
    call = (Call(name="add", arguments={"a": 1, "b": 2}),)
    return Shape(
        dialect=lambda: DIALECTS[dialect],
        model=model,
        refuses=refuses,
        first=Act(thought="Hm, leaves.", sealed=SEALED, calls=call),
        last=Act(text="three"),
    )


def details(body: Any) -> str:
    wanted = [{"type": "reasoning.text", "text": "Hm, leaves.", "index": 0}, ENCRYPTED]
    lacks = any(each.get("reasoning_details") != wanted for each in acted(body))
    return "reasoning_details are missing" if lacks else ""


def text(piece: str) -> dict[str, Any]:
    return {"reasoning_details": [{"type": "reasoning.text", "text": piece, "index": 0}]}


SHAPES = {
    "deepseek": chat(
        {"reasoning_content": "Hm, "},
        {"reasoning_content": "leaves."},
        {"reasoning_content": None},
        refuses=has("reasoning_content", "Hm, leaves."),
    ),
    "deepseek-no-thought": chat(
        {"reasoning_content": None}, refuses=has("reasoning_content", ""), thought=""
    ),
    "vllm-ollama-groq": chat({"reasoning": "Hm, leaves."}, refuses=has("reasoning", "Hm, leaves.")),
    "openrouter": chat(
        {"reasoning": "Hm, ", **text("Hm, ")},
        {"reasoning": "leaves.", **text("leaves.")},
        {"reasoning_details": [ENCRYPTED]},
        refuses=details,
    ),
    "gemini-openai": chat(
        {"tool_calls": [{**CALL, "extra_content": SIGNED}]}, refuses=signed_call, thought=""
    ),
    "magistral": chat(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "leaves."}]}]},
        answer=[{"type": "text", "text": "three"}],
        refuses=listed,
    ),
    "tags": chat(
        {"content": "<thi"},
        {"content": "nk>Hm, leaves.</th"},
        {"content": "ink>\n"},
        refuses=untagged,
    ),
    "mistral-tags": chat({"content": "[THINK]Hm, leaves.[/THINK]"}, refuses=untagged),
    "openai-responses": other(
        "responses", OpenAIResponsesModel, whole('"function_call"', lambda body: body["input"])
    ),
    "anthropic": other(
        "messages", AnthropicModel, whole('"tool_use"', lambda body: body["messages"])
    ),
    "gemini": other("generate", GeminiModel, whole('"args"', lambda body: body["contents"])),
}


def add(a: int, b: int) -> int:
    """Add numbers."""
    return a + b


def added(a: int, b: int) -> int:
    """Add numbers, without asking."""
    return a + b


added.__name__ = "add"
add.needs_approval = True  # type: ignore[attr-defined]


def served(shape: Shape) -> Stub:
    server = Stub()
    server.dialect, server.refuses = shape.dialect(), shape.refuses
    server.say(*(each for each in (shape.first, shape.last) if each is not None))
    return server


def graph_of(model: Any) -> RootGraph:
    g = RootGraph("g")
    node = g.create_node(Agent(model, tools=[add]), name="w")
    g.edge_from_entry(node, ["q"])
    g.edge_to_exit(node, ["answer"])
    return g.build()


@pytest.mark.third
@pytest.mark.parametrize("name", SHAPES)
def test_thoughts_go_back_after_a_pause_and_are_shown_and_no_answer(name):
    shape, chunks = SHAPES[name], list[Any]()

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    async def run(server: Stub) -> tuple[Any, Any]:
        journal = MemoryJournal()
        model = shape.model("m", server.key, server.url)
        options: dict[str, Any] = {"journal": journal, "observers": [Watch()]}
        paused = await graph_of(model).run({"q": "1 + 2?"}, run_id="r", **options)
        again = graph_of(shape.model("m", server.key, server.url))
        answers = {paused.questions[0].id: "allow"}
        return await again.resume("r", answers=answers, **options), journal

    with served(shape) as server:
        result, _ = asyncio.run(run(server))
    assert result.output == {"answer": "three"}
    assert len(server.requests) == 2
    shown = "".join(chunk["text"] for chunk in chunks if chunk["kind"] == "reasoning")
    assert shown.startswith(shape.thought)
    assert not any("Hm" in chunk["text"] for chunk in chunks if chunk["kind"] == "text")


def test_a_fork_sends_the_thoughts_of_the_run_that_it_was_made_of():
    shape = SHAPES["deepseek"]

    async def run(server: Stub) -> Any:
        journal = MemoryJournal()
        graph = graph_of(OpenAIModel("m", server.key, server.url))
        paused = await graph.run({"q": "1 + 2?"}, run_id="one", journal=journal)
        await fork(journal, "one", "two")
        answers = {paused.questions[0].id: "allow"}
        return await graph.resume("two", journal=journal, answers=answers)

    with served(shape) as server:
        assert asyncio.run(run(server)).output == {"answer": "three"}


class Talk(BaseModel):
    messages: Annotated[list[dict[str, Any]], "append_messages"] = []


def test_later_turns_of_a_conversation_send_the_thoughts_of_turns_with_calls():
    """DeepSeek wants them in all requests that follow, of the answer as well."""

    def refuses(body: Any) -> str:
        replies = [each for each in body["messages"] if each["role"] == "assistant"]
        lacks = any(each.get("reasoning_content") != "Hm, leaves." for each in replies)
        return "The reasoning_content in the thinking mode must be passed back" if lacks else ""

    dialect = Said({"reasoning_content": "Hm, leaves."})
    shape = Shape(dialect=lambda: dialect, refuses=refuses)
    with served(shape) as server:
        g = RootGraph("g", state=Talk)
        g.create_node(Agent(OpenAIModel("m", server.key, server.url), tools=[added]), name="w")
        g.edge_from_entry("w")
        g.edge_to_exit("w")
        first = g.build().invoke("1 + 2?")
        said = first.state.messages
        result = g.invoke({"messages": [*said, {"role": "user", "content": "sure?"}]})
    assert result.status == "done"
    assert [each.body["messages"][-1]["content"] for each in server.requests][::2] == [
        "1 + 2?",
        "sure?",
    ]


@pytest.mark.third
@pytest.mark.parametrize("name", [name for name in SHAPES if "tags" not in name])
def test_thoughts_are_parts_of_the_reply_and_are_kept_from_others(name):
    shape = SHAPES[name]

    async def asked(model: Any, *messages: Any) -> Reply:
        return await model.reply(Request(messages=messages), lambda chunk: None)

    user = {"role": "user", "content": "1 + 2?"}
    with served(shape) as server, Stub() as stranger:
        stranger.dialect = server.dialect if shape.first else DIALECTS["chat"]
        reply = asyncio.run(asked(shape.model("m", server.key, server.url), user))
        reply = Reply.read(json.loads(json.dumps(reply.plain())))
        result = {"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": "3"}
        messages = (user, reply.message(), result)
        asyncio.run(asked(shape.model("m", stranger.key, stranger.url), *messages))
        sent = stranger.requests[0].text
    thoughts = [{"type": "reasoning", "text": shape.thought}] if shape.thought else []
    assert [dict(part) for part in reply.parts] == thoughts
    assert all(secret not in sent for secret in ("Hm", SEALED, "reasoning_content"))
    assert "add" in sent


def test_the_page_has_a_row_for_each_shape():
    page = Path(__file__).parents[2] / "docs/how-to/use-a-real-model.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if "test_thinking_models" in line]
    assert {name for name in SHAPES if any(f"[{name}]" in row for row in rows)} == SHAPES.keys()


def test_a_reply_of_thoughts_alone_is_asked_for_again():
    model = Scripted(["<think>I wonder", "<think>hm</think>An angle."])
    assert SingleAgent(model).invoke({"q": "?"}) == {"message": "An angle."}
