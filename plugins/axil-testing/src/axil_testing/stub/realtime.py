"""A scripted service with the Realtime API, on a socket of this machine.

    with RealtimeStub() as server:
        server.say("Hello.", Act(calls=(Call(name="book"),)), "It is booked.")
        server.hear("Book a table.")
        model = OpenAIRealtimeModel("m", api_key=server.key, base_url=server.url)

Sound is speech where a sample is not zero; half a second of silence behind speech ends it. A text
is said as a tone of 100 milliseconds a word, faster than it plays. What is heard has the texts of
``hear``, in order. The service refuses what the API refuses: what it does not know, a truncation
behind the end of an item, an empty commit, the result of a call that was not made.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from axil_testing.stub.act import Act, pieces
from axil_testing.stub.listener import Listener
from axil_testing.stub.server import KEY

RATE: Final = 24_000
_MS: Final = RATE * 2 // 1000
_SILENCE_MS: Final = 500
_WORD_MS: Final = 100
_SESSION: Final = frozenset(
    {
        *("type", "audio", "include", "instructions", "max_output_tokens", "output_modalities"),
        *("parallel_tool_calls", "prompt", "reasoning", "tool_choice", "tools", "tracing"),
        *("truncation", "model"),
    }
)


def speech(milliseconds: int, level: int = 1000) -> bytes:
    """Return the sound of speech; ``level`` 0: of silence."""
    return level.to_bytes(2, "little", signed=True) * (RATE * milliseconds // 1000)


class RealtimeStub(Listener):
    """A scripted service: a context manager; see the module."""

    def __init__(self) -> None:
        self.key = KEY
        self.url = ""
        """The base URL for a client."""
        self.events: list[dict[str, Any]] = []
        """The events that clients sent, on all connections."""
        self.sent: list[dict[str, Any]] = []
        """The events that were sent to them."""
        self.headers: list[Mapping[str, str]] = []
        """The headers with which each connection was asked for."""
        self.transcribed: dict[str, Any] = {"type": "duration", "seconds": 1}
        """The usage of each transcript."""
        self.is_late = False
        """True if a transcript comes with the next commit only, be there anything to commit."""
        self.connections = 0
        """The number of connections so far."""
        self.open_connections = 0
        """The number of connections that are open."""
        self._acts: list[Act] = []
        self._texts: list[str] = []
        super().__init__("axil-realtime-stub")

    def say(self, *acts: Act | str | Mapping[str, Any]) -> None:
        """Answer so, in order; after that ``OK``. A ``status`` refuses the next connection."""
        self._acts += [Act.of(each) for each in acts]

    def hear(self, *texts: str) -> None:
        """Understand what is said so, in order; an empty text: it cannot be written down."""
        self._texts += texts

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind that clients sent."""
        return [each for each in self.events if each["type"] == kind]

    def next_act(self) -> Act:
        """Take the next act."""
        return self._acts.pop(0) if self._acts else Act(text="OK")

    def next_text(self) -> str:
        """Take the next text that is heard."""
        return self._texts.pop(0) if self._texts else "something"

    async def serve(self) -> None:
        """See ``Listener``."""
        from websockets.asyncio.server import serve

        checked: Any = self._checked
        quiet = logging.Logger("axil-realtime-stub", logging.CRITICAL + 1)
        asked: Any = {"process_request": checked, "logger": quiet}
        async with serve(self._welcome, "127.0.0.1", 0, **asked) as server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            await self.until_over()

    def _checked(self, connection: Any, request: Any) -> Any:
        """Refuse a connection with the wrong key, or where an act says so."""
        self.headers.append(dict(request.headers.raw_items()))
        act = self._acts[0] if self._acts else Act()
        status, message = act.status, act.message
        if status != 200:
            self._acts.pop(0)
        elif request.headers.get("Authorization") != f"Bearer {self.key}":
            status, message = 401, "Incorrect API key provided."
        if status == 200:
            return None
        answer = connection.respond(status, json.dumps({"error": {"message": message}}))
        for name, value in act.headers.items():
            answer.headers[name] = value
        return answer

    async def _welcome(self, socket: Any) -> None:
        self.connections += 1
        self.open_connections += 1
        try:
            await _Session(self, socket).run()
        finally:
            self.open_connections -= 1


class _Session:
    """One connection."""

    def __init__(self, stub: RealtimeStub, socket: Any) -> None:
        self._stub, self._socket = stub, socket
        self._count = 0
        self._session: dict[str, Any] = {}
        self._unwritten: list[str] = []
        self._buffer = bytearray()
        self._heard_ms = 0
        self._silence_ms = 0
        self._speaks = ""
        """The item of what is being said; empty: there is silence."""
        self._items: dict[str, int] = {}
        """The milliseconds of sound of each item."""
        self._calls: set[str] = set()
        self._answering: asyncio.Task[None] | None = None
        self._response: dict[str, Any] = {}

    async def run(self) -> None:
        """Speak with a client until it goes."""
        from websockets.exceptions import ConnectionClosed

        try:
            await self._send("session.created", session={"type": "realtime"})
            async for text in self._socket:
                event = json.loads(text)
                self._stub.events.append(event)
                fault = await self._take(event)
                if fault:
                    code, message = fault
                    error = {"type": "invalid_request_error", "code": code, "message": message}
                    await self._send("error", error={**error, "event_id": event.get("event_id")})
        except ConnectionClosed:
            pass
        finally:
            if self._answering is not None:
                self._answering.cancel()

    async def _send(self, kind: str, **fields: Any) -> None:
        self._count += 1
        event = {"type": kind, "event_id": f"event_{self._count}", **fields}
        self._stub.sent.append(event)
        await self._socket.send(json.dumps(event))

    def _id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._stub.connections}_{self._count}"

    async def _take(self, event: dict[str, Any]) -> tuple[str, str] | None:
        """Do what an event asks; return the code and the text of an error."""
        kind = event["type"]
        if kind == "session.update":
            return await self._update(event["session"])
        if kind == "input_audio_buffer.append":
            await self._listen(base64.b64decode(event["audio"]))
        elif kind == "input_audio_buffer.commit":
            await self._write_down()
            if not self._buffer:
                return "input_audio_buffer_commit_empty", "the buffer is empty"
            await self._commit()
        elif kind == "conversation.item.create":
            return await self._create(event["item"])
        elif kind == "conversation.item.delete":
            await self._send("conversation.item.deleted", item_id=event["item_id"])
        elif kind == "conversation.item.truncate":
            if event["audio_end_ms"] > self._items.get(event["item_id"], -1):
                return "invalid_value", "Audio content is already shorter than that"
            about = {name: event[name] for name in ("item_id", "content_index", "audio_end_ms")}
            await self._send("conversation.item.truncated", **about)
        elif kind == "response.create":
            if self._answering is not None and not self._answering.done():
                return "conversation_already_has_active_response", "there is an active response"
            self._answering = asyncio.create_task(self._answer(self._stub.next_act()))
        elif kind == "response.cancel":
            if self._answering is None or self._answering.done():
                return "response_cancel_not_active", "Cancellation failed: no active response found"
            self._answering.cancel()
            await asyncio.wait({self._answering})
            await self._done("cancelled", reason="client_cancelled")
        else:
            return "invalid_value", f"Invalid value: '{kind}'"
        return None

    async def _update(self, given: dict[str, Any]) -> tuple[str, str] | None:
        for name in sorted(given.keys() - _SESSION):
            return "unknown_parameter", f"Unknown parameter: 'session.{name}'."
        if given.get("type") != "realtime":
            return "missing_required_parameter", "Missing required parameter: 'session.type'."
        self._session |= given
        await self._send("session.updated", session=self._session)
        return None

    # ------------------------------------------------------------------------------ what is heard

    def _input(self, name: str) -> Any:
        audio: Mapping[str, Any] = self._session.get("audio") or {}
        given: Mapping[str, Any] = audio.get("input") or {}
        return given.get(name)

    async def _listen(self, audio: bytes) -> None:
        size = 20 * _MS
        for at in range(0, len(audio), size):
            frame = audio[at : at + size]
            self._buffer += frame
            self._heard_ms += len(frame) // _MS
            if self._input("turn_detection") is None:
                continue
            if frame.strip(b"\0"):
                self._silence_ms = 0
                if not self._speaks:
                    self._speaks = self._id("item")
                    about = {"audio_start_ms": self._heard_ms, "item_id": self._speaks}
                    await self._send("input_audio_buffer.speech_started", **about)
            elif self._speaks:
                self._silence_ms += len(frame) // _MS
                if self._silence_ms >= _SILENCE_MS:
                    about = {"audio_end_ms": self._heard_ms, "item_id": self._speaks}
                    await self._send("input_audio_buffer.speech_stopped", **about)
                    await self._commit()

    async def _commit(self) -> None:
        item = self._speaks or self._id("item")
        is_speech = bool(self._buffer.strip(b"\0"))
        self._buffer.clear()
        self._speaks, self._silence_ms = "", 0
        await self._send("input_audio_buffer.committed", item_id=item, previous_item_id=None)
        content = [{"type": "input_audio", "transcript": None}]
        await self._added({"id": item, "type": "message", "role": "user", "content": content})
        await self._write_down()
        if self._input("transcription") and is_speech:
            self._unwritten.append(item)
            if not self._stub.is_late:
                await self._write_down()

    async def _write_down(self) -> None:
        """Send the transcripts of what has none."""
        kind = "conversation.item.input_audio_transcription"
        items, self._unwritten = self._unwritten, []
        for item in items:
            about = {"item_id": item, "content_index": 0}
            if text := self._stub.next_text():
                used = self._stub.transcribed
                await self._send(f"{kind}.completed", transcript=text, usage=used, **about)
            else:
                await self._send(f"{kind}.failed", error={"message": "not understood"}, **about)

    async def _added(self, item: dict[str, Any]) -> None:
        await self._send("conversation.item.added", item=item, previous_item_id=None)
        await self._send("conversation.item.done", item=item, previous_item_id=None)

    async def _create(self, item: dict[str, Any]) -> tuple[str, str] | None:
        kind = item["type"]
        if kind == "function_call":
            self._calls.add(item["call_id"])
        if kind == "function_call_output" and item["call_id"] not in self._calls:
            return "invalid_value", f"no call has the id {item['call_id']}"
        await self._added({"id": self._id("item"), **item})
        return None

    # ------------------------------------------------------------------------------- what is said

    async def _answer(self, act: Act) -> None:
        id = self._id("resp")
        self._response = {"id": id, "object": "realtime.response", "output": []}
        await self._send("response.created", response={**self._response, "status": "in_progress"})
        await asyncio.sleep(act.delay_seconds)
        if act.break_at == 0.0:
            await self._socket.close(1011, "scripted loss")
            return
        if act.finish == "failed":
            error = {"type": "server_error", "code": "server_error", "message": act.message}
            await self._done("failed", error=error)
            return
        if act.text:
            await self._speak(id, act)
        for call in act.calls:
            item = {"id": self._id("item"), "type": "function_call", "name": call.name}
            item |= {"call_id": call.id or self._id("call"), "arguments": call.text}
            self._calls.add(item["call_id"])
            about = {"response_id": id, "output_index": len(self._response["output"])}
            place = {**about, "item_id": item["id"], "call_id": item["call_id"]}
            await self._send("response.output_item.added", item=item, **about)
            for piece in pieces(call.text, 2):
                await self._send("response.function_call_arguments.delta", delta=piece, **place)
            done = {"arguments": call.text, "name": call.name}
            await self._send("response.function_call_arguments.done", **done, **place)
            self._response["output"].append({**item, "status": "completed"})
            await self._send("response.output_item.done", item=item, **about)
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(act.finish, "")
        await self._done("incomplete" if reason else "completed", act, reason=reason)

    async def _speak(self, id: str, act: Act) -> None:
        item = self._id("item")
        self._items[item] = 0
        place = {"response_id": id, "item_id": item, "output_index": 0, "content_index": 0}
        message: dict[str, Any] = {"id": item, "type": "message", "role": "assistant"}
        self._response["output"].append({**message, "status": "incomplete", "content": []})
        is_text = self._session.get("output_modalities") == ["text"]
        kind = "response.output_text" if is_text else "response.output_audio"
        named = {"response_id": id, "output_index": 0}
        await self._send("response.output_item.added", item={**message, "content": []}, **named)
        words = act.text.split(" ")
        for number, word in enumerate(words):
            if act.break_at is not None and number >= act.break_at * len(words):
                await self._socket.close(1011, "scripted loss")
                return
            delta = word if not number else f" {word}"
            if is_text:
                await self._send(f"{kind}.delta", delta=delta, **place)
            else:
                await self._send(f"{kind}_transcript.delta", delta=delta, **place)
                sound = base64.b64encode(speech(_WORD_MS)).decode()
                self._items[item] += _WORD_MS
                await self._send(f"{kind}.delta", delta=sound, **place)
            await asyncio.sleep(act.pause_seconds)
        if is_text:
            content: dict[str, Any] = {"type": "output_text", "text": act.text}
            await self._send(f"{kind}.done", text=act.text, **place)
        else:
            content = {"type": "output_audio", "transcript": act.text}
            await self._send(f"{kind}.done", **place)
            await self._send(f"{kind}_transcript.done", transcript=act.text, **place)
        whole = {**message, "status": "completed", "content": [content]}
        self._response["output"][0] = whole
        await self._send("response.output_item.done", item=whole, **named)

    async def _done(self, status: str, act: Act | None = None, **about: Any) -> None:
        used = (act or Act()).usage
        cached = int(used["cached"])
        usage = {
            "input_tokens": int(used["input"]),
            "output_tokens": int(used["output"]),
            "total_tokens": int(used["input"] + used["output"]),
            "input_token_details": {
                "text_tokens": int(used["input"] - used.get("audio_in", 0)),
                "audio_tokens": int(used.get("audio_in", 0)),
                "cached_tokens": cached,
                "cached_tokens_details": {"text_tokens": cached, "audio_tokens": 0},
            },
            "output_token_details": {
                "text_tokens": int(used["output"] - used.get("audio_out", 0)),
                "audio_tokens": int(used.get("audio_out", 0)),
            },
        }
        details = {name: value for name, value in about.items() if value}
        response = {
            **self._response,
            "status": status,
            "status_details": {"type": status, **details} if details else None,
            "usage": usage,
        }
        await self._send("response.done", response=response)
