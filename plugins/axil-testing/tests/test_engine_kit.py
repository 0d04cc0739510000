"""The local engine keeps the laws of engines, and each law catches one that breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from axil import Workflow
from axil.driver import LocalExecutor
from axil.plugin import EngineError, JournalError
from axil_journals import Entry, LocalEngine, MemoryJournal, RunStatus
from axil_testing.kit import EngineKit, check
from axil_testing.kit.base import Kit
from axil_testing.kit.report import laws


class TestLocal(EngineKit):
    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        return LocalEngine(
            MemoryJournal() if beside is None else beside.journal, workflows, clock=self.clock
        )


class TestLocalOneAtATime(TestLocal):
    """With room for two runs, so that the others queue; one is at work for ever in some laws."""

    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        engine = super().make(workflows, beside)
        engine.max_loaded = 2
        return engine


class Later(LocalEngine):
    """Does some of what it is asked a little later, if it is there then."""

    soon: Any = None

    def later(self, doing: Callable[[], Any]) -> None:
        def begin() -> None:
            if not self._is_closed:
                self.soon = asyncio.ensure_future(doing())

        asyncio.get_running_loop().call_later(0.05, begin)


class AcceptsLater(Later):
    """Says that a run is accepted before it is written."""

    async def start(self, *values: Any, **more: Any) -> str:
        run_id = more.pop("run_id", "") or "r"
        self.later(lambda: LocalEngine.start(self, *values, **{**more, "run_id": run_id}))
        return run_id


class NamesAllAlike(LocalEngine):
    async def start(self, *values: Any, **more: Any) -> str:
        await super().start(*values, **more)
        return "run"


class NamesAnew(LocalEngine):
    async def start(self, *values: Any, **more: Any) -> str:
        return await super().start(*values, **{**more, "run_id": ""})


class TakesAnyInput(LocalEngine):
    async def start(self, *values: Any, **more: Any) -> str:
        try:
            return await super().start(*values, **more)
        except JournalError:
            return more["run_id"]


class LosesAttributes(LocalEngine):
    async def start(
        self, workflow: Any, input: Any = None, attributes: Any = None, **more: Any
    ) -> str:
        return await super().start(workflow, input, **more)


class LosesThreads(LocalEngine):
    async def start(self, *values: Any, **more: Any) -> str:
        return await super().start(*values, **{**more, "thread": ""})


class ListsOldestFirst(LocalEngine):
    def list(self) -> Any:
        return [*reversed(super().list())]


class KnowsEverything(LocalEngine):
    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        try:
            await super().cancel(run_id, reason)
        except JournalError:
            return


class ReadsNoMail(LocalEngine):
    async def _deliver(self) -> None: ...


class LosesAnswers(LocalEngine):
    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        return None


class AnswersLater(Later):
    """Says that an answer is taken before it is written."""

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        self.later(lambda: LocalEngine.answer(self, run_id, answers))


class TakesEveryAnswer(LocalEngine):
    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        try:
            await super().answer(run_id, answers)
        except EngineError:
            return


class AnswersAnother(LocalEngine):
    """Takes an answer for the run that was begun last."""

    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        waiting = [info.run_id for info in self.list() if info.status == "paused"]
        await super().answer(waiting[0] if waiting else run_id, answers)


class AnswersOnlyWhoWaits(LocalEngine):
    async def answer(self, run_id: str, answers: Mapping[str, Any]) -> None:
        if run_id in self._loaded:
            raise EngineError("it is at work.", id="AX541")
        await super().answer(run_id, answers)


class ShowsTextsOnly(LocalEngine):
    def get(self, run_id: str) -> RunStatus:
        standing = super().get(run_id)
        return replace(
            standing,
            questions=tuple(replace(each, kind="text", options=()) for each in standing.questions),
        )


class Keeping(LocalExecutor):
    """Holds on to what bodies raise, with all that was in them."""

    kept: ClassVar[list[BaseException]] = []

    async def execute(self, body: Any, task: Any, ctx: Any) -> Any:
        try:
            return await super().execute(body, task, ctx)
        except BaseException as error:
            self.kept.append(error)
            raise


class KeepsRuns(LocalEngine):
    def __init__(self, *values: Any, **more: Any) -> None:
        super().__init__(*values, executor=Keeping(4, "kept"), **more)


class TellsOnlyOfWhatIsDone(LocalEngine):
    async def result(self, run_id: str) -> Any:
        result = await super().result(run_id)
        if result.status != "done":
            await asyncio.Event().wait()
        return result


class CancelsNothing(LocalEngine):
    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        await self._recorded(run_id)


class CancelsWithoutAWord(LocalEngine):
    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        await super().cancel(run_id)


class CancelsWhatIsDone(LocalEngine):
    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        await super().cancel(run_id, reason)
        ended = (await self._recorded(run_id)).ended
        if ended is not None and ended.data["status"] == "done":
            await self._append(
                run_id, [Entry("ended", data={"status": "cancelled", "error": reason})]
            )


class CancelsLater(LocalEngine):
    async def cancel(self, run_id: str, reason: str = "cancelled") -> None:
        loaded = self._loaded.get(run_id)
        if loaded is None:
            await super().cancel(run_id, reason)
        else:
            loaded.run.cancel(reason)


class HidesErrors(LocalEngine):
    def get(self, run_id: str) -> RunStatus:
        return replace(super().get(run_id), error="")


class ResumesNothing(LocalEngine):
    async def resume(self, run_id: str) -> None:
        await self._recorded(run_id)


class Forgets(MemoryJournal):
    """Loses what was done."""

    def open(self, run_id: str) -> Any:
        writer = super().open(run_id)
        writer.entries = tuple(
            entry for entry in writer.entries if entry.kind not in ("done", "step")
        )
        return writer


class BeginsAgain(LocalEngine):
    def __init__(self, journal: Any, *values: Any, **more: Any) -> None:
        super().__init__(journal if isinstance(journal, Forgets) else Forgets(), *values, **more)


class TakesUpNothing(LocalEngine):
    async def _load(self, run_id: str) -> None:
        if len(list(self.journal.entries(run_id))) == 1:  # nothing was done
            await super()._load(run_id)


class LeavesThemWaiting(LocalEngine):
    async def close(self, *, grace_seconds: float = 0.0) -> None:
        self._waiters.clear()
        await super().close()


class NeverCloses(LocalEngine):
    async def close(self, *, grace_seconds: float = 0.0) -> None:
        await super().close()
        self._is_closed = False


class Shared(MemoryJournal):
    """Lets everybody in."""

    def open(self, run_id: str) -> Any:
        if (run := self.stored.get(run_id)) is not None:
            run.holder = None
        return super().open(run_id)

    def wake(self, run_id: str, due: float = 0.0) -> None:
        run = self.stored[run_id]
        run.holder, run.is_taken = None, False
        super().wake(run_id, due)


class TakesWhatIsAtWork(LocalEngine):
    def __init__(self, journal: Any, *values: Any, **more: Any) -> None:
        super().__init__(journal if isinstance(journal, Shared) else Shared(), *values, **more)


class TakesAnyVersion(LocalEngine):
    """Continues a run with the version that it has."""

    def __init__(self, journal: Any, workflows: Sequence[Workflow], **more: Any) -> None:
        super().__init__(journal, workflows, find=lambda header: workflows[0], migrate=True, **more)


def kit_of(engine: type[LocalEngine]) -> type[EngineKit]:
    class Given(TestLocal):
        patience_seconds = 0.2

        def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
            return engine(
                MemoryJournal() if beside is None else beside.journal, workflows, clock=self.clock
            )

    return Given


BROKEN = [
    (AcceptsLater, "what was accepted answered or cancelled stays so"),
    (NamesAllAlike, "runs have names of their own"),
    (NamesAnew, "runs have names of their own"),
    (NamesAnew, "a run that is started again is the same run"),
    (TakesAnyInput, "a run that is started again is the same run"),
    (LosesAttributes, "a run gives the same result as without an engine"),
    (LosesThreads, "a thread goes on where its last run ended"),
    (ListsOldestFirst, "runs have names of their own"),
    (KnowsEverything, "a missing run is reported"),
    (LosesAnswers, "a question is shown and its answer continues with the run"),
    (AnswersLater, "what was accepted answered or cancelled stays so"),
    (TakesEveryAnswer, "an answer counts once"),
    (AnswersAnother, "runs do not mix"),
    (AnswersOnlyWhoWaits, "an answer is taken while another branch is at work"),
    (ShowsTextsOnly, "a question is shown and its answer continues with the run"),
    (KeepsRuns, "nothing of a run that waits stays in memory"),
    (BeginsAgain, "a run that sleeps wakes once"),
    (CancelsNothing, "a run is cancelled wherever it stands"),
    (CancelsWithoutAWord, "a run is cancelled wherever it stands"),
    (CancelsWhatIsDone, "a run is cancelled wherever it stands"),
    (CancelsLater, "a run is cancelled wherever it stands"),
    (TellsOnlyOfWhatIsDone, "a run is cancelled wherever it stands"),
    (HidesErrors, "a run that failed says why and goes on when it is resumed"),
    (ResumesNothing, "a run that failed says why and goes on when it is resumed"),
    (BeginsAgain, "a run that failed says why and goes on when it is resumed"),
    (TakesUpNothing, "what one engine breaks off another continues with"),
    (LeavesThemWaiting, "what one engine breaks off another continues with"),
    (NeverCloses, "what one engine breaks off another continues with"),
    (TakesAnyVersion, "a run continues in an engine that has its version"),
    (ReadsNoMail, "another engine answers and cancels a run at work"),
    (TakesWhatIsAtWork, "a run is at work in one engine at a time"),
]


@pytest.mark.parametrize(("engine", "law"), BROKEN)
def test_an_engine_that_breaks_a_law_is_caught(engine, law):
    assert [each.law for each in check(kit_of(engine), law).failures] == [law]


def test_there_is_an_engine_that_breaks_each_law():
    own = {
        name.removeprefix("test_").replace("_", " ")
        for name in laws(EngineKit)
        if not hasattr(Kit, name)
    }
    assert own == {law for _, law in BROKEN}
