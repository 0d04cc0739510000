"""Laws of Responses, held with OpenAI's own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any

import openai
import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from axil import RootGraph, Workflow
from axil_journals import MemoryJournal
from axil_serve import RunService, app_of
from axil_serve.responses import Responses

from .conftest import (
    ADA,
    BEN,
    FITTING,
    Followed,
    access,
    as_caller,
    broken_off,
    greeting,
    refund,
    triage,
)


class Talk(BaseModel):
    messages: Annotated[list[dict[str, Any]], "append_messages"] = []
    turn: int = 0


def counting() -> Workflow:
    """Return a conversation: it says how many messages it received, and its turn."""

    graph = RootGraph("counting", state=Talk)

    def count(state: Any) -> dict[str, Any]:
        turn = state.turn + 1
        text = f"{len(state.messages)} in turn {turn}"
        return {"turn": turn, "messages": [{"role": "assistant", "content": text}]}

    graph.create_node(count, name="count")
    graph.edge_from_entry("count")
    graph.edge_to_exit("count")
    return graph.build()


def breaking() -> Workflow:
    graph = RootGraph("breaking")

    def fail(inputs: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no paper")

    graph.create_node(fail, name="fail")
    graph.edge_from_entry("fail", {"message": ""})
    graph.edge_to_exit("fail", {"text": ""})
    return graph.build()


@pytest.fixture
def http() -> Iterator[TestClient]:
    followed = Followed()
    workflows = {
        "greeting": greeting(),
        "refund": refund(),
        "triage": triage(followed),
        "counting": counting(),
        "breaking": breaking(),
        "broken": broken_off(followed),
    }
    service = RunService(MemoryJournal(), workflows, poll_seconds=0.01)
    followed.feed = service.feed
    app = app_of(service, access(), protocols={"responses": Responses()})
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def responses_of(http: Any, token: str = ADA) -> Any:
    client = openai.OpenAI(
        base_url="http://127.0.0.1/v1", api_key=token, http_client=http, max_retries=0
    )
    return client.responses


def test_a_response_is_a_run_and_is_retrieved_by_its_id(http):
    responses = responses_of(http)
    given = {"input": {"name": "ada"}}
    done = responses.create(model="greeting", metadata={"for": "x"}, extra_body=given)
    assert (done.status, done.output_text) == ("completed", "Hello Ada")
    again = responses.retrieve(done.id)
    assert (again.output_text, again.metadata, again.model) == (
        "Hello Ada",
        {"for": "x"},
        "greeting",
    )
    with pytest.raises(openai.NotFoundError):
        responses_of(http, BEN).retrieve(done.id)
    run = http.get(f"/v1/runs/{done.id}", headers=as_caller(ADA)).json()
    assert run["status"] == "done"


def test_events_of_a_stream_are_those_of_the_protocol(http):
    given = {"input": {"name": "ada"}}
    with responses_of(http).stream(model="greeting", extra_body=given, input="x") as stream:
        events = list(stream)  # the client accumulates them, and refuses what does not fit
        final = stream.get_final_response()
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * (len(events) - 8),
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    said = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(said) == final.output_text == "Hello Ada"


def test_words_that_do_not_count_are_an_item_of_their_own_that_is_incomplete(http):
    with responses_of(http).stream(
        model="broken", input="x", extra_body={"input": {"name": "x"}}
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert final.output_text == "An angle."
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [(each.status, each.content[0].text) for each in done] == [
        ("incomplete", "An axil is"),
        ("completed", "An angle."),
    ]
    assert len({each.id for each in done}) == 2
    assert final.output[0].id == done[1].id
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert [(each.output_index, each.delta) for each in deltas] == [
        (0, "An axil is"),
        (1, "An angle."),
    ]


def test_a_structured_reply_is_sent_once_when_it_fits(http):
    given = {"input": {"text": "x"}}
    with responses_of(http).stream(model="triage", extra_body=given, input="x") as stream:
        events = list(stream)
    said = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert json.loads("".join(said)) == FITTING[-1]


def test_a_previous_response_is_continued_with_its_messages_and_its_state(http):
    responses = responses_of(http)
    first = responses.create(model="counting", input="a", instructions="be brief")
    second = responses.create(model="counting", input="b", previous_response_id=first.id)
    assert first.output_text == "2 in turn 1"
    assert second.output_text == "4 in turn 2"
    assert second.previous_response_id == first.id
    assert second.conversation.id == first.conversation.id
    with pytest.raises(openai.BadRequestError, match="continued with"):
        responses.create(model="counting", input="c", previous_response_id=first.id)
    with pytest.raises(openai.NotFoundError):
        responses_of(http, BEN).create(model="counting", input="c", previous_response_id=second.id)


def test_a_conversation_is_a_session_and_those_of_callers_are_apart(http):
    said = [
        responses_of(http, token).create(model="counting", input="a", conversation="s").output_text
        for token in (ADA, ADA, BEN)
    ]
    assert said == ["1 in turn 1", "3 in turn 2", "1 in turn 1"]


def test_a_question_is_the_response_and_the_next_input_its_answer(http):
    responses = responses_of(http)
    asked = responses.create(model="refund", extra_body={"input": {"amount": 3}})
    assert asked.output_text == "Refund 3?"
    answered = responses.create(model="refund", input="yes", previous_response_id=asked.id)
    assert (answered.id, answered.output_text) == (asked.id, "3: yes")


def test_a_response_in_the_background_is_cancelled(http):
    responses = responses_of(http)
    begun = responses.create(model="refund", extra_body={"input": {"amount": 3}}, background=True)
    assert begun.status in ("queued", "in_progress", "completed")
    assert responses.cancel(begun.id).status == "cancelled"


def test_a_failed_run_is_a_failed_response_and_a_wrong_request_an_error(http):
    responses = responses_of(http)
    failed = responses.create(model="breaking", input="x")
    assert failed.status == "failed"
    assert "no paper" in failed.error.message
    events = list(responses.create(model="breaking", input="x", stream=True))
    assert events[-1].type == "response.failed"
    image = [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]
    for input, match in (([], "messages"), (image, "not a text"), (None, "messages")):
        with pytest.raises(openai.BadRequestError, match=match):
            responses.create(model="greeting", input=input)
    with pytest.raises(openai.NotFoundError, match="there is no workflow"):
        responses.create(model="none", input="x")
    with pytest.raises(openai.BadRequestError, match="not repeated"):
        responses.retrieve(failed.id, stream=True)
