"""A journal keeps values exactly, and refuses those that it cannot keep.

Nothing in it runs again.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from axil import MISSING, Activation, Schema
from axil.plugin import APPEND, Field, FieldChange, JournalError, Log
from axil_journals import (
    Entry,
    MemoryJournal,
    ReplayIndex,
    decode_delta,
    decode_value,
    encode_delta,
    encode_value,
)
from axil_journals.memory import _StoredRun
from axil_testing.specs import write, written

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))  # lone surrogates too
    | st.binary(max_size=8)
    | st.just(MISSING)
)
hashable = st.recursive(
    scalars.filter(lambda v: v == v), lambda inner: st.tuples(inner, inner), max_leaves=4
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4) | st.just("@"), inner, max_size=4)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.frozensets(hashable, max_size=3)
        | st.lists(inner, max_size=3).map(Log)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal and of one type, all the way down; NaN is itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    if isinstance(a, (list, tuple, Log)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(k, m) and same(v, w) for (k, v), (m, w) in zip(a.items(), b.items(), strict=True)
        )
    return a == b


@settings(deadline=None, print_blob=True, max_examples=400)
@given(values)
def test_what_is_encoded_is_json_and_is_decoded_as_it_was(value):
    written = json.dumps(encode_value(value), allow_nan=False)
    assert same(decode_value(json.loads(written)), value)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        -0.0,
        2**53,
        -(2**53),
        10**5000,
        "\ud800 alone",
        b"\x00\xff",
        {"@": "tuple"},
        {1: "a", "1": "b"},
        {None: 1},
        {(1, 2): {3}},
        ((), [], {}, set()),
        True,
        Log([1, {"a": 2}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_would_change_survives(value):
    assert same(decode_value(json.loads(json.dumps(encode_value(value)))), value)


class Text(str):
    pass


class Number(int):
    pass


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Text("a"),
        Number(1),
        {"a": [object()]},
        lambda: 0,
        1j,
        range(3),
        {1: object()},
        Exception("x"),
    ],
)
def test_what_cannot_be_kept_exactly_is_refused_with_its_type(value):
    with pytest.raises(JournalError) as error:
        encode_value(value)
    assert error.value.id == "AX501"


def test_nesting_deeper_than_two_hundred_is_refused_and_never_a_recursion_error():
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert decode_value(encode_value(value)) == value
    for _ in range(10_000):
        value = {"a": value}
    with pytest.raises(JournalError) as error:
        encode_value(value)
    assert error.value.id == "AX502"


TYPED = Schema(
    "s",
    {
        "when": Field("when", encode=lambda v: v.real, decode=lambda d: complex(d, 0)),
        "log": Field("log", APPEND),
    },
)


def test_a_typed_field_is_written_and_read_by_its_schema():
    delta = {"when": complex(2, 0), "log": [1]}
    plain = encode_delta(delta, TYPED)
    assert plain == {"when": 2.0, "log": [1]}
    assert decode_delta(json.loads(json.dumps(plain)), TYPED) == delta


def test_a_value_that_is_refused_is_refused_with_the_name_of_its_field():
    with pytest.raises(JournalError, match='field "x"'):
        encode_delta({"x": object()}, Schema())


def test_a_change_keeps_its_reset_and_its_deltas():
    change = FieldChange(([1], [2]), reset=Log([0]))
    back = decode_delta(encode_delta({"log": change}, TYPED), TYPED)["log"]
    assert isinstance(back, FieldChange)
    assert (list(back.deltas), back.reset) == ([[1], [2]], Log([0]))


def test_what_a_node_keeps_is_encoded_by_what_was_appended_since():
    said = Log(["a", {"b": 1}])
    since = Schema().start({"@kept/n": {"turn": 1, "said": {"x": said, "y": Log()}}})
    grown = said.extended(["c", ("d",)])
    delta = {"@kept/n": {"turn": 2, "said": {"x": grown, "y": Log(["e"]), "z": Log()}}}
    plain = json.loads(json.dumps(encode_delta(delta, Schema(), since)))
    assert plain["@kept/n"]["said"]["x"] == {
        "@": "grown",
        "after": 2,
        "v": ["c", {"@": "tuple", "v": ["d"]}],
    }
    back = decode_delta(plain, Schema(), since)
    assert back == delta
    assert back["@kept/n"]["said"]["x"].extends(said)


def test_what_the_state_shows_is_encoded_whole():
    """Migrations are given it."""
    log = Log([1])
    plain = encode_delta({"log": log.extended([2])}, Schema(), {"log": log})
    assert decode_delta(plain, Schema()) == {"log": [1, 2]}


@pytest.mark.parametrize("other", [Log(["a", "b"]), ["a"], None])
def test_what_was_appended_to_another_list_is_refused(other):
    said = Log(["a"])
    plain = encode_delta({"@kept/n": said.extended(["c"])}, Schema(), {"@kept/n": said})
    with pytest.raises(JournalError, match="continues a list of 1 items") as caught:
        decode_delta(plain, Schema(), {"@kept/n": other})
    assert caught.value.id == "AX526"


# ------------------------------------------------------------------------------------------------ t


def done(frame, node, ordinal=(), **data) -> Entry:
    return Entry("done", frame, node, ordinal, data)


def test_entries_come_back_in_the_order_they_were_appended_and_runs_do_not_mix():
    entries = [Entry("run"), done((), "b"), done((), "a")]
    journal = written(entries, "one")
    write(journal, [Entry("run")], "two")
    assert list(journal.entries("one")) == entries
    assert {info.run_id for info in journal.runs()} == {"one", "two"}
    assert list(journal.entries("nobody")) == []


def test_what_a_finished_scope_did_inside_is_dropped():
    journal = written(
        [done(("sub",), "w"), done(("sub", "deep"), "x"), done(("other",), "w"), done((), "sub")]
    )
    assert [str(e.activation) for e in journal.entries("r")] == ["other/w", "sub"]


def test_what_a_finished_round_did_inside_is_dropped_and_what_the_next_does_is_kept():
    journal = written(
        [done(("c", 0), "a"), done(("c", 1), "a"), Entry("round", (), "c", (), {"round": 0})]
    )
    assert [str(e.activation) for e in journal.entries("r")] == ["c/1/a", "c"]


def test_one_firing_of_a_scope_drops_nothing_of_another():
    journal = written([done(("sub", "#1"), "w"), done(("sub",), "w"), done((), "sub")])
    assert [str(e.activation) for e in journal.entries("r")] == ["sub/#1/w", "sub"]
    write(journal, [done((), "sub", (1,))])
    assert [str(e.activation) for e in journal.entries("r")] == ["sub", "sub#1"]


def test_a_replay_finds_facts_by_activation():
    who = Activation(("c", 1), "a")
    reported = {"call": 1, "value": 3.5, "at": 3.5}
    replay = ReplayIndex(
        [
            Entry("run", data={"inputs": {}}),
            done(who.frame, who.node, at=2.0),
            Entry("clock", who.frame, who.node, (), reported),
            Entry("slept", who.frame, who.node, (), {"call": 2, "until": 9.0}),
            Entry(
                "step",
                who.frame,
                who.node,
                (),
                {"name": "fetch", "value": {"@": "tuple", "v": [1]}},
            ),
            Entry("asked", who.frame, who.node, (), {"id": "q", "text": "?"}),
            Entry("answer", data={"id": "q", "value": "yes"}),
        ]
    )
    assert replay.done[who].data == {"at": 2.0}
    assert replay.clock[who, 1] == 3.5
    assert replay.slept[who, 2] == 9.0
    assert decode_value(replay.steps[who, "fetch"]["value"]) == (1,)
    assert (set(replay.asked), replay.answers, replay.elapsed) == ({"q"}, {"q": "yes"}, 3.5)
    assert replay.header is not None


def test_the_runs_of_a_journal_in_memory_may_be_asked_for_while_others_begin(monkeypatch):
    journal = MemoryJournal()
    for name in "ab":
        journal.open(name).append(Entry("run"))
    reported = _StoredRun.info

    def meanwhile(self: _StoredRun, run_id: str) -> Any:
        journal.open(f"after {run_id}").append(Entry("run"))  # as another thread does
        return reported(self, run_id)

    monkeypatch.setattr(_StoredRun, "info", meanwhile)
    assert {info.run_id for info in journal.runs()} == {"a", "b"}
