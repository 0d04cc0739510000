"""The lives of runs in one database: begun, broken off, resumed, answered, cancelled, taken over,
forked, pruned, in any order.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from axil import Result, RootGraph, Run
from axil.plugin import JournalError
from axil_journals import Entry, ReplayIndex, fork
from axil_sqlite import SqliteJournal

from ..internals import internal
from .tools import add_loop

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"

Reported = list[tuple[str, str, str]]
"""The body that ran: run, activation, key."""


@dataclass
class Deps:
    """The effects of bodies, with an act while the last but one of them is at work."""

    reported: Reported
    during: Callable[[], Awaitable[None]] | None = None


def letters() -> RootGraph:
    """Return a fan with a step, a question and a loop, and a join of them."""

    def tell(ctx: Any) -> None:
        ctx.deps.reported.append((ctx.run_id, str(ctx.activation), ctx.key()))

    async def start(inputs: Any, ctx: Any) -> dict[str, Any]:
        tell(ctx)
        return {"n": inputs["n"]}

    async def double(inputs: Any, ctx: Any) -> dict[str, Any]:
        tell(ctx)

        async def doubled() -> int:
            return 2 * int(inputs["n"])

        async def read() -> str:
            return str(inputs["n"]) * 70_000

        if inputs["n"] % 2:  # a large value, in parts, that runs share
            await ctx.step("read", read)
        return {"double": await ctx.step("double", doubled)}

    async def asks(inputs: Any, ctx: Any) -> dict[str, Any]:
        tell(ctx)
        return {"answer": int(await ctx.ask("how much?"))}

    async def turn(attributes: Any, ctx: Any) -> dict[str, Any]:
        tell(ctx)
        if ctx.deps.during is not None:
            await ctx.deps.during()
        attributes["turns"] += 1
        return {"said": attributes["turns"]}

    async def end(inputs: Any, attributes: Any, ctx: Any) -> dict[str, Any]:
        tell(ctx)
        return {"sum": inputs["double"] + inputs["answer"], "turns": attributes["turns"]}

    graph = RootGraph("letters", attributes={"turns": 0})
    first = graph.create_node(start, name="start")
    last = graph.create_node(end, name="end", pull_keys={"turns": ""})
    graph.edge_from_entry(first, {"n": ""})
    for body, key in ((double, "double"), (asks, "answer")):
        node = graph.create_node(body, name=key)
        graph.create_edge(first, node, {"n": ""})
        graph.create_edge(node, last, {key: ""})
    add_loop(graph, first, last, turn, 3)
    return graph


LETTERS = letters()


class Gone(KeyboardInterrupt):
    """The process is gone."""


class Dying(SqliteJournal):
    """The journal of a process that dies at its ``at``-th write, before it or when it is safe, and
    releases nothing.
    """

    def __init__(self, folder: Path, at: int, *, after: bool, sync: str) -> None:
        super().__init__(folder, sync=sync)
        self.left, self.after, self.gone = at, after, False
        host = self.writer.owner.partition(":")[0]
        # to others, a process that is no more
        self.writer.owner = f"{host}:{os.getpid()}:another time:{id(self):x}"

    def open(self, run_id: str) -> Any:
        writer = super().open(run_id)
        append, kept, close = writer.append, writer.kept, writer.close

        def dies() -> Any:
            self.gone = True
            raise Gone

        def dying(entry: Entry) -> None:
            if self.gone:
                return
            self.left -= 1
            if self.left <= 0 and not self.after:
                dies()
            append(entry)

        async def last(waiting: Any) -> None:
            if waiting is not None:
                await waiting
            dies()

        def safe() -> Any:
            if self.gone:
                return asyncio.get_running_loop().create_future()  # nothing goes on any more
            return last(kept()) if self.left <= 0 and self.after else kept()

        def closing() -> None:
            if not self.gone:
                close()

        writer.append, writer.kept = dying, safe  # type: ignore[method-assign]
        writer.close = closing  # type: ignore[method-assign]
        return writer

    def die(self) -> None:
        """End as a killed process does, leaving an open claim, and nothing that was not written."""
        self._closing.detach()
        if self.writer._thread is not None:
            self.writer._asked.put(None)
            self.writer._thread.join()
        self.writer.store.close()


@dataclass
class Life:
    """The facts about a run that are known without its journal."""

    n: int
    status: str = "open"
    answer: int | None = None
    done: set[str] = field(default_factory=set[str])
    """Recorded as done."""
    lost: bool = True
    """Nothing of it is written: it broke off before that, or was refused."""
    thread: str = ""
    before: int = 0
    """Turns that the thread had taken when it began."""
    known: list[Entry] = field(default_factory=list[Entry])
    """As last seen in the journal."""

    @property
    def output(self) -> dict[str, int]:
        return {"sum": 2 * self.n + (self.answer or 0), "turns": self.before + 3}


deaths = st.none() | st.tuples(st.integers(1, 16), st.booleans())


class Lives(RuleBasedStateMachine):
    """Runs against what is known of them."""

    runs = Bundle("runs")
    sync: str = "normal"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="axil-lives-"))
        self.journal = SqliteJournal(self.folder, sync=self.sync)
        self.lives: dict[str, Life] = {}
        self.reported: Reported = []
        self.threads: dict[str, list[str]] = {"": [], "t": []}
        self.count, self.jumped = 0, 0.0
        self.begun: Run | None = None
        """As it is at work."""
        self.overtaken: Result | None = None
        """The result of the run, where another process has taken it over."""
        # the wall's clock, as the journal reads it
        internal("sqlite_writer").time = SimpleNamespace(
            time=lambda: time.time() + self.jumped, time_ns=time.time_ns
        )  # type: ignore[assignment]

    def teardown(self) -> None:
        internal("sqlite_writer").time = time
        self.journal.close()
        shutil.rmtree(self.folder)

    # -- what happens

    def go(self, run: str, death: tuple[int, bool] | None, **options: Any) -> None:
        """Begin ``run`` or continue with it, in a process that may die; then compare with what is
        known.
        """
        life, seen = self.lives[run], len(self.reported)
        if self.is_left_behind(run):
            with pytest.raises(JournalError, match="AX529"):
                asyncio.run(
                    LETTERS.start(
                        {"n": life.n},
                        run_id=run,
                        journal=self.journal,
                        **{**options, "deps": Deps([])},
                    ).result()
                )
            return
        if life.lost and life.thread:
            options["thread"], ahead = (
                life.thread,
                [self.lives[each] for each in self.threads[life.thread]],
            )
            if ahead and ahead[-1].status in ("open", "paused"):
                with pytest.raises(JournalError, match="AX509"):
                    LETTERS.start({"n": life.n}, run_id=run, journal=self.journal, **options)
                return
            life.before = next(
                (each.before + 3 for each in reversed(ahead) if each.status == "done"), 0
            )
        journal = (
            self.journal
            if death is None
            else Dying(self.folder, death[0], after=death[1], sync=self.sync)
        )
        options, self.overtaken = {"deps": Deps(self.reported), **options}, None
        try:
            self.begun = LETTERS.start({"n": life.n}, run_id=run, journal=journal, **options)
            result = asyncio.run(self.begun.result())
        except JournalError as error:
            if self.overtaken is None or error.id != "AX506":
                raise
            life.status = self.overtaken.status
        except Gone:
            assert isinstance(journal, Dying)
            journal.die()
            life.status = "open"
        else:
            if journal is not self.journal:
                journal.close()
            assert self.overtaken is None, "who was overtaken did not notice"
            life.status = result.status
            if result.status == "done":
                assert result.output == life.output
            elif result.status == "cancelled":
                assert "during" in str(result.error)
            else:
                assert (result.status, [question.id for question in result.questions]) == (
                    "paused",
                    ["answer?1"],
                )
                assert life.answer is None
        again = {activation for _, activation, _ in self.reported[seen:]} & life.done
        assert not again, f"{again} had been done and ran again"
        assert {name for name, _, _ in self.reported[seen:]} <= {run}
        entries = list(self.journal.entries(run))
        kept = [entry for entry in life.known if entry.kind != "ended"]
        assert [entry for entry in entries[: len(life.known)] if entry.kind != "ended"] == kept, (
            "what was safe is lost, or is another"
        )
        if life.status == "open" and entries:
            life.status = (
                ReplayIndex(entries).ended.data["status"]
                if ReplayIndex(entries).ended is not None
                else "open"
            )  # type: ignore[union-attr]
        self.saw(run)

    def is_left_behind(self, run: str) -> bool:
        """Return whether it has not ended well, and its thread has gone on without it."""
        life = self.lives[run]
        return (
            bool(life.thread)
            and not life.lost
            and life.status != "done"
            and self.threads[life.thread][-1] != run
        )

    def saw(self, run: str) -> None:
        life = self.lives[run]
        life.known = list(self.journal.entries(run))
        replay = ReplayIndex(life.known)
        life.done, life.lost = {str(who) for who in replay.done}, not life.known
        life.answer = replay.answers.get("answer?1")
        if life.thread and not life.lost and run not in self.threads[life.thread]:
            self.threads[life.thread].append(run)

    def named(self, life: Life) -> str:
        self.count += 1
        name = f"r{self.count}"
        self.lives[name] = life
        return name

    @initialize(target=runs, n=st.integers(0, 3), death=deaths)
    def first(self, n: int, death: Any) -> str:
        return self.submit(n, death, "")

    @rule(target=runs, n=st.integers(0, 3), death=deaths, thread=st.sampled_from(("", "t")))
    def submit(self, n: int, death: Any, thread: str) -> str:
        """Begin a run behind the last of its thread; it may break off anywhere."""
        run = self.named(Life(n, thread=thread))
        self.go(run, death)
        return run

    @rule(run=runs, death=deaths)
    def resume(self, run: str, death: Any) -> None:
        """It goes on, and may break off again."""
        self.go(run, death, resuming=not self.lives[run].lost)

    @rule(run=runs)
    def step(self, run: str) -> None:
        """It goes on as far as the next thing that is written, and no further."""
        self.go(run, (2, True), resuming=not self.lives[run].lost)

    @rule(run=runs, answer=st.integers(1, 3), death=deaths)
    def answer(self, run: str, answer: int, death: Any) -> None:
        """Answer a question; the first answer that is written counts, and another is refused."""
        life = self.lives[run]
        if life.answer not in (None, answer):
            with pytest.raises(JournalError, match="AX521"):
                asyncio.run(
                    LETTERS.start(
                        {},
                        run_id=run,
                        journal=self.journal,
                        resuming=True,
                        answers={"answer?1": answer},
                    ).result()
                )
            return
        life.answer = answer
        self.go(run, death, resuming=not life.lost, answers={"answer?1": answer})
        if life.lost:  # it was refused, or broke off before anything was written
            life.answer = None

    @rule(run=runs)
    def cancel(self, run: str) -> None:
        """End it from outside; nothing of it is lost, and it can be resumed."""
        if self.lives[run].lost:
            return
        if self.is_left_behind(run):
            with pytest.raises(JournalError, match="AX529"):
                self.append(run, Entry("ended", data={"status": "cancelled"}))
            return
        self.append(run, Entry("ended", data={"status": "cancelled"}))
        self.lives[run].status = "cancelled"
        self.saw(run)

    @rule(run=runs)
    def cancel_at_work(self, run: str) -> None:
        """End it while a body is at work; it can be resumed."""

        async def during() -> None:
            assert self.begun is not None
            self.begun.cancel("during a turn")

        before = len(self.reported)
        self.go(run, None, resuming=not self.lives[run].lost, deps=Deps(self.reported, during))
        if any(activation.endswith("turn") for _, activation, _ in self.reported[before:]):
            assert self.lives[run].status == "cancelled"

    def append(self, run: str, entry: Entry) -> None:
        async def write() -> None:
            writer = self.journal.open(run)
            writer.append(entry)
            if (waiting := writer.kept()) is not None:
                await waiting
            writer.close()

        asyncio.run(write())

    @rule(target=runs, run=runs, share=st.floats(0.0, 1.0))
    def fork(self, run: str, share: float) -> Any:
        """Begin another run with a part of it."""
        life = self.lives[run]
        if life.lost:
            return multiple()
        at = 1 + round(share * (len(life.known) - 1))
        name = self.named(Life(life.n, before=life.before))
        asyncio.run(fork(self.journal, run, name, at=at))
        self.saw(name)
        assert self.lives[name].done == {str(who) for who in ReplayIndex(life.known[:at]).done}
        return name

    @rule(run=consumes(runs))
    def forget(self, run: str) -> None:
        """Drop it; a holder that opened it before cannot continue it, even where a run of its name
        has begun anew.
        """
        life = self.lives.pop(run)
        if life.lost:
            with pytest.raises(JournalError, match="AX503"):
                self.journal.forget(run)
            return
        if life.thread:
            self.threads[life.thread].remove(run)
        late = self.journal.open(run)
        self.journal.forget(run)
        for entry in life.known:
            self.append(
                run,
                replace(
                    entry,
                    data={name: value for name, value in entry.data.items() if name != "thread"},
                ),
            )

        async def goes_on() -> None:
            late.append(Entry("resumed"))
            if (waiting := late.kept()) is not None:
                await waiting

        with pytest.raises(JournalError, match="AX506"):
            asyncio.run(goes_on())
        late.close()
        self.journal.forget(run)

    @rule(run=runs)
    def another_holder(self, run: str) -> None:
        """Check that no other holder resumes, forgets or restarts it while it is at work."""
        tried = 0

        async def during() -> None:
            nonlocal tried
            other = SqliteJournal(self.folder, sync=self.sync)
            for journal in (other, self.journal):
                with pytest.raises(JournalError, match="AX506"):
                    await LETTERS.start(
                        {"n": self.lives[run].n}, run_id=run, journal=journal, deps=Deps([])
                    ).result()
                with pytest.raises(JournalError, match="AX506"):
                    journal.forget(run)
                assert {info.run_id: info.status for info in journal.runs()}[run] == "running"
                tried += 1
            other.close()

        before = len(self.reported)
        self.go(run, None, resuming=not self.lives[run].lost, deps=Deps(self.reported, during))
        assert tried == 2 * sum(
            activation.endswith("turn") for _, activation, _ in self.reported[before:]
        )

    @rule(run=runs)
    def an_owner_falls_silent(self, run: str) -> None:
        """While it is at work its owner shows no life for long; another takes it over, and the
        first one notices.
        """

        def another() -> None:
            other = SqliteJournal(self.folder, sync=self.sync)
            while self.overtaken is None:
                self.jumped += 60
                # it has just shown life, as what it wrote before was written
                with suppress(JournalError):
                    again = LETTERS.start(
                        {"n": self.lives[run].n},
                        run_id=run,
                        journal=other,
                        deps=Deps(self.reported),
                    )
                    self.overtaken = asyncio.run(again.result())
            other.close()

        async def during() -> None:
            # the owner is stuck as long as the other goes on
            with ThreadPoolExecutor(1) as threads:
                threads.submit(another).result()

        self.go(run, None, resuming=not self.lives[run].lost, deps=Deps(self.reported, during))

    @rule()
    def prune(self) -> None:
        """Runs that are done are forgotten, and what they took is given back: of large values there
        are those that are named.
        """
        for run in [
            run for run, life in self.lives.items() if life.status == "done" and not life.lost
        ]:
            life = self.lives[run]
            self.journal.forget(run)
            self.lives[run] = Life(life.n)
            if life.thread:
                self.threads[life.thread].remove(run)
        self.journal.shrink()

    @rule()
    def reopen(self) -> None:
        """End the journal's process, and start another."""
        self.journal.close()
        self.journal = SqliteJournal(self.folder, sync=self.sync)

    @rule(hours=st.sampled_from((-24 * 365, -1, 1, 24 * 3650)))
    def the_clock_jumps(self, hours: int) -> None:
        """Set the wall clock."""
        self.jumped += hours * 3600

    # -- what always holds

    @invariant()
    def the_database_is_sound(self) -> None:
        assert list(self.journal.examine()) == []

    @invariant()
    def the_runs_are_those_that_are_known(self) -> None:
        assert {info.run_id: info.status for info in self.journal.runs()} == {
            name: life.status for name, life in self.lives.items() if not life.lost
        }

    @invariant()
    def threads_keep_their_order(self) -> None:
        assert {name: list(self.journal.thread(name)) for name in self.threads} == self.threads

    @invariant()
    def a_run_is_changed_only_by_what_is_done_to_it(self) -> None:
        for name, life in self.lives.items():
            assert list(self.journal.entries(name)) == life.known

    @invariant()
    def keys_tell_activations_of_runs_apart(self) -> None:
        assert len({key for *_, key in self.reported}) == len(
            {reported[:2] for reported in self.reported}
        )


class FullLives(Lives):
    """Lives with a journal that a thread writes to the disk."""

    sync: str = "full"


TestLives, TestFullLives = Lives.TestCase, FullLives.TestCase
TestLives.settings = settings(
    max_examples=200 if LONG else 20,
    stateful_step_count=40 if LONG else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestFullLives.settings = settings(TestLives.settings, max_examples=100 if LONG else 8)
