"""A firing that ends a round and the round itself: one row, which reads as the two entries that
were appended.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil import RootGraph, Schema
from axil.plugin import APPEND, Field, JournalError
from axil_journals import (
    Entry,
    EntryRow as Row,
    entry_row as row_of,
    joined_row as joined,
    row_entries as entries_of,
)
from axil_sqlite import SqliteJournal

ROUNDS = 6


def turning() -> RootGraph:
    """Return one node that leads back to itself."""
    schema = Schema(
        "log",
        {"n": Field("n", default=int), "log": Field("log", APPEND, default=list)},
        closed=True,
    )

    async def more(state: Any) -> dict[str, Any]:
        return {"n": state["n"] + 1, "log": ["m" * 100]}

    graph = RootGraph("turning", state=schema, cycles="allow")
    graph.create_node(more, name="more")
    graph.edge_from_entry("more")
    graph.create_edge("more", "more", when=lambda state: state["n"] < ROUNDS)
    graph.edge_to_exit("more", when=lambda state: state["n"] >= ROUNDS)
    graph.build()
    return graph


def kinds(journal: SqliteJournal) -> list[str]:
    return [entry.kind for entry in journal.entries("r")]


@pytest.fixture(params=["full", "normal"])
def turned(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    journal = SqliteJournal(tmp_path, sync=request.param)
    result = asyncio.run(turning().run(journal=journal, run_id="r"))
    assert len(result.attributes["log"]) == ROUNDS
    yield journal
    journal.close()


def test_what_a_round_has_written_is_kept_once_and_read_as_two_entries(turned):
    [(rows,)] = turned.query("select count(*) from entries")
    assert rows == 1 + ROUNDS + 1 + 1
    assert kinds(turned) == ["run", *["done", "round"] * ROUNDS, "done", "ended"]
    assert [seq for seq, _ in turned.read("r")] == list(range(2 * ROUNDS + 3))
    first, round = turned.entries("r")[1:3]
    assert (first.frame, first.node, round.frame, round.node) == (
        ("cycle(more)", 0),
        "more",
        (),
        "cycle(more)",
    )
    assert first.data["delta"] == round.data["changes"] == {"n": 1, "log": ["m" * 100]}
    assert [[*first.data["sends"][0], []]] == round.data["returns"]
    assert turned.examine() == []


@pytest.mark.parametrize("at", range(1, 2 * ROUNDS + 3))
def test_a_run_that_is_cut_anywhere_goes_on_from_there(turned, at):
    before = list(turned.read("r"))
    turned.cut("r", at)
    assert list(turned.read("r")) == before[:at]
    again = asyncio.run(turning().resume("r", journal=turned))
    assert (again.status, again.attributes["n"], len(again.attributes["log"])) == (
        "done",
        ROUNDS,
        ROUNDS,
    )


def test_only_what_is_superseded_goes_and_a_row_goes_whole(tmp_path):
    journal = SqliteJournal(tmp_path, sync="normal", detail=3)
    asyncio.run(turning().run(journal=journal, run_id="r"))
    assert kinds(journal) == ["run", *["done", "round"] * 3, "done", "ended"]
    bare = SqliteJournal(tmp_path / "bare", sync="normal", detail=0)
    asyncio.run(turning().run(journal=bare, run_id="r"))
    assert kinds(bare) == ["run", "done", "ended"]
    journal.close()
    bare.close()


# ------------------------------------------------------------------------------------------------ a

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.0, -0.0, 1.0, 1.5])
    | st.sampled_from(["", "x", "\ud800", "é"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
)
tables = st.dictionaries(st.sampled_from("xyz"), values, max_size=2)
sends = st.lists(
    st.tuples(st.sampled_from(["e", "f"]), values, st.none() | tables).map(list), max_size=3
)
orders = st.sampled_from([(), (0,), (1, 2)])
left = st.lists(
    st.tuples(st.sampled_from(["e", "f"]), values, st.none() | tables, orders.map(list)).map(list),
    max_size=1,
)


def exactly(entries: list[tuple[int, Entry]]) -> list[tuple[int, str]]:
    return [
        (seq, repr((entry.kind, entry.activation, sorted(entry.data.items()))))
        for seq, entry in entries
    ]


@given(st.data())
def test_whatever_was_joined_comes_back_as_it_was(data):
    def either(mine: Any, other: Any) -> Any:
        return mine if data.draw(st.booleans()) else data.draw(other)

    delta, used, sent, ordinal = (
        data.draw(tables),
        data.draw(tables),
        data.draw(sends),
        data.draw(orders),
    )
    done = Entry(
        "done", ("c", 7), "a", ordinal, {"delta": delta, "sends": sent, "at": 1.5, "used": used}
    )
    back = [[*each, list(either(ordinal, orders))] for each in sent]
    half = data.draw(st.integers(0, len(back)))
    said = {
        "round": 7,
        "changes": either(delta, tables),
        "exits": either(back[:half], left),
        "returns": either(back[half:], left),
    }
    round = Entry(
        "round", (), "c", (), {**said, "end": "", "at": 1.75, "used": either(used, tables)}
    )
    row = joined(row_of(4, done), done, round)
    if row is not None:
        assert exactly(entries_of(row, row.crc, "r")) == exactly([(4, done), (5, round)])


def test_what_says_the_same_is_joined_and_what_only_equals_it_is_not():
    def of(value: Any, ordinal: Any = ()) -> tuple[Entry, Entry]:
        done = Entry(
            "done",
            ("c", 0),
            "a",
            (),
            {"delta": {"n": 1}, "sends": [["e", 1, None]], "at": 1.0, "used": {}},
        )
        reported = {
            "round": 0,
            "changes": {"n": value},
            "exits": [],
            "returns": [["e", value, None, list(ordinal)]],
            "end": "",
            "at": 1.0,
            "used": {},
        }
        return done, Entry("round", (), "c", (), reported)

    assert joined(row_of(0, of(1)[0]), *of(1)) is not None
    for other in (of(True), of(1.0), of(2), of(1, (3,))):
        assert joined(row_of(0, other[0]), *other) is None


def test_a_row_of_two_that_was_changed_is_believed_in_no_part(turned):
    with turned.writer.lock:  # its thread may still be letting go of the run
        connection = turned.writer.store.connection
        (seq,) = connection.execute(
            "select min(seq) from entries where body like '%+round%'"
        ).fetchone()
        connection.execute(
            "update entries set body = replace(body, '\"at\":', '\"at\":1') where seq = ?", (seq,)
        )
    with pytest.raises(JournalError, match="AX511"):
        turned.entries("r")
    [damage] = turned.examine()
    assert damage.good == seq - 1


def test_a_row_of_two_is_read_as_it_was_first_written():
    """As databases of users have it; it is never changed again."""
    body = (
        '{"delta":{"n":1},"sends":[["more->more",{"x":2},null]],"at":0.5,"used":{"firings":1},'
        '"+round":{"who":[[],"cycle(more)",[]],"round":0,"end":"","at":0.75,'
        '"exits":[],"returns":[0]}}'
    )
    row = Row(2, "done", '[["cycle(more)",0],"more",[]]', body)
    written = {"sends": [["more->more", {"x": 2}, None]], "at": 0.5, "used": {"firings": 1}}
    left = {
        "exits": [],
        "returns": [["more->more", {"x": 2}, None, []]],
        "end": "",
        "at": 0.75,
        "used": {"firings": 1},
    }
    assert entries_of(row, 3867254219, "r") == [
        (1, Entry("done", ("cycle(more)", 0), "more", (), {"delta": {"n": 1}, **written})),
        (2, Entry("round", (), "cycle(more)", (), {"round": 0, "changes": {"n": 1}, **left})),
    ]
