"""Typed fields: what they accept and hold, and how their values come back from a journal."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
import typing_extensions
from hypothesis import given, settings, strategies as st
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from axil import MISSING, NodeFailed, RootGraph, Schema, State
from axil.errors import InvalidValue, JournalError, UndeclaredField
from axil.plugin import Log
from axil.typed.reducers import reducer
from axil.typed.schema import generate_state_schema, schema_of
from axil_journals import decode_delta, encode_delta

# a failure prints how to repeat it; no law is about seconds
law = settings(deadline=None, print_blob=True)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Message(BaseModel):
    id: str | None = None
    content: str = ""
    meta: dict[str, Any] = {}


class Inner(TypedDict):
    k: int
    note: NotRequired[str]


class Portable(typing_extensions.TypedDict):
    n: int


@reducer("keep_first", pure=True)
def keep_first(old, new):
    return new if old is MISSING else old


def written(model: Any, **values: Any) -> State:
    """Return a new state of ``model`` with one write."""
    schema = model if isinstance(model, Schema) else schema_of(model)
    return schema.start().apply(schema.check(values))


# --------------------------------------------------------------------------------------------------


class Typed(BaseModel):
    n: int = 0
    color: Color = Color.RED
    choice: Literal["a", "b"] = "a"
    when: datetime | None = None
    inner: Message = Message()
    up: Annotated[str, BeforeValidator(str.strip), StringConstraints(to_upper=True)] = ""
    cap: Annotated[list[int], "append", Field(max_length=3)] = []
    total: Annotated[int, "sum", Field(ge=0)] = 0
    log: Annotated[list[str], "append"]
    even: int = 0
    names: Annotated[list[str], "append"] = []

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    @field_validator("names", mode="before")
    @classmethod
    def _in_a_list(cls, value: Any) -> Any:
        return value

    @model_validator(mode="after")
    def _never(self) -> Typed:
        raise AssertionError("validators of the whole model are not run")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"n": "5"}, 5), ({"color": "blue"}, Color.BLUE), ({"when": "2026-01-02"}, datetime(2026,
        1, 2)), ({"choice": "b"}, "b"),
        ({"inner": {"content": "x"}}, Message(content="x")), ({"up": " abc "}, "ABC"),
        ({"total": "3"}, 3),
        ({"log": ("a", "b")}, ["a", "b"]), ({"even": 4}, 4),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_is_validated_laxly_into_its_type(given, stored):
    [(name, _)] = given.items()
    assert written(Typed, **given)[name] == stored


@pytest.mark.parametrize(
    "given",
    [
        {"n": "five"},
        {"color": "green"},
        {"choice": "c"},
        {"inner": {"content": []}},
        {"log": "abc"},
        {"log": [1]},
        {"even": 3},
        {"n": None},
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_an_error_that_names_the_field(given):
    [name] = given
    with pytest.raises(InvalidValue, match=f'AX202 field "{name}" of Typed'):
        written(Typed, **given)


def test_a_constraint_of_an_accumulating_field_holds_for_what_it_comes_to_not_for_each_delta():
    state = written(Typed, cap=[1, 2], total=5)
    schema = schema_of(Typed)
    assert state.apply(schema.check({"cap": [3], "total": -5}))["cap"] == [1, 2, 3]
    for wrong in ({"cap": [3, 4]}, {"total": -6}, {"cap": ["x"]}, {"cap": "12"}):
        with pytest.raises(InvalidValue, match=f'"{next(iter(wrong))}"'):
            state.apply(schema.check(wrong))


def test_a_custom_strategy_may_take_deltas_of_another_type_its_result_is_validated():
    def push(old, new):
        return [*(old or []), new]

    class S(BaseModel):
        items: Annotated[list[int], push]

    assert written(S, items="3")["items"] == [3]
    with pytest.raises(InvalidValue, match='"items"'):
        written(S, items="x")


def test_an_undeclared_field_is_an_error():
    with pytest.raises(UndeclaredField, match="AX201"):
        written(Typed, nn=1)


def test_a_model_that_allows_extra_fields_gives_an_open_schema():
    class S(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int = 1

    assert dict(written(S, other=[1])) == {"n": 1, "other": [1]}


def test_the_models_configuration_holds_for_its_fields():
    class S(BaseModel):
        model_config = ConfigDict(strict=True, str_strip_whitespace=True)
        n: int = 0
        word: str = ""
        nested: Message = Message()

    assert written(S, word=" x ")["word"] == "x"
    with pytest.raises(InvalidValue):
        written(S, n="5")


def test_nested_typed_dicts_stay_nested_and_are_validated():
    class S(TypedDict):
        one: Inner
        many: Annotated[list[Inner], "append"]
        maybe: Inner | None
        table: dict[str, Inner | None]
        portable: Annotated[Portable, Field(description="x")]

    state = written(
        S,
        one={"k": "1"},
        many=[{"k": 2, "note": "n"}],
        maybe={"k": 3},
        table={"a": {"k": "4"}, "b": None},
        portable={"n": "5"},
    )
    assert dict(state) == {
        "one": {"k": 1}, "many": [{"k": 2, "note": "n"}], "maybe": {"k": 3},
        "table": {"a": {"k": 4}, "b": None}, "portable": {"n": 5},
    }  # fmt: skip
    with pytest.raises(InvalidValue, match=r'"one".*k: '):
        written(S, one={"note": "n"})


def test_objects_of_any_class_can_be_declared_in_a_typed_dict():
    class Connection: ...

    schema = generate_state_schema([("it", Connection, "overwrite")])
    own = Connection()
    assert written(schema, it=own)["it"] is own
    with pytest.raises(InvalidValue):
        written(schema, it=3)


# --------------------------------------------------------------------------------------------------


def test_an_unchanged_log_stays_the_same_object_through_a_replacement():
    state = written(Typed, log=["a"], cap=[1])
    checked = schema_of(Typed).check({"log": state["log"], "cap": state["cap"]}, whole=True)
    assert checked["log"] is state["log"]
    assert checked["cap"] is state["cap"]


def test_a_replaced_growing_field_is_a_log_again():
    schema = schema_of(Typed)
    state = written(Typed, log=["a"]).replace(schema.check({"log": ["b", "c"]}, whole=True))
    assert (type(state["log"]), state["log"]) == (Log, ["b", "c"])
    assert state.apply(schema.check({"log": ["d"]}))["log"] == ["b", "c", "d"]


def test_a_log_is_validated_like_a_list_and_a_list_field_keeps_none():
    schema = generate_state_schema(
        [("n", "list[int]", "append"), ("plain", "list[int]", "overwrite")]
    )
    assert type(schema.check({"n": Log(["1"])})["n"]) is Log
    assert schema.check({"n": Log(["1"])})["n"] == [1]
    assert schema.check({"plain": Log([1])})["plain"] == [1]
    assert type(schema.check({"plain": Log([1])})["plain"]) is list
    with pytest.raises(InvalidValue, match='"n"'):
        schema.check({"n": Log(["x"])})


def test_typed_messages_are_deduplicated():
    class S(BaseModel):
        messages: Annotated[list[Message], "append_messages"]

    state = written(S, messages=[{"id": "1", "content": "a"}, {"id": "1", "content": "b"}])
    state = state.apply(
        schema_of(S).check({"messages": [Message(id="1"), Message(content="no id")]})
    )
    assert [message.content for message in state["messages"]] == ["a", "no id"]


# -------------------------------------------------------------------------------------------------


class Kept(BaseModel):
    plain: dict[str, Any] = {}
    raw: bytes = b""
    when: datetime = datetime(2026, 1, 1)
    color: Color = Color.RED
    price: Annotated[Decimal, "sum"] = Decimal(0)
    days: set[date] = set()
    pair: tuple[int, str] = (1, "a")
    messages: Annotated[list[Message], "append_messages"]
    log: Annotated[list[str], "append"]
    cap: Annotated[list[Message], "append", Field(max_length=9)]
    blob: list[bytes] = []
    colors: dict[Color, float] = {}
    box: Message = Message()
    custom: Annotated[datetime | None, keep_first] = None


def through_the_journal(schema: Schema, delta: dict[str, Any]) -> dict[str, Any]:
    written_down = json.loads(json.dumps(encode_delta(delta, schema)))
    return decode_delta(written_down, schema)


# infinities are refused inside Any inside a model, as pydantic writes null for them
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)
any_message = st.builds(
    Message,
    id=st.none() | st.text(max_size=2),
    meta=st.dictionaries(st.text(max_size=2), json_values, max_size=2),
)
any_delta = st.fixed_dictionaries(
    {},
    optional={
        "plain": st.dictionaries(
            st.text(max_size=2),
            json_values
            | st.floats(allow_nan=False)
            | st.binary(max_size=2)
            | st.tuples(json_values),
        ),
        "raw": st.binary(max_size=4),
        "when": st.datetimes() | st.datetimes(timezones=st.just(UTC)),
        "color": st.sampled_from(Color),
        "price": st.decimals(allow_nan=False, allow_infinity=False, places=3),
        "days": st.sets(st.dates(), max_size=3),
        "pair": st.tuples(st.integers(), st.text(max_size=2)),
        "messages": st.lists(any_message, max_size=3),
        "log": st.lists(st.text(max_size=2), max_size=3),
        "cap": st.lists(any_message, max_size=3),
        "blob": st.lists(st.binary(max_size=4), max_size=3),
        "colors": st.dictionaries(st.sampled_from(Color), st.floats(allow_nan=False)),
        "box": any_message,
        "custom": st.datetimes() | st.text(max_size=3),
    },
)


@law
@given(any_delta)
def test_a_delta_comes_back_from_the_journal_as_it_was(delta):
    schema = schema_of(Kept)
    checked = schema.check(delta)
    back = through_the_journal(schema, checked)
    assert back == checked
    # A delta of a growing field with constraints is not of its type until it is reduced: a list may
    # come back as a Log.
    assert all(type(value) is type(back[name]) for name, value in checked.items() if name != "cap")
    if type(checked.get("custom")) is not str:
        assert dict(schema.start().apply(back)) == dict(schema.start().apply(checked))


def test_not_a_number_comes_back_inside_a_model():
    schema = schema_of(Kept)
    back = through_the_journal(schema, schema.check({"colors": {"red": math.nan}}))
    assert math.isnan(back["colors"][Color.RED])


class Sub(Message):
    more: int = 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"box": Message(meta={"t": (1, 2)})},
        {"box": Message(meta={"o": object()})},
        {"box": Message(meta={"x": math.inf})},
        {"box": Sub(more=2)},
        {"messages": [Sub(more=2)]},
    ],
    ids=["tuple in Any", "object in Any", "infinity in Any", "subclass", "subclass in a list"],
)
def test_a_value_that_would_come_back_different_is_refused(wrong):
    schema = schema_of(Kept)
    with pytest.raises(JournalError, match=f'AX501 field "{next(iter(wrong))}"'):
        encode_delta(schema.check(wrong), schema)


def test_an_instance_of_a_context_takes_nothing():
    class Reported(BaseModel):
        k: int = 0

    def body(ctx: Any) -> None:
        ctx.state.k = 5

    g = RootGraph("g", state=Reported)
    n = g.create_node(body, name="n")
    g.edge_from_entry(n)
    g.edge_to_exit(n)
    with pytest.raises(NodeFailed, match=r"ctx\.state"):
        g.build().invoke({})


def test_a_schema_of_no_fields_has_messages():
    assert list(generate_state_schema().fields) == ["messages"]
