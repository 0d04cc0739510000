"""A conversation that is too long: what is sent by its tokens, what is summarised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError, RootGraph
from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_journals import MemoryJournal, fork
from axil_models import Reply, Request


def said(*texts: str) -> list[dict[str, Any]]:
    return [
        {"role": "user" if n % 2 == 0 else "assistant", "content": text}
        for n, text in enumerate(texts)
    ]


@given(st.lists(st.text("ab ", max_size=40), max_size=12), st.integers(1, 60), st.integers(0, 8))
def test_what_is_sent_is_the_newest_that_fits_in_whole_turns(texts, most, top_k):
    kept = said(*texts)
    memory = HistoryMemory(top_k=top_k, max_tokens=most, tokens_of=len)
    sent = memory.recall(kept)
    assert sum(len(m["content"]) for m in sent) <= most
    assert sent == (kept[-len(sent) :] if sent else [])
    assert not sent or sent[0]["role"] == "user"
    rest = kept[: len(kept) - len(sent)]
    turn = rest[-2:] if len(rest) % 2 == 0 else rest[-1:]
    together = len(sent) + len(turn)
    # one turn more would not have fitted
    if turn and len(kept) % 2 == 0 and (top_k == 0 or together <= top_k):
        assert sum(len(m["content"]) for m in [*turn, *sent]) > most


def test_without_a_limit_all_is_sent():
    assert len(HistoryMemory(top_k=0).recall(said("x" * 10_000, "y" * 10_000))) == 2


def test_what_is_beyond_the_tokens_is_summarised():
    asked: list[str] = []

    async def ask(request: Request) -> Reply:
        asked.append(str(request.messages[1]["content"]))
        return Reply(text="in short")

    memory = HistoryMemory(summarise=True, max_tokens=20, tokens_of=len)
    kept = asyncio.run(memory.remember(said("aaaa", "bbbb"), said("cccc", "dddd"), ask))
    assert (asked, len(kept)) == ([], 4)
    kept = asyncio.run(memory.remember(kept, said("eeee", "ffff"), ask))
    assert asked == ["user: aaaa\n\nassistant: bbbb\n\nuser: cccc\n\nassistant: dddd"]
    assert [m["content"] for m in kept] == [
        "[Summary of what was said before]\nin short",
        "eeee",
        "ffff",
    ]


def test_a_picture_counts_by_its_name_and_not_by_its_bytes():
    picture = {
        "role": "user",
        "content": [
            {"type": "image", "data": "x" * 10_000, "name": "leaf.png"},
            {"type": "text", "text": "look"},
        ],
    }
    assert HistoryMemory(max_tokens=100, tokens_of=len).recall([picture]) == [picture]
    assert HistoryMemory(max_tokens=3, tokens_of=len).recall([picture]) == []


@pytest.mark.parametrize("name", ["memory_size", "max_tokens"])
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(
        ConfigError, match=f"AX655 {name}: expected a whole number of at least 1, found 0"
    ):
        HistoryMemory(**{name: 0})


def test_an_agent_sends_the_turns_that_fit():
    script = Scripted(["a", "b", "c"])
    memory = HistoryMemory(max_tokens=3, tokens_of=lambda text: 1)
    agent = SingleAgent(script, memories=memory, formatters="twins", output_keys=["answer"])
    for question in ("1", "2", "3"):
        agent.invoke({"question": question}, thread="t")
    assert [m["content"] for m in script.requests[2].messages if m["role"] == "assistant"] == ["b"]
    assert [m["role"] for m in script.requests[2].messages] == ["user", "assistant", "user"]


def answering(*texts: str) -> Any:
    """Return what a model is asked with, which answers with these texts in turn."""
    left = list(texts)

    async def ask(request: Request) -> Reply:
        return Reply(text=left.pop(0))

    return ask


def test_the_newest_tokens_stay_and_the_summary_is_always_sent():
    memory = HistoryMemory(2, summarise=True, max_tokens=60, keep_tokens=10, tokens_of=len)
    kept = asyncio.run(
        memory.remember(said(*["x" * 8] * 8), said("aaaa", "bbbb"), answering("first"))
    )
    assert [m["content"] for m in kept[1:]] == ["aaaa", "bbbb"]
    kept = [*kept, *said("cc", "dd")]
    sent = memory.recall(kept)
    assert [m["content"] for m in sent] == [
        "[Summary of what was said before]\nfirst",
        "cc",
        "dd",
    ]


def test_a_summary_is_summarised_again_with_what_came_after_it():
    asked: list[str] = []

    async def ask(request: Request) -> Reply:
        asked.append(str(request.messages[1]["content"]))
        return Reply(text=f"summary {len(asked)}")

    memory = HistoryMemory(0, summarise=True, max_tokens=80, keep_tokens=16, tokens_of=len)
    kept: Any = []
    for number in range(12):
        kept = asyncio.run(memory.remember(kept, said(f"ask {number}", f"say {number}"), ask))
        sent = memory.recall(kept)
        assert sum(len(m["content"]) for m in sent) <= 80
    assert len(asked) > 1
    assert "summary 1" in asked[1]
    every = "".join(asked) + str(kept)
    assert all(f"ask {number}" in every for number in range(12))


def test_a_turn_is_not_cut_between_a_call_and_its_result():
    calls = [{"id": "1", "name": "look", "arguments": {}}]
    turn = [
        {"role": "user", "content": "u" * 30},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "found", "tool_call_id": "1"},
        {"role": "assistant", "content": "done"},
    ]
    memory = HistoryMemory(0, summarise=True, max_tokens=20, keep_tokens=12, tokens_of=len)
    assert memory.recall(turn) == []
    kept = asyncio.run(memory.remember([], turn, answering("in short")))
    assert [m["role"] for m in kept] == ["user"]


@pytest.mark.parametrize("given", [{"keep_tokens": 5}, {"keep_tokens": 9, "max_tokens": 9}])
def test_tokens_that_stay_are_fewer_than_those_that_are_sent(given):
    with pytest.raises(ConfigError, match="AX655 keep_tokens"):
        HistoryMemory(summarise=True, **given)


def test_a_summary_is_kept_in_the_journal_and_made_once():
    journal, long = MemoryJournal(), "a question that is quite long. " * 10

    def workflow(*replies: str) -> tuple[Any, Scripted]:
        graph, script = RootGraph("talk"), Scripted(list(replies))
        memory = HistoryMemory(0, summarise=True, max_tokens=50, keep_tokens=10)
        graph.create_node(Agent(script, memories=[memory]), name="w")
        graph.edge_from_entry("w", ["message"])
        graph.edge_to_exit("w", ["message"])
        return graph.build(), script

    def ran(built: Any, message: str, run_id: str) -> Any:
        ran = built.run({"message": message}, journal=journal, thread="t", run_id=run_id)
        return asyncio.run(ran).output

    talk, script = workflow("yes", "in short: ferns", "no")
    ran(talk, long, "1")
    ran(talk, "and?", "2")
    assert len(script.requests) == 3
    # in another process: a new workflow, and the same thread
    talk, script = workflow("ferns")
    assert ran(talk, "which?", "3") == {"message": "ferns"}
    assert "in short: ferns" in str(script.requests[0].messages)
    assert long not in str(script.requests[0].messages)
    # a fork of it, from its beginning
    talk, script = workflow("moss")
    asyncio.run(fork(journal, "3", "4", at=1))
    assert asyncio.run(talk.resume("4", journal=journal)).output == {"message": "moss"}
    assert "in short: ferns" in str(script.requests[0].messages)
    assert len(script.requests) == 1
