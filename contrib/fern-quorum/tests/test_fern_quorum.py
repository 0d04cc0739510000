"""It fires as soon as enough has come: alone, in a file, in a loop, and where a run goes on."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import axil
import axil_files
import axil_journals
from axil.plugin import make_component
from axil_sqlite import SqliteJournal
from axil_testing import VirtualClock
from axil_testing.kit import JoinKit
from fern_quorum import Quorum

EXAMPLES = Path(__file__).parent.parent / "examples"


class TestQuorum(JoinKit):
    component = Quorum
    config = {"of": 2}  # noqa: RUF012  # the kit's own attribute


class TestQuorumThatCancels(JoinKit):
    component = Quorum
    config = {"of": 2, "rest": "cancel"}  # noqa: RUF012  # as above


@pytest.mark.parametrize(
    ("counts", "answer"),
    [
        ((0, 0, 3), None),
        ((1, 0, 3), None),
        ((1, 1, 3), None),
        ((2, 0, 3), True),
        ((2, 1, 3), True),
        ((3, 0, 3), True),
        ((1, 2, 3), False),
        ((0, 2, 3), False),
        ((1, 0, 1), False),
    ],
)
def test_two_edges_are_enough_and_none_once_they_cannot_come(counts, answer):
    assert Quorum(Quorum.Config(of=2)).fires(*counts) is answer


@pytest.mark.parametrize("config", [{}, {"of": 0}, {"of": 1, "rest": "wait"}, {"k": 2}])
def test_what_is_no_setting_is_refused(config):
    with pytest.raises(axil.ConfigError):
        make_component(Quorum, config)


# ------------------------------------------------------------------------------------------- runs


def voter(name: str, seconds: float, log: list[str]) -> Any:
    async def vote(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        try:
            await ctx.sleep(seconds)
        except asyncio.CancelledError:
            log.append(f"{name} cancelled")
            raise
        log.append(name)
        return {name: "yes"}

    return vote


def vote(
    join: Any, seconds: dict[str, float], log: list[str], *, asks: bool = False
) -> axil.Workflow:
    graph = axil.RootGraph("vote")

    async def count(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        log.append(f"count {'+'.join(sorted(inputs))}")
        return {"votes": sorted(inputs)}

    async def close(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
        said = await ctx.ask("Is that all?") if asks else "yes"
        return {"votes": inputs["votes"], "said": said}

    counting = graph.create_node(count, name="count", join=join)
    closing = graph.create_node(close, name="close")
    for name, after in seconds.items():
        node = graph.create_node(voter(name, after, log), name=name)
        graph.edge_from_entry(node, {})
        graph.create_edge(node, counting, [name])
    graph.create_edge(counting, closing, ["votes"])
    graph.edge_to_exit(closing, ["votes", "said"])
    return graph.build()


def use(of: int, rest: str = "ignore") -> dict[str, Any]:
    return {"type": "quorum", "config": {"of": of, "rest": rest}}


def come_to(flow: axil.Workflow, **options: Any) -> axil.Result:
    async def run() -> axil.Result:
        return await flow.start({}, **{"clock": VirtualClock(), **options}).result()

    return asyncio.run(run())


VOTERS = {"a": 300.0, "b": 1.0, "c": 2.0}


def test_it_fires_with_those_that_came_first_and_the_others_go_on():
    log: list[str] = []
    result = come_to(vote(use(2), VOTERS, log))
    assert result.output["votes"] == ["b", "c"]
    assert log == ["b", "c", "count b+c", "a"]


def test_those_that_are_not_needed_are_cancelled_where_it_says_so():
    log: list[str] = []
    clock = VirtualClock()
    result = come_to(vote(use(2, "cancel"), VOTERS, log), clock=clock)
    assert result.output["votes"] == ["b", "c"]
    assert sorted(log) == ["a cancelled", "b", "c", "count b+c"]
    assert clock.now() == 2


def test_a_join_made_in_python_does_the_same():
    made = Quorum(Quorum.Config(of=1, rest="cancel"))
    assert come_to(vote(made, VOTERS, [])).output["votes"] == ["b"]


def test_more_than_there_are_edges_never_come():
    result = come_to(vote(use(4), VOTERS, log := []))
    assert (result.status, result.output) == ("done", {})
    assert sorted(log) == ["a", "b", "c"]


def test_a_file_says_how_many_are_enough():
    flow = axil_files.load(EXAMPLES / "flow.yaml")
    assert flow.invoke("hello")[0] == "hello"
    [count] = [node for node in flow.spec.nodes if node.id == "count"]
    assert count.join == axil.ComponentRef(type="quorum", config={"of": 2, "rest": "cancel"})


def test_the_example_in_python_runs():
    race: Callable[[], axil.Workflow] = runpy.run_path(str(EXAMPLES / "race.py"))["race"]
    assert come_to(race()).output == {"answer": "quick, after 0.1 seconds"}


@pytest.mark.parametrize("rest", ["ignore", "cancel"])
def test_in_a_loop_each_round_counts_anew(rest: str):
    graph = axil.RootGraph("loop", cycles="allow")
    taken: list[tuple[int, str]] = []

    def begin(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"n": inputs["n"] + 1}

    def after(seconds: float, by: str) -> Any:
        async def body(inputs: dict[str, Any], ctx: axil.Context) -> dict[str, Any]:
            await ctx.sleep(seconds if inputs["n"] % 2 else 10 - seconds)
            return {"n": inputs["n"], "by": by}

        return body

    def take(inputs: dict[str, Any]) -> dict[str, Any]:
        taken.append((inputs["n"], inputs["by"]))
        return {"n": inputs["n"]}

    start = graph.create_node(begin, name="start")
    taking = graph.create_node(take, name="take", join=use(1, rest))
    for name, seconds in (("a", 1.0), ("b", 8.0)):
        node = graph.create_node(after(seconds, name), name=name)
        graph.create_edge(start, node, ["n"])
        graph.create_edge(node, taking, ["n", "by"])
    graph.edge_from_entry(start, ["n"])
    graph.create_edge(taking, start, ["n"], when=lambda payload: payload["n"] < 4)
    graph.edge_to_exit(taking, ["n"], when=lambda payload: payload["n"] >= 4)
    flow = graph.build()

    async def run() -> axil.Result:
        return await flow.start({"n": 0}, clock=VirtualClock()).result()

    result = asyncio.run(run())
    assert (result.status, result.output["n"]) == ("done", 4)
    assert taken == [(1, "a"), (2, "b"), (3, "a"), (4, "b")]


# ------------------------------------------------------------------------------------ going on


@contextmanager
def on_disk(folder: Path, entries: Iterable[axil_journals.Entry]) -> Iterator[SqliteJournal]:
    """Give a journal that holds the run ``r``, as another process would find it.

    What is recorded here is recorded in memory: a database commits in a thread, and a virtual
    clock passes over the time that a thread takes.
    """
    journal = SqliteJournal(folder)
    try:
        book = journal.open("r")
        for entry in entries:
            book.append(entry)
        book.close()
        yield journal
    finally:
        journal.close()


def test_a_run_that_goes_on_fires_with_the_edges_that_were_recorded(tmp_path: Path):
    log: list[str] = []
    recorded = axil_journals.MemoryJournal()
    with_channel = {"run_id": "r", "channel": None}
    flow = vote(use(2), VOTERS, log, asks=True)
    paused = come_to(flow, journal=recorded, **with_channel)
    assert paused.status == "paused"
    [entry] = [e for e in recorded.entries("r") if e.kind == "done" and e.node == "count"]
    assert sorted(entry.data["took"]) == ["b->count", "c->count"]
    with on_disk(tmp_path, recorded.entries("r")) as journal:
        # another process, in which "a" would be the fastest
        again: list[str] = []
        flow = vote(use(2), {"a": 0.0, "b": 5.0, "c": 9.0}, again, asks=True)
        answers = {paused.questions[0].id: "yes"}
        result = come_to(flow, journal=journal, resuming=True, answers=answers, **with_channel)
        assert result.output == {"votes": ["b", "c"], "said": "yes"}
        assert "count b+c" not in again


@pytest.mark.parametrize("rest", ["ignore", "cancel"])
def test_a_run_that_was_cut_off_anywhere_comes_to_what_was_recorded(rest: str, tmp_path: Path):
    whole = axil_journals.MemoryJournal()
    flow = vote(use(2, rest), VOTERS, [])
    assert come_to(flow, journal=whole, run_id="r").output["votes"] == ["b", "c"]
    entries = list(whole.entries("r"))
    places = [n for n, e in enumerate(entries) if e.kind == "done" and e.node == "count"]
    for cut in range(1, len(entries)):
        with on_disk(tmp_path / str(cut), entries[:cut]) as journal:
            turned = vote(use(2, rest), {"a": 1.0, "b": 2.0, "c": 300.0}, log := [])
            result = come_to(turned, journal=journal, run_id="r", resuming=True)
        assert result.status == "done"
        if places and cut > places[0]:
            assert result.output["votes"] == ["b", "c"]
            assert not any(line.startswith("count") for line in log)
        else:
            assert len(result.output["votes"]) == 2
