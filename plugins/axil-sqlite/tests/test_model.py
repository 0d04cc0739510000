"""The journal beside the kernel's own: whatever is done to both, they answer the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from axil.plugin import JournalError
from axil_journals import Entry, MemoryJournal
from axil_sqlite import SqliteJournal

RUNS, THREADS = ("a", "b", "c"), ("", "", "t", "u")
FRAMES: tuple[Any, ...] = (
    (),
    (),
    ("c", 0),
    ("c", 1),
    ("c", 0, "d", 0),
    ("c", "#1", 0),
    ("c", "#2", 0),
)

places = st.tuples(
    st.sampled_from(FRAMES), st.sampled_from("cda"), st.sampled_from([(), (1,), (2,)])
)
facts = st.builds(
    lambda kind, place, value: Entry(kind, *place, {"value": value}),
    st.sampled_from(["done", "step", "clock"]),
    places,
    st.text(),
)
rounds = st.builds(
    lambda place, number, total: Entry(
        "round", *place, {"round": number, **({"total": {}} if total else {})}
    ),
    places,
    st.integers(0, 1),
    st.booleans(),
)
endings = st.builds(
    lambda status: Entry("ended", data={"status": status}),
    st.sampled_from(["done", "paused", "failed"]),
)


@dataclass(eq=False)
class Both:
    """A writer in each, of one run."""

    run: str
    model: Any
    real: Any
    is_refused: bool = False


class Beside(RuleBasedStateMachine):
    """``MemoryJournal`` is the model."""

    writers = Bundle("writers")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="axil-model-"))
        self.real, self.model = SqliteJournal(self.folder, sync="normal", detail=0), MemoryJournal()

    def teardown(self) -> None:
        self.real.close()
        shutil.rmtree(self.folder)

    @initialize(target=writers)
    def opened(self) -> Any:
        return multiple(*(self.open(run) for run in (*RUNS, *RUNS)))

    @rule(target=writers, run=st.sampled_from(RUNS))
    def open(self, run: str) -> Both:
        both = Both(run, self.model.open(run), self.real.open(run))
        assert list(both.real.entries) == list(both.model.entries)
        return both

    @rule(both=writers, thread=st.sampled_from(THREADS), is_behind=st.booleans())
    def begin(self, both: Both, thread: str, is_behind: bool) -> None:
        """As a run begins: behind the last of its thread, or too late."""
        if self.model.entries(both.run):
            return
        before = list(self.model.thread(thread))
        after = before[-1] if before and is_behind else ""
        self.write(both, [Entry("run", data={"graph": "g", "thread": thread, "after": after})])

    @rule(both=writers, entries=st.lists(facts | rounds | endings, min_size=1, max_size=6))
    def append(self, both: Both, entries: list[Entry]) -> None:
        self.write(both, entries)

    def write(self, both: Both, entries: list[Entry]) -> None:
        if both.is_refused:
            return

        async def real() -> None:
            for entry in entries:
                both.real.append(entry)
            if (waiting := both.real.kept()) is not None:
                await waiting

        def model() -> None:
            for entry in entries:
                both.model.append(entry)

        expected = refusal(model)
        assert refusal(lambda: asyncio.run(real())) == expected
        both.is_refused = expected != ""

    @rule(both=writers)
    def close(self, both: Both) -> None:
        both.model.close()
        both.real.close()

    @rule(run=st.sampled_from(RUNS))
    def forget(self, run: str) -> None:
        assert refusal(lambda: self.real.forget(run)) == refusal(lambda: self.model.forget(run))

    @invariant()
    def both_know_the_same(self) -> None:
        for run in RUNS:
            assert list(self.real.entries(run)) == list(self.model.entries(run))
        for thread in THREADS:
            assert list(self.real.thread(thread)) == list(self.model.thread(thread))
        reported = [
            {(info.run_id, info.graph, info.status, info.thread) for info in journal.runs()}
            for journal in (self.real, self.model)
        ]
        assert reported[0] == reported[1]


def refusal(act: Any) -> str:
    """Return the id of the error, or nothing."""
    try:
        act()
    except JournalError as error:
        return error.id
    return ""


TestBeside = Beside.TestCase
TestBeside.settings = settings(
    max_examples=50, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
