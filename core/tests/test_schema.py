"""From annotations to fields: strategies, defaults, validation, what is written down, and everything that can be wrong."""

from __future__ import annotations

import json
import math
import typing
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, NotRequired, Optional, Required, TypedDict, TypeVar, Union

import pytest
import typing_extensions
from annotated_types import Gt
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

from axil import journal
from axil.errors import InvalidValue, JournalError, SpecError, UndeclaredField, UnknownComponent
from axil.fields import APPEND, OVERWRITE
from axil.reducers import APPEND_MESSAGES, MERGE, SUM, UNION, reducer
from axil.schema import generate_state_schema, schema_of
from axil.state import History, Schema, State, join
from axil.values import MISSING, Log
from axil.views import StateView

law = settings(deadline=None, print_blob=True)  # a failure prints how to repeat it; no law is about seconds


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


class Needs(BaseModel):
    required: int


@reducer("keep_first", pure=True)
def keep_first(old, new):
    return new if old is MISSING else old


def backwards(old, new):
    return new + old if old else new


Item = TypeVar("Item")


class Box(BaseModel, Generic[Item]):
    item: Annotated[list[Item], "append"]


def strategies(model: Any) -> dict[str, str]:
    return {name: field.reducer.name for name, field in schema_of(model).fields.items()}


def written(model: Any, **values: Any) -> State:
    """A new state of ``model`` with one write."""
    schema = model if isinstance(model, Schema) else schema_of(model)
    return schema.start().apply(schema.check(values))


def problems(act) -> list[str]:
    with pytest.raises(SpecError) as caught:
        act()
    return [problem.id for problem in caught.value.problems]


# -------------------------------------------------------------------------------------------------- strategies


def test_a_strategy_may_stand_anywhere_among_the_metadata_of_a_model():
    class S(BaseModel):
        plain: str
        first: Annotated[list[str], "append"]
        after: Annotated[int, Field(ge=0), "sum"] = 0
        before: Annotated[int, "sum", Field(ge=0)] = 0
        nested: Annotated[Annotated[set[int], Field()], "union"]
        assigned: Annotated[list[int], "append"] = Field(default_factory=list, description="with a default")
        given: Annotated[dict[str, int], MERGE]
        object: Annotated[int, keep_first]
        function: Annotated[str, backwards]
        trailing_: Annotated[int, "maximum"]
        _private: Annotated[int, "nonsense"] = 1
        constant: typing.ClassVar[int] = 1

    assert strategies(S) == {
        "plain": "overwrite", "first": "append", "after": "sum", "before": "sum", "nested": "union", "assigned": "append",
        "given": "merge", "object": "keep_first", "function": "backwards", "trailing_": "maximum",
    }  # fmt: skip
    assert schema_of(S).fields["given"].reducer is MERGE
    assert schema_of(S).closed


def test_a_strategy_may_stand_anywhere_among_the_metadata_of_a_typed_dict():
    class Base(TypedDict):
        base: Annotated[list[str], "append"]

    class S(Base, total=False):
        plain: str
        inside: NotRequired[Annotated[int, "sum"]]
        outside: Annotated[NotRequired[int], Gt(0), "sum"]
        needed: Required[Annotated[set[int], "union"]]

    assert strategies(S) == {"base": "append", "plain": "overwrite", "inside": "sum", "outside": "sum", "needed": "union"}


def test_inherited_fields_keep_their_strategies_and_can_be_redeclared():
    class Base(BaseModel):
        log: Annotated[list[str], "append"]
        n: Annotated[int, "sum"] = 0

    class Derived(Base):
        n: int = 5

    assert strategies(Derived) == {"log": "append", "n": "overwrite"}
    assert schema_of(Derived) is not schema_of(Base)


def test_a_generic_model_is_a_schema_for_each_of_its_arguments():
    assert strategies(Box[int]) == {"item": "append"}
    assert written(Box[int], item=["1"])["item"] == [1]
    with pytest.raises(InvalidValue, match='"item"'):
        written(Box[int], item=["x"])


def test_a_field_without_a_strategy_is_overwritten():
    class S(TypedDict):
        n: int

    assert schema_of(S).fields["n"].reducer is OVERWRITE


def test_a_class_has_one_schema_so_that_its_states_meet():
    class S(BaseModel):
        n: Annotated[int, "sum"] = 0

    schema = schema_of(S)
    assert schema_of(S) is schema
    assert schema_of(schema) is schema
    history, root = History(schema), schema.start()
    assert join([root.apply({"n": 1}, history), schema_of(S).start()], history)["n"] == 1


def test_names_that_are_not_built_in_are_asked_of_the_given_resolver():
    class S(BaseModel):
        a: Annotated[int, "house.first"]
        b: Annotated[str, "house.back"]

    found = {"house.first": keep_first, "house.back": backwards}
    assert {name: f.reducer.name for name, f in schema_of(S, resolve=found.__getitem__).fields.items()} == {
        "a": "keep_first",
        "b": "backwards",
    }


# ---------------------------------------------------------------------------------------------------- defaults

NO_DEFAULT = "no default"


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (list, []), (list[int], []), (dict, {}), (dict[str, int], {}), (set[int], set()), (frozenset[int], frozenset()), (int, 0),
        (float, 0.0), (str, ""), (bool, False), (tuple[int, ...], ()), (bytes, b""), (Optional[int], None), (int | None, None),  # noqa: UP045  # both spellings
        (Union[Needs, None], None),  # noqa: UP007  # the third
        (Any, None), (None, None), (Literal["a"], NO_DEFAULT), (Color, NO_DEFAULT), (datetime, NO_DEFAULT),
        (int | str, NO_DEFAULT), (Needs, NO_DEFAULT), (Inner, NO_DEFAULT), (typing.NewType("Id", str), ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_field_starts_with_the_empty_value_of_its_type_or_with_nothing(kind, default):
    schema = generate_state_schema([("x", kind, "overwrite")])
    start = schema.start()
    assert start.get("x", NO_DEFAULT) == default
    assert type(start.get("x", NO_DEFAULT)) is type(default)


def test_an_empty_value_that_the_field_does_not_take_is_no_default():
    class S(BaseModel):
        n: int = Field(ge=1)
        word: Annotated[str, StringConstraints(min_length=1)]
        log: Annotated[list[str], "append", Field(min_length=1)]

    assert dict(schema_of(S).start()) == {}
    assert dict(written(S, log=["a"])) == {"log": ["a"]}


def test_declared_defaults_come_first_and_a_factory_is_asked_for_each_state():
    made = []

    class S(BaseModel):
        n: int = 7
        table: dict[str, list[int]] = {"a": [1]}
        fresh: list[int] = Field(default_factory=lambda: made.append(1) or [len(made)])

    schema = schema_of(S)
    first, second = schema.start(), schema.start()
    first["table"]["a"].append(2)
    assert (first["n"], second["table"], second["fresh"]) == (7, {"a": [1]}, [len(made)])
    assert first["fresh"] != second["fresh"]


def test_a_typed_dict_can_declare_defaults_with_field():
    class S(TypedDict):
        n: Annotated[int, Field(default=3), "sum"]

    assert dict(written(S, n=1)) == {"n": 4}


def test_only_what_is_marked_not_required_starts_absent():
    class S(TypedDict, total=False):
        plain: int
        marked: NotRequired[int]
        log: NotRequired[Annotated[list[int], "append"]]
        needed: Required[int]

    assert dict(schema_of(S).start()) == {"plain": 0, "needed": 0}
    assert dict(written(S, marked=1, log=[1])) == {"plain": 0, "needed": 0, "marked": 1, "log": [1]}


def test_growing_fields_start_as_logs_whatever_their_default():
    class S(BaseModel):
        a: Annotated[list[int], "append"]
        b: Annotated[list[int], "append"] = [1]
        c: Annotated[list[Any] | None, "append_messages"] = None

    start = schema_of(S).start()
    assert (type(start["a"]), type(start["b"]), start["c"]) == (Log, Log, None)
    assert dict(written(S, b=[2], c=[{"id": 1}])) == {"a": [], "b": [1, 2], "c": [{"id": 1}]}


def test_an_accumulating_field_starts_with_its_default_once():
    class S(BaseModel):
        total: Annotated[int, "sum"] = 10

    assert written(S, total=1)["total"] == 11


# -------------------------------------------------------------------------------------------------- validation


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
        ({"n": "5"}, 5), ({"color": "blue"}, Color.BLUE), ({"when": "2026-01-02"}, datetime(2026, 1, 2)), ({"choice": "b"}, "b"),
        ({"inner": {"content": "x"}}, Message(content="x")), ({"up": " abc "}, "ABC"), ({"total": "3"}, 3),
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
        S, one={"k": "1"}, many=[{"k": 2, "note": "n"}], maybe={"k": 3}, table={"a": {"k": "4"}, "b": None}, portable={"n": "5"}
    )
    assert dict(state) == {
        "one": {"k": 1}, "many": [{"k": 2, "note": "n"}], "maybe": {"k": 3}, "table": {"a": {"k": 4}, "b": None}, "portable": {"n": 5},
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


# --------------------------------------------------------------------------------------------------------- logs


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
    schema = generate_state_schema([("n", "list[int]", "append"), ("plain", "list[int]", "overwrite")])
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
    state = state.apply(schema_of(S).check({"messages": [Message(id="1"), Message(content="no id")]}))
    assert [message.content for message in state["messages"]] == ["a", "no id"]


# ------------------------------------------------------------------------------------------------- the journal


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
    written_down = json.loads(json.dumps(journal.encode_delta(delta, schema)))
    return journal.decode_delta(written_down, schema)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)
any_message = st.builds(Message, id=st.none() | st.text(max_size=2), meta=st.dictionaries(st.text(max_size=2), json_values, max_size=2))
any_delta = st.fixed_dictionaries(
    {},
    optional={
        "plain": st.dictionaries(st.text(max_size=2), json_values | st.binary(max_size=2) | st.tuples(json_values)),
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
    # A delta of a growing field with constraints is not of its type until it is reduced: a list may come back as a Log.
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
    [{"box": Message(meta={"t": (1, 2)})}, {"box": Message(meta={"o": object()})}, {"box": Sub(more=2)}, {"messages": [Sub(more=2)]}],
    ids=["tuple in Any", "object in Any", "subclass", "subclass in a list"],
)
def test_a_value_that_would_come_back_different_is_refused(wrong):
    schema = schema_of(Kept)
    with pytest.raises(JournalError, match=f'AX501 field "{next(iter(wrong))}"'):
        journal.encode_delta(schema.check(wrong), schema)


# ----------------------------------------------------------------------------------------------- what is wrong


def test_an_unknown_strategy_is_an_error_of_the_schema_with_what_there_is():
    class S(BaseModel):
        a: Annotated[list[int], "apend"]
        b: Annotated[int, "the number of things"]

    def nothing(name):
        raise UnknownComponent(f"no {name}", hint="Install something.")

    with pytest.raises(SpecError) as caught:
        schema_of(S, resolve=nothing)
    assert [problem.id for problem in caught.value.problems] == ["AX150", "AX150"]
    first, second = map(str, caught.value.problems)
    assert 'schema "S", field "a"' in first
    assert 'Did you mean "append"' in first
    assert second.endswith("Install something.")
    assert problems(lambda: schema_of(S, resolve={}.__getitem__)) == ["AX150", "AX150"]
    assert problems(lambda: schema_of(S)) == ["AX150", "AX150"]


def test_everything_wrong_with_a_schema_is_reported_at_once():
    def of_three(old, new, more): ...

    class S(BaseModel):
        a: Annotated[list[int], "nope"]
        b: Annotated[int, "sum", "a description"]
        c: Annotated[int, of_three]
        d: int = Field(default_factory=lambda fields: fields["b"])
        e: Annotated[int, "sum"]

    assert sorted(problems(lambda: schema_of(S))) == ["AX150", "AX151", "AX151", "AX156"]


def test_an_annotation_that_cannot_be_resolved_is_an_error_that_names_it():
    class Dict(TypedDict):
        a: Nowhere  # noqa: F821  # the point

    class Model(BaseModel):
        a: Nowhere  # noqa: F821  # the point

    for model in (Dict, Model):
        with pytest.raises(SpecError, match=r'AX152.*"Nowhere"'):
            schema_of(model)


@pytest.mark.parametrize("wrong", [int, dict, 3, "S", None, {"a": int}, list[int]])
def test_only_models_and_typed_dicts_are_schemas(wrong):
    assert problems(lambda: schema_of(wrong)) == ["AX153"]


def test_a_constraint_that_the_type_cannot_have_is_an_error_of_the_schema():
    class S(TypedDict):
        n: Annotated[int, Field(min_length=1)]
        m: Annotated[int, Field(pattern="x"), "sum"]

    assert problems(lambda: schema_of(S)) == ["AX154", "AX154"]


# ------------------------------------------------------------------------------------------------ from triples


def test_triples_make_a_closed_schema_seen_as_a_dict():
    schema = generate_state_schema([("log", list[str], "append"), ("n", "int", SUM), ("x", "any", backwards)], name="Mine")
    assert (schema.name, schema.closed, schema.view) == ("Mine", True, StateView)
    assert {name: field.reducer.name for name, field in schema.fields.items()} == {
        "log": "append", "n": "sum", "x": "backwards", "messages": "append_messages",
    }  # fmt: skip


def test_messages_are_added_unless_they_are_declared():
    assert generate_state_schema([]).fields["messages"].reducer is APPEND_MESSAGES
    assert generate_state_schema([("messages", "list", "append")]).fields["messages"].reducer is APPEND


@pytest.mark.parametrize(
    ("text", "value", "stored"),
    [
        ("str", "a", "a"), (" list [ int ] ", ["1"], [1]), ("dict[str,list[int]]", {"a": ["1"]}, {"a": [1]}), ("set[int]", [1], {1}),
        ("tuple[int, str]", ["1", "a"], (1, "a")), ("tuple[int, ...]", ["1", 2], (1, 2)), ("bytes", b"\xff", b"\xff"),
        ("int | none", None, None), ("list[int|str]", [1, "a"], [1, "a"]), ("any", object, object), ("Any", 1, 1), ("float", "1.5", 1.5),
        ("bool", "yes", True), ("None | dict", {}, {}),
    ],
)  # fmt: skip
def test_types_can_be_given_as_text(text, value, stored):
    assert written(generate_state_schema([("x", text, "overwrite")]), x=value)["x"] == stored


@pytest.mark.parametrize(
    "text",
    [
        "lst", "", "list[", "list[]", "list]", "list[int]]", "list[int, str]", "dict[str]", "int[str]", "str str", "str;", "os.system",
        "__import__('os')", "list[" * 60 + "int" + "]" * 60, "[int]", "|", "int|", "tuple[...]", "list[int] x", "any[int]",
    ],
)  # fmt: skip
def test_text_that_is_no_type_is_refused_and_never_run(text):
    assert problems(lambda: generate_state_schema([("x", text, "overwrite")])) == ["AX154"]


@pytest.mark.parametrize("name", ["1a b", "", "class", "a-b", "@x", 3, None])
def test_a_fields_name_is_an_identifier(name):
    assert problems(lambda: generate_state_schema([(name, "int", "sum")])) == ["AX155"]


def test_everything_wrong_with_triples_is_reported_at_once():
    triples = [("a", "lst", "append"), ("a b", "int", "sum"), ("c", int, "smu"), ("c", int, "sum"), ("d", int), 5, ("e", 7, "sum")]
    found = problems(lambda: generate_state_schema(triples))
    assert sorted(found) == ["AX150", "AX154", "AX154", "AX155", "AX155", "AX155", "AX155"]


def test_sets_unite():
    schema = generate_state_schema([("seen", "set[int]", UNION)])
    assert written(schema, seen=["1", 2])["seen"] == {1, 2}
