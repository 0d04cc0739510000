"""The requests and tokens of models that the runs of queues use, for the journal to count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, cast

from axil import Run
from axil.driver import Clock, wall_time
from axil_journals.queues import Spent

TELL_SECONDS: Final = 1.0
"""Seconds between two reports to the journal."""
_AGAIN_SECONDS: Final = 30.0
"""Seconds for which nothing is reported of a queue that limits nothing."""
_TOO_MANY: Final = 429


class SpendingWatch:
    """An observer of one run of a queue: it counts the calls of models, and what they used."""

    def __init__(self, queue: str, clock: Clock) -> None:
        self.queue, self._clock = queue, clock
        self._run: Run | None = None
        self._requests = self._told = 0
        self._closed_until = 0.0

    def begin(self, run: Run) -> None:
        """Count the tokens of a run from here on."""
        self._run, self._told = run, _tokens(run)

    def step_finished(self, kind: str) -> None:
        """See the hook."""
        self._requests += kind == "model"

    def step_failed(self, error: BaseException, kind: str) -> None:
        """See the hook: a provider that refuses a request may ask to wait."""
        if kind == "model":
            self._requests += 1
            self._wait(getattr(error, "retry_after_seconds", None))

    def chunk(self, chunk: Any) -> None:
        """See the hook: an adapter shows that it waits, and tries again."""
        if not isinstance(chunk, Mapping):
            return
        given = cast("Mapping[str, Any]", chunk)
        if given.get("kind") == "retry":
            self._requests += 1
            if given.get("status") == _TOO_MANY:
                self._wait(given.get("wait_seconds"))

    def _wait(self, seconds: Any) -> None:
        if isinstance(seconds, (int, float)):
            until = wall_time(self._clock) + seconds
            self._closed_until = max(self._closed_until, until)

    def drain(self) -> Spent | None:
        """Return what was used since the last call; None: nothing."""
        told = self._told if self._run is None else _tokens(self._run)
        requests, tokens, until = self._requests, told - self._told, self._closed_until
        self._requests, self._told, self._closed_until = 0, told, 0.0
        if not (requests or tokens or until):
            return None
        return Spent(queue=self.queue, requests=requests, tokens=tokens, closed_until=until)


class Spending:
    """The usage that the journal does not know yet, by queue."""

    def __init__(self) -> None:
        self._known: dict[str, Spent] = {}
        self._unlimited: dict[str, float] = {}  # queues, and until when that is believed

    def add(self, found: Iterable[Spent | None]) -> None:
        """Add what was used."""
        for each in found:
            if each is not None:
                known = self._known.get(each.queue)
                self._known[each.queue] = each if known is None else known.plus(each)

    def drain(self, now: float) -> Collection[Spent]:
        """Return what is to be reported."""
        known, self._known = self._known, {}
        return [each for each in known.values() if self._unlimited.get(each.queue, 0.0) <= now]

    def note(self, spent: Iterable[Spent], limited: Collection[str], now: float) -> None:
        """Note which of the queues limit what is used."""
        for each in spent:
            if each.queue not in limited:
                self._unlimited[each.queue] = now + _AGAIN_SECONDS


def _tokens(run: Run) -> int:
    return int(sum(run.meter.usage.tokens.values()))
