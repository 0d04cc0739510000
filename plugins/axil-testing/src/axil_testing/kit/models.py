"""The kit of model adapters: what they do when a service answers, hesitates, fails, breaks off.

    class TestMine(ModelKit):
        dialect = "chat"

        def make(self, server):
            return MyModel("m", api_key=server.key, base_url=server.url)

The service is a ``Stub``; the adapter's waits between tries are on a clock that jumps. What not
every service can do is a claim.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import threading
import time
import warnings
from collections.abc import Generator
from typing import Any, ClassVar, Final

from axil import AxilError, RootGraph
from axil_agent import Agent
from axil_models import (
    Model,
    PartError,
    Reply,
    Request,
    Structure,
    ToolSpec,
    audio,
    file,
    image,
    on_clock,
)
from axil_testing.clock import JumpingClock
from axil_testing.kit.base import claimed, require
from axil_testing.kit.exchange import Exchange
from axil_testing.kit.imports import imported
from axil_testing.kit.served import ServedKit
from axil_testing.stub import Act, Address, Call, Stub

_PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(range(32))
_PARTS: Final = {
    "image": image(_PNG, name="leaf.png"),
    "file": file(b"%PDF-1.7 axil", name="leaf.pdf"),
    "audio": audio(b"RIFF\0\0\0\0WAVEfmt "),
}
_ADD: Final = ToolSpec(
    name="add",
    description="Adds numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
_SHAPE: Final = Structure(
    name="Leaf",
    schema={
        "type": "object",
        "properties": {"colour": {"type": "string"}, "veins": {"type": "integer"}},
        "required": ["colour", "veins"],
    },
)
_LONG: Final = "An axil is where the leaf meets the stem."
_SILENCE_SECONDS: Final = 0.7


def asking(*said: Any, **more: Any) -> Request:
    """Return a request: a user's messages, after a system's."""
    messages = [
        {"role": "system", "content": "You are a botanist."},
        *({"role": "user", "content": each} for each in said or ("What is an axil?",)),
    ]
    return Request(messages=messages, **more)


class ModelKit(ServedKit):
    """The laws of ``axil.models``."""

    dialect: ClassVar[str] = "chat"
    """The protocol of the stub: ``chat``, ``responses``, ``messages``, ``generate``."""
    sdk: ClassVar[str] = ""
    """The module that only a call may import."""
    textual_arguments: ClassVar[bool] = True
    """Arguments of tools come as text, which may be no JSON."""
    refuses: ClassVar[bool] = True
    """The service can say that it refuses."""
    streams_calls: ClassVar[bool] = True
    """Tool calls come in pieces."""
    thinks: ClassVar[bool] = True
    """The service shows its reasoning."""
    seals: ClassVar[bool] = False
    """The service wants something back with a reply."""
    has_connections: ClassVar[bool] = True

    # -- what laws use

    @contextlib.contextmanager
    def served(self, *acts: Any) -> Generator[tuple[Stub, Any]]:
        """Give a stub that will do ``acts``, and a model that calls it.

        Afterwards nothing may be open, and no thread left.
        """
        before = set(threading.enumerate())
        with Stub(self.dialect) as server:
            server.say(*acts)
            yield server, self.make(server)
            if server.open_connections(0):
                gc.collect()  # what only a cycle of objects holds is none of the model's faults
            require(
                server.open_connections() == 0,
                f"{server.open_connections(0)} connections are left open.",
            )
        until = time.monotonic() + 30
        while (
            left := [t for t in threading.enumerate() if t not in before and t.is_alive()]
        ) and time.monotonic() < until:
            time.sleep(0.01)
        require(not left, f"threads are left: {left}")

    def call(self, model: Model, request: Request | None = None) -> Exchange:
        """Return the result of one call on a separate event loop."""
        return self.wait(self.call_async(model, request))

    async def call_async(self, model: Model, request: Request | None = None) -> Exchange:
        """Return the result of one call."""
        result, clock = Exchange(), JumpingClock()
        with on_clock(clock):
            try:
                result.reply = await model.reply(request or asking(), result.chunks.append)
            except AxilError as error:
                result.error = error
        result.waits = clock.waits
        return result

    # -- answers

    def test_an_answer_is_streamed_and_whole(self) -> None:
        """Text, why it ended, and which model it was."""
        with self.served(_LONG) as (_, model):
            result = self.call(model)
            require(result.answer.text == _LONG, f"the text is {result.answer.text!r}")
            require(
                result.shown == _LONG and len(result.of("text")) > 1,
                f"it was not streamed: {result.chunks}",
            )
            require(result.answer.finish == "stop", f"it ended with {result.answer.finish!r}")
            require(result.answer.model == "stub-1", "Reply.model is what the service says")

    def test_text_of_all_languages_comes_and_goes(self) -> None:
        """Also half of a surrogate pair, which Python can hold and UTF-8 cannot."""
        text = "Blattachsel, 腋, \U0001f33f, \ud83c"
        with self.served("腋 \U0001f33f é") as (server, model):
            require(
                self.call(model, asking(text)).answer.text == "腋 \U0001f33f é",
                "the answer's text is changed",
            )
            require(
                "Blattachsel, 腋, \U0001f33f" in server.requests[0].text,
                "the request's text is changed",
            )

    def test_all_roles_and_settings_reach_the_service(self) -> None:
        """A conversation with a tool's result, temperature and a limit."""
        called = {"id": "call_9", "name": "add", "arguments": {"a": 41, "b": 1}}
        messages = [
            *asking("Add.").messages,
            {"role": "assistant", "content": "I will.", "tool_calls": [called]},
            {"role": "tool", "name": "add", "tool_call_id": "call_9", "content": "forty-two"},
        ]
        with self.served("It is 42.") as (server, model):
            asked = Request(
                messages=messages, tools=[_ADD], settings={"temperature": 0.25, "max_tokens": 77}
            )
            require(self.call(model, asked).answer.text == "It is 42.", "it was not answered")
            sent = server.requests[0].text
            for word in (
                "You are a botanist.",
                "Add.",
                "I will.",
                "add",
                "41",
                "forty-two",
                "Adds numbers.",
                "0.25",
                "77",
            ):
                require(word in sent, f"{word!r} is not in the request: {sent}")

    def test_several_tool_calls_are_read(self) -> None:
        """With ids that differ, and arguments as data."""
        with self.served(
            Act(
                calls=(
                    Call(name="add", arguments={"a": 1, "b": 2}),
                    Call(name="add", arguments={"a": 3, "b": 4}),
                )
            )
        ) as (
            _,
            model,
        ):
            answer = self.call(model, asking(tools=[_ADD])).answer
            require(
                [dict(c.arguments) for c in answer.tool_calls]
                == [{"a": 1, "b": 2}, {"a": 3, "b": 4}],
                f"found {answer.tool_calls}",
            )
            require(
                len({c.id for c in answer.tool_calls}) == 2 and answer.finish == "tools",
                f"found {answer}",
            )

    @claimed("streams_calls")
    def test_the_progress_of_tool_calls_is_shown(self) -> None:
        """Name and arguments as they grow."""
        with self.served(Act(calls=(Call(name="add", arguments={"a": 1, "b": 2}),))) as (_, model):
            deltas = self.call(model, asking(tools=[_ADD])).of("tool_call_delta")
            grown = "".join(delta["arguments"] for delta in deltas)
            require(
                {d["name"] for d in deltas} == {"add"} and json.loads(grown) == {"a": 1, "b": 2},
                f"found {deltas}",
            )

    @claimed("textual_arguments")
    def test_arguments_that_are_no_json_are_a_fault_and_no_failure(self) -> None:
        """The model receives the error, and may correct itself."""
        with self.served(Act(calls=(Call(name="add", arguments='{"a": 1,,'),))) as (_, model):
            calls = self.call(model, asking(tools=[_ADD])).answer.tool_calls
            require(
                len(calls) == 1 and bool(calls[0].fault) and not calls[0].arguments,
                f"found {calls}",
            )

    def test_a_reply_can_be_held_to_a_schema(self) -> None:
        """The service receives the schema; the text is JSON."""
        with self.served('{"colour": "green", "veins": 7}') as (server, model):
            answer = self.call(model, asking(output=_SHAPE)).answer
            require(
                json.loads(answer.text) == {"colour": "green", "veins": 7}, f"found {answer.text!r}"
            )
            require(
                "colour" in server.requests[0].text and "veins" in server.requests[0].text,
                "the schema is not in the request",
            )

    def test_usage_is_counted(self) -> None:
        """Input with what came from a cache, output with what was thought."""
        with self.served("OK") as (_, model):
            used = self.call(model).answer.usage
            found = (
                used.input_tokens,
                used.output_tokens,
                used.cached_tokens,
                used.reasoning_tokens,
            )
            require(
                found == (11, 7, 3, 2),
                f"expected 11, 7, 3, 2 (input, output, cached, reasoning), found {found}",
            )

    def test_why_a_reply_ended_is_reported(self) -> None:
        """At its limit, or by a filter."""
        for finish in ("length", "filter"):
            with self.served(Act(text="so f", finish=finish)) as (_, model):
                found = self.call(model).answer.finish
                require(
                    found in ({finish, "refusal"} if finish == "filter" else {finish}),
                    f"expected {finish}, found {found}",
                )

    @claimed("refuses")
    def test_a_refusal_is_reported_with_its_text(self) -> None:
        """It is an answer, not a failure."""
        with self.served(Act(refusal="I would rather not.")) as (server, model):
            answer = self.call(model).answer
            require(
                (answer.finish, answer.text) == ("refusal", "I would rather not."),
                f"found {answer}",
            )
            require(len(server.requests) == 1, "a refusal is not asked again")

    @claimed("thinks")
    def test_reasoning_is_shown_and_is_no_text(self) -> None:
        """As chunks of their own."""
        with self.served(Act(thought="Hm, leaves.", text="Yes.")) as (_, model):
            result = self.call(model)
            require(
                "".join(chunk["text"] for chunk in result.of("reasoning")) == "Hm, leaves.",
                f"found {result.chunks}",
            )
            require(result.answer.text == "Yes.", f"found {result.answer.text!r}")

    @claimed("seals")
    def test_what_the_service_wants_back_goes_back(self) -> None:
        """Through the message of the reply, which is plain data."""
        with self.served(
            Act(
                thought="Hm.",
                sealed="c2VhbGVkLXJlYXNvbmluZw==",
                calls=(Call(name="add", arguments={"a": 1, "b": 2}),),
            ),
            "3",
        ) as (server, model):

            async def twice() -> None:
                first = (await self.call_async(model, asking(tools=[_ADD]))).answer
                message = json.loads(
                    json.dumps(Reply.read(json.loads(json.dumps(first.plain()))).message())
                )
                data = {
                    "role": "tool",
                    "name": "add",
                    "tool_call_id": first.tool_calls[0].id,
                    "content": "3",
                }
                await self.call_async(
                    model, Request(messages=[*asking().messages, message, data], tools=[_ADD])
                )

            self.wait(twice())
            require(
                "c2VhbGVkLXJlYXNvbmluZw==" in server.requests[1].text,
                f"it is not in the second request: {server.requests[1].text}",
            )

    # -- parts

    def test_parts_that_it_takes_are_sent(self) -> None:
        """Each kind that ``modalities`` names, with what was said beside it, in order."""
        for kind in sorted({"image", "file", "audio"} & set(self._modalities())):
            with self.served("Seen.") as (server, model):
                texts = [
                    {"type": "text", "text": "Look:"},
                    _PARTS[kind],
                    {"type": "text", "text": "What is it?"},
                ]
                require(
                    self.call(model, asking(texts)).answer.text == "Seen.",
                    "it was not answered",
                )
                sent = server.requests[0].text.replace("-", "+").replace("_", "/")
                places = [
                    sent.find(word) for word in ("Look:", _PARTS[kind]["data"], "What is it?")
                ]
                require(
                    -1 not in places and places == sorted(places),
                    f"an {kind} was not sent in its place: {sent}",
                )

    def test_a_part_that_it_cannot_take_is_an_error_before_anything_is_sent(self) -> None:
        """Refuse a content part that is not supported before sending anything, and name the
        supported ones.
        """
        strange = sorted({"image", "file", "audio"} - set(self._modalities()))
        if not strange:
            self.skip("it takes all there are")
        with self.served() as (server, model):
            error = self.call(model, asking([_PARTS[strange[0]]])).error
            require(
                isinstance(error, PartError) and strange[0] in str(error),
                f"expected a PartError, found {error!r}",
            )
            require(not server.requests, "something was sent")

    def _modalities(self) -> Any:
        found = getattr(self.make(), "modalities", None)
        if found is None:
            raise AssertionError("it does not say in modalities what it takes.")
        return found

    # -- failures

    def test_a_busy_service_is_asked_again_when_it_says(self) -> None:
        """429 with Retry-After, visibly."""
        with self.served(Act(status=429, headers={"retry-after": "7"}), _LONG) as (server, model):
            result = self.call(model)
            require(result.answer.text == _LONG and len(server.requests) == 2, f"found {result}")
            require(
                len(result.waits) == 1 and 7 <= result.waits[0] < 14,
                f"it waited {result.waits}, not the 7 seconds asked for",
            )
            require(
                [chunk["status"] for chunk in result.of("retry")] == [429],
                f"the retry is not shown: {result.chunks}",
            )

    def test_a_failing_service_is_asked_again_within_bounds(self) -> None:
        """500 once is nothing; for ever is an error with its status."""
        with self.served(Act(status=500), _LONG) as (_, model):
            require(self.call(model).answer.text == _LONG, "it did not recover")
        with self.served(*[Act(status=503)] * 50) as (server, model):
            failure = self.call(model).failure
            require(failure.status == 503 and failure.transient, f"found {failure!r}")
            require(1 < len(server.requests) <= 10, f"it asked {len(server.requests)} times")

    def test_a_mistake_is_never_repeated(self) -> None:
        """400, 401, 404: the answer would be the same."""
        for status in (400, 401, 404):
            with self.served(Act(status=status, message="no such leaf")) as (server, model):
                result = self.call(model)
                require(
                    result.failure.status == status and not result.failure.transient,
                    f"found {result.error!r}",
                )
                require(
                    "no such leaf" in str(result.error),
                    "what the service says is not in the error",
                )
                require(len(server.requests) == 1 and not result.waits, "it was repeated")

    def test_silence_is_waited_out_for_so_long_and_no_longer(self) -> None:
        """``timeout_seconds`` bounds the silence, before a reply and within it."""
        for act in (Act(delay_seconds=30), Act(text=_LONG, stall_at=0.6)):
            # a busy machine may be silent for so long itself
            with self.served(act, *["Here."] * 9) as (_, model):
                result = self.call(model, asking(settings={"timeout_seconds": _SILENCE_SECONDS}))
                require(result.answer.text == "Here." == result.shown, f"found {result}")
                require(len(result.of("retry")) >= 1, f"found {result.chunks}")

    def test_a_reply_that_breaks_off_is_asked_for_again(self) -> None:
        """Dropped, ended early, or garbled: what was shown is taken back, and if nothing was there
        is nothing to take back.
        """
        for how in ("break_at", "end_at", "garble_at"):
            with self.served({"text": "to be forgotten, all of it", how: 0.6}, _LONG) as (_, model):
                result = self.call(model)
                require(result.answer.text == _LONG == result.shown, f"{how}: found {result}")
                require(
                    len(result.of("reset")) == 1,
                    f"{how}: nothing says that the first text does not count",
                )
            with self.served({"text": "never seen", how: 0.0}, _LONG) as (_, model):
                result = self.call(model)
                require(
                    result.answer.text == _LONG and not result.of("reset"),
                    f"{how}: found {result}",
                )

    def test_a_reply_of_another_form_is_asked_for_again(self) -> None:
        """As one that breaks off: it is no error of the program."""
        act = {"text": "never seen", "thought": "none", "is_strange": True}
        with self.served(act, _LONG) as (_, model):
            result = self.call(model)
            require(result.answer.text == _LONG, f"found {result}")
            require(len(result.of("retry")) == 1, f"the retry is not shown: {result.chunks}")

    def test_a_missing_server_is_a_temporary_failure(self) -> None:
        """Not a raw error of a library."""
        failure = self.call(self.make()).failure
        require(failure.transient and failure.status is None, f"found {failure!r}")

    # -- connections

    @claimed("has_connections")
    def test_cancelling_closes_the_connection_in_mid_reply(self) -> None:
        """The service can stop thinking."""
        with self.served(Act(text=_LONG, stall_at=0.6)) as (server, model):

            async def cancelled() -> None:
                shown = asyncio.Event()

                def show(chunk: Any) -> None:
                    shown.set()

                call = asyncio.ensure_future(model.reply(asking(), show))
                await shown.wait()
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await call

            self.wait(cancelled())
            until = time.monotonic() + 30
            while (server.open_connections() or not server.left_early) and time.monotonic() < until:
                time.sleep(0.01)  # the server's thread has yet to notice
            require(
                server.open_connections() == 0 and server.left_early == 1,
                "the connection was not closed",
            )

    @claimed("has_connections")
    def test_calls_share_connections(self) -> None:
        """One after the other inside ``async with`` use one; many side by side are under way at the
        same time.
        """
        with self.served() as (server, model):

            async def many() -> None:
                async with model:
                    for _ in range(3):
                        require(
                            (await self.call_async(model)).answer.text == "OK",
                            "it was not answered",
                        )
                    require(
                        server.connections == 1,
                        f"3 calls one after the other made {server.connections} connections",
                    )
                    server.say(*[Act(text="OK", together=8)] * 8)
                    answers = await asyncio.gather(*(self.call_async(model) for _ in range(8)))
                    require(
                        all(each.answer.text == "OK" for each in answers), "not all were answered"
                    )
                    require(
                        server.most_at_once == 8,
                        f"only {server.most_at_once} of 8 calls were under way at once",
                    )

            self.wait(many())

    @claimed("has_connections")
    def test_a_run_leaves_no_connection(self) -> None:
        """Leave no connection open after a run, whether the run or its caller made the model."""
        with self.served("A leaf.", "A stem.") as (server, model):
            g = RootGraph("two")
            nodes = [
                g.create_node(Agent, name=name, model=model, formatters="twins")
                for name in ("one", "two")
            ]
            g.edge_from_entry(nodes[0], ["message"])
            g.create_edge(nodes[0], nodes[1], ["message"])
            g.edge_to_exit(nodes[1], ["message"])
            output, _ = g.build().invoke({"message": "?"})
            require(output == {"message": "A stem."}, f"found {output}")
            require(
                server.connections == 1,
                f"the agents of a run made {server.connections} connections",
            )

    def test_it_survives_event_loops(self) -> None:
        """One after the other, also where it was not closed on the first."""
        with self.served() as (_, model), warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            for _ in range(3):
                require(
                    self.call(model).answer.text == "OK",
                    "it does not work on another event loop",
                )

            async def closing() -> None:
                require((await self.call_async(model)).answer.text == "OK", "it was not answered")
                if hasattr(model, "close"):
                    await model.close()

            self.wait(closing())
            require(self.call(model).answer.text == "OK", "it does not work after it was closed")

    # -- secrets and imports

    def test_the_key_is_seen_by_the_service_alone(self) -> None:
        """Not by logs, errors, chunks, replies or text forms, though the service repeats it."""
        stated = _Listening()
        root, level = logging.getLogger(), logging.getLogger().level
        root.addHandler(stated)
        root.setLevel(logging.DEBUG)
        try:
            for status in (401, 500, 200):
                with self.served(*[Act(status=status, message=f"wrong: {Address().key}")] * 10) as (
                    server,
                    model,
                ):
                    result = self.call(model)
                    seen = [
                        repr(model),
                        str(result.chunks),
                        repr(result),
                        *_messages(result.error),
                        *stated.lines,
                        json.dumps(result.reply and result.reply.plain()),
                    ]
                    require(
                        any(server.key in str(dict(asked.headers)) for asked in server.requests),
                        "the service was given no key",
                    )
                    require(
                        all(server.key not in each for each in seen),
                        f"the key can be seen: {[each for each in seen if server.key in each]}",
                    )
        finally:
            root.removeHandler(stated)
            root.setLevel(level)

    def test_importing_it_imports_no_sdk(self) -> None:
        """That takes a second; a call may, a command that only checks a file may not."""
        if not self.sdk or not self.module:
            self.skip("it names no sdk")
        found = imported(self.module)
        require(not found.failure, f"importing {self.module} fails: {found.failure}")
        require(self.sdk not in found.loaded, f"importing {self.module} imports {self.sdk}")


class _Listening(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())


def _messages(error: BaseException | None) -> list[str]:
    """Return all that an error and its causes say."""
    lines: list[str] = []
    while error is not None and len(lines) < 50:
        lines += [str(error), repr(error), repr(vars(error))]
        error = error.__cause__ or error.__context__
    return lines


__all__ = ["Exchange", "ModelKit", "asking"]
