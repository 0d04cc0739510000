"""Retries of adapters: a call to a busy, slow or cut-off model is repeated, within bounds.

A chunk ``{"kind": "reset", "chunks": n}`` says that the last ``n`` chunks of this call, of a reply
that broke off, do not count. Each new try is announced by a chunk ``retry``.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from axil_models.errors import ModelError
from axil_models.requests import Emit

T = TypeVar("T")


class Clock(Protocol):
    """Time, as a run sees it."""

    def now(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class _Machine:
    """The machine's clock."""

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_clock: ContextVar[Clock | None] = ContextVar("axil_models_clock", default=None)


@contextlib.contextmanager
def on_clock(clock: Clock | None) -> Generator[None]:
    """Let adapters wait on ``clock`` within the ``with``; None: on the machine's."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


class Retry(BaseModel):
    """The rules for repeating a call to a remote model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_tries: int = Field(
        default=5,
        ge=1,
        description="How often it is asked, the first time included; 1: never again.",
    )
    first_wait_seconds: float = Field(
        default=0.5,
        ge=0,
        description="The wait before the second try; it doubles with each further one.",
    )
    longest_wait_seconds: float = Field(
        default=30, ge=0, description="The longest wait that is not asked for by the server."
    )
    total_seconds: float = Field(
        default=1800, gt=0, description="What one call may take in all, waits included."
    )

    def wait_seconds(
        self, tries: int, failure: ModelError, chance: Callable[[], float] = random.random
    ) -> float:
        """Return how long to wait after ``tries`` failed tries: half of it is left to chance, and
        never less than the server asks for.

        >>> Retry().wait_seconds(3, ModelError("busy"), lambda: 1.0)
        2.0
        """
        most = min(self.longest_wait_seconds, self.first_wait_seconds * 2.0 ** min(tries - 1, 60))
        asked = failure.retry_after_seconds or 0.0
        return max(most * (0.5 + chance() / 2), asked * (1 + chance() / 20))


class Showing:
    """``emit`` for one try: it counts what was shown."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.count = 0

    def __call__(self, chunk: object) -> None:
        """Show ``chunk``."""
        self.count += 1
        self._emit(chunk)


async def persevere(
    attempt: Callable[[Showing], Awaitable[T]],
    retry: Retry,
    emit: Emit,
    meaning: Callable[[Exception], ModelError | None],
) -> T:
    """Return what ``attempt`` gives, tried until it succeeds or ``retry`` sets an end.

    Args:
        attempt: one try; it shows chunks as they come.
        meaning: the error that an exception of a try means; None: the exception is raised.
    Raises: ModelError: all tries failed.
    """
    clock = _clock.get() or _Machine()
    began, tries = clock.now(), 0
    while True:
        tries += 1
        show = Showing(emit)
        failure, cause = await _tried(
            attempt, show, retry.total_seconds - (clock.now() - began), meaning
        )
        if isinstance(failure, _Done):
            return failure.value
        wait = retry.wait_seconds(tries, failure)
        left = retry.total_seconds - (clock.now() - began)
        if not failure.transient or tries >= retry.max_tries or wait >= left:
            # outside the handler: nothing but the cause goes with it
            raise _after_tries(failure, tries) from cause
        if show.count:
            emit({"kind": "reset", "chunks": show.count})
        emit(
            {
                "kind": "retry",
                "try": tries + 1,
                "of": retry.max_tries,
                "wait_seconds": round(wait, 3),
                "status": failure.status,
                "error": failure.message,
            }
        )
        await clock.sleep(wait)


class _Done:
    """The result of a try."""

    def __init__(self, value: Any) -> None:
        self.value = value


async def _tried(
    attempt: Callable[[Showing], Awaitable[Any]],
    show: Showing,
    left: float,
    meaning: Callable[[Exception], ModelError | None],
) -> tuple[Any, Exception | None]:
    """Return what a try gave, or its failure with the cause, as far as that may be shown."""
    scope = asyncio.timeout(max(left, 0.0))
    try:
        async with scope:
            return _Done(await attempt(show)), None
    except Exception as error:
        if isinstance(error, TimeoutError) and scope.expired():
            message = "the model took longer than retry.total_seconds."
            return ModelError(message, transient=False, hint="Raise it, or ask for less."), None
        failure = meaning(error)
        if failure is None:
            raise
        return failure, failure.__cause__ if isinstance(failure.__cause__, Exception) else None


def _after_tries(failure: ModelError, tries: int) -> ModelError:
    if tries == 1:
        return failure
    return ModelError(
        f"{failure.message.rstrip('.')} (after {tries} tries).",
        status=failure.status,
        retry_after_seconds=failure.retry_after_seconds,
        transient=failure.transient,
        hint=failure.hint,
        where=failure.problem.where,
    )


def retry_after_seconds(headers: Mapping[str, str] | None) -> float | None:
    """Return how long a server asks to wait, from its headers: milliseconds, seconds or a date,
    else when a limit that is used up is over; None: it does not say.

    >>> retry_after_seconds({"retry-after": "2"}), retry_after_seconds({"retry-after-ms": "250"})
    (2.0, 0.25)
    >>> used_up = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m0.5s"}
    >>> retry_after_seconds(used_up)
    60.5
    """
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = headers.get(name)
        if given is None:
            continue
        try:
            seconds = float(given) / unit
        except ValueError:
            seconds = _until(given)
        if seconds is not None and 0 <= seconds < float("inf"):
            return seconds
    resets = [
        _reset(headers.get(f"x-ratelimit-reset{of}") or "")
        for of in ("", "-requests", "-tokens")
        if headers.get(f"x-ratelimit-remaining{of}") == "0"
    ]
    return max((each for each in resets if each is not None), default=None)


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_EPOCH = 1e9
"""Seconds, in the year 2001: a greater number is a time, a smaller one a span."""


def _reset(given: str) -> float | None:
    """Read when a limit is over: ``6m0s``, seconds, or seconds or milliseconds of the epoch."""
    if given and not _SPAN.sub("", given):
        return sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(given))
    if not given.isdecimal():
        return None
    moment = float(given)
    if moment < _EPOCH:
        return moment
    return max(0.0, (moment / 1000 if moment > _EPOCH * 100 else moment) - time.time())


def _until(date: str) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
