"""The recorder that writes the facts of a run to a journal, as entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from axil import Activation, Options, Result, State
from axil.driver import (
    Answered,
    Asked,
    ClockRead,
    CycleTally,
    EffectBegun,
    Fact,
    Known,
    Progress,
    RecordFiring,
    RecordRound,
    SleepBegun,
    StepDone,
)
from axil.plugin import Plan
from axil_journals.deadlines import LATE, accept_answers
from axil_journals.journal import Entry, Journal, unknown_error
from axil_journals.migrations import adapt_entries
from axil_journals.prompts import PromptKeeper
from axil_journals.records import (
    Recorded,
    beginning,
    encode_round,
    encode_step,
    ending,
    header,
    reopened,
    resumed,
)
from axil_journals.replay import ReplayIndex
from axil_journals.values import decode_value, encode_question, encode_value


class JournalRecorder:
    """A ``Recorder`` of one run, over the writer that its journal gives."""

    def __init__(
        self,
        journal: Journal,
        run_id: str,
        plan: Plan,
        inputs: object,
        values: Mapping[str, object],
        options: Options,
    ) -> None:
        """Open the run in its journal; nothing is written yet.

        Raises: JournalError: the run cannot be begun or resumed.
        """
        self._plan, self._options = plan, options
        self._writer = journal.open(run_id)
        entries = adapt_entries(self._writer.entries, plan, migrate=options.migrate)
        self._replay = replay = ReplayIndex(entries)
        if options.resuming and replay.header is None:
            raise unknown_error(run_id)
        self._first = (
            beginning(journal, plan, inputs, values, options)
            if replay.header is None
            else reopened(replay.header, plan, (inputs, values), options)
        )
        self.inputs, self.state = self._first.inputs, self._first.state(plan.graph.schema)
        self.thread = self._first.thread
        self.known: Known | None = None if replay.header is None else Recorded(replay)
        self.used, self.elapsed, self.due = replay.used, replay.elapsed, replay.due
        self.limits = replay.limits
        self.cycles = {
            path: CycleTally(entries, rounds, dict(ends))
            for path, (entries, rounds, ends) in replay.used.get("cycles", {}).items()
        }
        self.has_ended = replay.ended is not None
        self.kept = self._writer.kept
        self._progress: Progress
        self._reported: dict[str, Any] = {}  # usage as last written
        self._prompts = PromptKeeper(options.prompts, entries)

    def recall(self, kind: type[object], activation: Activation, key: object, /) -> Any:
        return _RECALLED[kind](self._replay, activation, key)

    def begun(self, activation: Activation, /) -> Sequence[EffectBegun]:
        steps = [step for who, step in self._replay.began if step and who == activation]
        found = (_known_effect(self._replay, activation, step) for step in steps)
        return [each for each in found if each is not None]

    def follow(self, progress: Progress, /) -> None:
        self._progress = progress

    def begin(self, answers: Mapping[str, object], /) -> Mapping[str, Any]:
        replay = self._replay
        fresh = accept_answers(replay, answers, self._progress.clock) if answers else ()
        self._append(
            header(self._plan, self._first, self._options)
            if replay.header is None
            else resumed(replay.header, self._plan, self._options)
        )
        for question in fresh:
            self.record(Answered(question, answers[question]))
        return {**replay.answers, **{question: answers[question] for question in fresh}}

    def record(self, fact: Fact, /) -> None:
        if type(fact) is StepDone and fact.prompt is not None:
            self._append(self._prompts.encode(fact))
        self._append(_ENCODED[type(fact)](fact))

    def take(self, answers: Sequence[Entry], /) -> Mapping[str, Any]:
        """See ``Recorder``; the answers are entries of the kind ``answer``."""
        for entry in answers:
            self._append(entry)
        return {entry.data["id"]: decode_value(entry.data["value"]) for entry in answers}

    def end(self, result: Result, state: State, /) -> None:
        self._append(ending(result, state, self.thread, self._first.before))

    def close(self) -> None:
        self._writer.close()

    def _append(self, entry: Entry) -> None:
        """Write an entry with the time and the usage from which a resumed run counts on: all usage
        if the entry supersedes others, else what has changed.
        """
        progress = self._progress
        meter, cycles, report = progress.meter, progress.cycles, self._reported
        used: dict[str, Any] = {"firings": meter.usage.firings}
        if not report or cycles or meter.has_spent:
            everything = meter.as_data()
            everything["cycles"] = {
                path: [tally.entries, tally.rounds, dict(tally.ends)]
                for path, tally in cycles.items()
            }
            whole = entry.kind in ("done", "round")
            for name, value in everything.items():
                if (whole and value) or report.get(name) != value:
                    used[name] = report[name] = value
        data: Any = entry.data  # a dict, made for this entry
        data["at"], data["used"] = round(progress.elapsed, 6), used
        self._writer.append(entry)


def _entry(kind: str, activation: Activation, data: Mapping[str, Any]) -> Entry:
    return Entry(kind, activation.frame, activation.node, activation.ordinal, data)


def _asked(fact: Asked) -> Entry:
    shown = {"shown": True} if fact.is_shown else {}
    return _entry("asked", fact.activation, {**encode_question(fact.question), **shown})


def _answered(fact: Answered) -> Entry:
    by = {"by": LATE} if fact.is_late else {}
    return Entry("answer", data={"id": fact.question, "value": encode_value(fact.value), **by})


def answer_entry(question: str, answer: object) -> Entry:
    """Return the entry of a person's answer to a question, by the question's id."""
    return _answered(Answered(question, answer))


def _began(fact: EffectBegun) -> Entry:
    step = {"step": fact.step} if fact.step else {}
    request = {} if fact.request is None else {"request": fact.request}
    return _entry("began", fact.activation, {**step, **request})


def _step(fact: StepDone) -> Entry:
    request = {} if fact.request is None else {"request": fact.request}
    data = {"name": fact.name, "value": encode_value(fact.value), **request}
    return _entry("step", fact.activation, data)


_ENCODED: Mapping[type[Any], Callable[[Any], Entry]] = {
    RecordFiring: encode_step,
    RecordRound: encode_round,
    ClockRead: lambda fact: _entry(
        "clock", fact.activation, {"call": fact.call, "value": fact.seconds}
    ),
    SleepBegun: lambda fact: _entry(
        "slept", fact.activation, {"call": fact.call, "until": fact.until, "wall": fact.wall}
    ),
    EffectBegun: _began,
    StepDone: _step,
    Asked: _asked,
    Answered: _answered,
}


def _known_clock(replay: ReplayIndex, activation: Activation, call: int | str) -> ClockRead | None:
    seconds = replay.clock.get((activation, call))
    return None if seconds is None else ClockRead(activation, call, seconds)


def _known_sleep(replay: ReplayIndex, activation: Activation, call: int | str) -> SleepBegun | None:
    until = replay.slept.get((activation, call))
    if until is None:
        return None
    timer = f"{activation}~{call}"
    wall = replay.timers.get(timer, replay.woken.get((activation, call)))
    return SleepBegun(activation, call, until, wall)


def _known_effect(replay: ReplayIndex, activation: Activation, step: str) -> EffectBegun | None:
    times = replay.began.get((activation, step), 0)
    known = replay.paused.get((activation, step), 0)
    request = replay.began_for.get((activation, step))
    return EffectBegun(activation, step, times, request) if times > known else None


def _known_step(replay: ReplayIndex, activation: Activation, name: str) -> StepDone | None:
    data = replay.steps.get((activation, name))
    if data is None:
        return None
    return StepDone(activation, name, decode_value(data["value"]), data.get("request"))


_RECALLED: Mapping[type[Any], Callable[[ReplayIndex, Activation, Any], Any]] = {
    ClockRead: _known_clock,
    SleepBegun: _known_sleep,
    EffectBegun: _known_effect,
    StepDone: _known_step,
}


class Recording:
    """The methods of ``RunJournal``, made of the rest: each journal inherits them."""

    def recorder(
        self: Journal,
        run_id: str,
        plan: Plan,
        inputs: object,
        values: Mapping[str, object],
        options: Options,
    ) -> JournalRecorder:
        return JournalRecorder(self, run_id, plan, inputs, values, options)

    def check_known(self: Journal, run_id: str) -> None:
        if not any(entry.kind == "run" for entry in self.entries(run_id)):
            raise unknown_error(run_id)
