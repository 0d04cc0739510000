"""Tests of conversations by voice, against the kit's service with the Realtime API."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from axil import ConfigError, Limits, NodeFailed, RootGraph
from axil.plugin import Grants, granted, make_component
from axil_agent import Agent, SingleAgent
from axil_models import (
    Command,
    Line,
    ModelError,
    PartError,
    Price,
    Pricing,
    Request,
    ToolSpec,
    Usage,
    audio,
)
from axil_openai import OpenAIRealtimeModel
from axil_openai.realtime import Conversation
from axil_openai.realtime_link import Link
from axil_openai.realtime_wire import said_until, wav_of
from axil_testing.stub import Act, Call, RealtimeStub, speech

LONG = "one two three four five six seven eight nine ten"
ASKED = speech(300) + speech(700, 0)
"""Speech, and then silence."""


def book(name: str) -> str:
    """Book a table."""
    return f"A table for {name} is booked."


def realtime(server: RealtimeStub, **more: Any) -> OpenAIRealtimeModel:
    retry = {"first_wait_seconds": 0.01, "longest_wait_seconds": 0.01}
    return OpenAIRealtimeModel("m", server.key, server.url, retry=retry, **more)


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110  # the service is in another thread
            await asyncio.sleep(0.005)


def has_said(server: RealtimeStub, number: int) -> bool:
    return sum(event["type"] == "response.done" for event in server.sent) >= number


class Heard(Line):
    """A line that knows how much came over it."""

    said_bytes = 0

    def say(self, item: str, audio: bytes) -> None:
        self.said_bytes += len(audio)
        super().say(item, audio)


def has_finished(server: RealtimeStub, number: int, line: Heard) -> bool:
    """Return whether so many replies were said and played to their end."""
    sent = [each for each in server.sent if each["type"] == "response.output_audio.delta"]
    size = sum(len(base64.b64decode(each["delta"])) for each in sent)
    return has_said(server, number) and line.said_bytes >= size and line.is_quiet


class Caller:
    """A person at the other end of a line, who does something after so many chunks."""

    def __init__(self, **more: Any) -> None:
        self.microphone: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.line = Line(self._heard(), **more)
        self.played = bytearray()

    async def _heard(self) -> AsyncGenerator[bytes]:
        while (chunk := await self.microphone.get()) is not None:
            yield chunk

    async def listen(self, acts: dict[int, Callable[[], Any]]) -> None:
        number = 0
        async for chunk in self.line:
            self.played += chunk
            number += 1
            if number in acts:
                await acts[number]()


def called(
    server: RealtimeStub, *heard: bytes, chunks: list[Any] | None = None, **agent: Any
) -> tuple[dict[str, Any], bytes]:
    """Return what an agent gives, and the audio, of a call in which a person says this."""
    config = agent.pop("config", {})
    first = agent.pop("agent_begins", True)

    async def call() -> tuple[dict[str, Any], bytes]:
        single = SingleAgent(realtime(server, **config), "You take calls.", **agent)

        async def person() -> AsyncGenerator[bytes]:
            if first:  # who lets the agent finish
                await until(lambda: has_finished(server, 1, line))
            for chunk in heard:
                yield chunk

        line = Heard(person(), agent_begins=first)
        task = line.start(single.run({"message": "Greet."}, on_chunk=(chunks or []).append))
        played = b"".join([chunk async for chunk in line])
        return await task, played

    return asyncio.run(asyncio.wait_for(call(), 15))


@pytest.fixture
def server():
    with RealtimeStub() as stub:
        yield stub


# -- a conversation


def test_a_person_is_heard_answered_and_served_by_tools(server):
    tables = Act(text="Let me see.", calls=(Call(name="book", arguments={"name": "Ada"}),))
    server.say("Good day.", tables, "It is booked.")
    server.hear("A table for Ada.")
    fields, played = called(server, ASKED, tools=[book])
    assert fields["message"].splitlines() == [
        "assistant: Good day.",
        "user: A table for Ada.",
        "assistant: Let me see.",
        "assistant: It is booked.",
    ]
    assert played == speech(800)  # 100 milliseconds a word
    [session] = server.of("session.update")
    assert session["session"]["instructions"] == "You take calls."
    assert [tool["name"] for tool in session["session"]["tools"]] == ["book"]
    turns = session["session"]["audio"]["input"]["turn_detection"]
    assert turns == {"type": "server_vad", "create_response": False, "interrupt_response": False}
    heard = b"".join(
        base64.b64decode(each["audio"]) for each in server.of("input_audio_buffer.append")
    )
    assert heard == ASKED
    [_, result] = server.of("conversation.item.create")
    assert result["item"]["type"] == "function_call_output"
    assert result["item"]["output"] == "A table for Ada is booked."


def test_all_events_are_those_of_the_api(server):
    from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent

    server.say("Hello.", Act(text="So.", calls=(Call(name="book", arguments={"name": "Al"}),)))
    called(server, ASKED, tools=[book], config={"voice": "marin", "settings": {"max_tokens": 99}})
    for kind, events in ((RealtimeClientEvent, server.events), (RealtimeServerEvent, server.sent)):
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        for event in events:
            assert strange(adapter.validate_python(event)) == [], event
    assert len({event["type"] for event in server.sent}) > 15


def strange(value: Any, at: str = "") -> list[str]:
    """Return the fields that the maker's types do not have."""
    if isinstance(value, list):
        return [name for each in value for name in strange(each, at)]
    extra = getattr(value, "model_extra", None)
    if extra is None:
        return []
    found = [f"{at}.{name}" for name in extra]
    for name in type(value).model_fields:
        found += strange(getattr(value, name), f"{at}.{name}")
    return found


def test_a_person_who_begins_is_heard_first(server):
    server.say("Here I am.")
    server.hear("Hello?")
    fields, _ = called(server, ASKED, agent_begins=False)
    assert fields["message"] == "user: Hello?\nassistant: Here I am."


def test_silence_is_no_turn_and_what_is_left_at_the_end_is_one(server):
    server.say("Hello.", "Bye.")
    server.hear("Wait")
    fields, _ = called(server, speech(2000, 0), speech(200))  # cut off while speaking
    assert fields["message"] == "assistant: Hello.\nuser: Wait\nassistant: Bye."
    with RealtimeStub() as other:
        other.say("Hello.")
        assert called(other, speech(900, 0))[0]["message"] == "assistant: Hello."
        assert len(other.of("conversation.item.delete")) == 1  # the silence is no message


def test_an_empty_chunk_ends_what_is_said_where_nothing_detects_it(server):
    server.hear("First.", "Second.")
    fields, _ = called(
        server,
        *(speech(100), b"", speech(100)),
        config={"turn_detection": "none"},
        agent_begins=False,
    )
    assert fields["message"].splitlines()[::2] == ["user: First.", "user: Second."]
    [session] = server.of("session.update")
    assert session["session"]["audio"]["input"]["turn_detection"] is None


def test_what_cannot_be_written_down_is_said_to_be_so(server):
    server.hear("")
    fields, _ = called(server, ASKED, agent_begins=False)
    assert fields["message"].startswith("user: [speech without a transcript]")


# -- interruptions


@pytest.mark.parametrize("pause", [0.0, 0.02], ids=["when it was made", "while it is made"])
def test_an_interruption_silences_the_agent_which_knows_what_was_heard(server, pause):
    server.say(Act(text=LONG, pause_seconds=pause), "Yes?")
    server.hear("Stop.")

    async def call() -> tuple[Any, Caller]:
        caller = Caller()

        async def interrupt() -> None:
            if not pause:
                await until(lambda: has_said(server, 1))
            await caller.microphone.put(ASKED)
            await until(lambda: server.of("conversation.item.truncate"))
            await caller.microphone.put(None)

        agent = SingleAgent(realtime(server))
        task = caller.line.start(agent.run({"message": "Count."}))
        await caller.listen({4: interrupt})
        return await task, caller

    fields, caller = asyncio.run(asyncio.wait_for(call(), 15))
    [cut] = server.of("conversation.item.truncate")
    assert cut["audio_end_ms"] == 300  # the fourth chunk was not played to its end
    assert bool(server.of("response.cancel")) is bool(pause)
    assert caller.played == speech(400 + 100)  # and nothing of what was dropped
    counted, stop, last = fields["message"].splitlines()
    assert counted.endswith("…")
    assert counted.removeprefix("assistant: ").removesuffix("…") in LONG
    assert (stop, last) == ("user: Stop.", "assistant: Yes?")
    assert [e for e in server.sent if e["type"] == "error"] == []


def test_words_are_cut_where_their_sound_was():
    assert said_until(LONG, 1.0) == LONG
    assert said_until(LONG, 0.3) == "one two three…"
    assert said_until(LONG, 0.0) == ""


def test_hanging_up_ends_the_call(server):
    async def call() -> Any:
        caller = Caller()

        async def hang_up() -> None:
            caller.line.hang_up()

        task = caller.line.start(SingleAgent(realtime(server)).run({"message": "Count."}))
        await caller.listen({2: hang_up})
        return await task

    server.say(LONG)
    fields = asyncio.run(asyncio.wait_for(call(), 15))
    assert fields["message"].startswith("assistant: one")


def test_an_agent_ends_a_call_with_a_command(server):
    def over() -> Command:
        """End the call."""
        return Command("Goodbye.", go_to="after")

    server.say(Act(calls=(Call(name="over"),)))

    async def call() -> Any:
        g = RootGraph("desk")
        g.create_node(Agent(realtime(server), tools=[over]), name="talk")
        g.create_node(Agent(realtime(server)), name="after")
        g.edge_from_entry("talk", ["message"])
        g.create_edge("talk", "after", ["message"])
        g.edge_to_exit("after", ["message"])

        async def person() -> AsyncGenerator[bytes]:
            await until(lambda: has_finished(server, 2, line))  # lets the second one finish
            yield ASKED

        line = Heard(person())
        task = line.start(g.build().run({"message": "Hello."}))
        async for _ in line:
            pass
        return await task

    server.say("I take over.", "Gladly.")
    server.hear("Go on.")
    result = asyncio.run(asyncio.wait_for(call(), 15))
    said = ["assistant: I take over.", "user: Go on.", "assistant: Gladly."]
    assert result.output["message"].splitlines() == said  # of the second agent, on the same line
    assert server.connections == 2


# -- failures


def test_a_lost_connection_is_made_anew_and_given_what_was_said(server):
    server.say("Hello.", Act(text=LONG, break_at=0.5), "Again.")
    server.hear("A question.")
    fields, _ = called(server, ASKED)
    assert fields["message"] == "assistant: Hello.\nuser: A question.\nassistant: Again."
    assert server.connections == 2
    said = [each["item"]["content"][0] for each in server.of("conversation.item.create")]
    first = said.pop(0)
    assert [each.get("text") for each in said[:2]] == [first["text"], "Hello."]
    assert said[2]["type"] == "input_audio"  # what was not answered
    assert base64.b64decode(said[2]["audio"]) == ASKED


def test_a_service_that_refuses_says_why_and_the_key_is_not_shown(server, caplog):
    caplog.set_level("DEBUG")
    server.say({"status": 401, "message": f"wrong: {server.key}"})
    with pytest.raises(ModelError, match=r"AX660.*answered 401: wrong: \*+") as failure:
        called(server, ASKED)
    assert server.key not in f"{failure.value!r} {failure.value.__cause__!r} {caplog.text}"
    assert server.headers[0]["Authorization"] == f"Bearer {server.key}"
    server.say({"status": 429, "headers": {"retry-after-ms": "1"}}, "Hello.")
    assert called(server)[0]["message"] == "assistant: Hello."
    assert server.key not in caplog.text


def test_a_failed_response_is_asked_for_again_and_a_mistake_is_not(server):
    server.say(Act(finish="failed"), "Hello.")
    assert called(server)[0]["message"] == "assistant: Hello."
    with pytest.raises(ModelError, match=r"(?s)AX660.*session\.strange"):
        called(server, config={"settings": {"strange": 1}})


def test_what_the_microphone_fails_with_fails_the_call(server):
    async def broken() -> AsyncGenerator[bytes]:
        yield speech(100)
        raise OSError("the microphone is gone")

    async def call() -> Any:
        line = Line(broken())
        task = line.start(SingleAgent(realtime(server)).run({"message": "Hello."}))
        async for _ in line:
            pass
        return await task

    with pytest.raises((OSError, ModelError), match="the microphone is gone"):
        asyncio.run(asyncio.wait_for(call(), 15))


def test_a_call_that_is_cancelled_closes_its_connection(server):
    async def call() -> None:
        before = asyncio.all_tasks()
        caller = Caller()
        task = caller.line.start(SingleAgent(realtime(server)).run({"message": "Hello."}))

        async def cancel() -> None:
            task.cancel()

        await caller.listen({1: cancel})
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: asyncio.all_tasks() <= before)
        await until(lambda: server.open_connections == 0)

    asyncio.run(asyncio.wait_for(call(), 15))


# -- money


def test_audio_has_its_own_price(server):
    used = {"input": 1000, "output": 100, "cached": 0, "audio_in": 800, "audio_out": 60}
    prices = {"input": 4, "output": 16, "audio_input": 32, "audio_output": 64}
    server.say(Act(text="Hi.", usage=used))
    model = realtime(server, prices=prices)
    reply = asyncio.run(model.reply(Request(messages=[{"role": "user", "content": "?"}]), print))
    assert reply.usage == Usage(
        input_tokens=1000,
        output_tokens=100,
        audio_input_tokens=800,
        audio_output_tokens=60,
        cost=(200 * 4 + 800 * 32 + 40 * 16 + 60 * 64) / 1e6,
    )


def test_the_budget_of_a_run_counts_each_turn_and_ends_the_call(server):
    used = {"input": 1000, "output": 100, "cached": 0}
    server.say(*[Act(text="Yes.", usage=used)] * 3)

    async def call() -> Any:
        g = RootGraph("desk", limits=Limits(tokens=2500))
        g.create_node(Agent(realtime(server, settings={"max_tokens": 300})), name="talk")
        g.edge_from_entry("talk", ["message"])
        g.edge_to_exit("talk", ["message"])

        async def person() -> AsyncGenerator[bytes]:
            for number in range(1, 7):
                await until(lambda number=number: has_finished(server, number, line))
                yield ASKED

        line = Heard(person())
        task = line.start(g.build().run({"message": "Hello."}))
        async for _ in line:
            pass
        return await task

    result = asyncio.run(asyncio.wait_for(call(), 15))
    assert result.status == "limited"
    assert len(server.of("response.create")) == 2


TRANSCRIBER = "gpt-4o-mini-transcribe"
BY_TOKENS = {
    "type": "tokens",
    "input_tokens": 20,
    "output_tokens": 4,
    "total_tokens": 24,
    "input_token_details": {"audio_tokens": 15, "text_tokens": 5},
}


def spoken(server: RealtimeStub, *heard: bytes, limits: Limits, **config: Any) -> Any:
    """Return the result of a run in which a person says this when the agent has greeted."""

    async def call() -> Any:
        g = RootGraph("desk", limits=limits)
        g.create_node(Agent(realtime(server, **config)), name="talk")
        g.edge_from_entry("talk", ["message"])
        g.edge_to_exit("talk", ["message"])

        async def person() -> AsyncGenerator[bytes]:
            await until(lambda: has_finished(server, 1, line))
            for chunk in heard:
                yield chunk

        line = Heard(person())
        task = line.start(g.build().run({"message": "Hello."}))
        async for _ in line:
            pass
        return await task

    return asyncio.run(asyncio.wait_for(call(), 15))


@pytest.mark.parametrize(
    ("used", "price", "cost"),
    [
        (BY_TOKENS, Price(input=10, output=50, audio_input=30), (5 * 10 + 15 * 30 + 4 * 50) / 1e6),
        ({"type": "duration", "seconds": 9}, Price(input=0, output=0, audio_hour=0.4), 0.001),
    ],
    ids=["by tokens", "by time"],
)
def test_writing_down_what_is_heard_has_its_price(server, used, price, cost):
    server.transcribed = used
    free = Price(input=0, output=0)
    limits = Limits(cost=1.0, pricing=Pricing(models={"m": free, TRANSCRIBER: price}))
    result = spoken(server, ASKED, limits=limits)
    assert result.status == "done", result.error
    assert result.usage.cost == pytest.approx(cost)
    own = {"input": price.input, "output": price.output}
    own |= {"audio_input": price.audio_input, "audio_hour": price.audio_hour}
    with RealtimeStub() as other:
        other.transcribed = used
        result = spoken(other, ASKED, limits=Limits(), transcription_prices=own)
    assert result.usage.cost == pytest.approx(cost)


@pytest.mark.parametrize("turns", [1, 2])
def test_a_text_that_comes_after_its_turn_is_put_there_and_paid_for(server, monkeypatch, turns):
    monkeypatch.setattr("axil_openai.realtime._TRANSCRIPT_SECONDS", 0.2)
    server.is_late = True
    server.hear(*["A table, please.", "For two."][:turns])
    price = Price(input=0, output=0, audio_hour=3600)
    models = {"m": Price(input=0, output=0), TRANSCRIBER: price}
    limits = Limits(cost=900.0, pricing=Pricing(models=models))

    async def call() -> Any:
        g = RootGraph("desk", limits=limits)
        g.create_node(Agent(realtime(server)), name="talk")
        g.edge_from_entry("talk", ["message"])
        g.edge_to_exit("talk", ["message"])

        async def person() -> AsyncGenerator[bytes]:
            for number in range(1, turns + 1):
                await until(lambda number=number: has_finished(server, number, line))
                yield ASKED
            await until(lambda: has_finished(server, turns + 1, line))

        line = Heard(person())
        task = line.start(g.build().run({"message": "Hello."}))
        async for _ in line:
            pass
        return await task

    result = asyncio.run(asyncio.wait_for(call(), 60))
    said = ["user: A table, please.", "user: For two."][:turns]
    assert result.output["message"].splitlines()[1::2] == said
    assert result.usage.cost == pytest.approx(turns)  # a second each


def test_a_minute_of_what_will_be_said_is_reserved_before_the_agent_listens(server):
    free = Price(input=0, output=0)
    models = {"m": free, TRANSCRIBER: Price(input=0, output=0, audio_hour=6)}
    result = spoken(server, ASKED, limits=Limits(cost=0.09, pricing=Pricing(models=models)))
    assert (result.status, result.error.id) == ("limited", "AX414")
    assert "0.1 more" in str(result.error)
    assert len(server.of("response.create")) == 1  # the greeting
    with RealtimeStub() as other:
        known = Pricing(models={"m": free})
        with pytest.raises(NodeFailed, match=f"AX418.*{TRANSCRIBER}"):
            spoken(other, ASKED, limits=Limits(cost=1.0, pricing=known))
    with RealtimeStub() as other:
        result = spoken(other, ASKED, limits=Limits(cost=1.0, pricing=known), transcription=None)
    assert result.status == "done"


# -- as a model like others


def test_a_recording_is_answered_with_a_recording_and_a_text_with_a_text(server):
    server.say("An angle.", "An angle.")
    model = realtime(server)
    asked = [{"type": "text", "text": "What is it?"}, audio(wav_of(ASKED), name="q.wav")]

    def ask(content: Any) -> Any:
        messages = [{"role": "system", "content": "Brief."}, {"role": "user", "content": content}]
        tools = [ToolSpec(name="book", description="Books.")]
        return asyncio.run(model.reply(Request(messages=messages, tools=tools), lambda _: None))

    heard, read = ask(asked), ask("What is it?")
    [said] = heard.parts
    assert heard.text == read.text == "An angle."
    assert said["media_type"] == "audio/wav"
    assert base64.b64decode(said["data"]) == wav_of(speech(200))
    assert read.parts == ()
    [first, _] = server.of("conversation.item.create")
    assert [part["type"] for part in first["item"]["content"]] == ["input_text", "input_audio"]


def test_a_recording_of_another_form_is_refused_before_it_is_sent(server):
    model = realtime(server)
    asked = Request(messages=[{"role": "user", "content": [audio(b"RIFF\0\0\0\0WAVEfmt ")]}])
    with pytest.raises(PartError, match=r"(?s)AX801.*24000.*ffmpeg"):
        asyncio.run(model.reply(asked, print))
    assert server.of("conversation.item.create") == []


def test_a_file_that_names_another_address_needs_leave_for_the_key(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-own")
    config = {"name": "m", "base_url": server.url, "api_key": {"env": "OPENAI_API_KEY"}}
    with granted(Grants(folder=str(tmp_path))), pytest.raises(ConfigError, match="env:OPENAI"):
        make_component(OpenAIRealtimeModel, config)


def test_a_missing_library_is_named(server, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "websockets", None)
    with pytest.raises(ConfigError, match=r"(?s)AX301.*websockets.*\[realtime\]"):
        called(server)


def test_a_link_whose_closing_is_cancelled_is_cancelled():
    async def go() -> None:
        link = Link(OpenAIRealtimeModel("m").service, None, {}, detects=False)
        link._reading = asyncio.create_task(asyncio.Event().wait())  # type: ignore[assignment]
        await asyncio.sleep(0)
        closing = asyncio.create_task(link.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(go())


def test_a_connection_is_closed_where_the_microphone_has_failed():
    closed: list[str] = []

    class Closing(Link):
        async def close(self) -> None:
            closed.append("closed")

    async def broken() -> AsyncGenerator[bytes]:
        raise OSError("unplugged")
        yield b""

    async def go() -> None:
        model = OpenAIRealtimeModel("m")
        talk = Conversation(model, Line(broken()))
        talk._link = Closing(model.service, None, {}, detects=False)
        talk._pumping = asyncio.create_task(talk._pump())
        await asyncio.wait([talk._pumping])
        with pytest.raises(OSError, match="unplugged"):
            await talk.close()

    asyncio.run(go())
    assert closed == ["closed"]
