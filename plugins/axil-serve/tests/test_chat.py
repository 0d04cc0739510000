"""Laws of Chat Completions, held with OpenAI's own client."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from starlette.testclient import TestClient

from axil import RootGraph
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_serve import Access, Caller, RunService, app_of
from axil_serve.conversation import Words
from axil_serve.streams import StreamEvent

from .conftest import ADA, BEN, FITTING, PROTOCOLS, Followed, broken_off, serving


def client_of(client: Any, token: str = ADA) -> openai.OpenAI:
    return openai.OpenAI(
        base_url="http://127.0.0.1/v1", api_key=token, http_client=client, max_retries=0
    )


def says(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_models_are_workflows(client):
    assert [model.id for model in client_of(client).models.list()] == [
        "greeting",
        "refund",
        "triage",
    ]


def test_a_completion_is_a_run(client):
    chat = client_of(client).chat.completions
    done = chat.create(model="greeting", messages=says("x"), extra_body={"input": {"name": "ada"}})
    assert done.choices[0].message.content == "Hello Ada"
    assert client.get(f"/v1/runs/{done.id}").json()["status"] == "done"


def test_words_are_streamed_and_the_whole_is_the_output(client):
    chunks = list(
        client_of(client).chat.completions.create(
            model="greeting",
            messages=says("x"),
            extra_body={"input": {"name": "ada"}},
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    said = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert "".join(said) == "Hello Ada"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None


def test_the_whole_follows_words_that_do_not_count_in_a_completion(journal):
    followed = Followed()
    with serving(journal, {"broken": broken_off(followed)}, followed) as client:
        said = [
            chunk.choices[0].delta.content or ""
            for chunk in client_of(client).chat.completions.create(
                model="broken",
                messages=says("x"),
                extra_body={"input": {"name": "x"}},
                stream=True,
            )
        ]
    assert [each for each in said if each] == ["An axil is", "\n\nAn angle."]


def test_words_that_are_said_again_are_sent_once():
    words, at = Words(frozenset(["a"])), {"frame": [], "node": "a", "activation": "a"}

    def says(text: str) -> StreamEvent:
        return StreamEvent(kind="chunk", data={**at, "chunk": {"kind": "text", "text": text}})

    begun = StreamEvent(kind="started", data={**at, "what": "node"})
    # a reader that was too slow, and a body that runs again after a pause, have it from the start
    heard = [words.add(each) for each in (begun, says("An "), begun, says("An "), says("axil"))]
    assert "".join(heard) + words.rest("An axil") == "An axil"
    missed = Words(frozenset(["a"]))
    late = StreamEvent(kind="started", data={**at, "what": "node", "lost": 3})
    assert [missed.add(each) for each in (late, says("axil"))] == ["", ""]
    assert missed.rest("An axil") == "An axil"


def test_a_structured_reply_is_sent_once_when_it_fits_and_its_fields_before(client):
    chunks = list(
        client_of(client).chat.completions.create(
            model="triage", messages=says("x"), extra_body={"input": {"text": "x"}}, stream=True
        )
    )
    said = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert json.loads(said) == {"score": 3, "why": "so"}
    shown = [c.axil["fields"] for c in chunks if "fields" in (getattr(c, "axil", None) or {})]
    assert shown[-len(FITTING) :] == FITTING


def test_a_session_of_a_typed_graph_receives_the_new_messages_alone():
    graph = RootGraph("talk", state="messages")
    graph.create_node(Agent, name="talker", model=Scripted(["one", "two"]))
    graph.edge_from_entry("talker")
    graph.edge_to_exit("talker")
    service = RunService(MemoryJournal(), {"talk": graph.build()}, poll_seconds=0.01)
    app = app_of(service, Access.of_token(ADA, Caller(name="ada")), protocols=PROTOCOLS)
    given: list[dict[str, str]] = []
    with TestClient(app, base_url="http://127.0.0.1") as http:
        http.headers["authorization"] = f"Bearer {ADA}"
        for text in ("hi", "again"):
            given.append({"role": "user", "content": text})
            asked = {"model": "talk", "messages": given, "metadata": {"session": "s"}}
            reply = http.post("/v1/chat/completions", json=asked).json()
            given.append(reply["choices"][0]["message"])
        found = http.get(f"/v1/runs/{reply['id']}").json()["output"]["messages"]
    assert [each["content"] for each in found] == ["hi", "one", "again", "two"]


def test_a_question_is_the_completion_and_the_next_message_its_answer(client):
    chat = client_of(client).chat.completions
    asked = chat.create(model="refund", messages=says("x"), extra_body={"input": {"amount": 3}})
    assert asked.choices[0].message.content == "Refund 3?"
    metadata = {"run_id": asked.id}
    with pytest.raises(openai.NotFoundError):
        client_of(client, BEN).chat.completions.create(
            model="refund", messages=says("yes"), metadata=metadata
        )
    answered = chat.create(model="refund", messages=says("yes"), metadata=metadata)
    assert (answered.id, answered.choices[0].message.content) == (asked.id, "3: yes")


def test_errors_are_those_of_the_protocol(client):
    with pytest.raises(openai.NotFoundError, match="there is no workflow"):
        client_of(client).chat.completions.create(model="none", messages=says("x"))
    with pytest.raises(openai.BadRequestError, match="messages"):
        client_of(client).chat.completions.create(model="greeting", messages=[])
    with pytest.raises(openai.AuthenticationError):
        client_of(client, "wrong").models.list()
