"""``openai_realtime``: the Realtime API: a model that hears and speaks.

To any agent it is a model like others: a message may hold a recording, and is then answered with
one. On a ``Line`` an agent talks with a person. The service detects when the person speaks; when to
answer, and what an interruption stops, is decided here, so that a reply is reserved in the budget
before it is made, and the model knows what was heard of it.

A connection that is lost is made anew: it is given the conversation so far in text, and the audio
that was not answered yet.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from pydantic import Field

from axil import AxilError, ConfigError, Problem
from axil.plugin import Message, install_advice
from axil_models import (
    BYTES_PER_MS,
    Emit,
    Line,
    ModelError,
    Part,
    Prices,
    Remote,
    RemoteModelConfig,
    Reply,
    Request,
    Showing,
    Usage,
    audio,
    check_modalities,
    heard_part,
    is_part,
    parts_of,
    service_config,
)
from axil_openai.connection import Connection, OpenAIConfig
from axil_openai.realtime_link import Link
from axil_openai.realtime_wire import (
    FORMAT,
    REFUSED,
    Event,
    audio_content,
    calls_of,
    finish_of,
    items_of,
    message_of,
    said_until,
    session_of,
    usage_of,
    wav_of,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from axil.plugin import SecretLike
    from axil_openai.keywords import OpenAIRealtimeModelKeywords

_LONGEST_SECONDS: Final = 86_400.0
"""Of waiting for a person to speak; the run's own limits end it earlier."""
_TRANSCRIPT_SECONDS: Final = 10.0
"""Of waiting for the text of what was heard, when the reply has been said."""
_KEPT_BYTES: Final = 60_000 * BYTES_PER_MS
"""Of what was heard and not answered: a new connection is given so much."""
UNHEARD: Final = "[speech without a transcript]"


class RealtimeConfig(RemoteModelConfig, OpenAIConfig):
    """A model behind the Realtime API."""

    voice: str | None = Field(default=None, description="The voice: marin, cedar, …")
    turn_detection: Literal["server_vad", "semantic_vad", "none"] = Field(
        default="server_vad",
        description="How the end of what a person says is found: by silence, by meaning, or not: "
        "then an empty chunk on the line says so.",
    )
    transcription: str | None = Field(
        default="gpt-4o-mini-transcribe",
        description="The model that writes down what was heard; null: nothing is written down.",
    )
    transcription_prices: Prices | None = Field(
        default=None, description="Its prices, where the run has no pricing."
    )


class RealtimeService(Connection):
    """The way to a service with the Realtime API."""

    def _meaning(self, error: Exception) -> ModelError | None:
        if isinstance(error, AxilError):
            return None
        from websockets import exceptions

        if isinstance(error, exceptions.InvalidStatus):
            answer = error.response
            headers = {name.lower(): value for name, value in answer.headers.raw_items()}
            said = (answer.body or b"").decode(errors="replace")
            return self.refused(answer.status_code, _body_of(said), headers)
        if isinstance(error, exceptions.ConnectionClosed):
            closed = error.rcvd
            why = f" ({closed.code} {closed.reason})".replace(" )", ")") if closed else ""
            message = self.clean(f"the connection to {self.address} was lost{why}.")
            return ModelError(message, transient=True)
        if isinstance(error, TimeoutError):
            return self.silent()
        if isinstance(error, (exceptions.WebSocketException, OSError)):
            return self.unreachable(error)
        return super()._meaning(error)


def _body_of(said: str) -> Any:
    with suppress(ValueError):
        return json.loads(said)
    return said or "no reason is given"


class OpenAIRealtimeModel(Remote):
    """``openai_realtime``: a model behind the Realtime API.

    >>> OpenAIRealtimeModel("gpt-realtime-2").modalities == {"text", "image", "audio"}
    True
    """

    examples = ({"name": "a-model", "api_key": {"env": "OPENAI_API_KEY"}},)
    capabilities = ("speaks_realtime",)

    Config = RealtimeConfig
    service: RealtimeService

    def __init__(
        self,
        name: RealtimeConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        settings: Mapping[str, object] | None = None,
        **more: Unpack[OpenAIRealtimeModelKeywords],
    ) -> None:
        """Store the settings, as of ``OpenAIModel``; the first call connects.

        Raises: ConfigError: all that is wrong with them.
        """
        self.config: RealtimeConfig = service_config(
            RealtimeConfig, name, api_key, base_url, {"settings": settings, **more}
        )
        self.service = RealtimeService(self.config)
        self.modalities = frozenset(self.config.modalities or ("text", "image", "audio"))

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer: to a recording with a recording, to a text with a text, unless the
        setting ``output_modalities`` says otherwise.

        Raises: ModelError (AX660); PartError (AX801): it cannot take a part; ConfigError (AX301,
        AX800, AX806).
        """
        self.check(request)
        form = "audio" if _has_audio(request.messages) else "text"

        async def attempt(client: AsyncOpenAI, show: Showing) -> Reply:
            link = Link(self.service, None, {}, detects=False)
            try:
                await self.open(link, client, request, form)
                done, text = await link.response(show, self.config.timeout_seconds)
                parts = [audio(wav_of(bytes(each))) for each in link.said.values()]
                for part in parts:
                    show({"kind": "part", "part": part})
                return self.made(done, text, parts)
            finally:
                await link.close()

        return await self.service.call(attempt, emit)

    @asynccontextmanager
    async def talking(self, line: Line, /) -> AsyncGenerator[Conversation]:
        """Talk on a line, until the ``with`` ends."""
        talk = Conversation(self, line)
        try:
            yield talk
        finally:
            await talk.close()

    def check(self, request: Request) -> None:
        """Check that a conversation can be had.

        Raises: PartError (AX801): it cannot take a part; ConfigError (AX301): a library is missing.
        """
        check_modalities(request.messages, self.modalities, repr(self))
        try:
            import websockets as _  # noqa: F401
        except ImportError as error:
            message = "the Realtime API needs websockets, which is not installed."
            hint = install_advice("axil-openai[realtime]")
            raise ConfigError(Problem("AX301", "openai_realtime", message, hint)) from error

    async def open(
        self,
        link: Link,
        client: AsyncOpenAI,
        request: Request,
        form: str,
        turns: Event | None = None,
    ) -> None:
        """Open a link, with the conversation so far."""
        config = self.config
        settings = config.settings_for(request, REFUSED)
        settings.setdefault("output_modalities", [form])
        heard: dict[str, Any] = {"format": FORMAT, "turn_detection": turns}
        if config.transcription:
            heard["transcription"] = {"model": config.transcription}
        said = {"format": FORMAT, **({"voice": config.voice} if config.voice else {})}
        session = session_of(request, settings, {"input": heard, "output": said})
        await link.open(client, config.name)
        await link.send("session.update", session=session)
        messages = request.messages
        told = messages[1:] if "instructions" in session else messages
        await link.tell(items_of(told))

    def made(self, done: Event, text: str, parts: list[Part]) -> Reply:
        """Return a reply of a response that has ended."""
        calls = calls_of(done)
        usage, prices = usage_of(done), self.config.prices
        return Reply(
            text=text,
            tool_calls=calls,
            usage=usage if prices is None else prices.priced(usage),
            finish=finish_of(done, bool(calls)),
            model=self.config.name,
            parts=tuple(parts),
        )


def _has_audio(messages: Sequence[Message]) -> bool:
    users = [m for m in messages if m.get("role") == "user"]
    parts = parts_of(users[-1].get("content")) if users else []
    return any(is_part(part) and part["type"] == "audio" for part in parts)


class Conversation:
    """A conversation by voice, over one connection at a time."""

    def __init__(self, model: OpenAIRealtimeModel, line: Line) -> None:
        self._model, self._line = model, line
        self._link: Link | None = None
        self._told = 0
        """The messages of the conversation that the link knows."""
        self._heard: deque[bytes] = deque()
        """The chunks since the last thing that the person has said."""
        self._spoken, self._audio = "", b""
        """The item and the audio that are to be answered; empty: none are."""
        self._texts: dict[str, tuple[str, Usage | None]] = {}
        """The texts of what was said, by item, and what it took to write them down."""
        self._late: list[str] = []
        """The items that were answered before there was a text of them."""
        self._pumping: asyncio.Task[None] | None = None
        self._is_deaf = self._is_over = False

    async def listen(self, request: Request, emit: Emit, /) -> bool:
        """Wait until the person has said something; False: the call has ended.

        Raises: ModelError; as ``OpenAIRealtimeModel.reply``.
        """

        async def attempt(client: AsyncOpenAI, show: Showing) -> bool:
            async with self._linked(client, request) as link:
                await link.until(self._has_news)
                if not link.spoken:
                    self._is_over = True
                    return False
                self._spoken = link.spoken.popleft()
                self._audio = self._taken()
                return True

        service = self._model.service
        retry = service.config.retry.model_copy(update={"total_seconds": _LONGEST_SECONDS})
        return await service.call(attempt, emit, retry)

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the reply, when it has been said. Raises: as ``listen``."""

        async def attempt(client: AsyncOpenAI, show: Showing) -> Reply:
            async with self._linked(client, request) as link:
                return await self._replied(link, request, show)

        service = self._model.service
        retry = service.config.retry.model_copy(update={"total_seconds": _LONGEST_SECONDS})
        return await service.call(attempt, emit, retry)

    async def close(self) -> None:
        """Close the connection. Raises: what the person's side failed with."""
        try:
            if (pumping := self._pumping) is not None:
                pumping.cancel()
                await asyncio.wait([pumping])
                if not pumping.cancelled():
                    pumping.result()
        finally:
            await self._drop()

    def _has_news(self) -> bool:
        link, pumping = self._link, self._pumping
        if link is None or pumping is None:
            return True
        if pumping.done():
            pumping.result()  # raises what the person's side failed with
        return bool(link.spoken) or link.has_ended or not self._line.is_open

    async def _replied(self, link: Link, request: Request, show: Showing) -> Reply:
        model, spoken = self._model, self._spoken
        done, text = await link.response(show, model.config.timeout_seconds)
        reply = model.made(done, text, [])
        if not reply.tool_calls:
            await self._line.said()
        if reply.finish == "interrupted" or link.cut.keys() & link.said.keys():
            text = said_until(text, link.share_played())
            reply = replace(reply, text=text, finish="interrupted")
        if spoken:
            heard = await self._transcript(link, spoken)
            show({"kind": "part", "part": heard})
            reply = replace(reply, parts=(heard,))
        # the loop adds what was heard, and the reply: the service has both
        self._told = len(request.messages) + bool(spoken) + 1
        self._spoken, self._audio = "", b""
        return reply

    def _taken(self) -> bytes:
        """Take the audio of what the person has said: up to where they said that it ends."""
        taken: list[bytes] = []
        while self._heard and (chunk := self._heard.popleft()):
            taken.append(chunk)
        return b"".join(taken)

    @property
    def transcriber(self) -> str:
        """See ``Talk``."""
        return self._model.config.transcription or ""

    async def _transcript(self, link: Link, item: str) -> Part:
        config = self._model.config
        if config.transcription and item in link.heard:
            with suppress(TimeoutError):
                await link.until(lambda: item in self._texts, _TRANSCRIPT_SECONDS)
            if item not in self._texts:
                self._late.append(item)
                return heard_part(UNHEARD, id=item)
        return self._heard_part(item)

    def _heard_part(self, item: str, id: str = "") -> Part:
        text, usage = self._texts.get(item) or ("", None)
        prices = self._model.config.transcription_prices
        if usage is not None and prices is not None:
            usage = prices.priced(usage)
        return heard_part(text or UNHEARD, self.transcriber, usage, id=id)

    async def written(self) -> Sequence[Part]:
        """See ``Talk``."""
        has_ended = self._is_over or not self._line.is_open
        if self._late and has_ended and self._link is not None:
            with suppress(Exception):  # what it failed with ends no call that has ended
                await self._link.until(self._has_all_texts, _TRANSCRIPT_SECONDS)
        written = [item for item in self._late if item in self._texts]
        self._late = [item for item in self._late if item not in written]
        return [self._heard_part(item, item) for item in written]

    def _has_all_texts(self) -> bool:
        return self._texts.keys() >= {*self._late}

    # ------------------------------------------------------------------------- the connection

    @asynccontextmanager
    async def _linked(self, client: AsyncOpenAI, request: Request) -> AsyncGenerator[Link]:
        """Give a link that knows the conversation; one that fails is dropped."""
        if self._pumping is None:
            self._pumping = asyncio.create_task(self._pump())
            self._pumping.add_done_callback(lambda _: self._link and self._link.wake())
        try:
            if self._link is None:
                self._model.check(request)
                self._link = await self._opened(client, request)
            else:
                await self._link.tell(items_of(request.messages[self._told :]))
            self._told = len(request.messages)
            yield self._link
        except BaseException:
            await self._drop()
            raise

    async def _opened(self, client: AsyncOpenAI, request: Request) -> Link:
        kind = self._model.config.turn_detection
        detects = kind != "none"
        turns = {"type": kind, "create_response": False, "interrupt_response": False}
        link = Link(self._model.service, self._line, self._texts, detects=detects)
        try:
            await self._model.open(link, client, request, "audio", turns if detects else None)
            if self._spoken:  # it was heard on a connection that is gone
                content = audio_content(self._audio)
                await link.tell([{**message_of("user", [content]), "id": self._spoken}])
            for chunk in list(self._heard):
                await (link.hear(chunk) if chunk else link.commit())
            if self._is_deaf:
                await link.commit(is_end=True)
        except BaseException:
            await link.close()
            raise
        return link

    async def _drop(self) -> None:
        link, self._link, self._told = self._link, None, 0
        if link is not None:
            self._line.cut()
            with suppress(Exception):  # it may be gone
                await link.close()

    async def _pump(self) -> None:
        """Send what the person says, for as long as the call lasts."""
        async for chunk in self._line.heard():
            self._heard.append(chunk)
            while sum(map(len, self._heard)) > _KEPT_BYTES:
                self._heard.popleft()
            if self._link is not None:
                with suppress(Exception):  # the reader of the link says why
                    await (self._link.hear(chunk) if chunk else self._link.commit())
        self._is_deaf = True
        if self._link is not None and self._line.is_open:
            with suppress(Exception):
                await self._link.commit(is_end=True)
