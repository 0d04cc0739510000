"""Tests of requests and replies."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from axil import ConfigError
from axil.plugin import Grants, granted
from axil_gemini import GeminiModel
from axil_models import ModelError, Request, Structure, ToolSpec, file, image, on_clock
from axil_testing import JumpingClock
from axil_testing.stub import Act, Call, Stub

TOOL = ToolSpec(name="add", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})


def ask(server: Stub, *messages: Any, config: dict[str, Any] | None = None, **more: Any) -> Any:
    model = GeminiModel("m", server.key, server.url, **(config or {}))
    said = [
        each if isinstance(each, dict) else {"role": "user", "content": each}
        for each in messages or ("hi",)
    ]
    return asyncio.run(model.reply(Request(messages=said, **more), lambda chunk: None))


def sent(*messages: Any, **more: Any) -> Any:
    """Return the body of the request."""
    with Stub("generate") as server:
        ask(server, *messages, **more)
        return camel(server.requests[0].body)


def camel(value: Any) -> Any:
    """Keys in one spelling: the service takes both, and the SDK sends both."""
    if isinstance(value, dict):
        return {
            re.sub(r"_(\w)", lambda m: m[1].upper(), key): camel(each)
            for key, each in value.items()
        }
    return [camel(each) for each in value] if isinstance(value, list) else value


def saying(server: Stub, *chunks: Any) -> None:
    """Let the service say just this."""

    class Fixed:
        base = ""

        def stream(self, act, asked):
            for chunk in chunks:
                yield f"data: {json.dumps(chunk)}\n\n".encode()

        def error(self, act):
            return chunks[0]

    server.dialect = Fixed()


def test_settings_have_the_apis_names():
    settings = {
        "max_tokens": 9,
        "stop": "END",
        "temperature": 0.5,
        "top_k": 3,
        "reasoning_effort": "low",
        "parallel_tool_calls": False,
    }
    config = sent(settings=settings)["generationConfig"]
    assert (
        config["maxOutputTokens"],
        config["stopSequences"],
        config["temperature"],
        config["topK"],
    ) == (9, ["END"], 0.5, 3)
    assert config["thinkingConfig"] == {"thinkingLevel": "LOW"}
    for wrong in ({"n": 2}, {"temprature": 1}):
        with pytest.raises(ConfigError, match=rf"AX806 settings\.{next(iter(wrong))}"):
            sent(settings=wrong)


def test_what_one_side_says_in_a_row_is_one_content_and_results_have_names():
    calls = [
        {"id": "c1", "name": "add", "arguments": {"a": 1}},
        {"id": "c2", "name": "sub", "arguments": {}},
    ]
    results = [{"role": "tool", "tool_call_id": id, "content": id * 2} for id in ("c1", "c2")]
    body = sent(
        {"role": "system", "content": "One."},
        "hi",
        {"role": "assistant", "content": "", "tool_calls": calls},
        *results,
        "and?",
    )
    assert body["systemInstruction"]["parts"][0]["text"] == "One."
    assert [each["role"] for each in body["contents"]] == ["user", "model", "user"]
    responses = [part["functionResponse"] for part in body["contents"][2]["parts"][:2]]
    assert [(each["id"], each["name"], each["response"]) for each in responses] == [
        ("c1", "add", {"result": "c1c1"}),
        ("c2", "sub", {"result": "c2c2"}),
    ]


def test_calls_without_ids_get_ids_that_differ_and_that_the_service_never_sees():
    with Stub("generate") as server:
        server.say(
            Act(calls=(Call(name="add", arguments={"a": 1}),)),
            Act(calls=(Call(name="add", arguments={"a": 2}),)),
        )
        first = ask(server, tools=[TOOL])
        reported = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "1"}
        second = ask(server, "hi", first.message(), reported, tools=[TOOL])
        assert first.tool_calls[0].id != second.tool_calls[0].id
        assert first.tool_calls[0].id not in server.requests[1].text


def test_tools_are_chosen_in_any_spelling():
    for choice in ("add", {"type": "function", "function": {"name": "add"}}):
        config = sent(tools=[TOOL], settings={"tool_choice": choice})["toolConfig"][
            "functionCallingConfig"
        ]
        assert (config["mode"], config["allowedFunctionNames"]) == ("ANY", ["add"])
    assert "toolConfig" not in sent(settings={"tool_choice": "required"})


def test_the_form_of_structured_output_can_be_said():
    shape = Structure(name="L", schema={"type": "object", "properties": {"a": {"type": "integer"}}})
    held = sent(output=shape)["generationConfig"]
    assert (held["responseMimeType"], held["responseJsonSchema"]) == (
        "application/json",
        shape.schema,
    )
    shown = sent(output=shape, config={"structured_output": "object"})
    assert "responseJsonSchema" not in shown["generationConfig"]
    assert "JSON Schema" in shown["systemInstruction"]["parts"][0]["text"]
    assert "responseMimeType" not in sent(output=shape, config={"structured_output": "prompt"}).get(
        "generationConfig", {}
    )


def test_parts_are_inline_or_by_their_address():
    parts = sent(
        [
            image(b"\x89PNG\r\n\x1a\n"),
            file("https://x/a.pdf"),
            {"type": "file", "file_id": "files/1"},
        ]
    )["contents"][0]["parts"]
    assert parts[0]["inlineData"]["mimeType"] == "image/png"
    assert [part["fileData"]["fileUri"] for part in parts[1:]] == ["https://x/a.pdf", "files/1"]


def test_a_blocked_prompt_is_filtered():
    with Stub("generate") as server:
        saying(
            server,
            {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}},
        )
        reply = ask(server)
    assert (reply.finish, reply.text, reply.usage.input_tokens) == ("filter", "", 3)


def test_a_call_that_cannot_be_made_is_asked_for_again():
    with Stub("generate") as server:
        saying(
            server,
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": []},
                        "finishReason": "MALFORMED_FUNCTION_CALL",
                    }
                ]
            },
        )
        with pytest.raises(ModelError, match="MALFORMED"):
            ask(server, config={"retry": {"max_tries": 3, "first_wait_seconds": 0}})
        assert len(server.requests) == 3


def test_a_delay_in_an_errors_details_is_waited_for():
    clock = JumpingClock()
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]
    with Stub("generate") as server:
        server.say(Act(status=429))
        plain = server.dialect
        saying(
            server,
            {
                "error": {
                    "code": 429,
                    "message": "slow",
                    "status": "RESOURCE_EXHAUSTED",
                    "details": details,
                }
            },
        )
        server.dialect.stream = plain.stream
        with on_clock(clock):
            assert ask(server).text == "OK"
    assert 17 <= clock.waits[0] < 18


@pytest.mark.parametrize("error", [None, 7, ["slow"], {"code": "x"}, {"details": 7}])
def test_an_error_of_another_form_is_the_model_s_error(error):
    with Stub("generate") as server:
        server.say(Act(status=404))
        saying(server, {"error": error})
        with pytest.raises(ModelError, match="AX660"):
            ask(server)


def test_either_variable_may_hold_the_key(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "from-google")
    with Stub("generate") as server:
        model = GeminiModel("m", base_url=server.url)
        asyncio.run(
            model.reply(Request(messages=[{"role": "user", "content": "hi"}]), lambda chunk: None)
        )
        assert server.requests[0].headers["x-goog-api-key"] == "from-google"


# -- variables that the SDK reads by itself

OWN = {
    "GOOGLE_API_KEY": "canary-own-1",
    "GEMINI_API_KEY": "canary-own-2",
    "GOOGLE_CLOUD_PROJECT": "canary-own-3",
    "GOOGLE_CLOUD_LOCATION": "canary-own-4",
    "GOOGLE_GENAI_API_VERSION": "canary-own-5",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_USE_ENTERPRISE": "true",
}


def heard(grants: Grants | None) -> str:
    """Return the address and the headers of what a model of a file sends."""
    with Stub("generate") as server:
        with granted(grants):
            stated = {"X-Stated": "stated-header"}
            model = GeminiModel("m", server.key, server.url, headers=stated)
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
