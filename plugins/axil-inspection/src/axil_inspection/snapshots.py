"""The state of a run at a step, and what would have run next.

No body of the run is executed: the run is resumed from a part of its record with bodies that pause
at once. The bodies that pause are what would have run next, and they have its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from axil import Question, Result, Workflow, hookimpl
from axil.driver import Entry, JournalWriter, Pause, RunInfo
from axil.plugin import (
    Body,
    JournalError,
    Mode,
    Task,
    dataclass,
    hook_manager,
    inputs_of,
    without_views,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFiring:
    """A firing that would have been next."""

    activation: str
    inputs: Mapping[str, Any]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a run at a step."""

    state: Mapping[str, Any]
    """The state with the writes of all its paths."""
    due: tuple[DueFiring, ...]
    """The firings that would have been next, in plan order."""
    result: Result
    """The result of a run that was interrupted there; ``done`` if nothing was left to do."""


async def snapshot(
    workflow: Workflow,
    entries: Sequence[Entry],
    *,
    at: int | None = None,
) -> Snapshot:
    """Return the state of a run after entry number ``at`` (None: the last one).

    Args:
        workflow: the graph that was run; none of its bodies is executed.
        entries: the record of the run. Without its superseded entries, nothing inside an
            activation that has ended is seen.
    Raises: JournalError: AX503: there are no entries; AX504: another graph wrote them.
    """
    if not entries:
        raise JournalError("the record has no entries.", id="AX503", hint="Check the run's id.")
    due: list[DueFiring] = []
    setting = replace(workflow.setting, hooks=hook_manager([_Pausing(due)]))
    known = [_unpinned(each) for each in entries[:at] if each.kind not in ("asked", "ended")]
    copy, record = Workflow(workflow.spec, setting), cast("Any", _Record(known))
    result = await copy.start(run_id="past", journal=record, resuming=True, hooks=None).result()
    return Snapshot(state=result.attributes, due=tuple(due), result=result)


def _unpinned(entry: Entry) -> Entry:
    """Return an entry without the versions of plugins: none of their code is executed here."""
    if entry.kind == "resumed" and "now" in entry.data:
        return replace(entry, data={"now": {**entry.data["now"], "pins": {}}})
    return replace(entry, data={**entry.data, "pins": {}}) if entry.kind == "run" else entry


class _Pausing:
    """A hook that replaces each body by one that pauses at once."""

    def __init__(self, due: list[DueFiring]) -> None:
        self.due = due

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        return None if body.mode == "scope" else _PausingBody(self.due)


class _PausingBody:
    mode: Mode = "inline"
    wants_ctx = True

    def __init__(self, due: list[DueFiring]) -> None:
        self.due = due

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        activation = str(ctx.activation)
        state = {name: value for name, value in task.state.items() if not name.startswith("@")}
        inputs = without_views(inputs_of(task))
        firing = DueFiring(activation=activation, inputs=inputs, state=without_views(state))
        self.due.append(firing)
        raise Pause(Question(text="not yet", id=activation, node=ctx.activation.path))


class _Record:
    """A journal of one run, and its writer, that stores nothing."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = list(entries)

    def open(self, run_id: str) -> JournalWriter:
        return cast("JournalWriter", self)

    @property
    def entries(self) -> Any:
        return self._entries

    def append(self, entry: Entry) -> None:
        pass

    def kept(self) -> None:
        return None

    def close(self) -> None:
        pass

    def thread(self, name: str) -> Sequence[str]:
        return ()

    def runs(self) -> Sequence[RunInfo]:
        return ()

    def forget(self, run_id: str) -> None:
        pass


__all__ = ["DueFiring", "Snapshot", "snapshot"]
