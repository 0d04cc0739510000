"""Each provider's profile against a stub that refuses what the provider refuses, and the errors of
providers in their shapes.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from tests.house import providers
from tests.house.providers import FAILING, MESSAGE, NATIVE

from axil import ConfigError
from axil.plugin import Grants, granted
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_models import ModelError, Reply, Request, Structure, ToolSpec
from axil_openai import PROFILES, OpenAIModel, OpenAIResponsesModel, Profile
from axil_testing.stub import Act, Call, Stub

SHAPE = Structure(
    name="Sum",
    schema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
)
ADD = ToolSpec(name="add", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
USER = {"role": "user", "content": "1 + 2?"}
SETTINGS = {"seed": 1, "max_tokens": 9}
QUICK = {"max_tries": 2, "first_wait_seconds": 0}

MODELS = {
    "chat": OpenAIModel,
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
}
OF_NATIVE = {"openai_responses": "responses", "anthropic": "messages", "gemini_native": "generate"}


def ask(model: Any, *, chunks: list[Any] | None = None, **more: Any) -> Reply:
    emit = (chunks if chunks is not None else []).append
    return asyncio.run(model.reply(Request(messages=[USER], **more), emit))


def made(dialect: str, server: Stub, **more: Any) -> Any:
    return MODELS[dialect]("m", server.key, server.url, **more)


def form_of(body: Mapping[str, Any]) -> str:
    """Return the form in which a request asks for structure."""
    text: Any = body.get("text") or {}
    config: Any = body.get("generationConfig") or {}
    found = body.get("response_format") or text.get("format")
    if found is None and (body.get("output_config") or "responseJsonSchema" in config):
        return "schema"
    if found is None:
        return "object" if "responseMimeType" in config else "prompt"
    if found["type"] == "json_object":
        return "object"
    return "strict" if found.get("json_schema", found).get("strict") else "schema"


def refusal_of(profile: Profile) -> Any:
    """Return what a service refuses that has this profile."""

    def refuses(body: Mapping[str, Any]) -> str:
        if form_of(body) not in profile.forms:
            return f"this response_format is unavailable: {form_of(body)}"
        unknown = [name for name in (*profile.refused, *profile.renamed) if name in body]
        return f"Extra inputs are not permitted: {unknown}" if unknown else ""

    return refuses


@pytest.mark.parametrize("name", PROFILES)
def test_a_request_has_what_its_service_takes(name):
    profile = PROFILES[name]
    with Stub() as server:
        server.refuses = refusal_of(profile)
        model = made("chat", server, profile=name)
        ask(model, output=SHAPE, settings=SETTINGS)
        sent = server.requests[0].body
        assert len(server.requests) == 1
    assert form_of(sent) == profile.forms[0]
    renamed = {profile.renamed.get(each, each): value for each, value in SETTINGS.items()}
    assert {each: sent[each] for each in renamed} == renamed
    assert model.modalities == set(profile.takes or OpenAIModel.carried)


REFUSALS = {
    "groq": "This model does not support response format `json_schema`.",
    "openai": "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
    "qwen": "Json mode response is not supported when enable_thinking is true",
    "lmstudio": "'response_format.type' must be 'json_schema' or 'text'",
    "openrouter": "No endpoints found that can handle the requested parameters.",
    "llama.cpp": "Failed to initialize samplers: failed to parse grammar",
    "anthropic": "'claude-old' does not support output format.",
    "gemini_native": "Function calling with response mime type 'application/json' is unsupported",
    "openai_responses": "Unsupported value: 'text.format.json_schema'",
}


@pytest.mark.third
@pytest.mark.parametrize("name", REFUSALS)
def test_a_form_that_is_refused_is_followed_by_the_next_one_and_not_asked_for_again(name):
    dialect = OF_NATIVE.get(name, "chat")
    forms = PROFILES[name].forms if name in PROFILES else NATIVE[name].forms
    with Stub(dialect) as server:
        server.refuses = lambda body: "" if form_of(body) == "prompt" else REFUSALS[name]
        more = {"profile": name} if name in PROFILES else {}
        model = made(dialect, server, **more)
        for _ in range(2):
            assert ask(model, output=SHAPE).text == "OK"
        assert [form_of(each.body) for each in server.requests] == [*forms, "prompt"]
        assert json.dumps(SHAPE.schema)[:20] in json.dumps(server.requests[-1].body).replace(
            '\\"', '"'
        )


def test_another_refusal_is_an_error_at_once_and_a_form_that_was_said_stays():
    with Stub() as server:
        server.refuses = lambda body: "the context is too long"
        with pytest.raises(ModelError, match="too long"):
            ask(made("chat", server), output=SHAPE)
        server.refuses = lambda body: "no response_format here"
        with pytest.raises(ModelError, match="response_format"):
            ask(made("chat", server, structured_output="schema"), output=SHAPE)
        assert len(server.requests) == 2


def test_a_profile_gives_the_address_and_the_variable_of_the_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_ORG_ID", "own-organization")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-deepseek")
    model = OpenAIModel("m", profile="deepseek")
    client = model.service._make(model.service._resolved())
    assert (client.base_url.host, client.api_key) == ("api.deepseek.com", "sk-deepseek")
    assert client.organization is None
    assert OpenAIModel("m", base_url="https://api.mistral.ai/v1").service.profile.name == "mistral"
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY"):
        ask(model)
    local = OpenAIModel("m", profile="ollama")
    assert local.service._make(local.service._resolved()).api_key == "no-key"


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"profile": "deepsek"}, 'Did you mean "deepseek"'),
        ({"profile": "azure"}, "RESOURCE.openai.azure.com"),
    ],
)
def test_a_profile_that_cannot_be_used_is_reported_with_what_to_write(given, reported):
    with pytest.raises(ConfigError, match=reported):
        OpenAIModel("m", **given)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("qwen", "https://bucket.oss-cn-hangzhou.aliyuncs.com/v1"),
        ("deepseek", "https://other.deepseek.com/v1"),
        ("deepseek", "https://evil.example/v1"),
        ("azure", "https://evil.openai.azure.com/openai/v1"),
        ("bedrock", "https://evil.example./v1"),
    ],
)
def test_a_file_s_profile_sends_its_key_to_no_other_host(name, url, monkeypatch, tmp_path):
    for key in PROFILES[name].keys:
        monkeypatch.setenv(key, "sk-of-the-user")
    with granted(Grants(folder=str(tmp_path))):
        model = OpenAIModel("m", base_url=url, profile=name)
        assert model.service._resolved() == ""


def test_the_page_of_providers_is_current():
    root = Path(__file__).parents[2]
    assert (root / providers.PAGE).read_text("utf-8") == providers.page(), "make manifests"


def cases_of(test: Any, of: str = "dialect") -> set[str]:
    """Return the dialects, or values of another argument, for which a test has a case."""
    found = set[str]()
    for mark in test.pytestmark:
        if mark.name == "parametrize":
            names, cases = mark.args[0], list(mark.args[1])
            names = [name.strip() for name in names.split(",")] if type(names) is str else names
            if of in names:
                at = list(names).index(of)
                found |= {case if len(names) == 1 else case[at] for case in cases}
    return found


@pytest.mark.parametrize("shape", providers.SHAPES, ids=lambda shape: shape.test)
def test_a_shape_on_the_page_has_a_case_for_each_api(shape):
    module = module_at(Path(__file__).parent / shape.file)
    assert cases_of(getattr(module, shape.test)) == set(shape.dialects)


def module_at(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"shapes_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_shape_of_the_realtime_api_and_a_tool_on_the_page_have_their_tests():
    spoken = module_at(Path(__file__).parents[2] / providers.SPOKEN_TESTS)
    assert [test for _, test in providers.SPOKEN if not hasattr(spoken, test)] == []
    tools = module_at(Path(__file__).parent / "test_provider_tools.py")
    assert cases_of(getattr(tools, providers.TOOL_TEST)) == {"chat", *providers.ADAPTERS}
    assert set(tools.TOOLS) == set(providers.TOOLS)


# -- errors in the shapes of providers

TIMED = {"max_tries": 2, "first_wait_seconds": 0, "total_seconds": 30}
USED_UP = {"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1h0m0s"}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "60s"}
WAITS: Mapping[str, Mapping[str, str]] = {
    "seconds": {"retry-after": "60"},
    "date": {"retry-after": "DATE"},
    "milliseconds": {"retry-after-ms": "60000"},
    "spans": {
        **USED_UP,
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m0.0s",
    },
    "moment": {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "EPOCH"},
    "RetryInfo": {},
    "headers in the body": {},
}
"""The headers of each way to say how long to wait."""


def failing(name: str, server: Stub, **more: Any) -> Any:
    """Return the model of a service of ``FAILING``."""
    profile = {"profile": name} if name in PROFILES else {}
    return made(FAILING[name].dialect, server, **profile, **more)


def busy(name: str, way: str) -> Act:
    """Return a 429 of a service that says to wait for a minute."""
    body = FAILING[name].body(429)
    moments = {
        "DATE": formatdate(time.time() + 60, usegmt=True),
        "EPOCH": str(int((time.time() + 60) * 1000)),
    }
    error = (body[0] if isinstance(body, list) else body).get("error")
    if way == "RetryInfo":
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.Help"}, RETRY_INFO]
    elif way == "headers in the body":
        limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": moments["EPOCH"]}
        error["metadata"] = {"headers": limits}
    headers = {key: moments.get(each, each) for key, each in WAITS[way].items()}
    return Act(status=429, headers=headers, body=body)


def test_a_failure_on_the_page_has_a_case_for_each_provider():
    assert FAILING.keys() == {*NATIVE, *PROFILES}
    for fault in providers.FAULTS:
        found = cases_of(globals()[fault.test], "name")
        lacking = FAILING.keys() - found
        assert lacking == {name for name in lacking if fault.is_left_out(FAILING[name])}


@pytest.mark.third
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name, each in FAILING.items() for way in ("seconds", "date", *each.waits)],
)
def test_a_busy_service_says_in_any_shape_how_long_to_wait(name, way):
    with Stub(FAILING[name].dialect) as server:
        server.say(busy(name, way))
        with pytest.raises(ModelError, match=rf"answered 429: {MESSAGE} Wait") as raised:
            ask(failing(name, server, retry=TIMED))
        assert len(server.requests) == 1  # a minute is more than it has
    assert raised.value.retry_after_seconds == pytest.approx(60, abs=25)
    assert raised.value.transient


@pytest.mark.third
@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("how", ["529", "503", "reset", "an error"])
def test_a_service_that_fails_is_asked_again_and_says_why(name, how):
    chunks: list[Any] = []
    service = FAILING[name]
    if how == "reset":
        act = Act(break_at=0.6, text="so far")
    elif how == "an error":
        middle = None if service.dialect != "chat" else (service.middle or service.body)(503)
        act = Act(fail_at=0.6, text="so far", body=middle, message=MESSAGE)
    else:
        act = Act(status=int(how), body=service.body(int(how)))
    with Stub(service.dialect) as server:
        server.say(act, "all of it")
        reply = ask(failing(name, server, retry=QUICK), chunks=chunks)
        assert len(server.requests) == 2
    assert reply.text == "all of it"
    (again,) = [chunk for chunk in chunks if chunk["kind"] == "retry"]
    shown = [chunk["kind"] for chunk in chunks]
    if how == "reset":
        assert "reset" in shown
    else:
        assert again["error"].endswith(f": {MESSAGE}")


@pytest.mark.parametrize("name", [name for name, each in FAILING.items() if each.poor])
def test_a_service_that_wants_money_is_not_asked_again(name):
    poor = FAILING[name].poor
    assert poor is not None
    with Stub(FAILING[name].dialect) as server:
        server.say(Act(status=poor[0], body=poor[1]))
        with pytest.raises(ModelError) as raised:
            ask(failing(name, server, retry=QUICK))
        assert len(server.requests) == 1
    assert not raised.value.transient


@pytest.mark.third
@pytest.mark.parametrize("name", FAILING)
def test_a_reply_in_one_piece_is_read_where_a_stream_was_asked_for(name):
    chunks: list[Any] = []
    service = FAILING[name]
    call = Call(name="add", arguments={"a": 1}, id="c1")
    with Stub(service.dialect) as server:
        server.say(
            Act(text="Let me add.", calls=(call,), is_whole=True),
            Act(
                text="three", thought="" if service.dialect == "responses" else "Hm.", is_whole=True
            ),
        )
        model = failing(name, server, retry={"max_tries": 1})
        first, second = ask(model, tools=[ADD], chunks=chunks), ask(model)
    assert [(each.name, each.arguments) for each in first.tool_calls] == [("add", {"a": 1})]
    assert (first.text, first.finish, second.text) == ("Let me add.", "tools", "three")
    assert (second.usage.input_tokens, second.usage.output_tokens) == (11, 7)
    assert "".join(each["text"] for each in chunks if each["kind"] == "text") == "Let me add."


SENT = {"chat": "object", "messages": "object", "generate": "pieces"}


@pytest.mark.third
@pytest.mark.parametrize("name", [name for name in FAILING if FAILING[name].dialect in SENT])
@pytest.mark.parametrize("is_whole", [False, True])
def test_arguments_are_read_as_an_object_and_in_pieces_with_paths(name, is_whole):
    arguments = {"a": 1, "b": True, "name": "axil"}
    dialect = FAILING[name].dialect
    sent: Any = "text" if is_whole and dialect == "generate" else SENT[dialect]
    sealed = "c2VhbGVk" if dialect == "generate" else ""
    with Stub(dialect) as server:
        call = Call(name="add", arguments=arguments, sent=sent)
        server.say(Act(calls=(call,), sealed=sealed, is_whole=is_whole))
        reply = ask(failing(name, server), tools=[ADD])
    assert [(each.name, each.arguments) for each in reply.tool_calls] == [("add", arguments)]
    assert sealed in json.dumps(reply.plain())
