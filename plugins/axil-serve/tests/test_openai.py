"""Laws of OpenAI's APIs beside completions and responses, held with OpenAI's own client."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai.resources.chat.completions import Completions
from openai.resources.responses import Responses as ResponsesOfClient
from starlette.testclient import TestClient

from axil import Context, RootGraph, Workflow
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_models import Reply, Request, image
from axil_serve import Caller, Limits, RunService, app_of
from axil_serve.files import RunFiles
from axil_serve.parameters import CHAT, RESPONSES, Parameters

from .conftest import ADA, BEN, PROTOCOLS, access, as_caller, refund

PAGE = Path(__file__).parents[3] / "docs/how-to/serve-openai-clients.md"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def scoring() -> Workflow:
    """Return a graph whose output has fields, and which reads what it received."""
    graph = RootGraph("scoring")

    def score(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        folder = ctx.workspace and ctx.workspace / "attachments"
        names = sorted(path.name for path in folder.iterdir()) if folder and folder.exists() else []
        return {"score": len(inputs["message"]), "files": names}

    graph.create_node(score, name="score")
    graph.edge_from_entry("score", {"message": ""})
    graph.edge_to_exit("score", {"score": "", "files": ""})
    return graph.build()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[TestClient]:
    talking = RootGraph("talking", state="messages")
    talking.create_node(Agent, name="talker", model=Scripted(["one", "two", "three"]))
    talking.edge_from_entry("talker")
    talking.edge_to_exit("talker")
    every = {"scoring": scoring(), "refund": refund(), "talking": talking.build()}
    files = RunFiles(tmp_path / "runs")
    service = RunService(MemoryJournal(), every, files=files, poll_seconds=0.01)
    limits = Limits(burst=1000)
    app = app_of(service, access(), protocols=PROTOCOLS, limits=limits)
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as client:
        yield client


@pytest.fixture
def client(http: TestClient) -> openai.OpenAI:
    given: Any = http
    return openai.OpenAI(
        base_url="http://127.0.0.1/v1", api_key=ADA, http_client=given, max_retries=0
    )


def says(text: Any) -> list[Any]:
    return [{"role": "user", "content": text}]


# ---------------------------------------------------------------------------- parameters


ROUTES = {
    "/v1/chat/completions": (Completions, CHAT, {"messages": says("x")}),
    "/v1/responses": (ResponsesOfClient, RESPONSES, {"input": "x"}),
}


def documented(resource: Any) -> set[str]:
    names = set(inspect.signature(resource.create).parameters)
    return names - {"self", "extra_headers", "extra_query", "extra_body", "timeout"}


def treatment(name: str, parameters: Parameters) -> str:
    if name in parameters.served:
        return "served"
    taken = " or ".join(f"`{json.dumps(each)}`" for each in parameters.neutral.get(name, ()))
    return f"refused, but for {taken}" if taken else "refused"


def test_the_page_says_of_every_parameter_whether_it_is_served():
    columns = [(documented(resource), table) for resource, table, _ in ROUTES.values()]
    expected = [
        f"| `{name}` | "
        + " | ".join(treatment(name, table) if name in names else "" for names, table in columns)
        + " |"
        for name in sorted(columns[0][0] | columns[1][0])
    ]
    assert re.findall(
        r"^\| `\w+` \| (?:served|refused|  ?\|).*\|$", PAGE.read_text("utf-8"), re.M
    ) == (expected)


def test_no_parameter_that_is_not_served_is_ignored(http):
    for path, (resource, table, body) in ROUTES.items():
        for name in [*sorted(documented(resource) - table.served), "strange"]:
            body_of = {"model": "scoring", **body}
            answer = http.post(path, json={**body_of, name: {"some": "thing"}})
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (400, name), name
            assert {"message", "type", "code", "param"} <= set(error)
            assert name in error["message"]
            for each in (None, *table.neutral.get(name, ())):
                assert http.post(path, json={**body_of, name: each}).status_code == 200, name
    several = {"model": "scoring", **body, "n": 2, "seed": 1, "temperature": True}
    said = http.post("/v1/chat/completions", json={**several, "messages": says("x")}).json()
    assert "n, seed, temperature" in said["error"]["message"]


def test_parameters_about_the_clients_user_are_kept_with_the_run(client, http):
    done = client.chat.completions.create(model="scoring", messages=says("x"), user="u")
    assert http.get(f"/v1/runs/{done.id}").json()["metadata"] == {"user": "u"}


def test_instructions_for_a_workflow_without_messages_are_refused(client):
    with pytest.raises(openai.BadRequestError, match="takes no messages") as caught:
        client.responses.create(model="scoring", input="x", instructions="be brief")
    assert caught.value.param == "instructions"


def test_a_path_that_is_not_served_is_refused_as_the_client_reads_it(client):
    with pytest.raises(openai.NotFoundError, match="is not served") as caught:
        client.embeddings.create(model="scoring", input="x")
    assert caught.value.code == "AX965"


def test_a_failed_run_is_not_begun_again_by_the_client(client):
    broken = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"required": ["no"]}}}
    again = client.with_options(max_retries=2)
    with pytest.raises(openai.InternalServerError, match="does not fit"):
        again.chat.completions.create(
            model="scoring", messages=says("x"), response_format=broken, user="u"
        )
    assert len(client.get("/runs", cast_to=httpx.Response).json()["runs"]) == 1


# ------------------------------------------------------------------------- models, formats


def test_one_model_is_retrieved(client):
    assert client.models.retrieve("scoring").id == "scoring"
    with pytest.raises(openai.NotFoundError, match="no workflow"):
        client.models.retrieve("none")


FIELDS = {"score": 1, "files": []}
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
NAMED = {"name": "s", "schema": SCHEMA}


@pytest.mark.parametrize("stream", [False, True])
def test_a_format_of_json_gives_the_fields_of_the_output(client, stream):
    chat: Any = {"model": "scoring", "messages": says("x"), "stream": stream}
    for form in ({"type": "json_object"}, {"type": "json_schema", "json_schema": NAMED}):
        reply = client.chat.completions.create(**chat, response_format=form)
        parts = [each.choices[0].delta for each in reply] if stream else [reply.choices[0].message]
        assert json.loads("".join(part.content or "" for part in parts)) == FIELDS
    for form in ({"type": "json_object"}, {"type": "json_schema", **NAMED}):
        given: Any = {"model": "scoring", "input": "x", "stream": stream, "text": {"format": form}}
        made = client.responses.create(**given)
        made = list(made)[-1].response if stream else made
        assert json.loads(made.output_text) == FIELDS
        assert client.responses.retrieve(made.id).output_text == made.output_text


def test_an_output_that_does_not_fit_its_format_is_an_error_and_a_schema_that_is_none_too(client):
    wrong = {**NAMED, "schema": {**SCHEMA, "required": ["why"]}}
    given: Any = {"format": {"type": "json_schema", **wrong}}
    made = client.responses.create(model="scoring", input="x", text=given)
    assert (made.status, "why" in made.error.message) == ("failed", True)
    assert client.responses.retrieve(made.id).status == "failed"
    for form in (
        {"type": "xml"},
        {"type": "json_schema"},
        {"type": "json_schema", "schema": {"type": 1}},
    ):
        with pytest.raises(openai.BadRequestError, match=r"text\.format"):
            client.responses.create(model="scoring", input="x", text={"format": form})


# ------------------------------------------------------------------- files and their parts


def test_files_are_uploaded_listed_read_and_deleted(client):
    first = client.files.create(file=("a.txt", b"rain"), purpose="user_data")
    second = client.files.create(file=("b.txt", b"sun"), purpose="assistants")
    assert (first.filename, first.bytes, first.purpose) == ("a.txt", 4, "user_data")
    assert [each.id for each in client.files.list(order="asc")] == [first.id, second.id]
    assert [each.id for each in client.files.list(purpose="assistants")] == [second.id]
    assert [e.id for e in client.files.list(order="asc", limit=1)] == [first.id, second.id]
    assert client.files.retrieve(first.id).filename == "a.txt"
    assert client.files.content(first.id).read() == b"rain"
    with pytest.raises(openai.NotFoundError):
        client.with_options(default_headers=as_caller(BEN)).files.retrieve(first.id)
    assert client.files.delete(first.id).deleted
    for gone in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            gone(first.id)


def test_a_form_that_is_no_upload_is_refused(http):
    for files, data in (
        ({"other": ("a", b"x")}, {}),
        ({"file": ("a", b"x")}, {"expires_after": "1"}),
        ({"file": ("../a", b"x")}, {}),
    ):
        answer = http.post("/v1/files", files=files, data=data)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "AX966")
    head = {"content-type": "multipart/form-data; boundary=x"}
    assert http.post("/v1/files", content=b"--y", headers=head).status_code == 400


def test_a_file_that_a_message_names_is_attached_to_the_run(client):
    file = client.files.create(file=("a.txt", b"rain"), purpose="user_data")
    parts: Any = [{"type": "text", "text": "ab"}, {"type": "file", "file": {"file_id": file.id}}]
    done = client.chat.completions.create(model="scoring", messages=says(parts))
    assert json.loads(done.choices[0].message.content or "") == {"score": 2, "files": ["a.txt"]}


def test_images_reach_a_workflow_of_messages_and_are_refused_by_others(client, http):
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    given: Any = says([{"type": "text", "text": "What is it?"}, shown])
    done = client.chat.completions.create(model="talking", messages=given)
    received = http.get(f"/v1/runs/{done.id}").json()["input"]["messages"]
    assert received[0]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "data": PNG, "media_type": "image/png"},
    ]
    [item] = client.responses.input_items.list(done.id)
    assert [part.type for part in item.content] == ["input_text", "input_image"]
    with pytest.raises(openai.BadRequestError, match="not a text"):
        client.chat.completions.create(model="scoring", messages=given)
    with pytest.raises(openai.BadRequestError, match="video"):
        client.chat.completions.create(model="talking", messages=says([{"type": "video"}]))


# --------------------------------------------------------------- responses, conversations


def test_items_and_deletion_of_a_response(client):
    made = client.responses.create(model="scoring", input="x")
    [item] = client.responses.input_items.list(made.id)
    assert (item.role, item.content[0].text) == ("user", "x")
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    asked = client.responses.create(model="refund", extra_body={"input": {"amount": 1}})
    with pytest.raises(openai.ConflictError):
        client.responses.delete(asked.id)


def test_a_conversation_has_the_messages_of_its_runs(client):
    talk = client.conversations.create()
    for text in ("a", "b"):
        client.responses.create(model="talking", input=text, conversation=talk.id)
    items = [
        (each.role, each.content[0].text)
        for each in client.conversations.items.list(talk.id, order="asc")
    ]
    assert items == [("user", "a"), ("assistant", "one"), ("user", "b"), ("assistant", "two")]
    first, *_ = client.conversations.items.list(talk.id, order="asc")
    assert client.conversations.items.retrieve(first.id, conversation_id=talk.id).id == first.id
    assert client.conversations.retrieve(talk.id).id == talk.id
    assert client.conversations.delete(talk.id).deleted
    assert list(client.conversations.items.list(talk.id)) == []
    with pytest.raises(openai.BadRequestError, match="without metadata"):
        client.conversations.create(metadata={"for": "x"})


def test_a_question_in_a_conversation_is_answered_there(client):
    talk: Any = {"model": "refund", "conversation": "c"}
    asked = client.responses.create(**talk, extra_body={"input": {"amount": 3}})
    answered = client.responses.create(**talk, input="yes")
    assert (answered.id, answered.output_text) == (asked.id, "3: yes")


def test_a_client_that_sends_its_messages_alone_answers_with_the_last_one():
    graph = RootGraph("sending")

    async def send(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"text": f"{inputs['message']}: {await ctx.ask('May it be sent?')}"}

    graph.create_node(send, name="send")
    graph.edge_from_entry("send", {"message": ""})
    graph.edge_to_exit("send", {"text": ""})
    service = RunService(MemoryJournal(), {"sending": graph.build()}, poll_seconds=0.01)
    app = app_of(service, access(), protocols=PROTOCOLS)
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as http:

        def reply(*texts: str, to: str = "sending") -> tuple[str, str]:
            roles = ("user", "assistant")
            given = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
            made = http.post("/v1/chat/completions", json={"model": to, "messages": given}).json()
            return made["id"], made["choices"][0]["message"]["content"]

        asked, question = reply("a letter")
        other, _ = reply("a bill")
        assert reply("a letter", question, "yes") == (asked, "a letter: yes")
        assert reply("a letter", question, "no")[0] not in (asked, other)  # nothing asks any more
        assert reply("a note", question, "yes")[0] not in (asked, other)


# ------------------------------------------------------------------------------- streams


def test_streams_at_once_are_served_whole_or_refused_before_a_byte():
    async def ended() -> list[Any]:
        service = RunService(MemoryJournal(), {"scoring": scoring()}, poll_seconds=0.01)
        limits = Limits(burst=1000, streams_each=50)
        transport = httpx.ASGITransport(
            app=app_of(service, access(), protocols=PROTOCOLS, limits=limits)
        )
        ways: Any = {"transport": transport, "base_url": "http://127.0.0.1"}
        bodies = [
            ("/v1/chat/completions", {"model": "scoring", "messages": says("x"), "stream": True}),
            ("/v1/responses", {"model": "scoring", "input": "x", "stream": True}),
            ("/ag-ui/scoring", {"messages": says("x")}),
        ]
        async with service.running(), httpx.AsyncClient(**ways, headers=as_caller(ADA)) as http:
            answers = await asyncio.gather(
                *(http.post(path, json=body) for path, body in bodies * 24)
            )
            runs = [run["status"] for run in service.list(Caller(name="ada"))]
        assert not service._streams
        assert runs == ["done"] * sum(each.status_code == 200 for each in answers)
        return answers

    answers = asyncio.run(asyncio.wait_for(ended(), 60))
    assert {each.status_code for each in answers} == {200, 503}
    for each in answers:
        if each.status_code == 503:
            assert each.json()["error"]["code"] == "AX964"
        else:
            assert "AX964" not in each.text
            assert re.search(r"\[DONE\]|response.completed|RUN_FINISHED", each.text)


class Draws:
    """A model that makes an image."""

    async def reply(self, request: Request, emit: Any) -> Reply:
        emit({"kind": "text", "text": "Here."})
        return Reply(text="Here.", parts=(image(b"\x89PNG\r\n\x1a\n" + bytes(9000)),))


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_with_an_image_is_a_text_that_names_its_file(tmp_path, stream):
    graph = RootGraph("drawing")
    graph.create_node(Agent, name="draw", model=Draws())
    graph.edge_from_entry("draw", {"message": ""})
    graph.edge_to_exit("draw", {"message": ""})
    files = RunFiles(tmp_path / "runs")
    every = {"drawing": graph.build()}
    service = RunService(MemoryJournal(), every, files=files, poll_seconds=0.01)
    app = app_of(service, access(), protocols=PROTOCOLS)
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as http:
        own: Any = http
        at = openai.OpenAI(base_url="http://127.0.0.1/v1", api_key=ADA, http_client=own)
        given: Any = {"model": "drawing", "messages": says("a leaf")}
        if stream:
            chunks = list(at.chat.completions.create(**given, stream=True))
            said = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
        else:
            said = str(at.chat.completions.create(**given).choices[0].message.content)
        [run] = http.get("/v1/runs").json()["runs"]
        [file] = http.get(f"/v1/runs/{run['run_id']}/files").json()["files"]
    name = file["path"].removeprefix("made/")
    assert said == f"Here.\n[image: {name}]"
