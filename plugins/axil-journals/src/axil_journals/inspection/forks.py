"""Forks: new runs that begin with a part of the record of another, perhaps edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from axil import MISSING, Options, Schema, Workflow
from axil.plugin import OVERWRITE, FieldChange, JournalError, as_messages
from axil_journals.inspection.snapshots import routed
from axil_journals.journal import Entry, Journal, JournalWriter, unknown_error
from axil_journals.migrations import adapt_entries, graph_of_frame
from axil_journals.records import record_graph
from axil_journals.values import encode_delta, encode_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The differences of a fork from its source run."""

    input: Any = MISSING
    """Instead of the run's input; without ``at`` the fork then begins at the beginning."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values of fields, as if the step ``at`` had written them."""
    output: Any = MISSING
    """The payload that the edges of the step ``at`` carry."""
    is_routed: bool = False
    """True: the edges of the step decide again about ``output``; else those that carried something
    carry it as it is."""
    origin: Mapping[str, Any] | None = None
    """Instead of the run's own; see ``axil.Options.origin``."""


async def fork(
    journal: Journal,
    run_id: str,
    new_id: str,
    *,
    at: int | None = None,
    workflow: Workflow | None = None,
    edit: Edit | None = None,
) -> None:
    """Store the run ``new_id`` with the record of ``run_id`` up to entry number ``at``.

    Recorded outcomes are not executed again; what follows has keys of its own (``Context.key``).
    Open questions are asked again, with all their time. Resume the fork to execute it.

    Args:
        at: None: all entries, without the end of the run.
        workflow: the graph for the fork, perhaps another version; outcomes of nodes that it does
            not have are left out.
        edit: what else is changed; it needs the workflow.
    Raises: JournalError: AX503 there is no such run; AX506 there is a run ``new_id``; AX525, AX526
        its state cannot be migrated to the workflow's; AX528 the edit does not fit the step.
        StateError: the edit does not fit the schema.
    """
    edit = edit or Edit()
    has_outcome = bool(edit.state) or edit.output is not MISSING
    if at is None and edit.input is not MISSING and not has_outcome:
        at = 1
    entries = list(journal.entries(run_id))[:at]
    if not entries:
        raise unknown_error(run_id)
    if list(journal.entries(new_id)):
        message = f'there is a run "{new_id}" already.'
        raise JournalError(message, id="AX506", hint="Choose another name.")
    if workflow is not None:
        entries = list(adapt_entries(entries, workflow.plan, migrate=True))
    if has_outcome or edit.input is not MISSING:
        entries = _edited(entries, edit, workflow, is_placed=at is not None)
    forked = [_forked(entry, run_id, workflow, edit) for entry in entries]
    stored = [entry for entry in forked if entry is not None]
    if workflow is not None and edit.is_routed and edit.output is not MISSING:
        stored[-1] = await _with_route(stored, edit.output, workflow)
    await _store(journal, new_id, stored)


async def _store(journal: Journal, run_id: str, entries: Sequence[Entry]) -> None:
    writer = journal.open(run_id)
    try:
        for entry in entries:
            writer.append(entry)
        if (stored := writer.kept()) is not None:
            await stored
    except BaseException as error:
        if not (isinstance(error, JournalError) and error.id == "AX506"):  # else it is another's
            await _withdraw(journal, writer, run_id, entries)
        raise
    finally:
        writer.close()


async def _withdraw(
    journal: Journal, writer: JournalWriter, run_id: str, entries: Sequence[Entry]
) -> None:
    """Forget what was stored of a fork that failed: a part of it would be taken for the whole."""
    with suppress(JournalError):
        if (stored := writer.kept()) is not None:
            await stored
    writer.close()
    with suppress(JournalError):
        there = list(journal.entries(run_id))
        if there == entries[: len(there)]:
            journal.forget(run_id)


def _forked(entry: Entry, run_id: str, workflow: Workflow | None, edit: Edit) -> Entry | None:
    """Return an entry as the fork has it; None: the fork does not have it."""
    data = dict(entry.data)
    if entry.kind == "run":
        graph: Mapping[str, Any] = {}
        if workflow is not None:
            options = Options(pins=workflow.pins, origin=edit.origin or {})
            graph = {"states": {}, "marked": {}, **record_graph(workflow.plan, options)}
        own = {name: value for name, value in data.items() if name not in ("thread", "after")}
        return replace(entry, data={**own, "forked_from": run_id, **graph})
    if entry.kind == "ended":
        return None
    if entry.kind == "resumed":
        now = data.get("now", {})
        if workflow is not None:  # the header has the rest anew
            now = {name: now[name] for name in ("limits",) if name in now}
        if not now:
            return None
        data["now"] = now
    if entry.kind == "asked":
        data.pop("due", None)
    return replace(entry, data=data)


def _edited(
    entries: Sequence[Entry], edit: Edit, workflow: Workflow | None, *, is_placed: bool
) -> list[Entry]:
    """Return the entries, the first and the last one edited. Raises: JournalError (AX528)."""
    if workflow is None:
        hint = "Pass the graph of the fork."
        raise JournalError("an edit was given, and no workflow.", id="AX528", hint=hint)
    first, *others = entries
    last = entries[-1]
    if edit.input is not MISSING:
        first = _with_input(first, edit.input, workflow)
    if edit.state or edit.output is not MISSING:
        _check_step(last, edit, is_placed=is_placed)
        if not others:
            return [_with_first_values(first, edit, workflow)]
        schema = graph_of_frame(workflow.plan.graph, last.frame).schema
        others[-1] = _with_outcome(last, edit, schema)
    return [first, *others]


def _check_step(entry: Entry, edit: Edit, *, is_placed: bool) -> None:
    is_run = entry.kind == "run"
    if is_placed and (entry.kind == "done" or (is_run and edit.output is MISSING)):
        return
    found = f"{entry.kind} {entry.activation}".strip() if is_placed else "no step"
    message = f"an outcome is edited at the step of a node; found {found}."
    hint = (
        "Name a step of the kind done (axil runs show RUN --steps); for the state, also the "
        "first step."
    )
    raise JournalError(message, id="AX528", hint=hint)


def _with_input(entry: Entry, given: Any, workflow: Workflow) -> Entry:
    schema = workflow.plan.graph.schema
    inputs, values = workflow.given(given)
    checked = schema.check(values, whole=True)
    changed: dict[str, Any] = {"inputs": encode_value(inputs)}
    if checked:
        changed["values"] = encode_delta(checked, schema)
    return replace(entry, data={**entry.data, **changed})


def _with_first_values(entry: Entry, edit: Edit, workflow: Workflow) -> Entry:
    schema = workflow.plan.graph.schema
    edited = encode_delta(schema.check(edit.state, whole=True), schema)
    return replace(entry, data={**entry.data, "values": {**entry.data["values"], **edited}})


def _with_outcome(entry: Entry, edit: Edit, schema: Schema) -> Entry:
    """Return an outcome with another output and other values, which no reducer combines."""
    values = schema.check(edit.state, whole=True)
    changed = {
        name: value if schema.of(name).reducer is OVERWRITE else FieldChange((), value)
        for name, value in values.items()
    }
    delta = {**entry.data["delta"], **encode_delta(changed, schema)}
    own_values = encode_delta(values, schema)
    sends: list[list[Any]] = []
    for name, payload, own in entry.data["sends"]:
        carried = payload if edit.output is MISSING else encode_value(edit.output)
        sends.append([name, carried, None if own is None else {**own, **own_values}])
    return replace(entry, data={**entry.data, "delta": delta, "sends": sends})


async def _with_route(entries: Sequence[Entry], output: Any, workflow: Workflow) -> Entry:
    """Return the last entry, an outcome, with what its edges carry of an output."""
    last = entries[-1]
    if graph_of_frame(workflow.plan.graph, last.frame).spec.payload == "messages":
        output = as_messages(output)
    sends = await routed(workflow, entries, output)
    return replace(last, data={**last.data, "sends": sends})
