"""Conversations by voice: the line between a person and an agent, and models that can talk.

Audio is 16-bit PCM, little-endian, mono, 24,000 samples a second.

    line = Line(microphone())                  # any async iterable of bytes
    call = line.start(workflow.run({}))        # the agents of this run talk on the line
    async for chunk in line:
        await speaker.play(chunk)              # a chunk has been heard when the next is asked for
    result = await call
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import asdict
from typing import Final, Protocol, TypeVar

from axil_models.parts import Part
from axil_models.requests import Emit, Reply, Request, Usage

T = TypeVar("T")

SAMPLE_RATE: Final = 24_000
BYTES_PER_MS: Final = SAMPLE_RATE * 2 // 1000
_LARGEST_BYTES: Final = 100 * BYTES_PER_MS
"""The bytes that are handed out at once: an interruption is exact to this."""

_LINE: ContextVar[Line | None] = ContextVar("axil_models_line", default=None)


class Line:
    """The audio between a person and the agents of a run; for one event loop."""

    def __init__(self, heard: AsyncIterable[bytes], *, agent_begins: bool = True) -> None:
        """``heard``: the audio of the person, as it comes; its end hangs up. An empty chunk says
        that the person has finished speaking.

        ``agent_begins``: the first agent speaks first, to the message that it was given.
        """
        self._heard = aiter(heard)
        self._coming: asyncio.Future[bytes | None] | None = None
        """The next chunk of the person, requested once for all who listen."""
        self.agent_begins = agent_begins
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._changed = asyncio.Event()
        self._item, self._played_bytes = "", 0
        self._handed_bytes = 0
        self._hung_up = asyncio.Event()
        self._is_over = False

    def start(self, run: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Run an agent or a workflow whose agents talk on this line; its end is that of the call.

        An agent talks if its model can, and its reply is one field of prose.
        """
        token = _LINE.set(self)
        try:
            task = asyncio.get_running_loop().create_task(run)
        finally:
            _LINE.reset(token)
        task.add_done_callback(lambda _: self._end())
        return task

    @property
    def is_open(self) -> bool:
        """True until the person, or the run, has ended the call."""
        return not self._hung_up.is_set()

    def hang_up(self) -> None:
        """End the call from the person's side: nothing more is heard or said."""
        self._hung_up.set()
        self.cut()

    def _end(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
        self._is_over = True
        self._hung_up.set()
        self._changed.set()

    # ------------------------------------------------------------------------ the person's side

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """Give what is to be played, until the call has ended."""
        while True:
            while self._waiting:
                item, chunk = self._waiting.popleft()
                if item != self._item:
                    self._item, self._played_bytes = item, 0
                self._handed_bytes = len(chunk)
                yield chunk
                self._played_bytes += self._handed_bytes
                self._handed_bytes = 0
                self._changed.set()
            if self._is_over:
                return
            await self._change()

    # -------------------------------------------------------------------------- the model's side

    async def heard(self) -> AsyncGenerator[bytes]:
        """Give what the person says, until it ends or somebody hangs up."""
        over = asyncio.ensure_future(self._hung_up.wait())
        try:
            while self.is_open:
                if self._coming is None:
                    self._coming = asyncio.ensure_future(anext(self._heard, None))
                await asyncio.wait((self._coming, over), return_when=asyncio.FIRST_COMPLETED)
                if not self._coming.done() or (chunk := self._coming.result()) is None:
                    return
                self._coming = None
                yield chunk
        finally:
            over.cancel()

    def say(self, item: str, audio: bytes) -> None:
        """Put audio behind what waits to be played; ``item``: the text that it is of."""
        if self.is_open:
            for at in range(0, len(audio), _LARGEST_BYTES):
                self._waiting.append((item, audio[at : at + _LARGEST_BYTES]))
            self._changed.set()

    def cut(self) -> dict[str, int]:
        """Drop what has not been played; return the items that were not played to their end, and
        the milliseconds of each that were.
        """
        cut = {item: 0 for item, _ in self._waiting}
        if self._handed_bytes or self._item in cut:
            cut[self._item] = self._played_bytes // BYTES_PER_MS
        self._waiting.clear()
        self._handed_bytes = 0
        self._changed.set()
        return cut

    @property
    def is_quiet(self) -> bool:
        """True if all that was said has been played, or dropped."""
        return not self._waiting and not self._handed_bytes

    async def said(self) -> None:
        """Wait until it is quiet, or the call has ended."""
        while self.is_open and not self.is_quiet:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


def current_line() -> Line | None:
    """Return the line on which agents talk at present; None: there is none."""
    return _LINE.get()


class Talk(Protocol):
    """A conversation by voice, over whatever connections it takes."""

    @property
    def transcriber(self) -> str:
        """The model that writes down what the person says; empty: none that is paid for."""
        ...

    async def listen(self, request: Request, emit: Emit, /) -> bool:
        """Wait until the person has said something; False: the call has ended.

        ``request``: the conversation so far, which a new connection is given.
        """
        ...

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the reply to what was heard, or to the last messages, when it has been said.

        What was heard is its part ``heard_part(…)``. A reply that was interrupted
        has ``finish="interrupted"`` and the words that were played.
        """
        ...

    async def written(self) -> Sequence[Part]:
        """Return ``heard_part``s of what was written down too late for the reply to it, each once;
        behind the end of the call, wait a moment for what is still to come.
        """
        ...


class TalkingModel(Protocol):
    """A model that can talk, beside what every model does."""

    def talking(self, line: Line, /) -> AbstractAsyncContextManager[Talk]:
        """Talk on a line, until the ``with`` ends."""
        ...


def heard_part(
    text: str, model: str = "", usage: Usage | None = None, *, id: str = ""
) -> dict[str, object]:
    """Return what a person said as a part of the reply to it; ``usage``: of the model that wrote it
    down; ``id``: of what has no text yet, and of the text when it comes.
    """
    used = {} if usage is None else {"model": model, "usage": asdict(usage)}
    return {"type": "heard", "text": text, **used, **({"id": id} if id else {})}
