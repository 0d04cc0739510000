"""One connection of a conversation by voice, and what its events mean.

A task reads the events as they come. What the person does (begins to speak, has spoken) becomes
state of the link at once, also while no one waits for it: so an interruption silences the agent
while tools run. Events of responses wait for the one who reads the reply.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from axil_models import BYTES_PER_MS, Emit, Line, ModelError, Usage, reading_reply
from axil_openai.connection import Connection
from axil_openai.realtime_wire import Event, transcript_usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_HARMLESS: Final = "axil_cut"
"""The id of events that may come too late: their errors are no failures."""
_COMMIT: Final = "axil_commit"
_LARGEST_APPEND: Final = 2**20
_LARGEST_EVENT: Final = 2**25
_TEXTS: Final = ("response.output_audio_transcript.delta", "response.output_text.delta")
_SILENT: Final = logging.Logger("axil_openai.realtime", logging.CRITICAL + 1)
"""The library logs headers, and the key is one."""


class Link:
    """A connection to the service."""

    def __init__(
        self,
        service: Connection,
        line: Line | None,
        texts: dict[str, tuple[str, Usage | None]],
        *,
        detects: bool,
    ) -> None:
        """``texts``: the texts of what the person says are put there, by item; empty: there is
        none. ``detects``: the service says when the person begins and ends to speak.
        """
        self._service, self._line, self._detects = service, line, detects
        self._connection: Any = None
        self._reading: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._fault: Exception | None = None
        self._responses: deque[Event] = deque()
        self._is_responding = False
        self._is_speaking = self._has_stopped = False
        self._is_ending = False
        self.spoken: deque[str] = deque()
        """The items that the person has said, and that were not answered."""
        self.has_ended = False
        """True if nothing more will be said by the person."""
        self.heard: set[str] = set()
        """The items of all that the person has said here."""
        self._texts = texts
        self.cut: dict[str, int] = {}
        """The milliseconds that were played of items that were interrupted."""
        self.said: dict[str, bytearray] = {}
        """The audio of the present response, by item."""

    async def open(self, client: AsyncOpenAI, model: str) -> None:
        """Connect."""
        config = self._service.config
        options: Any = {
            "open_timeout": config.connect_timeout_seconds,
            "max_size": _LARGEST_EVENT,
            "compression": None,
            "logger": _SILENT,
        }
        if client.base_url.scheme == "http":  # before 2.27 the SDK asks by TLS in any case
            client.websocket_base_url = client.base_url.copy_with(scheme="ws")
        connect = client.realtime.connect(model=model, websocket_connection_options=options)
        self._connection = await connect.enter()
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Close the connection."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        if self._connection is not None:
            await self._connection.close()

    # ------------------------------------------------------------------------------ what is sent

    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event."""
        await self._connection.send({"type": kind, **fields})

    async def tell(self, items: Sequence[Event]) -> None:
        """Add items to the conversation."""
        for item in items:
            await self.send("conversation.item.create", item=item)

    async def hear(self, audio: bytes) -> None:
        """Send what the person says."""
        for at in range(0, len(audio), _LARGEST_APPEND):
            piece = base64.b64encode(audio[at : at + _LARGEST_APPEND]).decode()
            await self.send("input_audio_buffer.append", audio=piece)

    async def commit(self, *, is_end: bool = False) -> None:
        """Say that the person has finished speaking; ``is_end``: for good."""
        self._is_ending = self._is_ending or is_end
        await self.send("input_audio_buffer.commit", event_id=_COMMIT)

    # ------------------------------------------------------------------------------- what comes

    async def until(self, is_so: Callable[[], bool], seconds: float | None = None) -> None:
        """Wait for something. Raises: TimeoutError; and what the connection failed with."""
        async with asyncio.timeout(seconds):
            while not is_so():
                if self._fault is not None:
                    raise self._fault
                self._changed.clear()
                await self._changed.wait()

    def wake(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    def share_played(self) -> float:
        """Return the share of the present response that was played."""
        sizes = {item: len(sound) // BYTES_PER_MS for item, sound in self.said.items()}
        played = sum(self.cut.get(item, size) for item, size in sizes.items())
        return played / (sum(sizes.values()) or 1)

    async def response(self, show: Emit, seconds: float) -> tuple[Event, str]:
        """Ask for a response; return its end and its text. ``seconds``: the longest silence.

        Raises: ModelError: the service says that it failed; TimeoutError.
        """
        if self._fault is not None:
            raise self._fault
        self._responses.clear()
        self.said.clear()
        self._is_responding = True
        await self.send("response.create")
        texts: list[str] = []
        while True:
            await self.until(lambda: bool(self._responses), seconds)
            event = self._responses.popleft()
            kind = event["type"]
            if kind == "error":
                raise self._failure(event["error"])
            if kind in _TEXTS:
                texts.append(event["delta"])
                show({"kind": "text", "text": event["delta"]})
            elif kind == "response.done":
                response: Event = event["response"]
                if response.get("status") == "failed":
                    about: Event = response.get("status_details") or {}
                    raise self._service.failed(about.get("error") or "the response failed")
                return response, "".join(texts)

    async def _read(self) -> None:
        try:
            while True:
                event = json.loads(await self._connection.recv_bytes())
                with reading_reply():
                    await self._take(event)
                self._changed.set()
        except Exception as error:  # noqa: BLE001  # the waiting reader raises it
            self._fault = error
            self._changed.set()

    async def _take(self, event: Event) -> None:
        kind: str = event["type"]
        if kind == "response.output_audio.delta":
            self._say(event["item_id"], base64.b64decode(event["delta"]))
        elif kind.startswith("response."):
            if kind == "response.done":
                self._is_responding = False
            self._responses.append(event)
        elif kind == "input_audio_buffer.speech_started":
            self._is_speaking = True
            await self._interrupt()
        elif kind == "input_audio_buffer.speech_stopped":
            self._has_stopped = True
        elif kind == "input_audio_buffer.committed":
            await self._committed(event["item_id"])
        elif kind == "conversation.item.input_audio_transcription.completed":
            text = str(event["transcript"]).strip()
            self._texts[event["item_id"]] = text, transcript_usage(event.get("usage"))
        elif kind == "conversation.item.input_audio_transcription.failed":
            self._texts[event["item_id"]] = "", None
        elif kind == "error":
            self._fail(event)

    def _say(self, item: str, audio: bytes) -> None:
        if item in self.cut:  # it was under way when the person interrupted
            return
        self.said.setdefault(item, bytearray()).extend(audio)
        if self._line is not None:
            self._line.say(item, audio)

    async def _interrupt(self) -> None:
        """Stop what is being said: the person speaks."""
        cut = {} if self._line is None else self._line.cut()
        if self._is_responding:
            await self.send("response.cancel", event_id=_HARMLESS)
            cut = {**{item: len(sound) // BYTES_PER_MS for item, sound in self.said.items()}, **cut}
        for item, played in cut.items():
            about = {"item_id": item, "content_index": 0, "audio_end_ms": played}
            await self.send("conversation.item.truncate", event_id=_HARMLESS, **about)
        self.cut |= cut

    async def _committed(self, item: str) -> None:
        is_own = not self._has_stopped  # not the service's, which had found an end
        is_speech = self._is_speaking or not self._detects
        self._is_speaking = self._has_stopped = False
        if is_speech:
            self.spoken.append(item)
            self.heard.add(item)
        else:
            await self.send("conversation.item.delete", event_id=_HARMLESS, item_id=item)
        if is_own and self._is_ending:
            self.has_ended = True

    def _fail(self, event: Event) -> None:
        error: Event = event["error"]
        if error.get("event_id") == _HARMLESS:
            return
        if error.get("event_id") == _COMMIT:  # there was nothing to commit
            self.has_ended = self.has_ended or self._is_ending
            return
        self._fault = self._failure(error)
        self._responses.append(event)  # in its place: a reply that was whole before it counts

    def _failure(self, error: Event) -> ModelError:
        failure = self._service.failed(error)
        if error.get("code") == "session_expired":
            return ModelError(failure.message, transient=True)
        return failure
