"""Tests of what is likely used, by recorded runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axil import RootGraph, Workflow
from axil_journals import Entry, MemoryJournal, RunInfo, estimate


def named(name: str) -> Workflow:
    graph = RootGraph(name)
    graph.create_node(lambda inputs: inputs, name="same")
    graph.edge_from_entry("same", {"n": ""})
    graph.edge_to_exit("same", {"n": ""})
    return graph.build()


class Large:
    """A journal with a million runs of another graph beside one's own, whose pages are counted."""

    def __init__(self, journal: MemoryJournal, own: int) -> None:
        self.journal, self.own, self.pages = journal, own, list[int]()
        self.entries = journal.entries

    def runs(
        self, *, status: Collection[str] = (), after: str = "", limit: int = 0
    ) -> Sequence[RunInfo]:
        assert status == ["done"]
        first = int(after.rpartition("-")[2] or 0) + 1 if after else 1
        self.pages.append(limit)
        names = (f"other-{number}" for number in range(first, min(first + limit, 1_000_001)))
        found = [RunInfo(run_id=name, graph="other", status="done") for name in names]
        if first <= self.own < first + limit:
            [mine] = self.journal.runs()
            found[0] = mine
        return found


def test_an_estimate_reads_a_journal_by_pages_and_finds_the_last_runs():
    flow, journal = named("mine"), MemoryJournal()
    flow.invoke({"n": 1}, journal=journal)
    near, far = Large(journal, own=9_000), Large(journal, own=500_000)
    found = estimate(near, flow.plan)
    assert found is not None
    assert (found.runs, found.same, found.firings.median) == (1, True, 1)
    assert estimate(far, flow.plan) is None
    for each in (near, far):
        assert set(each.pages) == {200}
        assert len(each.pages) == 50


def test_an_estimate_stops_where_enough_is_read():
    flow, journal = named("mine"), MemoryJournal()
    for number in range(30):
        flow.invoke({"n": number}, journal=journal)
    read = list[str]()

    class Seen:
        runs = journal.runs

        def entries(self, run_id: str, /) -> Sequence[Entry]:
            read.append(run_id)
            return journal.entries(run_id)

    found = estimate(Seen(), flow.plan)
    assert found is not None
    assert found.runs == len(read) == 20
