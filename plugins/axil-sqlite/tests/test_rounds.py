"""Rounds of cycles that interleave: a round shares a row only with a firing of that round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil import Graph, Result, RootGraph, node
from axil_journals import (
    Entry,
    MemoryJournal,
    entry_row as row_of,
    joined_row as joined,
    row_entries as entries_of,
)
from axil_sqlite import SqliteJournal
from axil_sqlite.journal import SqliteRunWriter

KEYS = {"x": ""}
Make = Callable[[list[str]], RootGraph]


def body(ran: list[str]) -> Callable[..., Any]:
    """Return the body of a node that notes its firing and passes on its input.

    It is inline, so that the rounds of two cycles interleave.
    """

    @node(inline=True)
    def forward(inputs: Any, ctx: Any) -> dict[str, Any]:
        ran.append(str(ctx.activation))
        return {"x": inputs["x"]}

    return forward


def add_cycle(graph: RootGraph, name: str, ran: list[str], **more: Any) -> None:
    """Add a cycle of a node and a graph: one round, and no token leaves it."""
    inner = Graph(f"{name}G")
    inner.create_node(body(ran), name="literal")
    inner.edge_from_entry("literal", keys=KEYS)
    inner.edge_to_exit("literal", keys=KEYS)
    graph.create_node(body(ran), name=name, **more)
    graph.create_node(inner)
    graph.create_edge(name, inner, keys=KEYS)
    graph.create_edge(inner, name, keys=KEYS, when=lambda payload: payload["x"] == "AGAIN")


def two_cycles(ran: list[str]) -> RootGraph:
    """Return a graph in which ``S`` enters two cycles, which run side by side."""
    graph = RootGraph("two-cycles", cycles="allow")
    graph.create_node(body(ran), name="S")
    graph.edge_from_entry("S", keys=KEYS)
    graph.edge_to_exit("S", keys=KEYS)
    for name in "AB":
        add_cycle(graph, name, ran)
        graph.create_edge("S", name, keys=KEYS)
    graph.build()
    return graph


def two_visits(ran: list[str]) -> RootGraph:
    """Return a graph in which ``S`` and ``T`` enter one cycle, each in its own visit."""
    graph = RootGraph("two-visits", cycles="allow")
    add_cycle(graph, "A", ran, join="each")
    for name in "ST":
        graph.create_node(body(ran), name=name)
        graph.edge_from_entry(name, keys=KEYS)
        graph.edge_to_exit(name, keys=KEYS)
        graph.create_edge(name, "A", keys=KEYS)
    graph.build()
    return graph


def run(make: Make, journal: Any) -> tuple[Result, list[str]]:
    """Run, or continue, the run ``r``; return its result and the activations whose bodies ran."""
    ran: list[str] = []
    result = asyncio.run(make(ran).run({"x": 1}, journal=journal, run_id="r"))
    return result, ran


def outcome(result: Result) -> tuple[Any, ...]:
    left = result.output, result.attributes, result.exits
    return (result.status, *left, result.usage.firings, result.cycles)


@pytest.mark.parametrize("make", [two_cycles, two_visits])
@pytest.mark.parametrize("detail", [10_000, 1, 0])
def test_interleaved_rounds_do_the_same_on_any_journal(journal, tmp_path, make: Make, detail: int):
    update = {"detail": detail, "folder": tmp_path / "detail"}
    kept = SqliteJournal(journal.config.model_copy(update=update))
    plain, ran = run(make, None)
    assert plain.status == "done"
    for other in (MemoryJournal(), kept):
        result, again = run(make, other)
        assert (outcome(result), sorted(again)) == (outcome(plain), sorted(ran))
    assert kept.examine() == []
    kept.close()


@pytest.mark.parametrize("make", [two_cycles, two_visits])
def test_interleaved_rounds_are_read_as_they_were_appended(journal, monkeypatch, make: Make):
    appended: list[Entry] = []
    append = SqliteRunWriter.append

    def noted(writer: SqliteRunWriter, entry: Entry) -> None:
        append(writer, entry)
        appended.append(entry)

    monkeypatch.setattr(SqliteRunWriter, "append", noted)
    run(make, journal)
    assert list(journal.entries("r")) == appended
    assert [entry.kind for entry in appended].count("round") == 2


@pytest.mark.parametrize("make", [two_cycles, two_visits])
def test_interleaved_rounds_resume_from_every_prefix(tmp_path: Path, make: Make):
    whole, ran = run(make, None)
    at, is_over = 0, False
    while not is_over:
        at += 1
        journal = SqliteJournal(tmp_path / str(at), sync="normal")
        run(make, journal)
        is_over = at >= len(journal.entries("r"))
        journal.cut("r", at)
        known = {str(entry.activation) for entry in journal.entries("r") if entry.kind == "done"}
        result, again = run(make, journal)
        assert outcome(result) == outcome(whole)
        assert sorted(again) == sorted(set(ran) - known)
        assert journal.examine() == []
        journal.close()


# ---------------------------------------------------------------------------------------- rows


def done(frame: Any) -> Entry:
    data: dict[str, Any] = {"delta": {}, "sends": [], "at": 1.0, "used": {}}
    return Entry("done", frame, "AG", (), data)


def round_of(frame: Any, cycle: str, number: int, ordinal: Any = ()) -> Entry:
    data: dict[str, Any] = {"round": number, "changes": {}, "exits": [], "returns": []}
    return Entry("round", frame, cycle, ordinal, {**data, "end": "natural", "at": 1.0, "used": {}})


@pytest.mark.parametrize(
    ("frame", "ordinal"),
    [((), ()), (("sub",), ()), (("c", 2), ()), ((), (1,)), (("sub", "#1.0", "c", 2), (0, -2, 1))],
)
def test_a_round_is_joined_with_a_firing_in_its_own_frame(frame: Any, ordinal: Any):
    visit = ("c", "#" + ".".join(map(str, ordinal))) if ordinal else ("c",)
    first, second = done((*frame, *visit, 3)), round_of(frame, "c", 3, ordinal)
    row = joined(row_of(4, first), first, second)
    assert row is not None
    assert entries_of(row, row.crc, "r") == [(4, first), (5, second)]


@pytest.mark.parametrize(
    "frame",
    [
        (),  # no cycle at all
        ("c",),
        ("d", 3),  # another cycle
        ("c", 2),  # another round
        ("c", "#1", 3),  # another visit
        ("sub", "c", 3),  # the cycle of this name in another graph
        ("c", 3, "sub"),  # a graph in this round
        ("c", 3, "e", 3),  # a cycle in this round
    ],
)
def test_a_round_is_not_joined_with_a_firing_in_another_frame(frame: Any):
    other = done(frame)
    assert joined(row_of(0, other), other, round_of((), "c", 3)) is None


@pytest.mark.parametrize("frame", [("d", 0), ("c", 1), ("c", "#1", 0), ("c", 0, "sub"), ()])
def test_a_round_behind_a_firing_in_another_frame_has_its_own_row(journal, frame: Any):
    entries = [Entry("run"), done(("c", 0)), done(frame), round_of((), "c", 0)]

    async def go() -> None:
        writer = journal.open("r")
        for entry in entries:
            writer.append(entry)
        await writer.kept()
        writer.close()

    asyncio.run(go())
    assert list(journal.read("r")) == list(enumerate(entries))
    [(rows,)] = journal.query("select count(*) from entries")
    assert rows == len(entries)
    # A writer that is opened later leaves out exactly what the round supersedes.
    expected = [entry for entry in entries if entry.frame[:2] != ("c", 0)]
    assert list(journal.open("r").entries) == expected
