"""Types of outputs: what a model is asked for, what the caller gets, what edges carry."""

from __future__ import annotations

import asyncio
import enum
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, model_validator
from typing_extensions import TypedDict

from axil import ConfigError, RootGraph, SpecError
from axil_agent import Agent, ReplyError, Scripted, SingleAgent
from axil_agent.output_types import OutputType, partial_fields
from axil_journals import MemoryJournal
from axil_models import Reply


class Leaf(BaseModel):
    colour: str
    veins: int = 0


@dataclass
class Stem:
    length: float
    leaf: Leaf | None = None


class Bud(TypedDict):
    asleep: bool


class Kind(enum.Enum):
    TREE = "tree"
    HERB = "herb"


def even(number: int) -> int:
    if number % 2:
        raise ValueError("the number is odd")
    return number


Even = Annotated[int, AfterValidator(even)]


async def plant(name: str, count: int = 1) -> list[str]:
    """Plant something."""
    return [name] * count


def green(leaf: Leaf) -> Leaf:
    if leaf.colour != "green":
        raise ValueError(f"{leaf.colour} is not green")
    return leaf


CASES: list[tuple[Any, str, Any, Any]] = [
    (Leaf, '{"colour": "red"}', Leaf(colour="red"), {"colour": "red", "veins": 0}),
    (Stem, '{"length": 2}', Stem(length=2.0), {"length": 2.0, "leaf": None}),
    (Bud, '{"asleep": true}', Bud(asleep=True), {"asleep": True}),
    (str, "words", "words", {"out": "words"}),
    (Kind, '{"NAME": "tree"}', Kind.TREE, {"out": "tree"}),
    (Kind, "herb", Kind.HERB, {"out": "herb"}),
    (Literal["yes", "no"], "yes", "yes", {"out": "yes"}),
    (list[int], '{"NAME": [1, "2"]}', [1, 2], {"out": [1, 2]}),
    (list[int], "```json\n[1, 2]\n```", [1, 2], {"out": [1, 2]}),
    (list[Leaf], '{"NAME": [{"colour": "red"}]}', [Leaf(colour="red")], None),
    (list[Leaf], '[{"colour": "red"}]', [Leaf(colour="red")], None),
    (list[Leaf], '[{"colour": "red"}, {"colour": "dun"}, {}]', None, None),
    (dict[str, int], '{"a": 1}', {"a": 1}, {"out": {"a": 1}}),
    (Leaf | Bud, '{"asleep": false}', Bud(asleep=False), {"out": {"asleep": False}}),
    (int, '{"number": 3}', None, None),
    (dict[str, int], '{"NAME": {"a": 1}}', {"a": 1}, {"out": {"a": 1}}),
    (int, "42", 42, {"out": 42}),
    (float, "The number is", None, None),
    (bool, '{"NAME": true}', True, {"out": True}),
    (Leaf | Bud, '{"NAME": {"asleep": false}}', Bud(asleep=False), {"out": {"asleep": False}}),
    (Leaf | str, "just words", "just words", {"out": "just words"}),
    (Even, "4", 4, {"out": 4}),
    (Even, "3", None, None),
    (plant, '{"name": "fern", "count": 2}', ["fern", "fern"], {"out": ["fern", "fern"]}),
    (green, '{"colour": "green"}', Leaf(colour="green"), {"colour": "green", "veins": 0}),
    (green, '{"colour": "red"}', None, None),
]


@pytest.mark.parametrize(("kind", "reply", "value", "fields"), CASES)
def test_an_output_is_an_object_of_its_type_and_edges_carry_plain_data(kind, reply, value, fields):
    def asked(name: str) -> Any:
        return Scripted([reply.replace("NAME", name)])

    agent: SingleAgent[Any] = SingleAgent(asked("message"), output_type=kind, max_repairs=0)
    if value is None:
        with pytest.raises(ReplyError, match=r"AX652.*[^.]\. Make the task easier"):
            agent.invoke({"q": "?"})
        return
    assert agent.invoke({"q": "?"}) == value
    graph = RootGraph("g")
    node = graph.create_node(Agent(asked("out"), output_type=kind), name="w")
    graph.edge_from_entry(node, ["q"])
    graph.edge_to_exit(node, list(fields or {"out": ""}))
    output, _ = graph.build().invoke({"q": "?"})
    assert fields is None or output == fields


@pytest.mark.parametrize("kind", [Leaf, Stem, Bud, Kind, list[int], int, Leaf | Bud, plant, green])
def test_adapters_are_given_the_schema_of_an_object(kind):
    model = Scripted(["no"])
    with pytest.raises(ReplyError):
        SingleAgent(model, output_type=kind, max_repairs=0).invoke({})
    structure = model.requests[0].output
    assert structure is not None
    assert structure.schema["type"] == "object"
    assert set(structure.schema.get("required", ())) <= structure.schema["properties"].keys()


def test_what_a_function_refuses_is_shown_to_the_model():
    model = Scripted(['{"colour": "red"}', '{"colour": "green", "veins": 3}'])
    leaf: Leaf = SingleAgent(model, output_type=green).invoke({})
    assert leaf == Leaf(colour="green", veins=3)
    assert "red is not green" in model.requests[1].messages[-1]["content"]


def test_a_function_that_gave_an_output_is_not_called_again_by_a_resumed_run():
    called: list[str] = []

    def store(name: str) -> str:
        called.append(name)
        return f"stored {name}"

    def stop(inputs: dict[str, Any]) -> dict[str, Any]:
        if len(called) == 1:
            called.append("stopped")
            raise OSError("lost")
        return inputs

    graph, journal = RootGraph("g"), MemoryJournal()
    graph.create_node(Agent(Scripted(['{"name": "fern"}']), output_type=store), name="a")
    graph.create_node(stop, name="b")
    graph.edge_from_entry("a", ["q"])
    graph.create_edge("a", "b", ["said"])
    graph.edge_to_exit("b", ["said"])
    graph.build()
    with pytest.raises(Exception, match="lost"):
        graph.invoke({"q": "?"}, journal=journal, run_id="r")
    resumed = asyncio.run(graph.resume("r", journal=journal))
    assert resumed.output == {"said": "stored fern"}
    assert called == ["fern", "stopped"]


def test_one_value_has_one_field_and_no_others():
    graph = RootGraph("g")
    node = graph.create_node(Agent(Scripted(), output_type=list[int]), name="w")
    graph.edge_from_entry(node)
    graph.edge_to_exit(node, ["a", "b"])
    with pytest.raises(SpecError, match=r"AX668.*list has no a, b"):
        graph.build()


@pytest.mark.parametrize("kind", [3, {"a": 1}, "module:Type", "int", [int]])
def test_what_is_no_type_of_an_output_is_refused_where_it_is_given(kind):
    with pytest.raises(ConfigError, match="AX131 output_type"):
        Agent(Scripted(), output_type=kind)


class Named(BaseModel):
    name: str

    @model_validator(mode="before")
    @classmethod
    def _of_two_names(cls, given: Any) -> Any:
        return {"name": f"{given['first']} {given['last']}"}


class Signed(BaseModel):
    by: Named


@pytest.mark.parametrize("text", ['{"by": {"first": "Ann", "la', '{"by": {"first": "\ud83d'])
def test_a_field_that_is_not_whole_yet_is_not_shown_whatever_its_validator_raises(text):
    assert partial_fields(text, OutputType(Signed).parts) == {}


def test_a_long_reply_is_read_not_with_each_of_its_chunks_and_shown_whole(monkeypatch):
    reads: list[int] = []

    def counted(text: str, parts: Any) -> dict[str, object]:
        reads.append(len(text))
        return partial_fields(text, parts)

    class Veins(BaseModel):
        veins: list[int]

    whole = {"veins": list(range(5000))}
    text, shown = json.dumps(whole), list[Any]()

    class Model:
        async def reply(self, request: Any, emit: Any, /) -> Reply:
            for at in range(0, len(text), 4):
                emit({"kind": "text", "text": text[at : at + 4]})
            return Reply(text=text)

    monkeypatch.setattr("axil_agent.converse.partial_fields", counted)
    agent = SingleAgent(Model(), output_type=Veins)
    asyncio.run(agent.run("?", on_chunk=shown.append))
    assert sum(reads) < 80 * len(text) < sum(range(0, len(text), 4))
    assert [each["fields"] for each in shown if each["kind"] == "output"][-1] == whole
