"""The kit of models that talk on a line: what they do while a person speaks, interrupts, hangs up,
and the service refuses or is lost.

    class TestMine(TalkKit):
        def make(self, server):
            return MyModel("m", api_key=server.key, base_url=server.url)

The service is a ``RealtimeStub``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

from axil_models import Line, ModelError, Reply, Request, Talk, ToolSpec
from axil_testing.kit.base import require
from axil_testing.kit.served import ServedKit
from axil_testing.stub import Act, Call, RealtimeStub, speech

_SPOKEN: Final = speech(300) + speech(700, 0)
_LONG: Final = "one two three four five six seven eight nine ten"
_ADD: Final = ToolSpec(name="add", description="Adds numbers.")
_FIRST: Final = {"role": "user", "content": "A guest calls."}

Doing = Callable[[Talk, Request, Line], Awaitable[Any]]


class TalkKit(ServedKit):
    """The laws of models that can talk, beside those of every kind."""

    # -- what laws use

    def call(self, server: RealtimeStub, doing: Doing, *heard: bytes) -> tuple[Any, bytes]:
        """Return what ``doing`` gives in a conversation in which a person says this, and what was
        played. Afterwards no connection may be open.
        """

        async def person() -> AsyncGenerator[bytes]:
            for chunk in heard:
                yield chunk

        async def talked(line: Line) -> Any:
            model = self.make(server)
            async with model.talking(line) as talk:
                return await doing(talk, Request(messages=[_FIRST], tools=[_ADD]), line)

        async def both() -> tuple[Any, bytes]:
            line = Line(person())
            task = line.start(talked(line))
            played = b"".join([chunk async for chunk in line])
            return await task, played

        result = self.wait(both())
        until = time.monotonic() + 30
        while server.open_connections and time.monotonic() < until:
            time.sleep(0.005)
        require(server.open_connections == 0, "a connection is left open.")
        return result

    # -- laws

    def test_a_reply_is_spoken_and_its_text_is_shown(self) -> None:
        """Audio on the line, text in the reply and in chunks."""
        shown: list[Any] = []
        with RealtimeStub() as server:
            server.say("Good day.")

            async def greet(talk: Talk, request: Request, line: Line) -> Reply:
                return await talk.reply(request, shown.append)

            reply, played = self.call(server, greet)
        text = "".join(each["text"] for each in shown if each.get("kind") == "text")
        require(reply.text == text == "Good day.", f"it says {reply.text!r} and shows {text!r}.")
        require(played == speech(200), f"{len(played)} bytes were played, not {len(speech(200))}.")
        require(reply.usage.input_tokens == 11, f"its usage is {reply.usage}.")

    def test_what_is_heard_is_a_part_of_the_reply_and_the_end_is_no_turn(self) -> None:
        """Listening gives True for what was said, and False when the person has gone."""
        with RealtimeStub() as server:
            server.hear("A table, please.")
            server.say("Certainly.")

            async def answer(talk: Talk, request: Request, line: Line) -> Any:
                first = await talk.listen(request, print)
                reply = await talk.reply(request, lambda chunk: None)
                heard = {"role": "user", "content": "A table, please."}
                after = Request(messages=[*request.messages, heard, reply.message()])
                return first, reply, await talk.listen(after, print)

            (first, reply, last), _ = self.call(server, answer, _SPOKEN)
        heard = [part["text"] for part in reply.parts if part.get("type") == "heard"]
        require((first, last) == (True, False), f"listening gave {first}, then {last}.")
        require(heard == ["A table, please."], f"it heard {heard}.")

    def test_an_interruption_ends_a_reply_with_the_words_that_were_played(self) -> None:
        """The reply is ``interrupted``; what waited to be played is dropped."""
        with RealtimeStub() as server:
            server.say(Act(text=_LONG, pause_seconds=0.02))
            server.hear("Stop.")

            async def count(talk: Talk, request: Request, line: Line) -> Reply:
                return await talk.reply(request, lambda chunk: None)

            reply, played = self.call(server, count, _SPOKEN)
        words = reply.text.removesuffix("…")
        require(reply.finish == "interrupted", f"it ended with {reply.finish!r}.")
        require(_LONG.startswith(words) and words != _LONG, f"the text is {reply.text!r}.")
        require(len(played) < len(speech(1000)), "all of it was played.")

    def test_tools_are_called_and_their_results_go_back(self) -> None:
        """Calls have arguments as data, and the service knows the result's call."""
        with RealtimeStub() as server:
            server.say(Act(calls=(Call(name="add", arguments={"a": 1}),)), "Two.")

            async def add(talk: Talk, request: Request, line: Line) -> Any:
                first = await talk.reply(request, lambda chunk: None)
                result = {"role": "tool", "name": "add", "content": "2"}
                result["tool_call_id"] = first.tool_calls[0].id
                more = Request(messages=[*request.messages, first.message(), result], tools=[_ADD])
                return first, await talk.reply(more, lambda chunk: None)

            (first, second), _ = self.call(server, add)
            errors = [each["error"] for each in server.sent if each["type"] == "error"]
        refused = [error for error in errors if error["code"] == "invalid_value"]
        calls = [(call.name, dict(call.arguments)) for call in first.tool_calls]
        require(calls == [("add", {"a": 1})], f"it called {calls}.")
        require(first.finish == "tools" and second.text == "Two.", f"it said {second.text!r}.")
        require(not refused, f"the service refused: {refused}")

    def test_a_lost_connection_is_made_anew(self) -> None:
        """The reply that broke off is said from its beginning."""
        with RealtimeStub() as server:
            server.say(Act(text=_LONG, break_at=0.5), "Again.")

            async def answer(talk: Talk, request: Request, line: Line) -> Reply:
                return await talk.reply(request, lambda chunk: None)

            reply, _ = self.call(server, answer)
        require(reply.text == "Again.", f"it said {reply.text!r}.")
        require(server.connections == 2, f"there were {server.connections} connections.")

    def test_a_refusal_of_the_service_is_an_error_without_the_key(self) -> None:
        """It is asked once, and what it says is shown."""
        with RealtimeStub() as server:
            server.say({"status": 401, "message": f"wrong: {server.key}"})
            found: list[ModelError] = []

            async def refused(talk: Talk, request: Request, line: Line) -> None:
                try:
                    await talk.reply(request, lambda chunk: None)
                except ModelError as error:
                    found.append(error)

            self.call(server, refused)
        require(found and "wrong:" in str(found[0]), f"expected a ModelError, found {found}.")
        require(server.key not in f"{found[0]} {found[0]!r}", "the key is shown.")
        require(len(server.headers) == 1, "it was asked again.")

    def test_cancelling_a_conversation_closes_its_connection(self) -> None:
        """Also while it waits for the person."""
        with RealtimeStub() as server:

            async def waits(talk: Talk, request: Request, line: Line) -> None:
                await talk.reply(request, lambda chunk: None)
                listening = asyncio.ensure_future(talk.listen(request, print))
                await asyncio.sleep(0)
                listening.cancel()
                await asyncio.wait({listening})
                require(listening.cancelled(), "listening went on.")

            self.call(server, waits, speech(100))

    def test_hanging_up_ends_what_is_awaited(self) -> None:
        """Nothing more is said or heard."""
        with RealtimeStub() as server:
            server.say(Act(text=_LONG, pause_seconds=0.02))

            async def hang_up(talk: Talk, request: Request, line: Line) -> Any:
                replying = asyncio.ensure_future(talk.reply(request, lambda chunk: None))
                line.hang_up()
                await replying
                return await talk.listen(request, print)

            heard, played = self.call(server, hang_up, speech(100))
        require(heard is False, f"listening gave {heard}.")
        require(played == b"", "something was played.")


__all__ = ["TalkKit"]
