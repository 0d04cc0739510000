"""Laws of tools: the description of a function for a model, and its call."""

from __future__ import annotations

import asyncio
import enum
import functools
import json
import runpy
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel, Field

from axil_models import Refused, ToolError, docstring_of, tool_of

law = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
"""A failure prints how to repeat it; no law is about seconds."""


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    title: str
    inner: list[Part] = []


class Where(TypedDict):
    x: int
    y: NotRequired[int]


@dataclass
class Size:
    w: int


def everything(
    a: int,
    color: Color,
    part: Part,
    where: Where,
    /,
    mode: Literal["x", "y"] = "x",
    *,
    json: Annotated[str, "the json"] = "q",
    schema: Annotated[int, Field(ge=1, description="at least one")] = 3,
    maybe: Optional[list[Size]] = None,  # noqa: UP045  # both ways of writing are read
    odd: Any = object(),  # noqa: B008  # a default that JSON cannot say
    ctx: Any = None,
) -> str:
    """Do everything.

    Args:
        a: the first,
            which goes on: here
        color (Color): a colour
        nothing: is not there

    Returns:
        text
    """
    return f"{a} {color.name} {part.title} {where} {mode} {json} {schema} {maybe} {ctx}"


def properties(function: Any) -> dict[str, Any]:
    return dict(tool_of(function).parameters["properties"])


def test_every_kind_of_annotation_is_described():
    tool = tool_of(everything)
    assert (tool.name, tool.description) == ("everything", "Do everything.\n\nReturns: text")
    shown = tool.parameters["properties"]
    assert shown["a"] == {"type": "integer", "description": "the first, which goes on: here"}
    assert shown["color"]["description"] == "a colour"
    assert shown["mode"] == {"enum": ["x", "y"], "type": "string", "default": "x"}
    assert shown["json"] == {"type": "string", "default": "q", "description": "the json"}
    assert shown["schema"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "at least one",
    }
    assert tool.parameters["$defs"]["Part"]["properties"]["title"] == {"type": "string"}
    assert tool.parameters["$defs"]["Where"]["required"] == ["x"]
    assert tool.parameters["required"] == ["a", "color", "part", "where"]
    assert "ctx" not in shown
    assert tool.wants_ctx
    json.dumps(tool.parameters)


def test_arguments_arrive_as_the_function_takes_them():
    given = {
        "a": "1",
        "color": "red",
        "part": {"title": "t"},
        "where": {"x": 1},
        "maybe": [{"w": 2}],
    }
    assert (
        asyncio.run(tool_of(everything)(given, "CTX")) == "1 RED t {'x': 1} x q 3 [Size(w=2)] CTX"
    )


@pytest.mark.parametrize("given", [{}, {"q": 1}, {"q": "x", "r": 1}, {"q": None}])
def test_a_tool_is_never_called_with_what_it_cannot_take(given):
    called: list[str] = []

    def f(q: str) -> None:
        called.append(q)

    with pytest.raises(Refused, match=r"q|r"):
        asyncio.run(tool_of(f)(given))
    assert called == []


def test_partials_methods_and_callable_objects_are_tools():
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    class Adder:
        """Adds much."""

        def much(self, n: float) -> float:
            """Much."""
            return n + 1000

        async def __call__(self, n: int) -> int:
            return n + 1

    assert list(properties(functools.partial(add, 1))) == ["b"]
    assert list(properties(functools.partial(add, b=1))) == ["a"]
    assert tool_of(functools.partial(add, 1)).description.startswith("Add.")
    assert asyncio.run(tool_of(functools.partial(add, b=5))({"a": 1})) == "6"
    assert tool_of(Adder().much).name == "much"
    assert asyncio.run(tool_of(Adder().much)({"n": "1.5"})) == "1001.5"
    assert (tool_of(Adder()).name, tool_of(Adder()).description) == (
        "Adder",
        "Adds much.\n\nReturns int.",
    )
    assert asyncio.run(tool_of(Adder())({"n": 1})) == "2"


def test_types_of_a_closure_are_found():
    class Local(BaseModel):
        n: int

    def f(local: Local) -> int:
        return local.n + (Local(n=1).n)

    assert asyncio.run(tool_of(f)({"local": {"n": 1}})) == "2"


def test_a_default_that_was_not_given_is_the_functions_own():
    def f(a: int = 1, **more: Any) -> str:
        return f"{a} {more}"

    assert asyncio.run(tool_of(f)({})) == "1 {}"


@pytest.mark.parametrize("given", [3, lambda x: x, "name"])
def test_what_cannot_be_a_tool_is_said(given):
    with pytest.raises(ToolError, match="AX657"):
        tool_of(given)


def test_an_annotation_that_cannot_be_read_is_said():
    def f(a: Unheard) -> None: ...  # noqa: F821  # what is tested

    with pytest.raises(ToolError, match=r"AX657.*Unheard"):
        tool_of(f)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are read at once")
def test_the_same_of_an_annotation_that_is_read_when_asked_for(tmp_path):
    (tmp_path / "f.py").write_text("def f(a: Unheard): ...")
    with pytest.raises(ToolError, match=r"AX657.*Unheard"):
        tool_of(runpy.run_path(str(tmp_path / "f.py"))["f"])


HIDDEN = """{future}
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unheard import Run

def f(a: int, ctx: Run, _own: Run | None = None) -> float:
    return a / 2
"""


@pytest.mark.parametrize(
    "future",
    [
        "from __future__ import annotations",
        pytest.param(
            "",
            marks=pytest.mark.skipif(
                sys.version_info < (3, 14), reason="annotations are read at once"
            ),
        ),
    ],
)
def test_an_annotation_of_what_no_model_is_shown_is_not_read(tmp_path, future):
    (tmp_path / "f.py").write_text(HIDDEN.format(future=future))
    made = tool_of(runpy.run_path(str(tmp_path / "f.py"))["f"])
    assert made.wants_ctx
    assert made.parameters["properties"] == {"a": {"type": "integer"}}
    assert made.description == "Returns float."


def test_effects_are_said_by_the_function_or_of_the_arguments():
    def pay(amount: int) -> str:
        return "paid"

    assert tool_of(pay).effects_of({"amount": 1}) == "idempotent"
    for said, amount, meant in (
        ("external", 1, "external"),
        (lambda arguments: "none" if arguments["amount"] == 0 else "external", 0, "none"),
        (lambda arguments: "none" if arguments["price"] == 0 else "external", 0, "external"),
        (lambda arguments: "harmless", 0, "external"),
    ):
        pay.effects = said
        assert tool_of(pay).effects_of({"amount": amount}) == meant
    pay.effects = "harmless"
    with pytest.raises(ToolError, match="AX657"):
        tool_of(pay)


def test_results_are_text_or_json():
    def f() -> Any:
        return {"c": Color.RED, "s": Size(1), "t": (1, None)}

    assert asyncio.run(tool_of(f)({})) == '{"c": "red", "s": {"w": 1}, "t": [1, null]}'


@pytest.mark.parametrize(
    "text",
    [
        "Sum.\n\nMore.\n\nArgs:\n    a (int): one\n    b: two: three\n      go on\n\nReturns:\n   "
        " int: the sum\n\nRaises:\n    x: no",
        "Sum.\n\nMore.\n\nParameters\n----------\na : int\n    one\nb\n    two: three\n    go "
        "on\n\nReturns\n-------\nint:\n    the sum",
        "Sum.\n\nMore.\n\n:param int a: one\n:param b: two: three\n    go "
        "on\n:returns: int: the sum",
    ],
)
def test_three_ways_of_writing_docstrings_say_the_same(text):
    assert docstring_of(text) == (
        "Sum.\n\nMore.",
        {"a": "one", "b": "two: three go on"},
        "int: the sum",
    )


@law
@given(
    st.text(max_size=200)
    | st.lists(
        st.sampled_from(["Args:", "    a: x", "---", "a", ":param b: y", "", "  z"]), max_size=8
    ).map("\n".join)
)
def test_any_docstring_can_be_read(text):
    said = docstring_of(text)
    assert isinstance(said.text, str)
    assert docstring_of(None) == ("", {}, "")


def test_what_begins_with_an_underscore_and_has_a_default_is_the_functions_own():
    def look(q: str, _context: Any = None, *, _depth: int = 3) -> str:
        """Look."""
        return f"{q} {_context} {_depth}"

    tool = tool_of(look)
    assert list(tool.parameters["properties"]) == ["q"]
    assert asyncio.run(tool({"q": "x"})) == "x None 3"
    with pytest.raises(Refused):
        asyncio.run(tool({"q": "x", "_depth": 9}))


def test_a_tool_may_use_what_is_defined_after_it():
    def tool(n: int) -> int:
        return n + later

    assert tool_of(tool).spec.parameters["required"] == ["n"]
    later = 1
    assert tool(1) == 2


def test_the_model_is_given_what_a_tool_returns():
    def count(word: str) -> dict[str, int] | None:
        """Count.

        Args:
            word: which one.

        Returns:
            how often it stands in each file
        """

    def add(a: int) -> Annotated[int, "a number"]:
        """Add."""
        return a

    def say(text: str) -> str:
        """Say."""
        return text

    assert tool_of(count).spec.description == (
        "Count.\n\nReturns dict[str, int] | None: how often it stands in each file"
    )
    assert tool_of(add).description == "Add.\n\nReturns int."
    assert tool_of(say).description == "Say."

    def pick(text: str) -> object:
        """Pick."""
        return text

    assert tool_of(pick).description == "Pick."  # what says nothing is not sent
