"""Built-in reducers: results, composition, and how to write one."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given, settings, strategies as st

from axil import MISSING, AxilError, Reducer, Schema, SpecError
from axil.plugin import APPEND, OVERWRITE, InvalidValue, Log, Registry, use_registry
from axil.typed.reducers import (
    APPEND_MESSAGES,
    BUILT_IN,
    MAXIMUM,
    MERGE,
    MINIMUM,
    SUM,
    UNION,
    as_reducer,
    message_id,
    named,
    reducer,
    register_strategy,
)

# a failure prints how to repeat it; no law is about seconds
law = settings(deadline=None, print_blob=True)
whole_numbers = st.integers(-5, 5)
messages = st.lists(
    st.fixed_dictionaries({"content": st.text(max_size=2)}, optional={"id": st.integers(0, 3)}),
    max_size=4,
)
DELTAS: dict[str, st.SearchStrategy[object]] = {
    "overwrite": whole_numbers,
    "append": st.lists(whole_numbers, max_size=3),
    "append_messages": messages,
    "sum": whole_numbers,
    "union": st.sets(whole_numbers, max_size=3),
    "merge": st.dictionaries(st.sampled_from("abc"), whole_numbers),
    "maximum": whole_numbers | st.just(math.nan),
    "minimum": whole_numbers | st.just(math.nan),
}
any_reducer = st.sampled_from(sorted(BUILT_IN)).flatmap(
    lambda name: st.tuples(st.just(BUILT_IN[name]), st.lists(DELTAS[name], min_size=1))
)


def one_by_one(reducer: Reducer, old: object, deltas: list[object]) -> object:
    for delta in deltas:
        old = reducer.reduce(old, delta)
    return old


def alike(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)


@law
@given(any_reducer, st.data())
def test_composed_deltas_do_what_they_do_one_by_one(chosen, data):
    reducer, deltas = chosen
    start = data.draw(
        st.sampled_from([MISSING, reducer.reduce(MISSING, data.draw(DELTAS[reducer.name]))])
    )
    at = data.draw(st.integers(0, len(deltas) - 1))
    composed = deltas[at]
    for delta in deltas[at + 1 :]:
        composed = reducer.compose(composed, delta)
    apart = one_by_one(reducer, start, deltas)
    together = one_by_one(reducer, start, [*deltas[:at], composed])
    assert alike(apart, together)


@law
@given(any_reducer)
def test_many_deltas_at_once_do_what_they_do_one_by_one(chosen):
    reducer, deltas = chosen
    assert alike(reducer.fold(MISSING, deltas), one_by_one(reducer, MISSING, deltas))


@law
@given(any_reducer, st.data())
def test_a_built_in_reducer_changes_neither_what_was_there_nor_what_is_written(chosen, data):
    reducer, deltas = chosen
    old = reducer.reduce(MISSING, data.draw(DELTAS[reducer.name]))
    shown = [list(old) if isinstance(old, Log) else old, *deltas]
    before = copy.deepcopy(shown)
    for delta in deltas:
        reducer.reduce(old, delta)
        reducer.compose(delta, delta)
    after = [list(old) if isinstance(old, Log) else old, *deltas]
    assert all(alike(a, b) for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"overwrite"}))
def test_nothing_written_yet_and_none_are_nothing_to_add_to(name):
    delta = {"append": [1], "append_messages": [{"id": 1}], "union": {1}, "merge": {"a": 1}}.get(
        name, 3
    )
    assert BUILT_IN[name].reduce(MISSING, delta) == delta
    assert BUILT_IN[name].reduce(None, delta) == delta


def test_none_is_a_value_to_overwrite_with():
    assert OVERWRITE.reduce(1, None) is None


@pytest.mark.parametrize(
    ("reducer", "delta"),
    [
        (SUM, "1"),
        (SUM, None),
        (SUM, [1]),
        (UNION, [1]),
        (UNION, "ab"),
        (MERGE, [("a", 1)]),
        (MAXIMUM, "a"),
        (MINIMUM, {}),
    ],
    ids=lambda value: getattr(value, "name", repr(value)),
)
def test_a_delta_of_the_wrong_kind_is_refused(reducer, delta):
    with pytest.raises(InvalidValue, match=reducer.name):
        reducer.reduce({1} if reducer is UNION else {} if reducer is MERGE else 1, delta)


def test_numbers_that_cannot_be_added_are_an_error_that_names_the_reducer():
    from decimal import Decimal

    with pytest.raises(InvalidValue, match="sum cannot take"):
        SUM.reduce(Decimal(1), 0.5)


def test_a_frozen_set_stays_frozen_and_a_set_stays_a_set():
    assert type(UNION.reduce(frozenset({1}), {2})) is frozenset
    assert type(UNION.reduce({1}, frozenset({2}))) is set


# --------------------------------------------------------------------------------------------------


def append(old, new):
    return APPEND_MESSAGES.reduce(old, new)


def test_a_message_whose_id_is_there_is_left_out():
    assert append(Log([{"id": "1", "content": "old"}]), [{"id": "1", "content": "new"}]) == [
        {"id": "1", "content": "old"}
    ]


def test_of_new_messages_with_one_id_the_first_stays():
    assert append(MISSING, [{"id": 1, "n": 1}, {"id": 1, "n": 2}, {"id": 2, "n": 3}]) == [
        {"id": 1, "n": 1},
        {"id": 2, "n": 3},
    ]


def test_a_message_without_an_id_is_always_appended():
    assert append([{"content": "x"}], [{"content": "x"}, {"content": "x", "id": None}]) == [
        {"content": "x"},
        {"content": "x"},
        {"content": "x", "id": None},
    ]


class Message:
    def __init__(self, **fields):
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("message", "id"),
    [
        ({"id": 1, "msg_id": 2}, 1),
        ({"id": None, "msg_id": 2}, 2),
        ({}, None),
        (Message(id=1), 1),
        (Message(msg_id="m"), "m"),
        (Message(), None),
    ],
)
def test_an_id_is_the_key_or_attribute_id_else_msg_id(message, id):
    assert message_id(message) == id


@pytest.mark.parametrize("wrong", ["hi", None, {"role": "user"}, Message(id=1), 3, {"a"}])
def test_messages_come_in_a_list(wrong):
    with pytest.raises(InvalidValue, match="list of messages") as caught:
        append(MISSING, wrong)
    assert "[message]" in str(caught.value)


@pytest.mark.parametrize("wrong", ["hi", None, 3])
def test_what_is_in_the_list_is_a_message(wrong):
    with pytest.raises(InvalidValue, match="position 1"):
        append(MISSING, [{"content": "x"}, wrong])


def test_an_id_that_cannot_be_looked_up_is_refused():
    with pytest.raises(InvalidValue, match="id of the message at position 0"):
        append(MISSING, [{"id": []}])


def test_a_log_that_gains_nothing_stays_the_same_object():
    log = Log([{"id": 1}])
    assert append(log, [{"id": 1}]) is log


def test_appending_a_message_reads_each_earlier_id_once_however_long_the_list(monkeypatch):
    asked = 0

    def counted(message):
        nonlocal asked
        asked += 1
        return message_id(message)

    has = Log.has
    monkeypatch.setattr(Log, "has", lambda self, key, key_of: has(self, key, counted))
    log = MISSING
    for number in range(500):
        log = append(log, [{"id": number}])
    assert len(log) == 500
    assert asked <= 500


# --------------------------------------------------------------------------------------------------


def test_a_function_that_changes_old_in_place_gets_a_copy_of_its_own():
    @reducer
    def extend(old, new):
        old = [] if old is MISSING else old
        old.extend(new)
        return old

    before, delta = [1], [2]
    assert extend.fold(before, [delta, [3]]) == [1, 2, 3]
    assert (before, delta) == ([1], [2])


def test_an_associative_function_composes_without_changing_recorded_deltas():
    @reducer("extend", associative=True)
    def extend(old, new):
        old.extend(new)
        return old

    first, second = [1], [2]
    assert extend.compose(first, second) == [1, 2]
    assert (first, second) == ([1], [2])


def test_a_reducer_is_named_by_its_function_by_default():
    assert reducer(max).name == "max"
    assert reducer("biggest", pure=True)(max).name == "biggest"


@pytest.mark.parametrize("wrong", [lambda old: old, lambda: 0, lambda a, b, c: 0, 3, "text"])
def test_what_cannot_take_old_and_new_is_no_reducer(wrong):
    with pytest.raises(SpecError, match="AX151"):
        as_reducer(wrong, "wrong")


def test_what_has_to_be_awaited_is_no_reducer():
    async def later(old, new): ...

    with pytest.raises(SpecError, match="AX151"):
        reducer(later)


def test_built_in_reducers_are_found_by_name():
    assert named("append") is APPEND
    assert [named(name).name for name in BUILT_IN] == list(BUILT_IN)


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(
        SpecError, match=r"AX150.*append_messages.*Did you mean \"append\""
    ) as caught:
        named("apend")
    assert len(caught.value.problems) == 1


def test_a_registered_strategy_is_known_to_every_schema():
    from axil.typed.schema import generate_state_schema

    with use_registry(Registry(entry_points=())):

        @register_strategy("test.longest", associative=True)
        def longest(old, new):
            return new if old is MISSING or len(new) > len(old) else old

        schema = generate_state_schema([("word", "str", "test.longest")])
    assert isinstance(schema, Schema)
    assert schema.fields["word"].reducer is longest


def test_a_name_is_registered_once():
    with use_registry(Registry(entry_points=())):
        register_strategy("test.twice")(max)
        with pytest.raises(AxilError, match=r"test\.twice"):
            register_strategy("test.twice")(min)


def test_the_name_of_a_built_in_reducer_is_taken():
    with pytest.raises(SpecError, match="built in"):
        register_strategy("sum")(max)
