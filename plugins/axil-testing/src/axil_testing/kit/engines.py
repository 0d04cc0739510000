"""The kit of engines: what is accepted is run, once, and stays accepted, answered or cancelled,
in whichever engine it continues.

An engine is seen from outside: by the ``Engine`` protocol, and by what bodies say that run in this
process. Another engine on the same store stands for another process, or for the same one after a
crash.
"""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from axil import AxilError, Workflow
from axil.plugin import EngineError, JournalError, thaw
from axil_testing.clock import VirtualClock
from axil_testing.kit import flows
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import shown

if TYPE_CHECKING:
    from axil_journals import Engine

T = TypeVar("T")


class EngineKit(Kit):
    """The laws of every engine. Give ``make(self, workflows, beside)``.

    It is entered as a context, where it is one, and closed by ``close``.
    """

    kind = "engines"
    patience_seconds: ClassVar[float] = 60.0
    """Of real time: what has not happened after that does not happen."""
    nap_seconds: ClassVar[float] = 86_400.0
    """The seconds that runs of the kit sleep: by ``self.clock``, which jumps.

    Less, where the engine has a clock of its own.
    """

    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        """Make an engine that knows these workflows, not yet entered; it may take ``self.clock``.

        beside: one that was made before. This one is on the same store, as another process would
        have it. None: the store is empty.
        """
        raise NotImplementedError("An engine's kit gives make(self, workflows=(), beside=None).")

    @cached_property
    def clock(self) -> VirtualClock:
        """For the engines of one test."""
        return VirtualClock()

    # -- what tests use

    @asynccontextmanager
    async def opened(self, *workflows: Workflow, beside: Any = None) -> AsyncGenerator[Engine]:
        """Open an engine; close it at the end."""
        engine = self.make(workflows, beside)
        if hasattr(engine, "__aenter__"):
            await engine.__aenter__()
        try:
            yield engine
        finally:
            await engine.close()

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait for something. Raises: AssertionError: it does not happen."""
        ends = time.monotonic() + self.patience_seconds
        while not holds():
            require(time.monotonic() < ends, f"{what} after {self.patience_seconds:g} seconds")
            await asyncio.sleep(0.001)

    async def reaches(self, engine: Engine, run_id: str, *statuses: str) -> Any:
        """Return the status of a run, once it is one of these."""
        await self.until(
            lambda: engine.get(run_id).info.status in statuses,
            f"a run is not {' or '.join(statuses)}",
        )
        return engine.get(run_id)

    async def asks(self, engine: Engine, run_id: str, question: str) -> None:
        """Wait until a run waits for this to be answered."""
        await self.until(
            lambda: [each.id for each in engine.get(run_id).questions] == [question],
            f"a run does not ask {question}",
        )
        await self.reaches(engine, run_id, "paused")

    async def within(self, doing: Awaitable[T], otherwise: str) -> T:
        """Return the awaited result. Raises: AssertionError: there is none in time."""
        try:
            return await asyncio.wait_for(doing, self.patience_seconds)
        except TimeoutError:
            raise AssertionError(f"{otherwise}, after {self.patience_seconds:g} seconds") from None

    async def result(self, engine: Engine, run_id: str) -> tuple[str, Any]:
        """Status and output of what a run comes to."""
        result = await self.within(engine.result(run_id), "the result of a run does not arrive")
        return result.status, thaw(result.output)

    # -- laws: accepted and ended

    def test_a_run_gives_the_same_result_as_without_an_engine(self) -> None:
        """The same output and attributes; later callers get the same."""

        async def law() -> None:
            flow = flows.turning()
            alone = await flow.run({"n": 3}, {"by": 2})
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 3}, {"by": 2})
                for when in ("", " later"):
                    result = await self.within(
                        engine.result(run_id), "the result of a run does not arrive"
                    )
                    report = result.status, thaw(result.output), thaw(result.attributes)
                    expected = alone.status, thaw(alone.output), thaw(alone.attributes)
                    require(
                        report == expected,
                        f"it says{when} that a run gave {shown(report)}, "
                        f"which gives {shown(expected)}",
                    )
                    require(
                        result.run_id == run_id,
                        f"it tells{when} of the run {result.run_id!r}, asked about {run_id!r}",
                    )
                standing = engine.get(run_id)
                require(
                    standing.info.status == "done", f"a run that is done is {standing.info.status}"
                )
                require(
                    thaw(standing.output) == thaw(alone.output),
                    f"it shows that a run gave {shown(standing.output)}",
                )

        self.wait(law())

    def test_runs_have_names_of_their_own(self) -> None:
        """Give runs the requested names, or other unique ones; list all, the last touched first."""

        async def law() -> None:
            flow = flows.plain([])
            async with self.opened(flow) as engine:
                given = await engine.start(flow, {"n": 0}, run_id="given")
                require(given == "given", f"a run that is to be called 'given' is called {given!r}")
                ids = [given]
                for n in range(8):
                    ids.append(await engine.start(flow, {"n": n}))
                    require((await self.result(engine, ids[-1]))[0] == "done", "a run does not end")
                require(len(set(ids)) == len(ids), f"runs have the same name: {sorted(ids)}")
                listed = [info.run_id for info in engine.list()]
                require(sorted(listed) == sorted(ids), f"of {len(ids)} runs it lists {len(listed)}")
                await self.reaches(engine, given, "done")
                last = await engine.start(flow, {"n": 9})
                await self.result(engine, last)
                require(
                    engine.list()[0].run_id == last,
                    "the run that was touched last is not the first that it lists",
                )

        self.wait(law())

    def test_a_run_that_is_started_again_is_the_same_run(self) -> None:
        """Under one name with the same input it runs once, also at once, also when it is over;
        another input is refused (AX505).
        """

        async def law() -> None:
            ran: list[Any] = []
            flow = flows.plain(ran)
            async with self.opened(flow) as engine:
                await asyncio.gather(
                    *(engine.start(flow, {"n": 1}, run_id="r") for _ in range(3)),
                    return_exceptions=True,
                )
                require(
                    (await self.result(engine, "r")) == ("done", {"n": 1}),
                    "a run that was started thrice does not end well",
                )
                await engine.start(flow, {"n": 1}, run_id="r")
                await self.reaches(engine, "r", "done")
                await _refused(
                    engine.start(flow, {"n": 2}, run_id="r"),
                    "AX505",
                    "a name is given to a run with another input",
                )
                require(
                    ran == [1], f"a run that was started several times ran for the inputs {ran}"
                )

        self.wait(law())

    def test_runs_do_not_mix(self) -> None:
        """Many at once, answered in another order: each has its own input, question and output."""

        async def law() -> None:
            flow = flows.asking()
            async with self.opened(flow) as engine:
                ids = [await engine.start(flow, {"n": n}) for n in range(12)]
                for run_id in ids:
                    await self.reaches(engine, run_id, "paused")
                for n in (7, 3, 11, 0, 5, 1, 10, 2, 9, 4, 8, 6):
                    await engine.answer(ids[n], {"asks?m0": 100 * n})
                came = [await self.result(engine, run_id) for run_id in ids]
                require(
                    came == [("done", {"sum": 101 * n}) for n in range(12)],
                    f"runs that were answered gave {shown(came)}",
                )

        self.wait(law())

    def test_a_thread_goes_on_where_its_last_run_ended(self) -> None:
        """The next run of a thread begins with the state of the one before; while that is open,
        none begins (AX509).
        """

        async def law() -> None:
            flow = flows.asking()
            async with self.opened(flow) as engine:
                first = await engine.start(flow, {"n": 1}, thread="t")
                await self.reaches(engine, first, "paused")
                await _refused(
                    engine.start(flow, {"n": 1}, thread="t"),
                    "AX509",
                    "two runs of a thread are open at once",
                )
                await engine.answer(first, {"asks?m0": 1})
                await self.result(engine, first)
                second = await engine.start(flow, {"n": 1}, thread="t")
                await self.reaches(engine, second, "paused")
                await engine.answer(second, {"asks?m0": 1})
                result = await self.within(
                    engine.result(second), "the result of a run does not arrive"
                )
                require(
                    result.attributes["times"] == 2,
                    "a run does not begin with what the run before it in its thread left",
                )

        self.wait(law())

    def test_a_missing_run_is_reported(self) -> None:
        """AX503, whatever is asked of it."""

        async def law() -> None:
            async with self.opened() as engine:

                async def get() -> None:
                    engine.get("no such run")

                doings: dict[str, Callable[[], Awaitable[Any]]] = {
                    "is looked at": get,
                    "is answered": lambda: engine.answer("no such run", {"a": 1}),
                    "is cancelled": lambda: engine.cancel("no such run"),
                    "is resumed": lambda: engine.resume("no such run"),
                    "has a result": lambda: self.within(
                        engine.result("no such run"), "a run that is not there is waited for"
                    ),
                }
                for what, doing in doings.items():
                    await _refused(doing(), "AX503", f"a run that is not there {what}")

        self.wait(law())

    # -- laws: people and times

    def test_a_question_is_shown_and_its_answer_continues_with_the_run(self) -> None:
        """As it was asked; several one after the other; a waiting run has ended for no caller."""

        async def law() -> None:
            flow = flows.asking(times=2)
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 1})
                waits = asyncio.ensure_future(engine.result(run_id))
                for n, answer in enumerate((10, 100)):
                    await self.asks(engine, run_id, f"asks?m{n}")
                    (question,) = engine.get(run_id).questions
                    asked = question.text, question.kind, question.options, question.node
                    expected = f"number {n}?", "choice", ("1", "2"), "asks"
                    require(
                        asked == expected, f"a question is shown as {asked}, asked as {expected}"
                    )
                    require(not waits.done(), "a run that waits for an answer has ended")
                    await engine.answer(run_id, {question.id: answer})
                require(
                    (await self.within(waits, "the result of a run does not arrive")).output
                    == {"sum": 111},
                    "answers get lost on their way",
                )

        self.wait(law())

    def test_an_answer_counts_once(self) -> None:
        """Of two at once one is taken, and is the one that counts; another later, and one to what
        was never asked, is refused (AX541).
        """

        async def law() -> None:
            flow = flows.asking(times=2)
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 0})
                await self.reaches(engine, run_id, "paused")
                await _refused(
                    engine.answer(run_id, {"asks?no such": 1}),
                    "AX541",
                    "an answer is taken to what was never asked",
                )
                stated = await asyncio.gather(
                    *(engine.answer(run_id, {"asks?m0": n}) for n in (1, 2, 3)),
                    return_exceptions=True,
                )
                taken = [n for n, came in zip((1, 2, 3), stated, strict=True) if came is None]
                require(len(taken) == 1, f"of three answers at once it takes {len(taken)}")
                strange = [
                    came for came in stated if came is not None and not isinstance(came, AxilError)
                ]
                require(not strange, f"a second answer breaks it: {strange}")
                await self.asks(engine, run_id, "asks?m1")
                await _refused(
                    engine.answer(run_id, {"asks?m0": 9}), "AX541", "a question is answered twice"
                )
                await engine.answer(run_id, {"asks?m1": 10})
                came = await self.result(engine, run_id)
                require(
                    came == ("done", {"sum": 10 + taken[0]}),
                    f"the answer {taken[0]} was taken, and the run gave {came}",
                )

        self.wait(law())

    def test_an_answer_is_taken_while_another_branch_is_at_work(self) -> None:
        """Accept an answer while another branch is at work, without repeating that branch."""

        async def law() -> None:
            ran: list[str] = []
            flow, go = flows.branching(ran)
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 1})
                await self.until(
                    lambda: "asks" in ran and "works" in ran,
                    "branches are not at work side by side",
                )
                ends = time.monotonic() + self.patience_seconds
                while not await _taken(engine, run_id, {"asks?m": 42}):
                    require(
                        time.monotonic() < ends,
                        "it takes no answer while another branch is at work",
                    )
                    await asyncio.sleep(0.001)
                go.set()
                came = await self.result(engine, run_id)
                require(
                    came == ("done", {"sum": 43, "m": 1}),
                    f"a run that was answered while at work gave {came}",
                )
                require(
                    ran.count("works") == 1,
                    "what was at work is done again, "
                    "because a question of another branch was answered",
                )

        self.wait(law())

    def test_nothing_of_a_run_that_waits_stays_in_memory(self) -> None:
        """Keep nothing of a waiting run in memory: its body begins again from the record."""

        async def law() -> None:
            held: weakref.WeakSet[Any] = weakref.WeakSet()
            flow = flows.asking(held=held)
            async with self.opened(flow) as engine:
                ids = [await engine.start(flow, {"n": n}) for n in range(5)]
                for run_id in ids:
                    await self.reaches(engine, run_id, "paused")
                for _ in range(20):
                    await asyncio.sleep(0)
                gc.collect()
                require(
                    not held, f"of {len(ids)} runs that wait for people {len(held)} are in memory"
                )

        self.wait(law())

    def test_a_run_that_sleeps_wakes_once(self) -> None:
        """Wake a sleeping run once, whatever happens to it meanwhile, without repeating its
        recorded steps.
        """

        async def law() -> None:
            ran: list[str] = []
            flow = flows.sleeping(ran, self.nap_seconds)
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 1})
                came = await self.result(engine, run_id)
                require(came == ("done", {"n": 2}), f"a run that slept gave {came}")
                require(
                    ran.count("before") == 1,
                    f"what came before a sleep, as a step, was done {ran.count('before')} times",
                )
                require(
                    ran.count("after") == 1,
                    f"what came behind a sleep was done {ran.count('after')} times",
                )

        self.wait(law())

    # -- laws: ended otherwise

    def test_a_run_is_cancelled_wherever_it_stands(self) -> None:
        """At work and waiting; its waiters get the end; one that has ended stays as it is;
        twice is once; an answer does not bring it back (AX541).
        """

        async def law() -> None:
            gone: list[str] = []
            stuck, asks, plain = flows.stuck(gone), flows.asking(), flows.plain([])
            async with self.opened(stuck, asks, plain) as engine:
                working, waiting, over = (
                    await engine.start(stuck),
                    await engine.start(asks, {"n": 1}),
                    await engine.start(plain, {"n": 1}),
                )
                await self.until(lambda: gone == ["begun"], "a body does not begin")
                await self.reaches(engine, waiting, "paused")
                await self.result(engine, over)
                lines = [
                    asyncio.ensure_future(engine.result(run_id)) for run_id in (working, waiting)
                ]
                await asyncio.sleep(0)
                for run_id in (working, waiting, over, working, waiting):
                    await self.within(
                        engine.cancel(run_id, "enough of it"), "a run is not cancelled"
                    )
                    require(
                        gone == ["begun", "cancelled"],
                        "cancel returns before the body of a run is cancelled",
                    )
                require(engine.get(over).info.status == "done", "a run that is done is cancelled")
                for run_id, waits in zip((working, waiting), lines, strict=True):
                    standing = engine.get(run_id)
                    require(
                        standing.info.status == "cancelled",
                        f"a run that was cancelled is {standing.info.status}",
                    )
                    require(
                        "enough of it" in standing.error, "it does not say why a run was cancelled"
                    )
                    require(not standing.questions, "a run that was cancelled still asks")
                    first = await self.within(waits, "the result of a run does not arrive")
                    again = await self.result(engine, run_id)
                    require(
                        (first.status, again[0]) == ("cancelled",) * 2,
                        f"a cancelled run is {first.status}, {again[0]}",
                    )
                await _refused(
                    engine.answer(waiting, {"asks?m0": 1}),
                    "AX541",
                    "a question of a run that was cancelled is answered",
                )
                require(
                    engine.get(waiting).info.status == "cancelled",
                    "an answer brings a run back that was cancelled",
                )

        self.wait(law())

    def test_a_run_that_failed_says_why_and_goes_on_when_it_is_resumed(self) -> None:
        """Report why a run failed, and continue without repeating work when it is resumed; a done
        run stays done.
        """

        async def law() -> None:
            ran: list[str] = []
            flow, mended = flows.failing(ran)
            async with self.opened(flow) as engine:
                run_id = await engine.start(flow, {"n": 1})
                result = await self.within(
                    engine.result(run_id), "the result of a run does not arrive"
                )
                require(result.status == "failed", f"a run whose body raises is {result.status}")
                for report in (str(result.error), engine.get(run_id).error):
                    require("not today" in report, f"it does not say why a run failed: {report!r}")
                mended.append("now")
                await engine.resume(run_id)
                came = await self.result(engine, run_id)
                require(
                    came == ("done", {"n": 1}), f"a run that failed and was resumed gave {came}"
                )
                await engine.resume(run_id)
                await self.reaches(engine, run_id, "done")
                require(
                    ran == ["first", "second", "second"],
                    f"a run that failed and was resumed ran {ran}",
                )

        self.wait(law())

    # -- laws: another process

    def test_what_was_accepted_answered_or_cancelled_stays_so(self) -> None:
        """Expect it to be safe when the call returns: the engine may be gone then, others know."""

        async def law() -> None:
            ran: list[Any] = []
            plain, asks = flows.plain(ran), flows.asking()
            async with self.opened(plain, asks) as first:
                waiting = [await first.start(asks, {"n": n}) for n in range(2)]
                for run_id in waiting:
                    await self.reaches(first, run_id, "paused")
                await first.cancel(waiting[1], "enough")
                await first.answer(waiting[0], {"asks?m0": 41})
                accepted = await first.start(plain, {"n": 5})
            async with self.opened(plain, asks, beside=first) as second:
                known = {info.run_id for info in second.list()}
                require(
                    accepted in known,
                    "a run that was accepted is not there when the engine is gone",
                )
                require(
                    (await self.result(second, accepted)) == ("done", {"n": 5}),
                    "a run that was accepted does not end well elsewhere",
                )
                require(
                    (await self.result(second, waiting[1]))[0] == "cancelled",
                    "a run that was cancelled is not, elsewhere",
                )
                answered = await self.result(second, waiting[0])
                require(
                    answered == ("done", {"sum": 41}),
                    f"a run that was answered gave {answered} elsewhere",
                )

        self.wait(law())

    def test_what_one_engine_breaks_off_another_continues_with(self) -> None:
        """Unasked; what was done is not done again.

        Its waiters get the error that the engine is closed (AX540).
        """

        async def law() -> None:
            ran: list[str] = []
            flow, go = flows.held(ran)
            async with self.opened(flow) as first:
                run_id = await first.start(flow, {"n": 1})
                await self.until(lambda: ran == ["first", "second"], "a run does not begin")
                waits = asyncio.ensure_future(first.result(run_id))
                await asyncio.sleep(0)
            await _refused(
                self.within(waits, "the result of a run does not arrive"),
                "AX540",
                "a run that was broken off has ended",
            )
            await _refused(first.start(flow, {"n": 1}), "AX540", "a closed engine accepts a run")
            await first.close()
            go.set()
            async with self.opened(flow, beside=first) as second:
                came = await self.result(second, run_id)
                require(
                    came == ("done", {"n": 1}),
                    f"a run that was broken off gave {came} elsewhere",
                )
            require(
                ran == ["first", "second", "second"],
                f"a run that was broken off and resumed ran {ran}",
            )

        self.wait(law())

    def test_a_run_is_at_work_in_one_engine_at_a_time(self) -> None:
        """Another beside it leaves it alone, though it is asked to resume it; when it has ended,
        both know its result.
        """

        async def law() -> None:
            ran: list[str] = []
            flow, go = flows.held(ran)
            async with self.opened(flow) as first, self.opened(flow, beside=first) as second:
                run_id = await first.start(flow, {"n": 1})
                await self.until(lambda: ran == ["first", "second"], "a run does not begin")
                with suppress(JournalError, EngineError):
                    await second.resume(run_id)
                for _ in range(200):
                    await asyncio.sleep(0)
                require(ran == ["first", "second"], f"two engines have one run at work: {ran}")
                go.set()
                require(
                    (await self.result(first, run_id)) == ("done", {"n": 1}),
                    "a run is disturbed by another engine",
                )
                require(
                    (await self.result(second, run_id)) == ("done", {"n": 1}),
                    "it does not know a run's result elsewhere",
                )
                require(ran == ["first", "second"], f"a run that was at work elsewhere ran {ran}")

        self.wait(law())

    def test_a_run_continues_in_an_engine_that_has_its_version(self) -> None:
        """While engines are replaced, two versions of a workflow are at work side by side; a run of
        the old version waits for an engine that has it.
        """

        async def law() -> None:
            old, new = flows.versions()
            async with self.opened(old) as first, self.opened(new, beside=first) as second:
                ids = [await first.start(old, {"n": n}) for n in range(2)]
                ids.append(await second.start(new, {"n": 2}))
                for run_id in ids:
                    await self.asks(first, run_id, "asks?m")
                await second.answer(ids[0], {"asks?m": 10})
                await first.answer(ids[2], {"asks?m": 10})
                came = [await self.result(first, ids[0]), await self.result(second, ids[2])]
                expected = [{"sum": 10, "version": 1}, {"sum": 12, "version": 2}]
                require(
                    came == [("done", each) for each in expected],
                    f"runs of two versions, side by side, gave {came}",
                )
            async with self.opened(new, beside=first) as second:
                await second.answer(ids[1], {"asks?m": 10})
                latest = await second.start(new, {"n": 5})
                await self.asks(second, latest, "asks?m")  # by now the other was looked at, too
                status = second.get(ids[1]).info.status
                require(
                    status in ("queued", "open", "paused"),
                    f"a run of another version is {status} in an engine that does not have it",
                )
                async with self.opened(old, beside=second) as third:
                    came = await self.result(third, ids[1])
                    require(
                        came == ("done", {"sum": 11, "version": 1}),
                        f"a run gave {came} when there was an engine with its version again",
                    )

        self.wait(law())

    def test_another_engine_answers_and_cancels_a_run_at_work(self) -> None:
        """An answer and a cancellation reach a run, wherever it is at work; so does its result."""

        async def law() -> None:
            ran, gone = list[str](), list[str]()
            flow, go = flows.branching(ran)
            stuck = flows.stuck(gone)
            async with (
                self.opened(flow, stuck) as first,
                self.opened(flow, stuck, beside=first) as second,
            ):
                run_id, other = await first.start(flow, {"n": 1}), await first.start(stuck)
                await self.until(
                    lambda: "asks" in ran and "works" in ran and gone, "runs are not at work"
                )
                waits = asyncio.ensure_future(second.result(run_id))
                ends = time.monotonic() + self.patience_seconds
                while not await _taken(second, run_id, {"asks?m": 42}):
                    require(time.monotonic() < ends, "it answers no run that is at work elsewhere")
                    await asyncio.sleep(0.001)
                go.set()
                result = await self.within(waits, "the result of a run elsewhere does not arrive")
                came = result.status, thaw(result.output)
                require(
                    came == ("done", {"sum": 43, "m": 1}),
                    f"a run that was answered elsewhere gave {came}",
                )
                await self.within(second.cancel(other, "enough"), "a run is not cancelled")
                require(gone == ["begun", "cancelled"], f"a run cancelled elsewhere was {gone}")
                require((await self.result(first, other))[0] == "cancelled", "it is not cancelled")

        self.wait(law())


async def _taken(engine: Engine, run_id: str, answers: Mapping[str, Any]) -> bool:
    """Return whether answers are accepted: not before the question."""
    try:
        await engine.answer(run_id, answers)
    except EngineError:
        return False
    return True


async def _refused(doing: Any, id: str, otherwise: str) -> None:
    """Nothing, if it is refused so. Raises: AssertionError."""
    try:
        await doing
    except AxilError as error:
        require(error.id == id, f"it refuses with {error.id}; expected {id}: {error}")
        return
    raise AssertionError(otherwise)
