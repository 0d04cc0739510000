"""Looking back: the steps of a run, where it stood at any of them, what differs between two runs; and going on from there.

Nothing here runs a body of the past. Where a run stood is found by letting it go on from a part of its record with bodies that stop
at once: what would have run next is what stopped, with what it would have been given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from axil.bodies import inputs_of
from axil.context import Question
from axil.desk import Pause
from axil.errors import JournalError
from axil.fields import OVERWRITE, Change
from axil.hooks import hookimpl, manager
from axil.journal import Book, Entry, Journal, RunInfo, decode, encode, encode_delta
from axil.migrations import as_of_now, graph_at
from axil.plan import Body, Mode
from axil.record import graph_told
from axil.result import Options, Result
from axil.state import Schema
from axil.tokens import Activation, Out, Task
from axil.values import MISSING
from axil.views import plain
from axil.workflow import Workflow

__all__ = ["Breakpoints", "Difference", "Due", "Edit", "Moment", "Step", "differences", "fork", "moment", "steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened, as people want to read it."""

    number: int
    """Its place in the record, from 1; a fork ``at`` it keeps it and all before it."""
    kind: str
    """As of ``Entry``."""
    activation: str
    at: float
    """Seconds since the run began."""
    output: Any = None
    """What its edges carried, by edge; of a question its text, of an answer the answer, of an ending how."""
    delta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it wrote, the fields of nodes apart."""
    used: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the run had used by then, as far as it is said."""
    by: str = ""
    """Who gave an answer, if it was no person: ``deadline``."""


def steps(entries: Sequence[Entry]) -> list[Step]:
    """The record of a run, step by step; times and clock reads of bodies are left out."""
    return [_step(number, entry) for number, entry in enumerate(entries, 1) if entry.kind not in ("clock", "slept", "began")]


def _step(number: int, entry: Entry) -> Step:
    data = entry.data
    output: Any = None
    if entry.kind == "done":
        output = {name: decode(payload) for name, payload, _ in data["sends"]}
    elif entry.kind == "round":
        output = {"round": data["round"], "end": data["end"]}
    elif entry.kind in ("step", "answer"):
        output = {data.get("name") or data.get("id"): decode(data["value"])}
    elif entry.kind == "run":
        output = decode(data["inputs"])
    else:
        output = {name: data[name] for name in ("id", "text", "status", "error", "output") if name in data} or None
    written: Mapping[str, Any] = data.get("delta") or data.get("changes") or {}
    return Step(
        number=number,
        kind=entry.kind,
        activation=str(entry.activation) if entry.node else "",
        at=float(data.get("at", 0.0)),
        output=output,
        delta={name: decode(value) for name, value in written.items() if not name.startswith("@")},
        used=data.get("used", {}),
        by=str(data.get("by", "")),
    )


# ---------------------------------------------------------------------------------------------------------- where it stood


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A firing that would have been next."""

    activation: str
    inputs: Mapping[str, Any]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Where a run stood."""

    state: Mapping[str, Any]
    """What all its paths had written so far."""
    due: tuple[Due, ...]
    """What would have run next, in plan order."""
    result: Result
    """As if the run had been broken off there; ``done`` where nothing was left to do."""


async def moment(workflow: Workflow, entries: Sequence[Entry], *, at: int | None = None) -> Moment:
    """Where the run of ``entries`` stood after entry number ``at`` (None: now). Nothing of the workflow is run.

    Args:
        workflow: the graph that was run.
        entries: all that is known of the run, superseded entries too: without them the inside of what has ended is not seen.
    Raises: JournalError: it was another graph's.
    """
    if not entries:
        raise JournalError("nothing is known of the run.", id="AX503")
    due: list[Due] = []
    watching = Workflow(workflow.spec, replace(workflow.setting, hooks=manager([_Stopping(due)])))
    known = [_unpinned(entry) for entry in entries[:at] if entry.kind not in ("asked", "ended")]
    result = await watching.start(run_id="past", journal=_Record(known), resuming=True, hooks=None).result()
    return Moment(state=result.attributes, due=tuple(due), result=result)


def _unpinned(entry: Entry) -> Entry:
    """Without the plugins that a run is pinned to: nothing of them is run to look back."""
    if entry.kind == "resumed" and "now" in entry.data:
        return replace(entry, data={"now": {**entry.data["now"], "pins": {}}})
    return replace(entry, data={**entry.data, "pins": {}}) if entry.kind == "run" else entry


class _Stopping:
    """A hook that puts a body which stops at once in the place of each."""

    def __init__(self, due: list[Due]) -> None:
        self.due = due

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        return None if body.mode == "scope" else _Stop(self.due)


class _Stop:
    mode: Mode = "inline"
    wants_ctx = True

    def __init__(self, due: list[Due]) -> None:
        self.due = due

    def __call__(self, task: Task, ctx: Any, /) -> Any:
        state = {name: value for name, value in task.state.items() if not name.startswith("@")}
        self.due.append(Due(activation=str(ctx.activation), inputs=plain(inputs_of(task)), state=plain(state)))
        raise Pause(Question(text="not yet", id=str(ctx.activation), node=ctx.activation.path))


class _Record:
    """A journal, and its book, of one run that is only read."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = list(entries)

    def open(self, run_id: str) -> Book:
        return cast("Book", self)

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


# ------------------------------------------------------------------------------------------------------------- going on


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a fork has otherwise than the run that it comes from."""

    input: Any = MISSING
    """Instead of the run's. What was done with the other stays done, so without ``at`` the fork begins at the beginning."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values of fields, as if the step ``at`` had written them: what lies behind it sees them."""
    output: Any = MISSING
    """What the edges of the step ``at`` carry."""
    origin: Mapping[str, Any] | None = None
    """Instead of the run's own, see ``Options.origin``."""


async def fork(
    journal: Journal, run_id: str, new_id: str, *, at: int | None = None, workflow: Workflow | None = None, edit: Edit | None = None
) -> None:
    """Begin the run ``new_id`` with what is known of ``run_id``, up to entry number ``at`` (None: all, but for its end).

    What was done is not done again; what follows is, under keys of its own (see ``Context.key``). Questions that are open are asked
    anew, with all their time. Resume it to let it go on.

    Args:
        workflow: the graph to go on with, perhaps another version; nodes that it does not have any more are left out.
        edit: what else is changed; for its input and state the workflow is needed.
    Raises: JournalError: AX503 nothing is known of the run; AX506 there is a run ``new_id`` already; AX525, AX526 its state does
        not lead to the workflow's; AX528 the edit does not fit the step. StateError: nor the schema.
    """
    edit = edit or Edit()
    entries = list(journal.entries(run_id))
    if at is None and edit.input is not MISSING and not edit.state and edit.output is MISSING:
        at = 1
    entries = entries[:at]
    if not entries:
        raise JournalError(f'the journal knows no run "{run_id}".', id="AX503")
    if list(journal.entries(new_id)):
        raise JournalError(f'there is a run "{new_id}" already.', id="AX506", hint="Choose another name.")
    if workflow is not None:
        entries = list(as_of_now(entries, workflow.plan, migrate=True))
    if edit.state or edit.output is not MISSING or edit.input is not MISSING:
        entries = _edited(entries, edit, workflow, is_placed=at is not None)
    forked = [each for entry in entries if (each := _forked(entry, run_id, workflow, edit)) is not None]
    book = journal.open(new_id)
    try:
        for entry in forked:
            book.append(entry)
        if (waiting := book.kept()) is not None:
            await waiting
    except BaseException as error:
        if not (isinstance(error, JournalError) and error.id == "AX506"):  # else what is there is another's
            await _withdrawn(journal, book, new_id, forked)
        raise
    finally:
        book.close()


async def _withdrawn(journal: Journal, book: Book, run_id: str, entries: Sequence[Entry]) -> None:
    """Forget what was written of a fork that broke off: a part of it would be taken for the whole."""
    with suppress(JournalError):
        if (waiting := book.kept()) is not None:
            await waiting
    book.close()
    with suppress(JournalError):
        there = list(journal.entries(run_id))
        if there == entries[: len(there)]:
            journal.forget(run_id)


def _forked(entry: Entry, run_id: str, workflow: Workflow | None, edit: Edit) -> Entry | None:
    """An entry as the fork has it; None: it has none such."""
    data = dict(entry.data)
    if entry.kind == "run":
        told: Mapping[str, Any] = {}
        if workflow is not None:
            told = {"states": {}, "marked": {}, **graph_told(workflow.plan, Options(pins=workflow.pins, origin=edit.origin or {}))}
        data = {name: value for name, value in data.items() if name not in ("thread", "after")}
        return replace(entry, data={**data, "forked_from": run_id, **told})
    if entry.kind == "ended" or (entry.kind == "resumed" and (workflow is not None or "now" not in data)):
        return None
    if entry.kind == "asked" and "due" in data:
        del data["due"]
    return replace(entry, data=data)


def _edited(entries: Sequence[Entry], edit: Edit, workflow: Workflow | None, *, is_placed: bool) -> list[Entry]:
    """The entries, the first and the last of them changed. Raises: JournalError (AX528)."""
    first, *others = entries
    last = entries[-1]
    if workflow is None:
        raise JournalError("an edit was given, and no workflow.", id="AX528", hint="Give the graph that the fork goes on with.")
    if edit.input is not MISSING:
        inputs, values = workflow.given(edit.input)
        checked = workflow.plan.graph.schema.check(values, whole=True)
        told = {"inputs": encode(inputs), **({"values": encode_delta(checked, workflow.plan.graph.schema)} if checked else {})}
        first = replace(first, data={**first.data, **told})
    if edit.state or edit.output is not MISSING:
        if not is_placed or last.kind not in ("run", "done") or (last.kind == "run" and edit.output is not MISSING):
            found = f"{last.kind} {last.activation}".strip() if is_placed else "no step"
            hint = "Name the step of a node that is done (axil runs show); for the state, the first step is the beginning."
            raise JournalError(f"an outcome is edited at the step of a node; found {found}.", id="AX528", hint=hint)
        if len(entries) == 1:
            return [_begun_otherwise(first, edit, workflow)]
        others[-1] = _ended_otherwise(last, edit, graph_at(workflow.plan.graph, last.frame).schema)
    return [first, *others]


def _begun_otherwise(entry: Entry, edit: Edit, workflow: Workflow) -> Entry:
    schema = workflow.plan.graph.schema
    values = {**entry.data["values"], **encode_delta(schema.check(edit.state, whole=True), schema)}
    return replace(entry, data={**entry.data, "values": values})


def _ended_otherwise(entry: Entry, edit: Edit, schema: Schema) -> Entry:
    """An outcome with other values and another output: what a field held before does not count, whatever its reducer."""
    values = schema.check(edit.state, whole=True)
    changed = {name: value if schema.of(name).reducer is OVERWRITE else Change((), value) for name, value in values.items()}
    delta = {**entry.data["delta"], **encode_delta(changed, schema)}
    sends = [
        [name, payload if edit.output is MISSING else encode(edit.output), own if own is None else {**own, **encode_delta(values, schema)}]
        for name, payload, own in entry.data["sends"]
    ]
    return replace(entry, data={**entry.data, "delta": delta, "sends": sends})


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """A hook plugin that stops a run before nodes: each firing asks a question named ``break`` and waits for the answer.

    ``"go"`` runs the node; a mapping with ``output`` (and ``delta``) is its outcome instead. ``paths``: of nodes, ``*`` for all.
    """

    paths: frozenset[str]

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        """See ``axil.hooks``."""
        return None if body.mode == "scope" else _Breaking(self.paths, body)


class _Breaking:
    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, paths: frozenset[str], body: Body) -> None:
        self.paths, self.body = paths, body

    async def __call__(self, task: Task, ctx: Any, /) -> Any:
        activation: Activation = ctx.activation
        if not self.paths.isdisjoint({"*", activation.path}):
            data = {"inputs": plain(inputs_of(task))}
            answer = await ctx.ask(Question(text=f"{activation} is about to run.", kind="break", options=("go",), data=data), name="break")
            if isinstance(answer, Mapping) and "output" in answer:
                given = cast("Mapping[str, Any]", answer)
                return Out(given["output"], dict(given.get("delta") or {}))
        if self.body.mode == "thread":
            import asyncio

            return await asyncio.to_thread(self.body, task, ctx)
        out = self.body(task, ctx)
        return await out if self.body.mode == "async" else out


# ------------------------------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One activation that did not come to the same."""

    activation: str
    kind: str
    """``only first``, ``only second``, ``output``, ``delta``."""
    first: Any = None
    second: Any = None


def differences(first: Sequence[Entry], second: Sequence[Entry]) -> list[Difference]:
    """Where two runs differ, activation by activation, in the order of the first one, whatever the order in which they ended."""
    one, other = ({step.activation: step for step in steps(entries) if step.kind == "done"} for entries in (first, second))
    return list(_differing(one, other))


def _differing(one: Mapping[str, Step], other: Mapping[str, Step]) -> Iterator[Difference]:
    for name, step in one.items():
        if name not in other:
            yield Difference(activation=name, kind="only first", first=step.output)
            continue
        there = other[name]
        if step.output != there.output:
            yield Difference(activation=name, kind="output", first=step.output, second=there.output)
        if step.delta != there.delta:
            yield Difference(activation=name, kind="delta", first=step.delta, second=there.delta)
    for name, step in other.items():
        if name not in one:
            yield Difference(activation=name, kind="only second", second=step.output)
