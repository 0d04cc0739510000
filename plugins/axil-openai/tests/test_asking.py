"""Tests of requests and constructors, and of mistakes that are reported before anything is sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, TypeAdapter

from axil import ConfigError
from axil.plugin import Grants, granted, make_component
from axil_models import (
    Clients,
    ModelError,
    PartError,
    Request,
    Structure,
    ToolSpec,
    audio,
    file,
    image,
)
from axil_openai import OpenAIEmbedder, OpenAIModel, OpenAIResponsesModel
from axil_openai.strict import strict
from axil_openai.whole import without_end
from axil_testing.stub import Act, Call, Stub

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}
OPEN = {
    "type": "object",
    "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}},
}


def ask(model: Any, *said: Any, chunks: list[Any] | None = None, **more: Any) -> Any:
    request = Request(
        messages=[{"role": "user", "content": each} for each in said or ("hi",)], **more
    )
    return asyncio.run(model.reply(request, (chunks if chunks is not None else []).append))


def body(kind: Any, *said: Any, config: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return the body of the request that a model of ``kind`` sends."""
    with Stub("chat" if kind is OpenAIModel else "responses") as server:
        ask(kind("m", server.key, server.url, **(config or {})), *said, **more)
        return server.requests[0].body


# -- variables that the SDK reads by itself

OWN = {
    "OPENAI_CUSTOM_HEADERS": "X-Own: canary-own-1\nAuthorization: Bearer canary-own-2",
    "OPENAI_ORG_ID": "canary-own-3",
    "OPENAI_PROJECT_ID": "canary-own-4",
    "OPENAI_API_KEY": "canary-own-5",
    "OPENAI_ADMIN_KEY": "canary-own-6",
    "OPENAI_WEBHOOK_SECRET": "canary-own-7",
    "AZURE_OPENAI_API_KEY": "canary-own-8",
    "AZURE_OPENAI_AD_TOKEN": "canary-own-9",
}


@pytest.fixture
def own(monkeypatch, tmp_path):
    """The user's variables, and passwords by host in the user's home."""
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary-own-10\n")
    (tmp_path / ".netrc").chmod(0o600)


def heard(server: Stub, kind: Any, grants: Grants | None, **more: Any) -> str:
    """Return the address and the headers of what a component of a file sends."""
    config = {"name": "m", "base_url": server.url, **more}
    with granted(grants):
        made: Any = make_component(kind, config)
    if kind is OpenAIEmbedder:
        with contextlib.suppress(ModelError):  # the service embeds nothing; it was asked
            asyncio.run(made.embed(["hi"]))
    else:
        ask(made)
    return "".join(f"{each.path} {dict(each.headers)}" for each in server.requests)


@pytest.mark.parametrize("kind", [OpenAIModel, OpenAIResponsesModel, OpenAIEmbedder])
def test_a_files_host_gets_what_the_file_says_and_no_variable_of_the_user(own, tmp_path, kind):
    dialect = "responses" if kind is OpenAIResponsesModel else "chat"
    with Stub(dialect) as server:
        said = heard(
            server,
            kind,
            Grants(folder=str(tmp_path)),
            api_key=server.key,
            organization="stated-org",
            project="stated-project",
            headers={"X-Stated": "stated-header"},
            query={"stated": "query"},
            retry={"max_tries": 1},
        )
    assert "canary-own" not in said
    for stated in ("stated-org", "stated-project", "stated-header", "stated=query", server.key):
        assert stated in said


def test_a_host_that_code_chose_gets_the_variables_of_the_sdk(own):
    with Stub() as server:
        said = heard(server, OpenAIModel, None, api_key=server.key)
    assert "canary-own-3" in said
    assert "canary-own-4" in said


# -- constructors


def test_it_is_made_as_masfactory_makes_it():
    with Stub() as server:
        for model in (
            OpenAIModel("m", server.key, server.url, {"temperature": 0.5}),
            OpenAIModel(
                model_name="m",
                api_key=server.key,
                base_url=server.url,
                invoke_settings={"temperature": 0.5},
            ),
            make_component(
                OpenAIModel,
                {
                    "name": "m",
                    "api_key": server.key,
                    "base_url": server.url,
                    "settings": {"temperature": 0.5},
                },
            ),
        ):
            assert ask(model).text == "OK"
        assert {(each.body["model"], each.body["temperature"]) for each in server.requests} == {
            ("m", 0.5)
        }


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({}, "name"),
        ({"name": "m", "base_url": "localhost:8080"}, "https://host/v1"),
        ({"name": "m", "temprature": 1}, "temprature"),
        ({"name": "m", "settings": {"temperature": 9}}, "temperature"),
        ({"name": "m", "timeout_seconds": 0}, "timeout_seconds"),
        ({"name": "m", "retry": {"tries": 3}}, "tries"),
        ({"name": "m", "structured_output": "firm"}, "strict"),
        ({"name": "m", "modalities": ["smell"]}, "image"),
    ],
)
def test_mistakes_in_settings_are_reported_when_it_is_made(given, reported):
    with pytest.raises(ConfigError, match=reported):
        OpenAIModel(**given)


def test_a_key_is_looked_up_by_the_first_call(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="AX800"):
        ask(OpenAIModel("m"))
    with pytest.raises(ConfigError, match="AX134"):
        ask(OpenAIModel("m", {"env": "NO_SUCH_KEY_HERE"}))
    with Stub() as server:
        ask(OpenAIModel("m", base_url=server.url))  # a server of one's own needs none
        monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
        monkeypatch.setenv("OTHER_KEY", "from-elsewhere")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(OpenAIModel("m"))
        ask(OpenAIModel("m", "${OTHER_KEY}"))
        sent = [each.headers["authorization"] for each in server.requests]
    assert sent == ["Bearer no-key", "Bearer from-the-environment", "Bearer from-elsewhere"]


# -- settings


def test_settings_of_a_request_win_over_those_of_the_model_and_none_leaves_one_out():
    sent = body(
        OpenAIModel,
        config={"settings": {"temperature": 0, "seed": 1, "stream_options": None}},
        settings={"temperature": 1, "top_k": 5},
    )
    assert (sent["temperature"], sent["seed"], sent["top_k"]) == (1, 1, 5)
    assert "stream_options" not in sent


def test_the_responses_api_has_other_names_for_some_settings():
    settings = {
        "max_tokens": 9,
        "reasoning_effort": "low",
        "verbosity": "low",
        "tool_choice": "add",
    }
    sent = body(OpenAIResponsesModel, settings=settings, tools=[ToolSpec(name="add")])
    assert (sent["max_output_tokens"], sent["reasoning"], sent["text"]) == (
        9,
        {"effort": "low"},
        {"verbosity": "low"},
    )
    assert (sent["tool_choice"], sent["store"]) == ({"type": "function", "name": "add"}, False)
    assert sent["tools"][0]["strict"] is False


def test_openai_itself_gets_max_completion_tokens_and_others_max_tokens(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    request = Request(messages=[], settings={"max_tokens": 9})
    assert OpenAIModel("m")._asked(request)["max_completion_tokens"] == 9
    assert (
        OpenAIModel("m", base_url="https://x.openai.azure.com/v1")._asked(request)[
            "max_completion_tokens"
        ]
        == 9
    )
    assert OpenAIModel("m", base_url="http://localhost/v1")._asked(request)["max_tokens"] == 9
    assert "max_tokens" not in OpenAIModel("m")._asked(request)


@pytest.mark.parametrize(
    "choice",
    [
        "add",
        {"name": "add"},
        {"type": "function", "name": "add"},
        {"type": "function", "function": {"name": "add"}},
    ],
)
def test_a_tool_can_be_chosen_in_any_spelling(choice):
    sent = body(OpenAIModel, settings={"tool_choice": choice}, tools=[ToolSpec(name="add")])
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "add"}}


def test_without_tools_nothing_is_said_of_their_choice():
    sent = body(OpenAIModel, settings={"tool_choice": "required", "parallel_tool_calls": False})
    assert sent.keys() & {"tools", "tool_choice", "parallel_tool_calls"} == set()


@pytest.mark.parametrize(
    ("kind", "setting"),
    [(OpenAIModel, "n"), (OpenAIModel, "messages"), (OpenAIResponsesModel, "stop")],
)
def test_settings_that_cannot_be_used_are_reported_before_anything_is_sent(kind, setting):
    with Stub() as server, pytest.raises(ConfigError, match=rf"AX806.*{setting}"):
        ask(kind("m", server.key, server.url), settings={setting: ["x"]})
    assert server.requests == []


# -- structured output


def test_a_schema_is_strict_where_it_can_be():
    sent = body(OpenAIModel, output=Structure(name="L[1]", schema=SCHEMA))["response_format"][
        "json_schema"
    ]
    assert (sent["name"], sent["strict"]) == ("L_1_", True)
    assert sent["schema"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    plain = body(OpenAIResponsesModel, output=Structure(name="L", schema=OPEN))["text"]["format"]
    assert (plain["type"], plain["strict"], plain["schema"]) == ("json_schema", False, OPEN)


def test_the_form_of_structured_output_can_be_said():
    def sent(form: str, schema: Any = SCHEMA) -> Any:
        return body(
            OpenAIModel,
            config={"structured_output": form},
            output=Structure(name="L", schema=schema),
        )

    assert sent("schema")["response_format"]["json_schema"]["strict"] is False
    assert sent("object")["response_format"] == {"type": "json_object"}
    assert "response_format" not in sent("prompt")
    for form in ("object", "prompt"):
        assert json.dumps(SCHEMA) in sent(form)["messages"][0]["content"]
    with pytest.raises(ConfigError, match="AX808"):
        sent("strict", OPEN)


def test_tools_can_be_strict():
    tool = ToolSpec(name="add", parameters=SCHEMA)
    assert "strict" not in body(OpenAIModel, tools=[tool])["tools"][0]["function"]
    assert (
        body(OpenAIModel, config={"strict_tools": True}, tools=[tool])["tools"][0]["function"][
            "strict"
        ]
        is True
    )
    assert (
        "strict"
        not in body(
            OpenAIModel,
            config={"strict_tools": True},
            tools=[ToolSpec(name="add", parameters=OPEN)],
        )["tools"][0]["function"]
    )


class Vein(BaseModel):
    width: float
    branches: list[Vein] = []


class Leaf(BaseModel):
    name: str | None = None
    veins: list[Vein]
    kind: Vein | int


def test_schemas_of_pydantic_models_can_be_strict():
    made = strict(Leaf.model_json_schema())
    assert made["required"] == ["name", "veins", "kind"]
    assert made["$defs"]["Vein"]["required"] == ["width", "branches"]
    assert '"default"' not in json.dumps(made)


@given(
    st.recursive(
        st.sampled_from([int, str, bool, float, None]),
        lambda inner: st.builds(lambda one: list[one], inner),
        max_leaves=4,
    )
)
def test_schemas_of_plain_fields_can_always_be_strict(kind):
    model = type("M", (BaseModel,), {"__annotations__": {"field": kind}})
    made = strict(model.model_json_schema())
    assert made["additionalProperties"] is False
    assert made["required"] == ["field"]


@pytest.mark.parametrize("kind", [dict[str, int], Any, tuple[int, str], list[Any]])
def test_what_cannot_be_strict_says_where(kind):
    model = type("M", (BaseModel,), {"__annotations__": {"field": kind}})
    with pytest.raises(ValueError, match="field"):
        strict(model.model_json_schema())
    with pytest.raises(ValueError, match="no object"):
        strict(TypeAdapter(int).json_schema())


# -- parts


def test_parts_are_sent_as_each_api_says():
    png, pdf = image(b"\x89PNG\r\n\x1a\n", detail="low"), file(b"%PDF-1", name="a.pdf")
    chat = body(OpenAIModel, [png, pdf, audio(b"ID3"), {"type": "file", "file_id": "f-1"}])[
        "messages"
    ][0]["content"]
    assert chat[0]["image_url"] == {"url": f"data:image/png;base64,{png['data']}", "detail": "low"}
    assert chat[1]["file"] == {
        "filename": "a.pdf",
        "file_data": f"data:application/pdf;base64,{pdf['data']}",
    }
    assert (chat[2]["input_audio"]["format"], chat[3]["file"]) == ("mp3", {"file_id": "f-1"})
    urls = [image("https://x/1.png"), file("https://x/1.pdf"), {"type": "image", "file_id": "f-2"}]
    said = body(OpenAIResponsesModel, urls)["input"][0]["content"]
    assert [
        each.get("image_url") or each.get("file_url") or each.get("file_id") for each in said
    ] == [
        "https://x/1.png",
        "https://x/1.pdf",
        "f-2",
    ]


@pytest.mark.parametrize(
    "part", [file("https://x/1.pdf"), {"type": "image", "file_id": "f"}, image("leaf.png")]
)
def test_a_part_that_cannot_be_sent_is_reported_before_anything_is_sent(part):
    with Stub() as server, pytest.raises(PartError, match="AX801"):
        ask(OpenAIModel("m", server.key, server.url), [part])
    assert server.requests == []


def test_a_server_without_eyes_can_be_declared():
    with Stub() as server, pytest.raises(PartError, match=r"AX801.*takes text"):
        ask(
            OpenAIModel("m", server.key, server.url, modalities=["text"]),
            [image("https://x/1.png")],
        )
    assert server.requests == []


# -- answers


def test_servers_that_number_every_call_with_zero_are_understood():
    class Sloppy(Stub):
        pass

    with Sloppy() as server:
        stream = server.dialect.stream
        whole = [
            {
                "index": 0,
                "id": f"c{n}",
                "type": "function",
                "function": {"name": "add", "arguments": f'{{"a": {n}}}'},
            }
            for n in (1, 2)
        ]

        class Zero:
            base = "/v1"
            error = server.dialect.error

            def stream(self, act, asked):
                pieces = list(stream(act, asked))
                chunk = json.loads(pieces[0].decode().removeprefix("data: "))
                for call in whole:
                    chunk["choices"][0]["delta"] = {"tool_calls": [call]}
                    yield f"data: {json.dumps(chunk)}\n\n".encode()
                yield from pieces[-3:]

        server.dialect = Zero()
        reply = ask(OpenAIModel("m", server.key, server.url), tools=[ToolSpec(name="add")])
    assert [(call.id, call.arguments) for call in reply.tool_calls] == [
        ("c1", {"a": 1}),
        ("c2", {"a": 2}),
    ]
    assert reply.finish == "tools"


def test_what_tokens_cost_is_what_the_user_says():
    with Stub() as server:
        prices = {"input": 100, "output": 1000, "cached": 10}
        usage = ask(OpenAIModel("m", server.key, server.url, prices=prices)).usage
    assert usage.cost == pytest.approx((8 * 100 + 3 * 10 + 7 * 1000) / 1e6)


def test_a_cost_that_the_service_reports_counts_unless_there_are_prices():
    used = {"input": 11, "output": 7, "cached": 3, "reasoning": 0, "written": 5, "cost": 0.0125}
    with Stub("chat") as server:
        server.say(Act(text="Hello.", usage=used), Act(text="Hello.", usage=used))
        usage = ask(OpenAIModel("m", server.key, server.url)).usage
        prices = {"input": 100, "output": 1000, "cached": 10, "cache_write": 200}
        stated = ask(OpenAIModel("m", server.key, server.url, prices=prices)).usage
    assert (usage.cost, usage.cached_tokens, usage.cache_write_tokens) == (0.0125, 3, 5)
    assert stated.cost == pytest.approx((3 * 100 + 3 * 10 + 5 * 200 + 7 * 1000) / 1e6)


def test_no_money_left_is_not_tried_again():
    class Poor:
        base = "/v1"

        def error(self, act):
            return {
                "error": {
                    "message": "You exceeded your quota.",
                    "type": "insufficient_quota",
                    "code": "insufficient_quota",
                }
            }

    with Stub() as server:
        server.say(Act(status=429))
        server.dialect = Poor()
        with pytest.raises(ModelError, match="quota") as reported:
            ask(OpenAIModel("m", server.key, server.url))
    assert (reported.value.transient, len(server.requests)) == (False, 1)


def test_unsealed_reasoning_is_left_out_and_with_it_the_ids_that_need_it():
    with Stub("responses") as server:
        server.say(Act(thought="Hm.", calls=(Call(name="add"),)))
        model = OpenAIResponsesModel("m", server.key, server.url)
        first = ask(model, tools=[ToolSpec(name="add")])
        reported = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "3"}
        request = Request(messages=[{"role": "user", "content": "hi"}, first.message(), reported])
        asyncio.run(model.reply(request, lambda chunk: None))
        sent = server.requests[1].body["input"]
    assert [each.get("type") for each in sent] == [None, "function_call", "function_call_output"]
    assert "id" not in sent[1]


def test_an_error_in_the_middle_of_a_reply_is_reported_by_what_it_says():
    model = OpenAIModel("m", "k", "http://localhost/v1")
    assert model.service.failed({"message": "slow down", "type": "rate_limit_error"}).transient
    assert model.service.failed({"message": "busy", "code": 503}).status == 503
    assert not model.service.failed(
        {"message": "no", "type": "invalid_request_error", "code": "bad"}
    ).transient
    assert model.service.failed("what?").transient


def test_the_text_form_of_a_model_shows_no_part_of_its_url_but_the_host():
    assert (
        repr(OpenAIModel("m", "sk-1", "https://user:word@host.example/v1?key=2"))
        == "OpenAIModel('m', host='host.example')"
    )


# -- what is wrong with the address or the key


@contextlib.contextmanager
def serving(status: int, kind: str, body: str) -> Iterator[str]:
    """Open a server that answers every request alike; yield its address."""

    class Same(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Same)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("kind", [OpenAIModel, OpenAIResponsesModel])
def test_a_web_page_in_place_of_a_reply_is_reported_at_once(kind):
    page = "<!doctype html><p>Hello"
    with (
        serving(200, "text/html; charset=utf-8", page) as address,
        pytest.raises(ModelError) as reported,
    ):
        ask(kind("m", "k", f"{address.replace('//', '//user:word@')}/?key=2"))
    port = address.rpartition(":")[2]
    assert f"127.0.0.1:{port} sent a web page, and no reply of a model." in str(reported.value)
    assert f"Check base_url (http://127.0.0.1:{port}/). It is the" in str(reported.value)
    assert not reported.value.transient


def test_a_key_that_is_refused_is_named_by_its_setting(monkeypatch):
    body = '{"error": {"message": "the next key is wrong"}}'
    with serving(401, "application/json", body) as address:
        monkeypatch.setenv("MY_KEY", "x")
        with pytest.raises(ModelError) as reported:
            ask(OpenAIModel("m", {"env": "MY_KEY"}, address))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
        with pytest.raises(ModelError, match="Check the key: the variable OPENAI_API_KEY, or"):
            ask(OpenAIModel("m", base_url=address))
    assert "answered 401: the next key is wrong" in str(reported.value)  # the key is no part of it
    assert "Check the key: api_key ({env: MY_KEY})." in str(reported.value)


def test_a_wrong_address_is_reported_with_what_was_asked_for():
    page = "<html><body>Not Found</body></html>"
    with serving(404, "text/html", page) as address, pytest.raises(ModelError) as reported:
        ask(OpenAIModel("small", "k", f"{address}/v2"))
    assert "answered 404: a web page" in str(reported.value)
    assert f'Check name ("small") and base_url ({address}/v2).' in str(reported.value)


def test_a_refused_connection_is_reported_with_its_port():
    with socket.socket() as taken:  # bound and not listening: whoever connects is refused
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        model = OpenAIModel("m", "k", f"http://127.0.0.1:{port}/v1", retry={"max_tries": 1})
        with pytest.raises(ModelError, match=f"to 127.0.0.1:{port} failed: .*Is the service runn"):
            ask(model)


# -- embeddings


def test_vectors_come_in_the_order_of_the_texts_in_batches():
    with Stub() as server:
        one = OpenAIEmbedder("e", server.key, server.url, batch_size=2)
        assert one.dimensions is None
        vectors = asyncio.run(one.embed(["a", "b", "c"]))
        again = asyncio.run(one.embed(["c", "a"]))
        assert [each.body["input"] for each in server.requests] == [["a", "b"], ["c"], ["c", "a"]]
        assert server.connections == 2
    assert vectors[2] == again[0] != vectors[0] == again[1]
    assert (one.dimensions, one.name) == (8, "openai/e")
    assert asyncio.run(one.embed([])) == []


def test_the_length_of_vectors_can_be_asked_for_and_is_checked():
    with Stub() as server:
        one = OpenAIEmbedder("e", server.key, server.url, dimensions=4)
        assert [len(vector) for vector in asyncio.run(one.embed(["a"]))] == [4]
        assert (one.dimensions, one.name) == (4, "openai/e/4")
        other = OpenAIEmbedder("e", server.key, server.url)
        asyncio.run(other.embed(["a"]))
        other._learned = 5
        with pytest.raises(ModelError, match="Expected 5"):
            asyncio.run(other.embed(["a"]))


def test_an_embedder_is_asked_again_as_a_model_is():
    with Stub() as server:
        server.say(Act(status=500), Act(status=429, headers={"retry-after-ms": "1"}))
        one = OpenAIEmbedder("e", server.key, server.url, retry={"first_wait_seconds": 0})
        assert len(asyncio.run(one.embed(["a"]))) == 1
        server.say(Act(status=400))
        with pytest.raises(ModelError):
            asyncio.run(one.embed(["a"]))
        assert len(server.requests) == 4
        assert server.open_connections() == 0


@pytest.mark.parametrize("given", [{"index": None, "embedding": [1.0]}, {"index": 0}])
def test_vectors_of_another_form_are_an_error_of_the_service(given):
    class Client:
        @property
        def embeddings(self):
            return self

        async def create(self, **asked):
            each = SimpleNamespace(**{"embedding": None, **given})
            return SimpleNamespace(data=[each, each])

        async def close(self):
            pass

    one = OpenAIEmbedder("e", "key", "http://localhost/v1", retry={"max_tries": 1})
    one.service.clients = Clients(Client, Client.close)
    with pytest.raises(ModelError, match="another form than its API"):
        asyncio.run(one.embed(["a", "b"]))


@given(st.data())
def test_a_stream_is_read_to_its_end_and_its_last_line_is_left_out(data):
    kept = b'data: {"a": "data: [DONE]"}\n\ndata: [DO]\r\n\r\n'
    whole, rest = kept + b"data: [DONE]\n\nmore", []
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=6)))

    async def body():
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            yield whole[start:end]
        rest.append("read")

    async def seen() -> bytes:
        return b"".join([part async for part in without_end(body())])

    assert (asyncio.run(seen()), rest) == (kept, ["read"])


@pytest.mark.parametrize(
    ("name", "more", "asked"),
    [
        ("gpt-5-mini", {}, True),
        ("o3", {}, True),
        ("gpt-4o", {}, False),
        ("gpt-5-chat-latest", {}, False),
        ("gpt-5", {"store": True}, False),
        ("gpt-5", {"base_url": "http://localhost/v1"}, False),
    ],
)
def test_openai_is_asked_for_the_encrypted_reasoning_of_models_that_reason(name, more, asked):
    given = {"base_url": "https://api.openai.com/v1", **more}
    settings = {"store": True} if given.pop("store", False) else {}
    model = OpenAIResponsesModel(name, "k", **given)
    request = Request(messages=[{"role": "user", "content": "hi"}], settings=settings)
    found = model._asked(request).get("include")  # nothing is sent
    assert found == (["reasoning.encrypted_content"] if asked else None)
