"""Tests of requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from axil import ConfigError
from axil.plugin import Grants, granted
from axil_anthropic import AnthropicModel
from axil_models import ModelError, PartError, Request, Structure, ToolSpec, file, image
from axil_testing.stub import Act, Stub

TOOL = ToolSpec(name="add", parameters={"type": "object", "properties": {}})


def sent(*messages: Any, config: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return the body of the request."""
    with Stub("messages") as server:
        model = AnthropicModel("m", server.key, server.url, **(config or {}))
        said = [
            each if isinstance(each, dict) else {"role": "user", "content": each}
            for each in messages or ("hi",)
        ]
        asyncio.run(model.reply(Request(messages=said, **more), lambda chunk: None))
        return server.requests[0].body


def test_it_is_made_as_masfactory_makes_it_and_needs_no_limit_to_be_said():
    body = sent(config={"invoke_settings": {"temperature": 0.5, "stop": "END"}})
    assert (body["model"], body["max_tokens"], body["temperature"], body["stop_sequences"]) == (
        "m",
        8192,
        0.5,
        ["END"],
    )
    assert body.keys() & {"tools", "system", "tool_choice"} == set()
    with pytest.raises(ConfigError, match="unknown key"):
        AnthropicModel("m", temprature=1)


def test_what_one_side_says_in_a_row_is_one_message():
    calls = [
        {"id": "1", "name": "add", "arguments": {"a": 1}},
        {"id": "2", "name": "add", "arguments": {}},
    ]
    results = [{"role": "tool", "tool_call_id": id, "content": id * 2} for id in ("1", "2")]
    system = [{"role": "system", "content": "One."}, {"role": "system", "content": "Two."}]
    body = sent(
        *system,
        "hi",
        {"role": "assistant", "content": "", "tool_calls": calls},
        *results,
        "and?",
        config={"prompt_cache": "off"},
    )
    assert "cache_control" not in json.dumps(body)
    assert body["system"] == "One.\n\nTwo."
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use", "tool_use"]
    assert [block.get("content") or block["text"] for block in body["messages"][2]["content"]] == [
        "11",
        "22",
        "and?",
    ]


def test_what_the_next_request_begins_with_is_marked_once_there_will_be_one():
    mark, system = {"type": "ephemeral"}, {"role": "system", "content": "Be brief."}

    def marks(*messages: Any, **more: Any) -> tuple[list[bool], ...]:
        body = sent(*messages, **more)
        blocks = [block for each in body["messages"] for block in each["content"]]
        first = body["system"] if isinstance(body.get("system"), list) else body.get("tools", [])
        return tuple([b.get("cache_control") == mark for b in each] for each in (first, blocks))

    replied = {"role": "assistant", "content": "Yes?"}
    assert marks(system, "hi") == ([], [False])
    assert marks(system, "hi", replied, "why?") == ([True], [False, False, True])
    assert marks("hi", tools=[TOOL, TOOL]) == ([False, True], [True])
    assert marks("hi", tools=[TOOL], settings={"cache_control": mark}) == ([False], [False])
    free = Structure(name="L", schema={"type": "object", "properties": {"a": {}}})
    assert marks(system, "hi", tools=[TOOL], output=free) == ([True], [True])


def test_tools_are_chosen_in_any_spelling():
    for choice in (
        "add",
        {"type": "function", "function": {"name": "add"}},
        {"type": "tool", "name": "add"},
    ):
        assert sent(tools=[TOOL], settings={"tool_choice": choice})["tool_choice"] == {
            "type": "tool",
            "name": "add",
        }
    alone = sent(tools=[TOOL], settings={"parallel_tool_calls": False})["tool_choice"]
    assert alone == {"type": "auto", "disable_parallel_tool_use": True}
    assert "tool_choice" not in sent(settings={"tool_choice": "required"})


def test_a_schema_goes_to_the_service_where_it_can_and_else_into_the_prompt():
    shape = Structure(
        name="L",
        schema={
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1}},
            "required": ["a"],
        },
    )
    held = sent(output=shape, settings={"reasoning_effort": "low"})["output_config"]
    assert (held["effort"], held["format"]["schema"]["additionalProperties"]) == ("low", False)
    free = Structure(name="L", schema={"type": "object", "properties": {"a": {}}})
    for body in (sent(output=shape, config={"structured_output": "prompt"}), sent(output=free)):
        assert "JSON Schema" in body["system"]
        assert "output_config" not in body
    with pytest.raises(ModelError, match="prompt"):
        sent(output=free, config={"structured_output": "schema"})


def test_files_are_documents():
    parts = [
        file(b"%PDF-1", name="a.pdf"),
        file(b"plain"),
        image("https://x/1.png"),
        {"type": "file", "file_id": "f"},
    ]
    sources = [block["source"] for block in sent(parts)["messages"][0]["content"]]
    assert [source["type"] for source in sources] == ["base64", "text", "url", "file"]
    assert sources[1]["data"] == "plain"
    with pytest.raises(PartError, match="AX801"):
        sent([file(b"\0\xff")])


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
HEADLESS = {
    "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "reported"), [(OVERLOADED, "Overloaded"), (HEADLESS, "broke off")]
)
def test_an_error_in_a_stream_and_a_piece_of_no_block_are_reported_and_may_pass(event, reported):
    class Broken:
        base = ""

        def stream(self, act, asked):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()

    with Stub("messages") as server:
        server.dialect = Broken()
        retry = {"max_tries": 2, "first_wait_seconds": 0}
        model = AnthropicModel("m", server.key, server.url, retry=retry)
        request = Request(messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(ModelError, match=reported) as raised:
            asyncio.run(model.reply(request, lambda chunk: None))
        assert raised.value.transient
        assert len(server.requests) == 2


def test_a_refusal_says_what_there_was():
    with Stub("messages") as server:
        server.say(Act(refusal="no"))
        model = AnthropicModel("m", server.key, server.url)
        reply = asyncio.run(
            model.reply(Request(messages=[{"role": "user", "content": "hi"}]), lambda chunk: None)
        )
    assert (reply.finish, reply.text) == ("refusal", "no")


# -- variables that the SDK reads by itself

OWN = {
    "ANTHROPIC_CUSTOM_HEADERS": "X-Own: canary-own-1\nX-Api-Key: canary-own-2",
    "ANTHROPIC_AUTH_TOKEN": "canary-own-3",
    "ANTHROPIC_API_KEY": "canary-own-4",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": "canary-own-5",
    "ANTHROPIC_ORGANIZATION_ID": "canary-own-6",
    "ANTHROPIC_IDENTITY_TOKEN": "canary-own-7",
    "ANTHROPIC_FEDERATION_RULE_ID": "canary-own-8",
    "ANTHROPIC_WORKSPACE_ID": "canary-own-9",
}


def heard(grants: Grants | None) -> str:
    """Return the address and the headers of what a model of a file sends."""
    with Stub("messages") as server:
        with granted(grants):
            stated = {"X-Stated": "stated-header"}
            model = AnthropicModel("m", server.key, server.url, headers=stated)
        request = Request(messages=[{"role": "user", "content": "hi"}])
        asyncio.run(model.reply(request, lambda chunk: None))
        assert server.key in str(server.requests[0].headers)
        return "".join(f"{each.path} {dict(each.headers)}" for each in server.requests)


def test_a_files_host_gets_what_the_file_says_and_no_variable_of_the_user(monkeypatch, tmp_path):
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary-own-0\n")
    (tmp_path / ".netrc").chmod(0o600)
    said = heard(Grants(folder=str(tmp_path)))
    assert "canary-own" not in said
    assert "stated-header" in said
    assert "canary-own" in heard(None)  # of code they are its own
