"""Each law catches the component that breaks it: sound ones pass, and of every kind several that
are not are found out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from axil import MISSING, Out, Reducer, SpecError, hookimpl
from axil.plugin import EdgeInput, Fail, JournalError, Retry, Secret, Skip, message, text_of
from axil_files import Document, parse_json
from axil_journals import Entry, MemoryJournal, Recording
from axil_testing.kit import (
    ConditionKit,
    FormatterKit,
    HookKit,
    JoinKit,
    JournalKit,
    Kit,
    LoaderKit,
    NodeKit,
    ProcessorKit,
    ReducerKit,
    check,
)


def broken(kit: type[Kit], component: Any, *laws: str, **claims: Any) -> dict[str, str]:
    """Return the laws that a component breaks, with the reasons; of all, or of those that are
    named.
    """
    given = (
        component
        if isinstance(component, type) or not callable(component)
        else staticmethod(component)
    )
    report = check(type("Given", (kit,), {"component": given, **claims}), *laws)
    return {outcome.law: outcome.reason for outcome in report.failures}


# --------------------------------------------------------------------------------------------------


class SoundNode:
    """Counts in its state, waits, and says what it heard."""

    class Config(BaseModel, extra="forbid"):
        marks: int = 1

    def __init__(self, config: Config) -> None:
        self.config = config

    async def run(self, messages: list[Any], ctx: Any) -> Any:
        ctx.local["n"] = ctx.local.get("n", 0) + 1
        await ctx.sleep(1.0)
        return Out(
            [
                message(f"{ctx.local['n']}: {text_of(m)}" + "!" * self.config.marks, "assistant")
                for m in messages
            ]
        )


class SwallowsCancel(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        with contextlib.suppress(asyncio.CancelledError):
            await ctx.sleep(1.0)
        return "went on"


class TurnsCancelIntoFailure(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        try:
            await ctx.sleep(1.0)
        except asyncio.CancelledError:
            raise ValueError("somebody stopped me") from None
        return "done"


class KeepsOnItself(SoundNode):
    count = 0

    async def run(self, messages: list[Any], ctx: Any) -> Any:
        self.count += 1
        await asyncio.sleep(0)
        return str(self.count)


class IsRandom(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        return str(random.random())


class GivesObjects(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        return Out([{"role": "assistant", "content": "x", "extra": object()}])


class Trips(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        return text_of(messages[0])[0]


class Blocks(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        time.sleep(0)  # noqa: ASYNC251  # the fault under test
        return "done"


class BlocksInline(SoundNode):
    inline = True

    def run(self, messages: list[Any]) -> Any:
        time.sleep(0)
        return "done"


class LeavesATask(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        self.task = asyncio.ensure_future(asyncio.sleep(3600))
        return "done"


class TellsItsKey(SoundNode):
    class Config(BaseModel, extra="forbid"):
        key: Secret | None = None

    def __init__(self, config: Any) -> None:
        self.config = config

    async def run(self, messages: list[Any], ctx: Any) -> Any:
        key = self.config.key
        return f"using {key.resolve().get_secret_value()}" if key else "no key"


class Fails(SoundNode):
    async def run(self, messages: list[Any], ctx: Any) -> Any:
        raise ValueError("always")


def test_a_sound_node_passes():
    assert broken(NodeKit, SoundNode) == {}


@pytest.mark.parametrize(
    ("node", "law"),
    [
        (SwallowsCancel, "cancelling ends it at once"),
        (TurnsCancelIntoFailure, "cancelling ends it at once"),
        (KeepsOnItself, "runs share nothing"),
        (KeepsOnItself, "a run that broke off goes on as if it had not"),
        (IsRandom, "runs share nothing"),
        (GivesObjects, "a run that broke off goes on as if it had not"),
        (Trips, "hostile input is worked on or refused in words"),
        (Blocks, "it does not block the event loop"),
        (BlocksInline, "it does not block the event loop"),
        (LeavesATask, "it runs on its examples"),
        (TellsItsKey, "a secret is not shown"),
        (Fails, "it runs on its examples"),
    ],
)
def test_a_node_that_breaks_a_law_is_caught(node, law):
    assert law in broken(NodeKit, node, law)


def test_a_node_that_varies_may_say_so():
    assert broken(NodeKit, IsRandom, varies=True) == {}


# --------------------------------------------------------------------------------------------------


class SoundFormatter:
    introduction = "Answer with JSON."

    def dump(self, fields: Any) -> str:
        return json.dumps(dict(fields), ensure_ascii=False)

    def parse(self, text: str, fields: Any = ()) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(found, dict):
            raise ValueError("expected an object")
        return found


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_empty(each) for name, each in value.items() if each not in ({}, [])}
    return value


class LosesEmpty(SoundFormatter):
    def dump(self, fields: Any) -> str:
        return super().dump(without_empty(dict(fields)))


class EatsItsInput(SoundFormatter):
    def dump(self, fields: Any) -> str:
        text = super().dump(fields)
        fields.clear()
        return text


class Remembers(SoundFormatter):
    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def parse(self, text: str, fields: Any = ()) -> dict[str, Any]:
        self.seen.update(super().parse(text, fields))
        return dict(self.seen)


class TripsOnReplies(SoundFormatter):
    def parse(self, text: str, fields: Any = ()) -> dict[str, Any]:
        return dict(json.loads(text.splitlines()[0]))


class SortsNames(SoundFormatter):
    def dump(self, fields: Any) -> str:
        return json.dumps(dict(fields), sort_keys=True)


class SaysNothing(SoundFormatter):
    def parse(self, text: str, fields: Any = ()) -> dict[str, Any]:
        try:
            return super().parse(text, fields)
        except ValueError:
            raise ValueError from None


class NoIntroduction(SoundFormatter):
    introduction: Any = None


def test_a_sound_formatter_passes():
    assert broken(FormatterKit, SoundFormatter, keeps_types=True) == {}


@pytest.mark.parametrize(
    ("formatter", "law"),
    [
        (LosesEmpty, "what is empty is not lost"),
        (EatsItsInput, "dumping changes nothing"),
        (Remembers, "what it writes it reads"),
        (Remembers, "it remembers nothing"),
        (TripsOnReplies, "a hostile reply is read or refused in words"),
        (SortsNames, "what it writes it reads"),
        (SaysNothing, "a hostile reply is read or refused in words"),
        (NoIntroduction, "it has the three parts"),
    ],
)
def test_a_formatter_that_breaks_a_law_is_caught(formatter, law):
    assert law in broken(FormatterKit, formatter, law, keeps_types=True)


# --------------------------------------------------------------------------------------------------


def longest(old: Any, new: Any) -> Any:
    return new if old is MISSING or len(new) > len(old) else old


def joined(old: Any, new: Any) -> Any:
    return list(new) if old is MISSING else [*old, *new]


def grown_in_place(old: Any, new: Any) -> Any:
    if old is MISSING:
        return new
    old.extend(new)
    return old


calls: list[int] = []


def counting(old: Any, new: Any) -> Any:
    calls.append(1)
    return [len(calls)]


def average(old: Any, new: Any) -> Any:
    return new if old is MISSING else (old + new) / 2


def test_sound_reducers_pass():
    assert broken(ReducerKit, longest) == {}
    assert broken(ReducerKit, Reducer("joined", joined, compose=joined, pure=True)) == {}
    assert broken(ReducerKit, average, values=(1.0, 2.0, 4.0)) == {}


@pytest.mark.parametrize(
    ("reducer", "law"),
    [
        (
            Reducer("r", grown_in_place, pure=True),
            "a pure one changes neither what was nor what is written",
        ),
        (Reducer("r", grown_in_place, pure=True), "what it gives is not what was written"),
        (Reducer("r", average, compose=average, pure=True), "composing writes changes nothing"),
        (
            Reducer("r", joined, many=lambda old, deltas: deltas[-1], pure=True),
            "many at once are the same as one by one",
        ),
        (counting, "it is deterministic"),
        (lambda old, new: object(), "what it gives can be journaled"),
        (lambda old, new: new[0], "what it does not take is refused in words"),
        (lambda old, new: old + new, "it takes values of some type"),
    ],
)
def test_a_reducer_that_breaks_a_law_is_caught(reducer, law):
    assert law in broken(ReducerKit, reducer, law)


# -------------------------------------------------------------------------------------------- joins


class SoundJoin:
    """Fires as soon as two edges are live."""

    early, per_token, rest = True, False, "ignore"

    def fires(self, live: int, dead: int, total: int) -> Any:
        if live >= 2:
            return True
        return None if total - dead >= 2 else False


class Patient(SoundJoin):
    early = False

    def fires(self, live: int, dead: int, total: int) -> Any:
        return live * 2 > total


class ForEach(SoundJoin):
    early, per_token = False, True


class Forgetful(SoundJoin):
    """Gives another answer the second time."""

    asked = 0

    def fires(self, live: int, dead: int, total: int) -> Any:
        self.asked += 1
        return super().fires(live, dead, total) if self.asked % 7 else False


class NeverSure(SoundJoin):
    def fires(self, live: int, dead: int, total: int) -> Any:
        return True if live >= 2 else None


class TakesItBack(SoundJoin):
    """Fires when most of those that are decided are live."""

    def fires(self, live: int, dead: int, total: int) -> Any:
        return live > dead


class Counts(SoundJoin):
    def fires(self, live: int, dead: int, total: int) -> Any:
        return live if live >= 2 else super().fires(live, dead, total)


class LazyOnce(SoundJoin):
    early = False

    def fires(self, live: int, dead: int, total: int) -> Any:
        return None if live == 1 else live > 1


class Divides(SoundJoin):
    def fires(self, live: int, dead: int, total: int) -> Any:
        return live / dead > 1


class OnlyFew(SoundJoin):
    def fires(self, live: int, dead: int, total: int) -> Any:
        return super().fires(live, dead, total) if total < 100 else (live > 1 or None)


class Tired(SoundJoin):
    """Fires once, in all runs together."""

    early = False

    def __init__(self) -> None:
        self.has_fired = False

    def fires(self, live: int, dead: int, total: int) -> Any:
        was, self.has_fired = self.has_fired, True
        return not was


class Writes(SoundJoin):
    def fires(self, live: int, dead: int, total: int) -> Any:
        time.sleep(0)
        return super().fires(live, dead, total)


class Waits(SoundJoin):
    rest = "wait"


class Both(SoundJoin):
    per_token = True


def test_sound_joins_pass():
    for join in (SoundJoin, Patient, ForEach):
        assert broken(JoinKit, join) == {}


@pytest.mark.parametrize(
    ("join", "law"),
    [
        (Waits, "it is a join"),
        (Both, "it is a join"),
        (object(), "it is a join"),
        (Forgetful, "the same counts have the same answer"),
        (Divides, "the same counts have the same answer"),
        (Counts, "it answers yes or no"),
        (LazyOnce, "it answers yes or no"),
        (NeverSure, "it answers when all edges are decided"),
        (TakesItBack, "an early answer stands"),
        (OnlyFew, "many edges are as few"),
        (Tired, "runs share nothing"),
        (Writes, "it has no effects"),
    ],
)
def test_a_join_that_breaks_a_law_is_caught(join, law):
    assert law in broken(JoinKit, join, law)


# -------------------------------------------------------------------------------------------- condi


class SoundCondition:
    def __call__(self, seen: EdgeInput) -> bool:
        return len(seen.text.split()) > 1


class Toggles:
    on = False

    def __call__(self, seen: EdgeInput) -> bool:
        self.on = not self.on
        return self.on


class Maybe:
    def __call__(self, seen: EdgeInput) -> Any:
        return seen.text.strip()


class Marks:
    def __call__(self, seen: EdgeInput) -> bool:
        if isinstance(seen.payload, dict):
            seen.payload["seen"] = True
        return True


class TripsOnFields:
    def __call__(self, seen: EdgeInput) -> bool:
        return seen.payload["content"].startswith("yes")


class Waits:
    async def __call__(self, seen: EdgeInput) -> bool:
        return True


class Sleeps:
    def __call__(self, seen: EdgeInput) -> bool:
        time.sleep(0)
        return True


def test_sound_edge_components_pass():
    assert broken(ConditionKit, SoundCondition) == {}
    assert broken(ConditionKit, lambda text: "yes" in text) == {}
    assert broken(ProcessorKit, lambda text: text.upper()) == {}


@pytest.mark.parametrize(
    ("condition", "law"),
    [
        (Toggles, "the same question has the same answer"),
        (Maybe, "it says yes or no"),
        (Marks, "what it looks at stays as it is"),
        (TripsOnFields, "hostile payloads are answered or refused in words"),
        (Waits, "it answers at once"),
        (Sleeps, "it has no effects"),
    ],
)
def test_a_condition_that_breaks_a_law_is_caught(condition, law):
    assert law in broken(ConditionKit, condition, law)


@pytest.mark.parametrize(
    ("processor", "law"),
    [
        (lambda text: {"at": object()}, "what it gives can be journaled"),
        (lambda text: text[0], "hostile payloads are answered or refused in words"),
        (lambda text: f"{random.random()}", "the same question has the same answer"),
    ],
)
def test_a_processor_that_breaks_a_law_is_caught(processor, law):
    assert law in broken(ProcessorKit, processor, law)


# --------------------------------------------------------------------------------------------------


def keeps_the_last(text: str, name: str) -> Document:
    try:
        return Document(data=json.loads(text), name=name)
    except (ValueError, RecursionError) as error:
        from axil_files import document_error

        raise document_error("AX140", name, 1, f"{error}.") from error


def raises_its_own(text: str, name: str) -> Document:
    return Document(data=json.loads(text), name=name)


def gives_data(text: str, name: str) -> Any:
    return json.loads(text)


def forgets_the_name(text: str, name: str) -> Document:
    return Document(data=parse_json(text, name).data)


def wrong_lines(text: str, name: str) -> Document:
    return Document(data=parse_json(text, name).data, lines={(): 0}, name=name)


_shared: dict[str, Document] = {}


def shares(text: str, name: str) -> Document:
    return _shared.setdefault(text, parse_json(text, name))


def writes(text: str, name: str) -> Document:
    with open("axil-kit-copy", "w") as file:
        file.write(text[:1])
    return parse_json(text, name)


def test_a_sound_loader_passes():
    assert broken(LoaderKit, parse_json, has_lines=True) == {}


@pytest.mark.parametrize(
    ("loader", "law"),
    [
        (keeps_the_last, "a key that comes twice is refused"),
        (raises_its_own, "a hostile text is read or refused with its place"),
        (gives_data, "a document is plain data within bounds"),
        (forgets_the_name, "a document is plain data within bounds"),
        (wrong_lines, "every key has its line"),
        (shares, "the same text is the same document"),
    ],
)
def test_a_loader_that_breaks_a_law_is_caught(loader, law):
    assert law in broken(LoaderKit, loader, law, has_lines=True)


def test_a_loader_that_writes_is_caught(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "it has no effects" in broken(LoaderKit, writes)


def test_a_refusal_that_is_no_spec_error_is_reported():
    def stubborn(text: str, name: str) -> Document:
        if len(text) > 100:
            raise SpecError([])
        return parse_json(text, name)

    assert (
        "without naming the file"
        in broken(LoaderKit, stubborn)["a hostile text is read or refused with its place"]
    )


# --------------------------------------------------------------------------------------------------


class SoundHooks:
    def __init__(self) -> None:
        self.fired: list[str] = []

    @hookimpl
    def firing_finished(self, activation: Any) -> None:
        self.fired.append(str(activation))


class BlockingHook:
    @hookimpl
    def firing_started(self, activation: Any) -> None:
        time.sleep(0)


class FailingHook:
    @hookimpl
    def run_finished(self, result: Any) -> None:
        raise RuntimeError("the collector is down")


class UnknownHook:
    @hookimpl
    def firing_began(self, activation: Any) -> None: ...


class UnknownArgument:
    @hookimpl
    def firing_started(self, node: Any) -> None: ...


class NoHook:
    def firing_started(self, activation: Any) -> None: ...


def around(wrap: Callable[[Any, Any], Any]) -> type:
    class Around:
        mode, wants_ctx = "async", True

        def __init__(self, body: Any) -> None:
            self.body = body

        async def __call__(self, task: Any, ctx: Any, /) -> Any:
            return await wrap(self.body(task, ctx), ctx)

    class Wraps:
        @hookimpl
        def wrap_body(self, spec: Any, body: Any) -> Any:
            return Around(body) if body.mode == "async" else None

    return Wraps


async def swallows(call: Any, ctx: Any) -> Any:
    try:
        return await call
    except asyncio.CancelledError:
        return Out({"n": 100})


async def answers_itself(call: Any, ctx: Any) -> Any:
    await call
    return Out({"n": 100})


async def adds_objects(call: Any, ctx: Any) -> Any:
    out = await call
    return Out({**out.output, "by": object()}, out.delta)


def test_a_sound_hook_plugin_passes():
    assert broken(HookKit, SoundHooks) == {}


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (BlockingHook, "it does not block the event loop"),
        (FailingHook, "it raises nothing"),
        (UnknownHook, "it implements hooks that there are"),
        (UnknownArgument, "it implements hooks that there are"),
        (NoHook, "it implements hooks that there are"),
        (around(answers_itself), "a run has the same result with it"),
        (around(swallows), "a run with it can be cancelled"),
        (around(adds_objects), "a run with it can be resumed"),
    ],
)
def test_a_hook_plugin_that_breaks_a_law_is_caught(plugin, law):
    assert law in broken(HookKit, plugin, law)


class SoundDecider:
    """Starts in the order of names, after a second each."""

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    @hookimpl
    def admit_firing(self, firing: Any) -> Any:
        me = firing.run_id, firing.activation, firing.tries
        if me in self.seen:
            return None
        self.seen.add(me)
        return 1.0

    @hookimpl
    def choose_firing(self, due: Any) -> Any:
        return max(due, key=lambda firing: firing.activation.node)


class HoldsAll:
    """Lets nothing start as long as anything is at work."""

    @hookimpl
    def admit_firing(self, firing: Any) -> Any:
        return False


class Mends:
    """Tries twice, then gives up; lets limits be."""

    @hookimpl
    def firing_failure(self, firing: Any, error: Exception) -> Any:
        return Retry(after=1) if firing.tries < 2 else None

    @hookimpl
    def limit_reached(self, limit: Any, of: str) -> Any:
        return None


def deciding(hook: str, answer: Callable[..., Any]) -> type:
    """Return a plugin that has one deciding hook."""

    def admit_firing(self: Any, firing: Any) -> Any:
        return answer(firing)

    def choose_firing(self: Any, due: Any) -> Any:
        return answer(due)

    def firing_failure(self: Any, firing: Any, error: Exception) -> Any:
        return answer(firing)

    def limit_reached(self: Any, limit: Any, of: str) -> Any:
        return answer(of)

    calls = (admit_firing, choose_firing, firing_failure, limit_reached)
    call = next(call for call in calls if call.__name__ == hook)
    return type("Decides", (), {hook: hookimpl(call)})


def test_sound_deciders_pass():
    assert broken(HookKit, SoundDecider, changes_timing_only=True) == {}
    assert broken(HookKit, HoldsAll, changes_timing_only=True) == {}
    assert broken(HookKit, Mends) == {}


@pytest.mark.parametrize(
    ("plugin", "law"),
    [
        (deciding("admit_firing", lambda f: "yes"), "what it decides are answers"),
        (deciding("admit_firing", lambda f: -1), "what it decides are answers"),
        (deciding("admit_firing", lambda f: Fail("no")), "what it decides are answers"),
        (deciding("choose_firing", lambda due: due[0].type), "what it decides are answers"),
        (deciding("firing_failure", lambda f: True), "what it decides are answers"),
        (deciding("firing_failure", lambda f: Retry(-1)), "what it decides are answers"),
        (deciding("limit_reached", lambda of: "exit"), "what it decides are answers"),
        (deciding("limit_reached", lambda of: 5), "what it decides are answers"),
        (deciding("admit_firing", lambda f: 1.0), "a run with it ends"),
        (deciding("admit_firing", lambda f: Skip()), "it changes only when firings start"),
        (deciding("admit_firing", lambda f: Skip()), "a run has the same result with it"),
    ],
)
def test_a_decider_that_breaks_a_law_is_caught(plugin, law):
    assert law in broken(HookKit, plugin, law, changes_timing_only=True)


# --------------------------------------------------------------------------------------------------


class Bent(MemoryJournal):
    """A journal that may be bent in one place."""

    def name(self, run_id: str) -> str:
        return run_id

    def written(self, entry: Entry) -> Entry | None:
        return entry

    def read(self, entries: list[Entry]) -> list[Entry]:
        return entries

    def open(self, run_id: str) -> Any:
        return BentBook(self, super().open(self.name(run_id)))

    def entries(self, run_id: str) -> Any:
        return self.read(list(super().entries(self.name(run_id))))


class BentBook:
    def __init__(self, journal: Bent, writer: Any) -> None:
        self.journal, self.writer = journal, writer

    @property
    def entries(self) -> Any:
        return self.journal.read(list(self.writer.entries))

    def append(self, entry: Entry) -> None:
        written = self.journal.written(entry)
        if written is not None:
            self.writer.append(written)

    def kept(self) -> Any:
        return self.writer.kept()

    def close(self) -> None:
        self.writer.close()


class Mixes(Bent):
    def name(self, run_id: str) -> str:
        return run_id.strip().lower()


class LosesOne(Bent):
    def written(self, entry: Entry) -> Entry | None:
        return None if entry.kind in ("step", "ended") else entry


class Reverses(Bent):
    def read(self, entries: list[Entry]) -> list[Entry]:
        return entries[::-1]


class TextsOnly(Bent):
    def read(self, entries: list[Entry]) -> list[Entry]:
        return [Entry(e.kind, tuple(map(str, e.frame)), e.node, e.ordinal, e.data) for e in entries]


class HeldByAll(MemoryJournal):
    def open(self, run_id: str) -> Any:
        journal = self

        class Book(BentBook):
            def append(self, entry: Entry) -> None:
                writer = MemoryJournal.open(journal, run_id)
                writer.append(entry)
                writer.close()

        return Book(Bent(), super().open(run_id))


class LosesWhatIsNotSafe(MemoryJournal):
    def open(self, run_id: str) -> Any:
        class Book(BentBook):
            last: Any = None

            def append(self, entry: Entry) -> None:
                self.last = entry

            def kept(self) -> Any:
                if self.last is not None:
                    self.writer.append(self.last)
                self.last = None

        return Book(Bent(), super().open(run_id))


class ForgetsNothing(MemoryJournal):
    def forget(self, run_id: str) -> None: ...


class OneThread(MemoryJournal):
    def thread(self, name: str) -> Any:
        return [info.run_id for info in self.runs()]


class LastOnly(MemoryJournal):
    def runs(self) -> Any:
        return super().runs()[:1]


class GoesOnWithWhatIsForgotten(MemoryJournal):
    def forget(self, run_id: str) -> None:
        run = self.stored.get(run_id)
        super().forget(run_id)
        assert run is not None
        run.is_forgotten = False


class KeepsWhatItRefuses(MemoryJournal):
    def open(self, run_id: str) -> Any:
        runs = self.stored

        class Book(BentBook):
            def append(self, entry: Entry) -> None:
                try:
                    self.writer.append(entry)
                except JournalError:
                    runs[run_id].entries[runs[run_id].count + 1] = entry
                    raise

        return Book(Bent(), super().open(run_id))


class NoMore(Recording):
    """A journal with what ``axil_journals.Journal`` names, and nothing else."""

    def __init__(self) -> None:
        within = MemoryJournal()
        self.open, self.entries, self.thread = within.open, within.entries, within.thread
        self.runs, self.forget = within.runs, within.forget


@pytest.mark.parametrize("journal", [MemoryJournal, NoMore])
def test_a_sound_journal_passes(journal):
    assert broken(JournalKit, journal) == {}


@pytest.mark.parametrize(
    ("journal", "law"),
    [
        (Mixes, "runs do not mix"),
        (LosesOne, "what is appended is kept in order"),
        (LosesOne, "it keeps what the kernels own journal keeps"),
        (Reverses, "what is appended is kept in order"),
        (TextsOnly, "what is appended is kept in order"),
        (TextsOnly, "a run continues from what is kept"),
        (HeldByAll, "a run is held by one"),
        (LosesWhatIsNotSafe, "runs may be at work at the same time"),
        (ForgetsNothing, "runs are listed and forgotten"),
        (LastOnly, "runs are listed and forgotten"),
        (OneThread, "threads keep their order"),
        (GoesOnWithWhatIsForgotten, "a forgotten run is not resumed"),
        (KeepsWhatItRefuses, "what is refused leaves what was before"),
    ],
)
def test_a_journal_that_breaks_a_law_is_caught(journal, law):
    assert law in broken(JournalKit, journal, law)


def test_a_journal_that_forgets_is_caught_where_it_claims_to_last():
    class Forgets(JournalKit):
        component = MemoryJournal
        durable = True

        def reopen(self, journal: Any) -> Any:
            return MemoryJournal()

    class Lasts(Forgets):
        def reopen(self, journal: Any) -> Any:
            return journal

    law = "what is kept outlives the journal"
    assert [each.law for each in check(Forgets, law).failures] == [law]
    assert check(Lasts, law).is_fine


@pytest.mark.parametrize(
    "lost",
    [
        lambda entries: entries[:2] + entries[3:],
        lambda entries: entries[:4],
        lambda entries: entries[::-1],
    ],
)
def test_a_journal_that_loses_more_than_an_end_is_caught(lost):
    class Loses(JournalKit):
        component = MemoryJournal
        durable = True

        def reopen(self, journal: Any) -> Any:
            class Other(Bent):
                def read(self, entries: list[Entry]) -> list[Entry]:
                    return lost(entries)

            other = Other()
            other.stored = journal.stored
            return other

    law = "a crash loses an end at most"
    assert [each.law for each in check(Loses, law).failures] == [law]
