"""Data classes of axil are those of the standard library, and generate no method before its use."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from axil._dataclasses import _Ungenerated, dataclass

OPTIONS = (
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False, "repr": False},
    {"slots": True, "eq": False},
)


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 0


def made(decorate: Callable[..., Any], options: dict[str, bool]) -> Any:
    @decorate(**options)
    class Thing:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list, compare=False)
        d: int = field(default=4, init=False)

        def __post_init__(self) -> None:
            assert self.c is not None

    return Thing


def outcome(act: Callable[[], Any]) -> Any:
    """Return what an act gives, or the error that it raises."""
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error), str(error).partition("(")[0]


def facts_of(cls: Any) -> list[Any]:
    """Return what can be seen of a data class."""
    one = cls(a=1, b="z", c=[2])
    return [
        str(inspect.signature(cls)),
        [(each.name, each.type, each.kw_only) for each in fields(cls)],
        cls.__dataclass_params__.frozen,
        cls.__match_args__,
        repr(one).partition(" object at")[0],
        (one.a, one.b, one.c, one.d, cls(a=1).c),
        (replace(one, b="y").b, copy.copy(one).b),
        one == cls(a=1, b="z"),
        outcome(lambda: hash(one) == hash(cls(a=1, b="z"))),
        outcome(lambda: cls()),
        outcome(lambda: cls(1).a),
        outcome(lambda: setattr(one, "a", 2)),
        outcome(lambda: delattr(one, "a")),
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_data_class_is_that_of_the_standard_library(options):
    assert facts_of(made(dataclass, options)) == facts_of(made(dataclasses.dataclass, options))


def test_a_subclass_has_the_fields_and_the_constructor_of_its_base():
    class Named(Point):
        def __init__(self) -> None:
            super().__init__(1, 2)

    @dataclass(frozen=True, slots=True)
    class Marked(Point):
        mark: str = ""

    assert (Named().x, Named().y) == (1, 2)
    assert Marked(1, 2, "m") == Marked(1, mark="m", y=2)
    with pytest.raises(FrozenInstanceError):
        Marked(1).x = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_frozen_one_with_slots_can_be_pickled():
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)  # noqa: S301 (its own)


def test_a_method_is_generated_when_it_is_used_and_no_other_with_it():
    thing = made(dataclass, {"frozen": True, "slots": True})
    waiting = {name for name, value in vars(thing).items() if isinstance(value, _Ungenerated)}
    assert {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__"} <= waiting
    thing(a=1)
    assert {
        name for name, value in vars(thing).items() if isinstance(value, _Ungenerated)
    } == waiting - {"__init__"}
