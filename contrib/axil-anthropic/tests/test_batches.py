"""Laws of batches of messages."""

from __future__ import annotations

import asyncio
import time

import pytest

from axil_anthropic import AnthropicModel
from axil_models import (
    BatchFile,
    ModelBatches,
    ModelError,
    Prices,
    Request,
    Structure,
    ToolSpec,
    asked_by,
    use_batches,
)
from axil_testing.stub import Act, Call, Stub

QUICK = {"retry": {"first_wait_seconds": 0, "max_tries": 3}}


class Asking:
    """The context of a firing."""

    activation, run_id = "ask#1", "run-1"


def said(body):
    return body["messages"][-1]["content"][0]["text"]


@pytest.fixture
def collected():
    """Return what makes collectors, whose files are closed after the test."""
    made = []

    def make(file=None):
        made.append(file or BatchFile())
        return ModelBatches(
            file=made[-1], quiet_seconds=0.01, first_wait_seconds=0.001, longest_wait_seconds=0.01
        )

    yield make
    for file in made:
        file.close()


async def ask_all(batches, model, *texts, **more):
    """Return the replies, or the errors, of calls at the same time."""

    async def ask(text):
        with asked_by(Asking(), f"model:{text}"):
            request = Request(messages=[{"role": "user", "content": text}], **more)
            return await model.reply(request, lambda chunk: None)

    with use_batches(batches):
        return await asyncio.gather(*map(ask, texts), return_exceptions=True)


def test_messages_are_one_batch_at_half_the_price_and_each_reply_goes_to_its_call(collected):
    with Stub("messages") as server:
        model = AnthropicModel("m", server.key, server.url, prices=Prices(input=1_000_000), **QUICK)
        server.batches.answer = lambda body: f"re {said(body)}"
        server.batches.polls = 2
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
    assert [reply.text for reply in replies] == ["re a", "re b"]
    [batch] = server.batches.made
    assert [line["params"]["model"] for line in batch.lines] == ["m", "m"]
    assert not any("stream" in line["params"] for line in batch.lines)
    assert replies[0].usage.discount == 0.5
    assert replies[0].usage.cost == pytest.approx(11 / 2)
    assert all(server.key in str(each.headers) for each in server.requests)


def test_an_overloaded_or_expired_request_is_asked_again_and_another_error_is_the_calls(collected):
    acts = {
        "busy": [Act(status=529, message="overloaded"), "late"],
        "late": [Act(finish="expired"), "in time"],
        "bad": [Act(status=400, message="no such thing")],
        "gone": [Act(finish="cancelled")],
    }
    with Stub("messages") as server:
        model = AnthropicModel("m", server.key, server.url, **QUICK)
        server.batches.answer = lambda body: acts[said(body)].pop(0)
        replies = asyncio.run(ask_all(collected(), model, *acts))
    assert [reply.text for reply in replies[:2]] == ["late", "in time"]
    assert isinstance(replies[2], ModelError)
    assert (replies[2].status, "no such thing" in str(replies[2])) == (400, True)
    assert "was cancelled" in str(replies[3])
    assert [len(batch.lines) for batch in server.batches.made] == [4, 2]


def test_tools_structures_and_paused_turns_are_as_in_ordinary_calls(collected):
    acts = [Act(text="half ", finish="pause"), Act(text="whole", calls=(Call(name="add"),))]
    tool = ToolSpec(name="add", parameters={"type": "object", "properties": {}})
    shape = Structure(name="N", schema={"type": "object", "properties": {}})
    with Stub("messages") as server:
        model = AnthropicModel("m", server.key, server.url, **QUICK)
        server.say(*acts)
        [reply] = asyncio.run(ask_all(collected(), model, "a", tools=[tool], output=shape))
    assert reply.text == "half whole"
    assert [call.name for call in reply.tool_calls] == ["add"]
    assert len(server.batches.made) == 2
    assert server.batches.made[0].lines[0]["params"]["output_config"]["format"]


def test_a_batch_whose_answer_was_lost_is_found_again_and_anothers_is_not_ours(collected):
    with Stub("messages") as server:
        model = AnthropicModel("m", server.key, server.url, **QUICK)
        server.batches.answer = lambda body: f"re {said(body)}"
        server.batches.drops = 1
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
        assert [reply.text for reply in replies] == ["re a", "re b"]
        assert len(server.batches.made) == 1

        file, other = BatchFile(), collected()
        asyncio.run(ask_all(other, model, "x"))  # of one request, as ours
        place = f"{server.url}  /v1/messages/batches"
        batches = collected(file)
        with asked_by(Asking(), "model:c"):
            from axil_anthropic.batch import AnthropicBatches

            request = Request(messages=[{"role": "user", "content": "c"}])
            body = {k: v for k, v in model._asked(request).items() if v is not None}
            key = batches._key(AnthropicBatches(model.service), body)
        file.begin(place, "token", {key: "run-1"}, time.time())
        [reply] = asyncio.run(ask_all(batches, model, "c"))
    assert reply.text == "re c"
    assert len(server.batches.made) == 3


def test_a_request_with_headers_of_its_own_is_refused_with_the_reason(collected):
    with Stub("messages") as server:
        settings = {"extra_headers": {"anthropic-beta": "a-beta"}}
        model = AnthropicModel("m", server.key, server.url, settings=settings, **QUICK)
        [error] = asyncio.run(ask_all(collected(), model, "a"))
    assert "cannot hold a request with extra_headers" in str(error)
    assert server.requests == []
