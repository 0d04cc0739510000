"""A scripted model answers by the first rule that matches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil_testing import ScriptedModel, VirtualClock
from axil_testing.scripted import ScriptedFailure, ScriptError


def ask(model: ScriptedModel, user: str = "hi", system: str = "", **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}] * bool(system) + [
        {"role": "user", "content": user}
    ]
    return asyncio.run(model(messages, **more))


def test_without_rules_it_gives_the_default():
    assert ask(ScriptedModel())["content"] == "OK"
    assert ask(ScriptedModel(default="no"))["content"] == "no"


def test_the_first_rule_that_matches_answers():
    model = ScriptedModel(
        [
            {"match": {"user_contains": "cat"}, "replies": ["meow"]},
            {"match": {"user_contains": "c"}, "replies": ["c!"]},
            {"replies": ["anything"]},
        ]
    )
    assert [ask(model, text)["content"] for text in ("a cat", "a cow", "a dog")] == [
        "meow",
        "c!",
        "anything",
    ]


def test_replies_come_in_order_and_the_last_repeats():
    model = ScriptedModel([{"replies": ["one", "two"]}])
    assert [ask(model)["content"] for _ in range(4)] == ["one", "two", "two", "two"]
    model.reset()
    assert ask(model)["content"] == "one"


def test_rules_count_their_replies_apart():
    model = ScriptedModel(
        [
            {"match": {"user_contains": "a"}, "replies": ["a1", "a2"]},
            {"match": {"user_contains": "b"}, "replies": ["b1", "b2"]},
        ]
    )
    assert [ask(model, text)["content"] for text in "abab"] == ["a1", "b1", "a2", "b2"]


@pytest.mark.parametrize(
    ("match", "answer"),
    [
        ({"system_contains": "judge"}, "yes"),
        ({"system_contains": "writer"}, "OK"),
        ({"user_contains": ["he", "llo"]}, "yes"),
        ({"user_contains": ["hello", "goodbye"]}, "OK"),
        ({"model": "big"}, "yes"),
        ({"model": "small"}, "OK"),
        ({"model": "big", "user_contains": "goodbye"}, "OK"),
        ({}, "yes"),
    ],
)
def test_everything_a_match_asks_for_must_hold(match, answer):
    model = ScriptedModel([{"match": match, "replies": ["yes"]}])
    assert ask(model, "hello", "you are a judge", settings={"model": "big"})["content"] == answer


def test_a_reply_may_call_tools():
    model = ScriptedModel(
        [
            {
                "replies": [
                    {"tool_calls": [{"name": "add", "arguments": {"a": 1}}], "text": "let me see"},
                    "3",
                ]
            }
        ]
    )
    first = ask(model)
    assert (first["content"], first["tool_calls"]) == (
        "let me see",
        [{"id": "call_1_0", "name": "add", "arguments": {"a": 1}}],
    )
    assert ask(model) == {
        "content": "3",
        "tool_calls": [],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def test_a_reply_may_take_its_time():
    clock = VirtualClock()
    assert (
        ask(ScriptedModel([{"replies": [{"delay": 60, "text": "at last"}]}], clock=clock))[
            "content"
        ]
        == "at last"
    )
    assert clock.now() == 60


def test_a_reply_may_be_a_refusal():
    with pytest.raises(ScriptedFailure) as failure:
        ask(ScriptedModel([{"replies": [{"status": 429}]}]))
    assert failure.value.status == 429


def test_a_reply_may_echo_the_user():
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
    ]
    assert (
        asyncio.run(ScriptedModel(default={"echo_user": True}).complete(messages))["content"]
        == "(a+b)"
    )


def test_it_remembers_what_it_was_asked():
    model = ScriptedModel([{"match": {"user_contains": "x"}, "replies": ["y"]}])
    ask(model, "x", tools=[{"name": "t"}])
    ask(model, "z")
    assert [(call["rule"], call["tools"]) for call in model.calls] == [
        (0, [{"name": "t"}]),
        (None, None),
    ]


@pytest.mark.parametrize(
    "rule",
    [
        {"match": {}},
        {"replies": []},
        {"match": {"user_has": "x"}, "replies": ["y"]},
        {"replies": [{"texd": "y"}]},
        {"replies": [{"delay": 1, "status": 500}]},
        {"reply": ["y"], "replies": ["z"]},
    ],
)
def test_a_rule_that_means_nothing_is_refused_when_the_model_is_made(rule):
    with pytest.raises(ScriptError, match=r"rules\[0\]"):
        ScriptedModel([rule])
