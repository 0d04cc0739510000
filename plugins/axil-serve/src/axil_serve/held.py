"""Secrets that callers gave along with their runs, in the memory of this process alone.

The journal has only their names, and whose run it is. A run that was begun with secrets is executed
where they are: another process, and this one after a restart, leaves it open until its owner
answers or resumes it there and sends them again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, cast

from axil import ConfigError, Problem
from axil.plugin import CallerSecrets, given_by_caller
from axil_journals import AroundRun, Entry
from axil_serve.access import Caller

_SECONDS: Final = 24 * 3600.0
"""The time that secrets are kept after they were given."""
_MOST: Final = 10_000
"""Runs of which they are kept."""
_NOTHING: Final[Mapping[str, Any]] = {}


class HeldSecrets:
    """The secrets of the callers of runs, by run."""

    def __init__(self, names: Collection[str]) -> None:
        """``names``: what callers may give."""
        self._none = CallerSecrets(names, {})
        self._held: dict[str, tuple[float, CallerSecrets]] = {}

    def kept(self, caller: Caller) -> dict[str, Any]:
        """Return what the journal keeps of the secrets of a caller: their names."""
        given = () if caller.secrets is None else caller.secrets.given
        return {"secrets": list(given)} if given else {}

    def put(self, caller: Caller, run_id: str) -> None:
        """Keep what a caller gave along with a run."""
        if caller.secrets is None or not caller.secrets.given:
            return
        self._held.pop(run_id, None)
        self._held[run_id] = (time.monotonic() + _SECONDS, caller.secrets)
        while len(self._held) > _MOST or next(iter(self._held.values()))[0] < time.monotonic():
            del self._held[next(iter(self._held))]

    def drop(self, run_id: str) -> None:
        """Forget the secrets of a run."""
        self._held.pop(run_id, None)

    def around(self, inner: AroundRun | None) -> AroundRun:
        """Return what a run is executed within: what ``inner`` says, and its caller's secrets.

        It raises ConfigError (AX994) for a run that was begun with secrets which are not here; the
        engine leaves such a run open.
        """

        def within(origin: Mapping[str, Any], entries: Sequence[Entry]) -> Any:
            found: Any = origin.get("serve")
            kept = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else _NOTHING
            given = self._none if self._none.names else None
            if kept.get("secrets"):
                until, given = self._held.get(str(kept.get("run")), (0.0, None))
                if given is None or until < time.monotonic():
                    names = ", ".join(map(str, kept["secrets"]))
                    message = f"the run needs secrets of its caller that are not here: {names}."
                    hint = "Let its owner resume it, and send them with the request."
                    raise ConfigError(Problem("AX994", str(kept.get("run")), message, hint))
            return _both(None if inner is None else inner(origin, entries), given)

        return within


@contextmanager
def _both(
    inner: AbstractContextManager[Any] | None, given: CallerSecrets | None
) -> Generator[None]:
    with given_by_caller(given):
        if inner is None:
            yield
        else:
            with inner:
                yield


__all__ = ["HeldSecrets"]
