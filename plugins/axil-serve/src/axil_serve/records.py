"""The records of the runs of a server; who may see them, ``RunService`` decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar, cast

from axil.plugin import JournalError
from axil_journals import Entry, LocalEngine, RunInfo
from axil_serve.data import OVER, entry_key, origin_of
from axil_serve.errors import NotFound
from axil_serve.feed import PublishingJournal

P = ParamSpec("P")
T = TypeVar("T")
_STORED_TRIES: Final = 500
_STORED_SECONDS: Final = 0.01
"""A journal stores what is appended to it within a few milliseconds."""
_LAST: Final = 20
_KNOWN: Final = 10_000
"""Runs of which is kept what a server recorded of them."""


class Records:
    """The records of runs, with what an engine knows of those at work.

    Its methods raise: NotFound (AX965): there is no such run; and what the journal raises.
    """

    def __init__(
        self, journal: PublishingJournal, engine: LocalEngine, *, watch_only: bool
    ) -> None:
        """``watch_only``: the engine runs nothing, and knows no more than the journal."""
        self.journal, self._engine, self._watch_only = journal, engine, watch_only
        self.owned: dict[str, dict[str, Any]] = {}
        """The part of serve in the origin, by run."""
        self._owning = threading.Lock()

    async def read(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method that reads: in a thread, if the journal waits for a disk or a network."""
        if not self.journal.blocking:
            return call(*args, **kwargs)
        return await asyncio.to_thread(call, *args, **kwargs)

    def live(self, info: RunInfo) -> RunInfo:
        """Return what is known of a run of which the journal says this."""
        return info if self._watch_only else self._engine.live(info)

    def info(self, run_id: str) -> RunInfo:
        """Return what is known of a run."""
        found = self.journal.infos([run_id])
        if not found:
            raise unknown_run(run_id)
        return self.live(found[0])

    def is_awake(self, info: RunInfo) -> bool:
        """Return whether a run has ended, and was resumed: an engine is about to take it."""
        return info.status in OVER and not self._engine.has_ended(info)

    def entries(self, run_id: str) -> Sequence[Entry]:
        """Return the whole record of a run."""
        entries = list(self.journal.entries(run_id))
        if not entries:
            raise unknown_run(run_id)
        return entries

    async def stored(self, run_id: str, key: str) -> None:
        """Wait until an entry that was appended can be read, so that ``look`` agrees with it."""
        for _ in range(_STORED_TRIES):
            last = (await self.read(self.entries, run_id))[-_LAST:]
            if any(entry_key(entry) == key for entry in last):
                return
            await asyncio.sleep(_STORED_SECONDS)

    def kept(self, run_id: str) -> dict[str, Any]:
        """Return what a server recorded of a run; empty: none started it."""
        found = self.owned.get(run_id)
        if found is None:
            try:
                kept: Any = origin_of(self.entries(run_id)).get("serve")
            except (JournalError, NotFound):  # it is damaged, or forgotten: no caller owns it
                return {}
            found = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
            with self._owning:  # several threads read
                self.owned[run_id] = found
                while len(self.owned) > _KNOWN:
                    del self.owned[next(iter(self.owned))]
        return found

    async def forget(self, run_id: str) -> None:
        """Remove the record of a run."""
        await self.read(self.journal.forget, run_id)
        with self._owning:
            self.owned.pop(run_id, None)


def unknown_run(run_id: str) -> NotFound:
    """Return the error: there is no such run."""
    message = f'there is no run "{run_id:.100}".'
    return NotFound("AX965", message, "List the runs with GET /v1/runs.")


__all__ = ["Records", "unknown_run"]
