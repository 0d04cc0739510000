"""Facts of runs as entries: beginnings, ends, outcomes and rounds, written and read."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from axil import Activation, Limits, NodeFailed, Options, Result, RunPaused, Schema, State
from axil.driver import (
    KEPT,
    CycleRun,
    Exit,
    Machine,
    RecordFiring,
    RecordRound,
    Round,
    Send,
    Transition,
)
from axil.plugin import Changes, CycleBody, JournalError, Plan, Task, without_secrets
from axil_journals.journal import Entry, Journal, claimed_error
from axil_journals.migrations import marked, recorded_graph, thread_state, versions
from axil_journals.replay import ReplayIndex
from axil_journals.values import (
    decode_delta,
    decode_value,
    encode_delta,
    encode_question,
    encode_value,
)

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Beginning(NamedTuple):
    """The inputs and values with which a run begins."""

    inputs: Any
    values: Mapping[str, Any]
    """Given with the inputs, checked."""
    thread: str = ""
    after: str = ""
    """The thread's last run so far; empty: none, or no thread."""
    before: Mapping[str, Any] = _NOTHING
    """The state that the thread's last finished run left."""

    def state(self, schema: Schema) -> dict[str, Any]:
        """Return what overwrites the graph's first values; messages follow those of the thread."""
        messages = {
            name: schema.of(name).reducer.reduce(self.before[name], value)
            for name, value in self.values.items()
            if name in self.before and schema.of(name).reducer.name == "append_messages"
        }
        return {**self.before, **self.values, **messages}


def beginning(
    journal: Journal, plan: Plan, inputs: Any, values: Mapping[str, Any], options: Options
) -> Beginning:
    """Return the beginning of a new run.

    Raises: JournalError: AX506 it was begun elsewhere meanwhile; AX509 the thread is in use.
    """
    if not options.thread:
        return Beginning(inputs, values)
    runs = journal.thread(options.thread)
    if options.run_id in runs:
        raise claimed_error(options.run_id, "since its journal was read")
    for number, run_id in enumerate(reversed(runs)):
        entries = list(journal.entries(run_id))
        ended = ReplayIndex(entries).ended
        status = "open" if ended is None else ended.data["status"]
        if not number and status in ("open", "paused"):
            message = f'the last run of the thread "{options.thread}", "{run_id}", is {status}.'
            hint = "Resume, answer or cancel it first: runs of a thread go one after the other."
            raise JournalError(message, id="AX509", hint=hint)
        if ended is not None and status == "done":
            return Beginning(
                inputs,
                values,
                options.thread,
                runs[-1],
                thread_state(ended.data["state"], recorded_graph(entries), plan),
            )
    return Beginning(inputs, values, options.thread, runs[-1] if runs else "")


def header(plan: Plan, begun: Beginning, options: Options) -> Entry:
    """Return the header of a run. Raises: JournalError: an input cannot be kept."""
    schema, spec = plan.graph.schema, plan.graph.spec
    data: dict[str, Any] = {
        "graph": spec.id,
        "inputs": encode_value(begun.inputs),
        "values": encode_delta(begun.values, schema),
    }
    if begun.thread:
        data |= {
            "thread": begun.thread,
            "after": begun.after,
            "before": encode_delta(begun.before, schema),
        }
    return Entry("run", data={**data, **record_graph(plan, options)})


def record_graph(plan: Plan, options: Options) -> dict[str, Any]:
    """Return what a journal keeps of the graph of a run, to be compared by later processes."""
    graph = plan.graph
    data: dict[str, Any] = {
        "digest": graph.digest,
        "states": versions(graph),
        "marked": marked(graph),
        "pins": {name: dict(pin) for name, pin in options.pins.items()},
    }
    return {name: value for name, value in {**data, **_kept_options(options)}.items() if value}


def _kept_options(options: Options) -> dict[str, Any]:
    """Return the options that are kept with a run, where they are given."""
    data: dict[str, Any] = {}
    if options.origin:
        data["origin"] = encode_value(dict(options.origin))
    if options.limits is not None:
        data["limits"] = _encoded_limits(options.limits)
    return data


def _encoded_limits(limits: Limits) -> dict[str, Any]:
    """Return limits as JSON data, prices and estimates as the plain data that a meter reads."""
    given: dict[str, Any] = {name: getattr(limits, name) for name in Limits.__dataclass_fields__}
    given["lanes"] = dict(limits.lanes)
    for name in ("pricing", "estimate"):
        if hasattr(given[name], "plain"):
            given[name] = given[name].plain()
    return encode_value(given)


def resumed(recorded: Entry, plan: Plan, options: Options) -> Entry:
    """Return the entry of a resumption, with the differences of the graph, of plugins, and of what
    is kept with the run.
    """
    now = record_graph(plan, options) if options.migrate else _kept_options(options)
    if not (options.migrate or options.resuming):
        now.pop("origin", None)
    if all(now[name] == recorded.data.get(name) for name in now):
        return Entry("resumed")
    graph: dict[str, Any] = {"states": {}, "marked": {}} if options.migrate else {}
    return Entry("resumed", data={"now": {**graph, **now}})


def limits_entry(limits: Limits) -> Entry:
    """Return the entry by which a run continues with other limits, and keeps them."""
    return Entry("resumed", data={"now": {"limits": _encoded_limits(limits)}})


_MERGED: Final = {
    "axil": "axil-core",
    "axil-batch": "axil-cli",
    "axil-budget": "axil-models",
    "axil-build": "axil-plugins",
    "axil-config": "axil-core",
    "axil-dependencies": "axil-core",
    "axil-draft": "axil-cli",
    "axil-encryption": "axil-journals",
    "axil-engine": "axil-journals",
    "axil-formatters": "axil-models",
    "axil-guards": "axil-wrappers",
    "axil-inspection": "axil-journals",
    "axil-memory": "axil-context",
    "axil-patterns": "axil-core",
    "axil-retrieval": "axil-context",
    "axil-sandbox": "axil-process",
    "axil-subprocess": "axil-process",
    "axil-tune": "axil-evals",
    "axil-typed": "axil-core",
    "axil-yaml": "axil-files",
}
"""Distribution that a run may be pinned to → the one that it is part of now."""


def version_changes(
    before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the changes in the distributions to which a run is pinned, in words.

    >>> version_changes({"acme": {"version": "1.0"}}, {"acme": {"version": "1.1"}})
    ['acme was 1.0, and is 1.1']
    """
    found: list[str] = []
    for name, pin in before.items():
        if _MERGED.get(name) in now:
            continue
        there = now.get(name)
        if there is None:
            found.append(f"{name} {pin['version']} is not used any more, or not installed")
        elif there["version"] != pin["version"]:
            found.append(f"{name} was {pin['version']}, and is {there['version']}")
        elif there.get("record") and pin.get("record") and there["record"] != pin["record"]:
            found.append(f"{name} {pin['version']} has other contents under the same version")
    return found


def ending(result: Result, state: State, thread: str, before: Mapping[str, Any]) -> Entry:
    """Return the entry of a run's end, without an output that the journal cannot hold, and without
    one that is the state: the entries before have it.

    ``before``: the state that the run began with, where it continues a thread.
    """
    data: dict[str, Any] = {"status": result.status}
    if result.error is not None:
        data["error"] = str(result.error)
    if isinstance(result.error, RunPaused):  # its hint is for runs without a journal
        data["error"] = str(replace(result.error.problem, hint=""))
    if isinstance(result.error, NodeFailed):
        data["failures"] = [
            {"node": each.path, "error": str(each), "place": each.place}
            for each in (result.error, *result.error.others)
        ]
    if result.questions:
        data["questions"] = [
            {**encode_question(question), "node": question.node} for question in result.questions
        ]
    if thread and result.status == "done":
        final = {
            name: value
            for name, value in state.items()
            if not name.startswith("@") or name.startswith(KEPT)
        }
        # the header has what this one continues
        data["state"] = encode_delta(final, state.schema, before)
    if result.status == "done" and result.output is not result.state:
        with suppress(JournalError):
            data["output"] = encode_value(result.output)
    return Entry("ended", data=data)


_WAYS = (
    "Finish it on {old}; or continue with the current version: the same run (migrate), or a fork."
)


def reopened(
    recorded: Entry, plan: Plan, given: tuple[Any, Mapping[str, Any]], options: Options
) -> Beginning:
    """Return the beginning of a recorded run; ``given``: input and values of this call.

    Raises: JournalError: AX504 another graph's; AX505 begun with another input; AX524 with other
    versions of its plugins.
    """
    schema, data, (inputs, values) = plan.graph.schema, recorded.data, given
    if not options.migrate:
        if data["digest"] != plan.graph.digest:
            raise JournalError(
                "the run was begun with another version of this graph.",
                id="AX504",
                hint=_WAYS.format(old="that version"),
            )
        if options.pins and (changed := version_changes(data.get("pins", {}), options.pins)):
            mismatch = f"the run was begun with other plugins: {'; '.join(changed)}."
            raise JournalError(mismatch, id="AX524", hint=_WAYS.format(old="those"))
    nothing_given = inputs is None and not values
    began_with = [data["inputs"], data["values"]]
    if not (options.resuming or nothing_given) and without_secrets(began_with) != without_secrets(
        [encode_value(inputs), encode_delta(values, schema)]
    ):
        raise JournalError(
            "a run of this id was begun with another input.",
            id="AX505",
            hint="Resume it, or choose another run_id.",
        )
    began = decode_value(data["inputs"]), decode_delta(data["values"], schema)
    return Beginning(
        *began,
        data.get("thread", ""),
        data.get("after", ""),
        decode_delta(data.get("before", {}), schema),
    )


def encode_step(fact: RecordFiring) -> Entry:
    """Return the outcome of a firing. Raises: JournalError: a value cannot be kept."""
    machine, task, step = fact
    schema, edges = machine.root.schema, machine.plan.graph.edges
    sends = [
        [
            edges[s.arc.id].name,
            encode_value(s.payload),
            None if s.values is None else encode_delta(s.values, schema),
        ]
        for s in step.sends
    ]
    data: dict[str, Any] = {"delta": encode_delta(step.delta, schema, task.state), "sends": sends}
    if task.node.vertex.join.early:
        data["took"] = [edges[token.edge].name for token in task.tokens]
    machine.recorder = data if machine.recorder is None else {}
    return Entry("done", task.frame, task.node.name, task.ordinal, data)


def repeated(machine: Machine, task: Task, entry: Entry) -> Transition:
    """Return the step that a journal recorded; edges that the plan no longer has are left out."""
    schema, edges = machine.root.schema, machine.plan.graph.edges
    machine.recorder = entry.data if machine.recorder is None else {}
    arcs = {edges[arc.id].name: arc for arc in task.node.out}
    delta = Changes(decode_delta(entry.data["delta"], schema, task.state))
    sends = [
        Send(
            arcs[name],
            decode_value(payload),
            None if values is None else decode_delta(values, schema),
        )
        for name, payload, values in entry.data["sends"]
        if name in arcs
    ]
    return Transition(delta, machine.advance(task, delta), sends)


class Recorded:
    """The facts of a run for the scheduler: see ``axil.kernel.events.Known``."""

    __slots__ = ("_rounds", "done")

    def __init__(self, replay: ReplayIndex) -> None:
        self.done: Mapping[Activation, Entry] = replay.done
        self._rounds = replay.rounds

    def step(self, machine: Machine, task: Task, fact: Entry, /) -> Transition:
        return repeated(machine, task, fact)

    def took(self, activation: Activation, /) -> frozenset[str] | None:
        entry = self.done.get(activation)
        took = None if entry is None else entry.data.get("took")
        return None if took is None else frozenset(took)

    def rounds(self, cycle: CycleBody, task: Task, activation: Activation, /) -> Sequence[Round]:
        known = self._rounds.get(activation)
        return decoded_rounds(cycle, task.state, known) if known else ()


def encode_round(fact: RecordRound) -> Entry:
    """Return the entry of a cycle's round. Raises: JournalError: a value cannot be kept.

    From time to time it holds the changes of all rounds so far, where that is at most half as long
    as what is kept of them.
    """
    visit, ended = fact
    schema = visit.state.schema
    only: Any = visit.machine.recorder  # the entry of the only firing of the round
    sends: Sequence[Any] = only["sends"] if only else ()
    sent = {name: payload for name, payload, values in sends if values is None}
    if only and len(sent) == len(sends) and only["delta"].keys() == ended.changes.keys():
        written = only["delta"]  # edges have written nothing of their own
    else:
        written, sent = encode_delta(ended.changes, schema, visit.machine.root), {}
    data: dict[str, Any] = {
        "round": ended.number,
        "changes": written,
        "exits": _encoded_exits(visit, ended.exits, sent),
        "returns": _encoded_exits(visit, ended.returns, sent),
        "end": ended.end,
    }
    if visit.recorder is None:
        visit.recorder = _Weights()
    weights: _Weights = visit.recorder
    weights.since += 80 + _weight(written) + _weight(data["exits"]) + _weight(data["returns"])
    if weights.since > max(weights.kept, _TOTAL):
        total = encode_delta(visit.total.changes, schema, visit.task.state)
        weights.kept, weights.since, weight = weights.kept + weights.since, 0, _weight(total)
        if weight <= weights.kept / 2:
            data["total"], data["kept"] = total, _encoded_exits(visit, visit.data_exits, {})
            weights.kept = weight
    return Entry("round", visit.parent, visit.name, visit.ordinal, data)


def decoded_rounds(cycle: CycleBody, entered: State, entries: Sequence[Entry]) -> list[Round]:
    """Return the recorded rounds of a cycle, up to one of another version of the graph, in which a
    cycle of this name has other edges; ``entered``: the state with which it was entered.
    """
    edges, schema = cycle.graph.edges, entered.schema
    ids = {edge.name: edge.id for edge in cycle.edges}

    def exits(recorded: Sequence[Any]) -> list[Exit]:
        return [
            Exit(
                ids[name],
                decode_value(payload),
                None if values is None else decode_delta(values, schema),
                tuple(ordinal),
                edges[ids[name]].trigger,
            )
            for name, payload, values, ordinal in recorded
        ]

    rounds: list[Round] = []
    known = ChainMap[str, Any]({}, cast("Any", entered))  # what each round began with
    for entry in entries:
        data = entry.data
        left = (*data["exits"], *data["returns"], *data.get("kept", ()))
        if any(each[0] not in ids for each in left):
            break
        whole = decode_delta(data["total"], schema, entered) if "total" in data else None
        changes = {} if whole is not None else decode_delta(data["changes"], schema, known)
        known.maps[0].update(changes if whole is None else whole)
        kept = exits(data["kept"]) if whole is not None else ()
        rounds.append(
            Round(
                data["round"],
                changes,
                exits(data["exits"]),
                exits(data["returns"]),
                data["end"],
                whole,
                kept,
            )
        )
    return rounds


class _Weights:
    """About how many bytes a journal holds of the rounds of one entry of a cycle."""

    __slots__ = ("kept", "since")

    def __init__(self) -> None:
        self.kept = 0
        """Bytes at the last comparison with a total."""
        self.since = 0
        """Bytes since then."""


_TOTAL = 16_384
"""Bytes of rounds before they are compared with a total."""


def _encoded_exits(visit: CycleRun, exits: Sequence[Exit], sent: Mapping[str, Any]) -> list[Any]:
    """Return exits as JSON data; ``sent``: payloads that were encoded before, by edge."""
    if not exits:
        return []
    edges, schema, report = visit.cycle.graph.edges, visit.state.schema, list[Any]()
    for exit in exits:
        name = edges[exit.edge].name
        if name in sent:
            report.append([name, sent[name], None, list(exit.ordinal)])
        else:
            values = None if exit.values is None else encode_delta(exit.values, schema)
            report.append([name, encode_value(exit.payload), values, list(exit.ordinal)])
    return report


def _weight(data: dict[str, Any] | list[Any]) -> int:
    """Return about how long a JSON list or object is as a text."""
    is_object = isinstance(data, dict)
    weight = 2 + 4 * len(data) + sum(map(len, data)) if is_object else 2
    for item in data.values() if is_object else data:
        kind = type(item)  # pyright: ignore[reportUnknownVariableType]  # anything may come
        if kind is str:
            weight += len(item) + 3
        elif item and (kind is dict or kind is list):
            weight += _weight(item)
        else:
            weight += 6
    return weight
