"""The state of a run at a step, and what would have run next.

The run is resumed from a part of its record with bodies that pause at once: these would have run
next. No body of the run is executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakKeyDictionary

from axil import Out, Question, Result, Workflow, hookimpl
from axil.driver import Pause
from axil.plugin import Body, JournalError, Mode, Task, hook_manager, inputs_of, without_views
from axil_journals.journal import Entry, JournalWriter
from axil_journals.recorder import Recording
from axil_journals.values import decode_delta


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
    due: tuple[DueFiring, ...]
    """The firings that would have been next, in plan order."""
    result: Result
    """The result of the run if it was interrupted there; ``done`` if nothing was left to do."""


async def snapshot(
    workflow: Workflow,
    entries: Sequence[Entry],
    *,
    at: int | None = None,
) -> Snapshot:
    """Return the state of a run after entry number ``at`` (None: the last one).

    Args:
        workflow: the graph that was run; none of its bodies is executed.
        entries: the record; without superseded entries, ended activations are seen as a whole.
    Raises: JournalError: AX503: there are no entries; AX504: another graph wrote them.
    """
    if not entries:
        raise JournalError("the record has no entries.", id="AX503", hint="Check the run's id.")
    due: list[DueFiring] = []
    result, _ = await _replayed(workflow, entries[:at], due)
    return Snapshot(state=result.attributes, due=tuple(due), result=result)


async def routed(workflow: Workflow, entries: Sequence[Entry], output: Any) -> Sequence[Any]:
    """Return what the edges of the last entry, an outcome, carry of another output.

    Conditions, routers, processors and filters decide again, in the state after the recorded
    outcome. A body that chose its edges itself is taken to have chosen all.

    Raises: JournalError (AX528): an edge refuses the output, or the firing is in a sub-run.
    """
    *known, last = entries
    edited = _EditedOutcome(last, output)
    result, added = await _replayed(workflow, known, [], edited)
    for entry in added:
        if entry.kind == "done" and entry.activation == last.activation:
            return entry.data["sends"]
    reason = str(result.error) if edited.is_reached else "the firing lies inside of a body."
    message = f"the edges of {last.activation} cannot decide again: {reason}"
    hint = "Change the output, or fork without is_routed."
    raise JournalError(message, id="AX528", hint=hint)


async def _replayed(
    workflow: Workflow,
    entries: Sequence[Entry],
    due: list[DueFiring],
    edited: _EditedOutcome | None = None,
) -> tuple[Result, Sequence[Entry]]:
    """Return the result of a run that pauses at the end of its record, and what it recorded."""
    known = [_unpinned(each) for each in entries if each.kind not in ("asked", "ended")]
    copy, record = _pausing_copy(workflow), _Record(known)
    token = _replay.set((due, edited))
    try:
        run = copy.start(run_id="past", journal=cast("Any", record), resuming=True, hooks=None)
        result = await run.result()
    finally:
        _replay.reset(token)
    return result, record.added


_replay: ContextVar[tuple[list[DueFiring], _EditedOutcome | None]] = ContextVar("replay")
"""The list of the firings that pause in this replay, and the outcome with another output."""
_copies: WeakKeyDictionary[Workflow, tuple[Any, Any, Workflow]] = WeakKeyDictionary()
"""Workflows, with the spec, the setting and the result of their copies' compilation."""


def _pausing_copy(workflow: Workflow) -> Workflow:
    """Return a copy whose bodies pause at once; it is compiled once."""
    spec, setting = workflow.spec, workflow.setting
    found = _copies.get(workflow)
    if found is None or found[0] is not spec or found[1] is not setting:
        pausing = replace(setting, hooks=hook_manager([_Pausing()]))
        found = _copies[workflow] = spec, setting, Workflow(spec, pausing)
    return found[2]


def _unpinned(entry: Entry) -> Entry:
    """Return an entry without the versions of plugins, which execute nothing here, and without the
    limits that the run was given, which end nothing here.
    """
    free: Mapping[str, Any] = {"pins": {}, "limits": {}}
    if entry.kind == "resumed" and "now" in entry.data:
        return replace(entry, data={"now": {**entry.data["now"], **free}})
    return replace(entry, data={**entry.data, **free}) if entry.kind == "run" else entry


class _Pausing:
    """A hook that replaces each body by one that pauses at once."""

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        return None if body.mode == "scope" else _PausingBody()


class _EditedOutcome:
    """A recorded outcome with another output."""

    def __init__(self, outcome: Entry, output: Any) -> None:
        self.activation, self.is_reached = outcome.activation, False
        self._delta, self._output = outcome.data["delta"], output

    def out(self, task: Task) -> Out:
        self.is_reached = True
        return Out(self._output, decode_delta(self._delta, task.state.schema, task.state))


class _PausingBody:
    mode: Mode = "inline"
    wants_ctx = True

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        due, edited = _replay.get()
        if edited is not None and ctx.activation == edited.activation:
            return edited.out(task)
        activation = str(ctx.activation)
        state = {name: value for name, value in task.state.items() if not name.startswith("@")}
        inputs = without_views(inputs_of(task))
        firing = DueFiring(activation=activation, inputs=inputs, state=without_views(state))
        due.append(firing)
        raise Pause(Question(text="not yet", id=activation, node=ctx.activation.path))


class _Record(Recording):
    """A journal of one run, and its writer, which keeps what is added apart."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = list(entries)
        self.added: list[Entry] = []

    def open(self, run_id: str) -> JournalWriter:
        return cast("JournalWriter", self)

    @property
    def entries(self) -> Any:
        return self._entries

    def append(self, entry: Entry) -> None:
        self.added.append(entry)

    def kept(self) -> None:
        return None

    def close(self) -> None:
        pass

    def thread(self, name: str) -> Sequence[str]:
        return ()
