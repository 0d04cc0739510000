"""Laws of AG-UI, held with the models of its own library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter
from starlette.testclient import TestClient

from axil import Context, RootGraph, Workflow
from axil_journals import MemoryJournal
from axil_serve import RunService, agui, app_of
from axil_serve.agui import AgUi
from axil_serve.streams import StreamEvent

from .conftest import (
    BEN,
    FITTING,
    Followed,
    access,
    as_caller,
    broken_off,
    events_of,
    greeting,
    refund,
    triage,
)

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)


def asked_of(client: TestClient, workflow: str, **given: Any) -> list[Any]:
    message = {"id": "m", "role": "user", "content": "x"}
    whole = {"threadId": "t", "runId": "r", "messages": [message], **given}
    sent = RunAgentInput.model_validate(whole).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    sent["protocolVersion"] = "1.0"  # as its client in JavaScript says it
    answer = client.post(f"/ag-ui/{workflow}", json=sent)
    assert answer.status_code == 200, answer.text
    return [EVENTS.validate_json(data) for _, _, data in events_of(answer.text)]


def served() -> TestClient:
    followed = Followed()
    all_of_them = (greeting(), refund(), triage(followed), broken_off(followed))
    workflows = {each.spec.id: each for each in all_of_them}
    service = RunService(MemoryJournal(), workflows, poll_seconds=0.01)
    followed.feed = service.feed
    app = app_of(service, access(), protocols={"ag-ui": AgUi()})
    return TestClient(app, base_url="http://127.0.0.1", headers=as_caller(BEN))


def test_a_run_is_steps_a_message_and_a_result():
    with served() as client:
        events = asked_of(client, "greeting", forwardedProps={"input": {"name": "ada"}})
    kinds = [event.type.value for event in events]
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert kinds.count("STEP_STARTED") == kinds.count("STEP_FINISHED")
    words = [event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT"]
    assert "".join(words) == "Hello Ada"
    assert events[-1].result == {"text": "Hello Ada"}


def test_a_question_is_an_interrupt_and_its_resumption_the_answer():
    with served() as client:
        first = asked_of(client, "refund", forwardedProps={"input": {"amount": 2}})
        [interrupt] = first[-1].outcome.interrupts
        assert interrupt.message == "Refund 2?"
        resume = [{"interruptId": interrupt.id, "status": "resolved", "payload": "yes"}]
        last = asked_of(client, "refund", resume=resume)
    assert last[-1].result == {"decision": "2: yes"}


def test_a_structured_reply_is_one_message_and_its_fields_come_before():
    with served() as client:
        events = asked_of(client, "triage", forwardedProps={"input": {"text": "x"}})
    said = "".join(event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT")
    assert json.loads(said) == {"score": 3, "why": "so"}
    shown = [event.value["fields"] for event in events if event.type.value == "CUSTOM"]
    assert shown[-len(FITTING) :] == FITTING


def test_words_that_do_not_count_are_replaced():
    with served() as client:
        events = asked_of(client, "broken", forwardedProps={"input": {"name": "x"}})
    kinds = [event.type.value for event in events]
    [snapshot] = [event for event in events if event.type.value == "MESSAGES_SNAPSHOT"]
    assert [message.content for message in snapshot.messages] == ["x", "An angle."]
    said = [event for event in events if event.type.value == "TEXT_MESSAGE_CONTENT"]
    assert [event.delta for event in said] == ["An axil is"]
    assert snapshot.messages[-1].id == said[0].message_id
    assert kinds.index("TEXT_MESSAGE_END") < kinds.index("MESSAGES_SNAPSHOT")


def test_a_step_that_is_shown_anew_begins_once_and_its_calls_too():
    agent, at = (
        agui._Agent(None, None, agui._Begun(run_id="r", given=[]), None),
        {"frame": [], "activation": "a", "node": "a"},
    )
    begun = StreamEvent(kind="started", data={**at, "what": "node"})
    call = {"kind": "tool_call", "id": "c", "name": "look", "arguments": {}}
    called = StreamEvent(kind="chunk", data={**at, "chunk": call})
    sent = b"".join(b"".join(agent._frames_of(each)) for each in (begun, called) * 2)
    assert sent.count(b"STEP_STARTED") == sent.count(b"TOOL_CALL_START") == 1
    assert [each.message["id"] for each in agent._acted] == ["c:call"]


def trying(followed: Followed, *, asks: bool) -> Workflow:
    """Return a node that says and does something, takes it back, and does something else."""
    graph = RootGraph("trying")
    graph.create_node(followed, name="followed")

    async def act(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for id in ("c1", "c2"):
            ctx.emit({"kind": "text", "text": "An "})
            ctx.emit({"kind": "tool_call", "id": id, "name": "look", "arguments": {}})
            ctx.emit({"kind": "tool_result", "id": id, "name": "look", "content": id})
            if id == "c1":
                ctx.emit({"kind": "reset", "chunks": 3})
        if asks:
            await ctx.ask("Which?")
        return {"text": "Axil."}

    graph.create_node(act, name="act")
    graph.edge_from_entry("followed", {"name": ""})
    graph.create_edge("followed", "act", {"name": ""})
    graph.edge_to_exit("act", {"text": ""})
    return graph.build()


@pytest.mark.parametrize("asks", [False, True])
def test_calls_that_do_not_count_are_replaced(asks):
    workflows = {"trying": trying(followed := Followed(), asks=asks)}
    service = RunService(MemoryJournal(), workflows, poll_seconds=0.01)
    followed.feed = service.feed
    app = app_of(service, access(), protocols={"ag-ui": AgUi()})
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(BEN)) as client:
        events = asked_of(client, "trying", forwardedProps={"input": {"name": "x"}})
    [snapshot] = [event for event in events if event.type.value == "MESSAGES_SNAPSHOT"]
    ids = [message.id.rpartition(":")[0] or message.id for message in snapshot.messages]
    run_id = snapshot.messages[2].id.partition(":")[0]
    assert ids == ["m", "c2", run_id, *([] if asks else [run_id])]


def runs_of(client: TestClient) -> list[Any]:
    return client.get("/v1/runs").json()["runs"]


def test_a_request_that_is_sent_again_is_about_the_same_run():
    with served() as client:
        asked = {"forwardedProps": {"input": {"name": "ada"}}}
        first = asked_of(client, "greeting", **asked)
        [run] = runs_of(client)
        said = {"id": run["run_id"], "role": "assistant", "content": "Hel"}
        message = {"id": "m", "role": "user", "content": "x"}
        again = asked_of(client, "greeting", **asked, messages=[message, said])
        assert again[-1].result == first[-1].result == {"text": "Hello Ada"}
        # what the front end has of the stream that broke off gives way to the whole
        [snapshot] = [event for event in again if event.type.value == "MESSAGES_SNAPSHOT"]
        assert [each.id for each in snapshot.messages] == ["m"]
        words = [event.delta for event in again if event.type.value == "TEXT_MESSAGE_CONTENT"]
        assert "".join(words) == "Hello Ada"
        assert len(runs_of(client)) == 1
        asked_of(client, "greeting", **asked, runId="r2")
        asked_of(client, "greeting", forwardedProps={"input": {"name": "eve"}})
        assert len(runs_of(client)) == 3


def test_a_request_is_sent_again_whatever_its_messages_say_of_calls():
    message = {"id": "m", "role": "user", "content": "x", "toolCalls": ["x", {}]}
    asked = {"threadId": "t", "runId": "r", "messages": [message]}
    with served() as client:
        for _ in range(2):
            given = {**asked, "forwardedProps": {"input": {"name": "ada"}}}
            answer = client.post("/ag-ui/greeting", json=given)
            assert answer.status_code == 200
            assert "RUN_FINISHED" in answer.text


def test_an_answer_that_is_sent_again_is_followed_and_another_one_refused():
    with served() as client:
        first = asked_of(client, "refund", forwardedProps={"input": {"amount": 2}})
        id = first[-1].outcome.interrupts[0].id
        resume = [{"interruptId": id, "status": "resolved", "payload": "yes"}]
        last = asked_of(client, "refund", resume=resume)
        again = asked_of(client, "refund", resume=resume)
        assert again[-1].result == last[-1].result == {"decision": "2: yes"}
        other = [{"interruptId": id, "status": "resolved", "payload": "no"}]
        body = {"threadId": "t", "runId": "r", "messages": [], "resume": other}
        assert client.post("/ag-ui/refund", json=body).status_code == 409


# ------------------------------------------------------------- what a front end gives along


def talking() -> Workflow:
    """Return a graph that repeats the messages that it received."""
    graph = RootGraph("talking", state="messages")

    def repeat(state: Any, ctx: Context) -> dict[str, Any]:
        said = " | ".join(f"{m['role']}: {m['content']}" for m in state["messages"])
        return {"messages": [{"role": "assistant", "content": said}]}

    graph.create_node(repeat, name="repeat")
    graph.edge_from_entry("repeat")
    graph.edge_to_exit("repeat")
    return graph.build()


class Form(TypedDict):
    """The state of a front end."""

    title: str
    length: int


def shaping() -> Workflow:
    graph = RootGraph("shaping", state=Form)

    def shape(state: Any) -> dict[str, Any]:
        return {"title": state["title"].upper(), "length": len(state["title"])}

    graph.create_node(shape, name="shape")
    graph.edge_from_entry("shape")
    graph.edge_to_exit("shape")
    return graph.build()


@pytest.fixture
def front_end() -> Iterator[TestClient]:
    every = {"talking": talking(), "shaping": shaping(), "greeting": greeting(), "refund": refund()}
    service = RunService(MemoryJournal(), every, poll_seconds=0.01)
    app = app_of(service, access(), protocols={"ag-ui": AgUi()})
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(BEN)) as client:
        yield client


def test_context_comes_before_the_messages(front_end):
    context = [{"description": "The page", "value": "invoices"}]
    events = asked_of(front_end, "talking", context=context)
    said = "".join(event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT")
    assert said == "system: The page: invoices | user: x"


def test_the_state_of_a_front_end_is_that_of_a_typed_graph_and_comes_back(front_end):
    events = asked_of(front_end, "shaping", state={"title": "axil"}, messages=[])
    [snapshot] = [event for event in events if event.type.value == "STATE_SNAPSHOT"]
    assert snapshot.snapshot == {"title": "AXIL", "length": 4}


def test_what_is_given_along_is_kept_with_the_run(front_end):
    asked_of(front_end, "talking", forwardedProps={"page": "invoices"})
    [run] = front_end.get("/v1/runs").json()["runs"]
    kept = front_end.get(f"/v1/runs/{run['run_id']}").json()["metadata"]["ag-ui"]
    assert kept == {"threadId": "t", "runId": "r", "forwardedProps": {"page": "invoices"}}


@pytest.mark.parametrize(
    ("workflow", "given", "name"),
    [
        ("talking", {"tools": [{"name": "a", "description": "", "parameters": {}}]}, "tools"),
        ("greeting", {"context": [{"description": "a", "value": "b"}]}, "context"),
        ("talking", {"context": ["a"]}, "context"),
        ("greeting", {"state": {"title": "x"}}, "state"),
        ("shaping", {"state": {"titel": "x"}}, "state"),
        ("talking", {"more": 1}, "more"),
        ("talking", {"protocolVersion": "2.0"}, "protocolVersion"),
        ("refund", {"resume": [{"interruptId": "a:b"}], "context": [{}]}, "context"),
    ],
)
def test_what_has_no_place_is_refused_and_never_ignored(front_end, workflow, given, name):
    body = {"messages": [{"id": "m", "role": "user", "content": "x"}], **given}
    answer = front_end.post(f"/ag-ui/{workflow}", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)
    assert front_end.get("/v1/runs").json()["runs"] == []


def test_what_is_empty_is_as_if_it_was_not_given(front_end):
    events = asked_of(front_end, "talking", tools=[], context=[], state={}, forwardedProps={})
    assert events[-1].type.value == "RUN_FINISHED"
