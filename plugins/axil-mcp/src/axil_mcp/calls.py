"""Calls under way: who asks what of whom.

A call is followed by the task that made it, so what it asks of the run is asked there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from axil_mcp.asking import Unfit, answer_of, question_of, unshowable
from axil_mcp.errors import CallFailed
from axil_mcp.sampling import YES_OR_NO, Sampled, allowance, is_too_long, sampled
from axil_mcp.texts import clean, without

_TRIES: Final = 3
"""The number of times that a person is asked for an answer that fits."""
_MOST_SAMPLES: Final = 50
"""Calls of a model that a server gets during one of its own."""
_MOST_QUESTIONS: Final = 20
"""Questions that a server asks a person during one of its calls."""
_MOST_WAITING: Final = 100
"""Wishes of a server that wait at once."""
_MOST_CHUNKS: Final = 1000
"""Reports of progress and log entries that are shown of one call."""
_SHOWN: Final = 4000
"""Characters of a log entry."""

current: ContextVar[Call | None] = ContextVar("axil_mcp_call", default=None)
"""The call on whose behalf the SDK is at work, where it can tell."""


@dataclass(slots=True)
class _Wish:
    """Something that a server wants of the run, and where the answer goes."""

    params: Any
    answer: asyncio.Future[Any]
    unmet: Any
    """The answer if the call ends before there is one."""
    is_sampling: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """One call: the firing it is for, and what the server asks meanwhile."""

    server: str
    tool: str
    ctx: Any = None
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    sampling: str = "no"
    model: Any = None
    wishes: asyncio.Queue[_Wish] = field(default_factory=asyncio.Queue[_Wish])
    _open: list[_Wish] = field(default_factory=list["_Wish"])
    _is_over: bool = False
    _samples: int = 0
    _questions: int = 0
    _chunks: int = 0

    async def follow(self, job: asyncio.Future[Any], seconds: float) -> Any:
        """Return the result of the call. While it waits for a person its time limit does not run.

        Raises: CallFailed (AX925): it took longer than ``seconds``; and what the call raises.
        """
        loop = asyncio.get_running_loop()
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                while True:
                    coming = asyncio.ensure_future(self.wishes.get())
                    try:
                        await asyncio.wait({job, coming}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        coming.cancel()
                    if job.done():
                        return job.result()
                    left = (clock.when() or loop.time()) - loop.time()
                    clock.reschedule(None)
                    await self._grant(coming.result())
                    clock.reschedule(loop.time() + left)
        except TimeoutError:
            if not clock.expired():
                raise
            message = f"the call of {self.tool} took longer than {seconds:g} s."
            raise CallFailed(
                "AX925",
                message,
                "It may have been carried out. Raise call_timeout_seconds if it may take longer.",
                f'MCP server "{self.server}"',
            ) from None
        finally:
            self._is_over = True
            for wish in self._open:  # no answer can come any more, and the SDK must not wait
                if not wish.answer.done():
                    wish.answer.set_result(wish.unmet)
            if not job.done():
                job.cancel()
            await asyncio.gather(job, return_exceptions=True)

    async def _grant(self, wish: _Wish) -> None:
        if wish.is_sampling:
            given = await self._sampled(wish.params)
            if not wish.answer.done():
                wish.answer.set_result(given)
            return
        self._questions += 1
        fault = unshowable(wish.params)
        if self._questions > _MOST_QUESTIONS:
            fault = f"it asks more than {_MOST_QUESTIONS} questions during one call"
        if fault:
            raise CallFailed(
                "AX929",
                f"a question of its was not asked: {fault}.",
                "Report it to the server's owner, or set elicitation: false.",
                f'MCP server "{self.server}"',
            )
        for _ in range(_TRIES):
            given = await self.ctx.ask(question_of(self.server, wish.params, fault))
            try:
                answer = answer_of(wish.params, given)
            except Unfit as error:
                fault = str(error)
                continue
            if not wish.answer.done():
                wish.answer.set_result(answer)
            return
        message = f"the answer to its question does not fit: {fault}."
        raise CallFailed(
            "AX929",
            message,
            "Answer with what the question's schema asks for.",
            f'MCP server "{self.server}"',
        )

    async def _sampled(self, params: Any) -> Sampled | None:
        if self._samples >= _MOST_SAMPLES or is_too_long(params):
            return None
        self._samples += 1
        if self.sampling == "ask":
            try:
                asked = await self.ctx.ask(allowance(self.server, params))
                action, _ = answer_of(YES_OR_NO, asked)
            except Unfit:
                action = "decline"
            if action != "accept":
                return None
        name = f"mcp:{self.server}:{self.tool}:{self._samples}"
        return await sampled(self.model, params, self.ctx, name)

    async def sample(self, params: Any) -> Sampled | None:
        """Return what the model of the run replies; None: it may not be used. Called by the SDK, in
        whatever task.
        """
        return await self._wished(params, None, is_sampling=True)

    async def _wished(self, params: Any, unmet: Any, *, is_sampling: bool = False) -> Any:
        if self._is_over or self.ctx is None or not hasattr(self.ctx, "ask"):
            return unmet
        self._open = [each for each in self._open if not each.answer.done()]
        if len(self._open) >= _MOST_WAITING:
            return unmet
        answer = asyncio.get_running_loop().create_future()
        wish = _Wish(params, answer, unmet, is_sampling)
        self._open.append(wish)
        self.wishes.put_nowait(wish)
        return await wish.answer

    async def elicit(self, params: Any) -> tuple[str, dict[str, Any] | None]:
        """Return a person's answer; called by the SDK, in whatever task.

        There is no channel outside a firing: cancel.
        """
        return await self._wished(params, ("cancel", None))

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Show how far it is."""
        self.emit(
            "mcp_progress",
            tool=self.tool,
            progress=done,
            total=total,
            message=self._shown(message or ""),
        )

    def log(self, level: str, logger: str | None, data: Any) -> None:
        """Show what the server logs."""
        self.emit(
            "mcp_log",
            level=level,
            logger=self._shown(logger or ""),
            text=self._shown(data if isinstance(data, str) else repr(data)),
        )

    def _shown(self, text: str) -> str:
        return clean(without(text, self.secrets.values()), _SHOWN)

    def emit(self, kind: str, **fields: Any) -> None:
        """Show a chunk to the run's observers; a flood of them only in part."""
        self._chunks += 1
        if self.ctx is not None and self._chunks <= _MOST_CHUNKS:
            self.ctx.emit({"kind": kind, "server": self.server, **fields})
