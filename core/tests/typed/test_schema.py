"""From annotations to fields: strategies, defaults, triples, and everything that can be wrong."""

from __future__ import annotations

import typing
from datetime import datetime
from enum import Enum
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
from annotated_types import Gt
from pydantic import BaseModel, Field, StringConstraints

from axil import MISSING, Schema, SpecError, State
from axil.contract.views import StateView
from axil.plugin import APPEND, OVERWRITE, InvalidValue, Log, UnknownComponent
from axil.typed.reducers import APPEND_MESSAGES, MERGE, SUM, UNION, reducer
from axil.typed.schema import generate_state_schema, schema_of


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(TypedDict):
    k: int
    note: NotRequired[str]


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
    """Return a new state of ``model`` with one write."""
    schema = model if isinstance(model, Schema) else schema_of(model)
    return schema.start().apply(schema.check(values))


def problems(act) -> list[str]:
    with pytest.raises(SpecError) as caught:
        act()
    return [problem.id for problem in caught.value.problems]


# --------------------------------------------------------------------------------------------------


def test_a_strategy_may_stand_anywhere_among_the_metadata_of_a_model():
    class S(BaseModel):
        plain: str
        first: Annotated[list[str], "append"]
        after: Annotated[int, Field(ge=0), "sum"] = 0
        before: Annotated[int, "sum", Field(ge=0)] = 0
        nested: Annotated[Annotated[set[int], Field()], "union"]
        assigned: Annotated[list[int], "append"] = Field(
            default_factory=list, description="with a default"
        )
        given: Annotated[dict[str, int], MERGE]
        object: Annotated[int, keep_first]
        function: Annotated[str, backwards]
        trailing_: Annotated[int, "maximum"]
        _private: Annotated[int, "nonsense"] = 1
        constant: typing.ClassVar[int] = 1

    assert strategies(S) == {
        "plain": "overwrite", "first": "append", "after": "sum", "before": "sum",
        "nested": "union", "assigned": "append",
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

    assert strategies(S) == {
        "base": "append",
        "plain": "overwrite",
        "inside": "sum",
        "outside": "sum",
        "needed": "union",
    }


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


def test_names_that_are_not_built_in_are_asked_of_the_given_resolver():
    class S(BaseModel):
        a: Annotated[int, "house.first"]
        b: Annotated[str, "house.back"]

    found = {"house.first": keep_first, "house.back": backwards}
    assert {
        name: f.reducer.name for name, f in schema_of(S, resolve=found.__getitem__).fields.items()
    } == {
        "a": "keep_first",
        "b": "backwards",
    }


# --------------------------------------------------------------------------------------------------

NO_DEFAULT = "no default"


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (list, []), (list[int], []), (dict, {}), (dict[str, int], {}), (set[int], set()),
        (frozenset[int], frozenset()), (int, 0),
        # both spellings
        (float, 0.0), (str, ""), (bool, False), (tuple[int, ...], ()), (bytes, b""),
        (Optional[int], None), (int | None, None),  # noqa: UP045
        (Union[Needs, None], None),  # noqa: UP007  # the third
        (Any, None), (None, None), (Literal["a"], NO_DEFAULT), (Color, NO_DEFAULT), (datetime,
        NO_DEFAULT),
        (int | str, NO_DEFAULT), (Needs, NO_DEFAULT), (Inner, NO_DEFAULT), (typing.NewType("Id",
        str), ""),
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
    said = {"id": 1, "role": "user", "content": "hi"}
    assert dict(written(S, b=[2], c=[said])) == {"a": [], "b": [1, 2], "c": [said]}


@pytest.mark.parametrize(
    ("given", "role"),
    [
        ("hi", "user"),
        (["hi"], "user"),
        ([("system", "hi")], "system"),
        (("human", "hi"), "user"),
        ([["ai", "hi"]], "assistant"),
        ({"content": "hi"}, "user"),
        ([{"role": "human", "content": "hi"}], "user"),
        ([{"role": "critic", "content": "hi"}], "critic"),
    ],
)
def test_messages_are_taken_in_the_forms_in_which_people_write_them(given: Any, role: str):
    class S(BaseModel):
        messages: Annotated[list[Any], "append_messages"] = []

    assert list(written(S, messages=given)["messages"]) == [{"role": role, "content": "hi"}]


@pytest.mark.parametrize("wrong", [[5], [None], [{"role": "user"}], [("hi", "you")], [["a"]]])
def test_what_is_no_message_is_refused_with_its_position(wrong: Any):
    class S(BaseModel):
        messages: Annotated[list[Any], "append_messages"] = []

    with pytest.raises(InvalidValue, match=r"message 1 .*expected \{role, content\}"):
        written(S, messages=["fine", *wrong])


def test_an_accumulating_field_starts_with_its_default_once():
    class S(BaseModel):
        total: Annotated[int, "sum"] = 10

    assert written(S, total=1)["total"] == 11


# ----------------------------------------------------------------------------------------------- wh


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


# ------------------------------------------------------------------------------------------------ f


def test_triples_make_a_closed_schema_seen_as_a_dict():
    schema = generate_state_schema(
        [("log", list[str], "append"), ("n", "int", SUM), ("x", "any", backwards)], name="Mine"
    )
    assert (schema.name, schema.closed, schema.view) == ("Mine", True, StateView)
    assert {name: field.reducer.name for name, field in schema.fields.items()} == {
        "log": "append", "n": "sum", "x": "backwards", "messages": "append_messages",
    }  # fmt: skip


def test_messages_are_added_unless_they_are_declared():
    assert generate_state_schema([]).fields["messages"].reducer is APPEND_MESSAGES
    assert (
        generate_state_schema([("messages", "list", "append")]).fields["messages"].reducer is APPEND
    )


@pytest.mark.parametrize(
    ("text", "value", "stored"),
    [
        ("str", "a", "a"), (" list [ int ] ", ["1"], [1]), ("dict[str,list[int]]", {"a": ["1"]},
        {"a": [1]}), ("set[int]", [1], {1}),
        ("tuple[int, str]", ["1", "a"], (1, "a")), ("tuple[int, ...]", ["1", 2], (1, 2)), ("bytes",
        b"\xff", b"\xff"),
        ("int | none", None, None), ("list[int|str]", [1, "a"], [1, "a"]), ("any", object, object),
        ("Any", 1, 1), ("float", "1.5", 1.5),
        ("bool", "yes", True), ("None | dict", {}, {}),
    ],
)  # fmt: skip
def test_types_can_be_given_as_text(text, value, stored):
    assert written(generate_state_schema([("x", text, "overwrite")]), x=value)["x"] == stored


@pytest.mark.parametrize(
    "text",
    [
        "lst", "", "list[", "list[]", "list]", "list[int]]", "list[int, str]", "dict[str]",
        "int[str]", "str str", "str;", "os.system",
        "__import__('os')", "list[" * 60 + "int" + "]" * 60, "[int]", "|", "int|", "tuple[...]",
        "list[int] x", "any[int]",
    ],
)  # fmt: skip
def test_text_that_is_no_type_is_refused_and_never_run(text):
    assert problems(lambda: generate_state_schema([("x", text, "overwrite")])) == ["AX154"]


@pytest.mark.parametrize("name", ["1a b", "", "class", "a-b", "@x", 3, None])
def test_a_fields_name_is_an_identifier(name):
    assert problems(lambda: generate_state_schema([(name, "int", "sum")])) == ["AX155"]


def test_everything_wrong_with_triples_is_reported_at_once():
    triples = [
        ("a", "lst", "append"),
        ("a b", "int", "sum"),
        ("c", int, "smu"),
        ("c", int, "sum"),
        ("d", int),
        5,
        ("e", 7, "sum"),
    ]
    found = problems(lambda: generate_state_schema(triples))
    assert sorted(found) == ["AX150", "AX154", "AX154", "AX155", "AX155", "AX155", "AX155"]


def test_sets_unite():
    schema = generate_state_schema([("seen", "set[int]", UNION)])
    assert written(schema, seen=["1", 2])["seen"] == {1, 2}
