"""A conversation that is too long: what is sent by its tokens, what is summarised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil import ConfigError
from axil_agent import HistoryMemory, Scripted, SingleAgent
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
