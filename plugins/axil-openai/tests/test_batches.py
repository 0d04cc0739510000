"""Laws of batches: collected calls, replies to the calls that wait, errors as of ordinary calls."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import contextmanager

import pytest

from axil import ConfigError
from axil_models import (
    BatchFile,
    ModelBatches,
    ModelError,
    Prices,
    Request,
    Structure,
    asked_by,
    use_batches,
)
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import Act, Stub

QUICK = {"retry": {"first_wait_seconds": 0, "max_tries": 3}, "profile": "openai"}
WAYS = [("chat", OpenAIModel), ("responses", OpenAIResponsesModel)]


class Asking:
    """The context of a firing."""

    activation = "ask#1"

    def __init__(self, run):
        self.run_id = run


class Unknown:
    """A model that knows nothing of batches."""

    async def reply(self, request, emit):
        raise AssertionError(request)


def said(body):
    """Return the last text of a request."""
    return (body.get("messages") or body["input"])[-1]["content"]


@pytest.fixture
def collected():
    """Return what makes collectors, whose files are closed after the test."""
    made = []

    def make(path=None):
        made.append(BatchFile(path))
        return ModelBatches(
            file=made[-1], quiet_seconds=0.01, first_wait_seconds=0.001, longest_wait_seconds=0.01
        )

    yield make
    for file in made:
        file.close()


async def ask(model, text, run="", **more):
    request = Request(messages=[{"role": "user", "content": text}], **more)
    with asked_by(Asking(run or f"run-{text}"), "model:1"):
        return await model.reply(request, lambda chunk: None)


async def submitted(batches):
    """Wait until a batch is submitted."""
    known = asyncio.Event()
    batches.changed = known.set
    await known.wait()


async def ask_all(batches, model, *texts):
    """Return the replies, or the errors, of calls at the same time."""
    try:
        with use_batches(batches):
            asked = [ask(model, text) for text in texts]
            return await asyncio.gather(*asked, return_exceptions=True)
    finally:
        await batches.close()


@contextmanager
def serving(dialect="chat", kind=OpenAIModel, **config):
    with Stub(dialect) as server:
        server.batches.answer = lambda body: f"re {said(body)}"
        yield server, kind("m", server.key, server.url, **{**QUICK, **config})


@pytest.mark.parametrize(("dialect", "kind"), WAYS)
def test_calls_are_one_batch_at_half_the_price_and_each_reply_goes_to_its_call(
    dialect, kind, collected
):
    with serving(dialect, kind, prices=Prices(input=1_000_000)) as (server, model):
        server.batches.polls = 3
        batches = collected()
        replies = asyncio.run(ask_all(batches, model, "a", "b", "c"))
    assert [reply.text for reply in replies] == ["re a", "re b", "re c"]
    [batch] = server.batches.made
    assert batch.about["endpoint"] in ("/v1/chat/completions", "/v1/responses")
    assert {line["url"] for line in batch.lines} == {batch.about["endpoint"]}
    assert not any("stream" in key for line in batch.lines for key in line["body"])
    assert batch.about["completion_window"] == "24h"
    assert replies[0].usage.discount == 0.5
    assert replies[0].usage.cost == pytest.approx(11 / 2)
    assert batches.sent == {"batch_1": 3}
    assert server.key not in str(server.batches.made)


def test_a_busy_or_expired_request_is_asked_again_and_another_error_is_the_calls(collected):
    acts = {
        "busy": [Act(status=429, message="slow down"), "late"],
        "late": [Act(finish="expired"), "in time"],
        "bad": [Act(status=400, message="no such thing")],
        "gone": [Act(finish="cancelled")],
    }
    with serving() as (server, model):
        server.batches.answer = lambda body: acts[said(body)].pop(0)
        replies = asyncio.run(ask_all(collected(), model, *acts))
    assert [reply.text for reply in replies[:2]] == ["late", "in time"]
    assert isinstance(replies[2], ModelError)
    assert replies[2].status == 400
    assert "no such thing" in str(replies[2])
    assert "batch_cancelled" in str(replies[3]) or "cancelled" in str(replies[3])
    assert [len(batch.lines) for batch in server.batches.made] == [4, 2]


def test_a_batch_that_fails_as_a_whole_says_why_to_every_call(collected):
    with serving() as (server, model):
        server.batches.failure = {"code": "invalid_json_line", "message": "Line 1 is bad."}
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
    assert all("Line 1 is bad." in str(reply) for reply in replies)
    assert len(server.batches.made) == 1


def test_no_batch_is_larger_than_its_service_allows(monkeypatch, collected):
    from axil_openai import batch

    class Small(batch.OpenAIBatches):
        def __init__(self, *given):
            super().__init__(*given, most_requests=2)

    monkeypatch.setattr("axil_openai.streamed.OpenAIBatches", Small)
    with serving() as (server, model):
        replies = asyncio.run(ask_all(collected(), model, *"abcde"))
    assert [reply.text for reply in replies] == [f"re {text}" for text in "abcde"]
    assert sorted(len(batch.lines) for batch in server.batches.made) == [1, 2, 2]


def test_a_request_that_is_too_large_for_a_batch_is_not_sent(monkeypatch, collected):
    from axil_openai import batch

    class Small(batch.OpenAIBatches):
        def __init__(self, *given):
            super().__init__(*given, most_bytes=400)

    monkeypatch.setattr("axil_openai.streamed.OpenAIBatches", Small)
    with serving() as (server, model):
        small, large = asyncio.run(ask_all(collected(), model, "a", "b" * 500))
    assert small.text == "re a"
    assert "too large for a batch (400)" in str(large)
    assert len(server.batches.requests) == 1


def test_another_process_takes_the_replies_and_submits_nothing_twice(tmp_path, collected):
    path = tmp_path / "calls.batches"

    async def left(batches, model):
        with use_batches(batches):
            calls = [asyncio.ensure_future(ask(model, text)) for text in "ab"]
            await submitted(batches)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert batches.left() == ["batch_1"]
        await batches.close()

    with serving() as (server, model):
        server.batches.held = True
        asyncio.run(left(collected(path), model))
        server.batches.held = False
        again = collected(path)
        replies = asyncio.run(ask_all(again, model, "a", "b", "c"))
    assert [reply.text for reply in replies] == ["re a", "re b", "re c"]
    assert [len(batch.lines) for batch in server.batches.made] == [2, 1]
    assert again.taken_on == {"batch_1": None}
    assert b"re a" not in path.read_bytes()


def test_a_batch_whose_answer_was_lost_is_found_again(collected):
    with serving() as (server, model):
        server.batches.drops = 1
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
    assert [reply.text for reply in replies] == ["re a", "re b"]
    assert len(server.batches.made) == 1


def test_what_never_arrived_is_submitted_again(collected):
    with serving() as (server, model):
        server.batches.faults = [Act(status=503)]
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
    assert [reply.text for reply in replies] == ["re a", "re b"]
    assert len(server.batches.made) == 1


def test_calls_with_keys_of_two_accounts_are_in_two_batches(collected):
    async def both(batches, *models):
        with use_batches(batches):
            asked = [ask(model, "a") for model in models]
            replies = await asyncio.gather(*asked, return_exceptions=True)
        await batches.close()
        return replies

    with serving() as (server, model):
        other = OpenAIModel("m", "another-key", server.url, **QUICK)
        replies = asyncio.run(both(collected(), model, other))
        keys = {each.headers["authorization"] for each in server.requests}
    assert [reply.text for reply in replies] == ["re a", "re a"]
    assert len(server.batches.made) == 2
    assert keys == {f"Bearer {server.key}", "Bearer another-key"}


@pytest.mark.parametrize("act", ["begin", "name", "calls_of"])
def test_a_file_that_cannot_be_written_is_the_error_of_every_call(act, collected, monkeypatch):
    def full(*given):
        raise sqlite3.OperationalError("database or disk is full")

    with serving() as (_server, model):
        batches = collected()
        monkeypatch.setattr(batches.file, act, full)
        replies = asyncio.run(asyncio.wait_for(ask_all(batches, model, "a", "b"), 30))
    assert [str(reply) for reply in replies] == ["database or disk is full"] * 2


def test_a_wrong_key_is_the_error_of_every_call_and_is_asked_once(collected):
    with serving() as (server, model):
        server.batches.faults = [Act(status=401, message="wrong key")]
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
    assert [reply.status for reply in replies] == [401, 401]
    assert len(server.requests) == 1


def test_a_service_that_forgot_a_batch_is_asked_anew(collected):
    async def forgotten(batches, model, server):
        with use_batches(batches):
            call = asyncio.ensure_future(ask(model, "a"))
            await submitted(batches)
            server.batches.made.clear()
            return await call

    with serving() as (server, model):
        assert asyncio.run(forgotten(collected(), model, server)).text == "re a"
    assert len(server.batches.made) == 1


def test_a_form_that_the_service_refuses_is_followed_by_the_next(collected):
    structure = Structure(name="N", schema={"type": "object", "properties": {}})

    def answer(body):
        if body.get("response_format", {}).get("type") == "json_schema":
            return Act(status=400, message="response_format json_schema is not supported")
        return "{}"

    async def once(batches, model):
        with use_batches(batches):
            return await ask(model, "a", output=structure)

    with serving() as (server, model):
        server.batches.answer = answer
        assert asyncio.run(once(collected(), model)).text == "{}"
    assert len(server.batches.made) == 3


def test_equal_requests_in_one_step_have_replies_of_their_own(collected):
    numbers = iter("12")

    async def two(batches, model):
        with use_batches(batches):
            return await asyncio.gather(ask(model, "a", "r"), ask(model, "a", "r"))

    with serving() as (server, model):
        server.batches.answer = lambda body: next(numbers)
        replies = asyncio.run(two(collected(), model))
    assert sorted(reply.text for reply in replies) == ["1", "2"]
    assert len(set(server.batches.requests)) == 2


def test_a_model_without_a_batch_api_is_refused_with_the_reason(collected):
    for model, reason in (
        (Unknown(), "has no batch API"),
        (OpenAIModel("m", base_url="http://127.0.0.1:9/v1"), "127.0.0.1:9"),
        (OpenAIModel("m", profile="groq"), "Groq"),
    ):
        with pytest.raises(ConfigError, match=reason) as caught:
            collected().check(model)
        assert caught.value.id == "AX981"
    collected().check(OpenAIModel("m", profile="openai"))


def test_azures_batches_are_asked_for_at_azures_address_with_its_key(collected):
    with serving(profile="azure") as (server, model):
        replies = asyncio.run(ask_all(collected(), model, "a", "b"))
        paths = {each.path for each in server.requests}
        keys = {each.headers["authorization"] for each in server.requests}
    assert [reply.text for reply in replies] == ["re a", "re b"]
    assert {path.rpartition("/v1/")[2].partition("/")[0] for path in paths} == {"files", "batches"}
    assert keys == {f"Bearer {server.key}"}
    [batch] = server.batches.made
    assert {line["body"]["model"] for line in batch.lines} == {"m"}  # the deployment


def test_a_file_is_of_one_process_and_goes_when_no_call_is_left(tmp_path):
    path = tmp_path / "calls.batches"
    first = BatchFile(path)
    with pytest.raises(ConfigError, match="in use by another process") as caught:
        BatchFile(path)
    assert caught.value.id == "AX982"
    first.begin("place", "token", {"key": "run"}, 0.0)
    first.take("key")
    first.close()
    second = BatchFile(path)
    assert second.batch_of("key").token == "token"
    second.take("key")
    second.settle("run")
    second.close()
    assert not path.exists()
