"""Prompts in a journal: nothing, digests, or the messages without secrets."""

from __future__ import annotations

import json

import pytest

from axil import RootGraph, Workflow
from axil_journals import MemoryJournal, prompts_of

SECRET = "sk-abcdefghijklmnop1234"


def asking() -> Workflow:
    graph = RootGraph("asking")

    async def body(inputs, ctx):
        messages = [{"role": "system", "content": f"Be brief. {SECRET}"}]
        for number in range(3):
            messages.append({"role": "user", "content": f"question {number}"})

            async def call(number=number):
                return {"text": f"answer {number}", "usage": {"input_tokens": 3}}

            request = {"messages": list(messages), "tools": [{"name": "look"}], "settings": {}}
            await ctx.step(f"reply:{number}", call, request=request, kind="model")

        async def tool():
            return {"content": "found"}

        await ctx.step("tool:0", tool, request={"name": "look"}, kind="tool")
        return {"text": "done"}

    node = graph.create_node(body, name="agent")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, ["text"])
    return graph.build()


def kept(how: str) -> list:
    journal = MemoryJournal()
    result = asking().invoke({}, journal=journal, run_id="r", prompts=how)
    assert result.status == "done"
    return list(journal.entries("r"))


def test_a_journal_keeps_no_prompt_unless_the_run_says_so():
    assert prompts_of(kept("off")) == []
    assert "question" not in repr(kept("off"))


def test_digests_say_which_messages_were_sent_and_not_what_they_are():
    entries = kept("digests")
    assert "question" not in repr(entries)
    first, second, third = prompts_of(entries)
    assert [message["role"] for message in third.messages] == ["system", *["user"] * 3]
    assert first.messages == second.messages[:2] == third.messages[:2]
    assert first.messages[1]["characters"] == len("question 0")
    assert first.request == {"tools": ["look"]}


def test_whole_prompts_are_kept_once_each_and_without_secrets():
    entries = kept("whole")
    text = json.dumps([entry.data for entry in entries], default=repr)
    assert SECRET not in text
    assert text.count("question 0") == 1
    last = prompts_of(entries)[-1]
    assert [message["content"] for message in last.messages] == [
        "Be brief. [redacted]",
        "question 0",
        "question 1",
        "question 2",
    ]
    assert last.reply["usage"] == {"input_tokens": 3}
    assert last.activation == "agent"


def test_an_amount_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="whole"):
        asking().invoke({}, journal=MemoryJournal(), prompts="everything")
