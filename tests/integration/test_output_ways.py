"""Each type of output, on each way that it goes: direct, streamed, over a stop and in another
process' hands, from a file, to a client of OpenAI's API, in a batch.
"""

from __future__ import annotations

import asyncio
import datetime
import enum
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import openai
import pytest
from pydantic import AfterValidator, BaseModel, Field
from starlette.testclient import TestClient
from typing_extensions import TypedDict

from axil import RootGraph
from axil_agent import Agent, Scripted, SingleAgent
from axil_cli.main import main
from axil_files import load
from axil_journals import MemoryJournal
from axil_models import ModelBatches
from axil_serve import Access, Caller, ChatCompletions, Limits, RunService, app_of
from axil_sqlite import SqliteJournal
from axil_testing.stub import Stub


class Leaf(BaseModel):
    """A leaf."""

    colour: str
    veins: int = 0


@dataclass
class Stem:
    """A stem, and its leaf."""

    length: float
    leaf: Leaf | None = None


class Bud(TypedDict):
    """A bud."""

    asleep: bool
    age: int


class Kind(enum.Enum):
    """Kinds of plants."""

    TREE = "tree"
    HERB = "herb"


class Circle(BaseModel):
    """A round shape."""

    kind: Literal["circle"]
    radius: float


class Square(BaseModel):
    """A shape with corners."""

    kind: Literal["square"]
    side: float


def even(number: int) -> int:
    """Refuse odd numbers."""
    if number % 2:
        raise ValueError("the number is odd")
    return number


async def plant(name: str, count: int = 1) -> list[str]:
    """Plant something."""
    return [name] * count


def green(leaf: Leaf) -> Leaf:
    """Refuse leaves that are not green."""
    if leaf.colour != "green":
        raise ValueError(f"{leaf.colour} is not green")
    return leaf


Answer = Literal["yes", "no"]
Leaves = list[Leaf]
LeafOrBud = Leaf | Bud
LeafOrWords = Leaf | str
Shape = Annotated[Circle | Square, Field(discriminator="kind")]
Perhaps = Optional[int]  # noqa: UP045  # as it is still written
Counts = dict[str, int]
Pair = tuple[int, str]
Even = Annotated[int, AfterValidator(even)]
Day = datetime.date
Number, Share, Truth, Words, Numbers = int, float, bool, str, list[int]

RED = {"colour": "red", "veins": 0}
CASES: dict[str, tuple[list[str], Any, Any]] = {
    "Leaf": (['{"colour": "red"}'], Leaf(colour="red"), RED),
    "Stem": (
        ['{"length": 2, "leaf": {"colour": "red"}}'],
        Stem(2.0, Leaf(colour="red")),
        {"length": 2.0, "leaf": RED},
    ),
    "Bud": (['{"asleep": true, "age": 2}'], Bud(asleep=True, age=2), {"asleep": True, "age": 2}),
    "Kind": (["herb"], Kind.HERB, "herb"),
    "Answer": (["yes"], "yes", "yes"),
    "Numbers": (["[1, 2]"], [1, 2], [1, 2]),
    "Leaves": (['[{"colour": "red"}]'], [Leaf(colour="red")], [RED]),
    "LeafOrBud": (
        ['{"asleep": false, "age": 1}'],
        Bud(asleep=False, age=1),
        {"asleep": False, "age": 1},
    ),
    "LeafOrWords": (["just words"], "just words", "just words"),
    "Shape": (
        ['{"kind": "square", "side": 2}'],
        Square(kind="square", side=2),
        {"kind": "square", "side": 2.0},
    ),
    "Perhaps": (["null"], None, None),
    "Counts": (['{"a": 1}'], {"a": 1}, {"a": 1}),
    "Pair": (['[1, "a"]'], (1, "a"), [1, "a"]),
    "Day": (["2026-01-02"], datetime.date(2026, 1, 2), "2026-01-02"),
    "Number": (["42"], 42, 42),
    "Share": (["4.5"], 4.5, 4.5),
    "Truth": (["true"], True, True),
    "Words": (["words"], "words", "words"),
    "Even": (["3", "4"], 4, 4),
    "plant": (['{"name": "fern", "count": 2}'], ["fern", "fern"], ["fern", "fern"]),
    "green": (
        ['{"colour": "red"}', '{"colour": "green"}'],
        Leaf(colour="green"),
        {"colour": "green", "veins": 0},
    ),
}
"""By name in this module: the replies of a model, the object, and what edges carry."""


def model_of(name: str) -> Scripted:
    return Scripted(list(CASES[name][0]))


def keys_of(name: str) -> list[str]:
    """Return the fields of an output: of an object its own, else one."""
    fields = list(Agent(output_type=globals()[name]).gives or ())
    return ["value"] if fields == ["message"] else fields


def fields_of(name: str) -> dict[str, Any]:
    keys, plain = keys_of(name), CASES[name][2]
    return {"value": plain} if keys == ["value"] else plain


def graph_of(name: str, model: Any = None, body: Callable[..., Any] | None = None) -> RootGraph:
    graph, keys = RootGraph(name), keys_of(name)
    graph.create_node(Agent(model or model_of(name), output_type=globals()[name]), name="a")
    graph.edge_from_entry("a", ["message"])
    last = "a"
    if body is not None:
        graph.create_node(body, name="b")
        graph.create_edge("a", "b", keys)
        last = "b"
    graph.edge_to_exit(last, keys)
    graph.build()
    return graph


@pytest.mark.parametrize("name", CASES)
def test_directly_it_is_an_object_and_what_is_streamed_ends_with_its_fields(name):
    chunks: list[Any] = []
    kind, value = globals()[name], CASES[name][1]
    assert SingleAgent(model_of(name), output_type=kind).invoke({"q": "?"}) == value
    agent: SingleAgent[Any] = SingleAgent(model_of(name), output_type=kind)
    assert asyncio.run(agent.run({"q": "?"}, on_chunk=chunks.append)) == value
    kinds = [chunk["kind"] for chunk in chunks]
    assert kinds.count("reset") == len(CASES[name][0]) - 1
    shown = [chunk["fields"] for chunk in chunks if chunk["kind"] == "output"]
    if name == "Words":
        assert shown == []
    else:
        plain = fields_of(name)
        assert shown[-1] == ({"message": plain["value"]} if "value" in plain else plain)


@pytest.mark.parametrize("name", CASES)
def test_in_a_graph_it_is_plain_data_in_a_stream_and_over_a_stop(name, tmp_path):
    stopped: list[str] = []

    def stops(inputs: dict[str, Any]) -> dict[str, Any]:
        if not stopped:
            stopped.append(name)
            raise OSError("lost")
        return inputs

    async def streamed() -> Any:
        graph = graph_of(name)
        return [event async for event in graph.stream({"message": "?"})]

    events = asyncio.run(streamed())
    assert events[-1].data.output == fields_of(name)
    model = model_of(name)
    graph, journal = graph_of(name, model, stops), SqliteJournal(tmp_path / "runs.db")
    with pytest.raises(Exception, match="lost"):
        graph.invoke({"message": "?"}, journal=journal, run_id="r")
    asked = len(model.requests)
    again = graph_of(name, model, stops)  # as another process has it
    result = asyncio.run(again.resume("r", journal=journal))
    assert result.output == fields_of(name)
    assert len(model.requests) == asked == len(CASES[name][0])


def text_of(value: Any) -> str:
    """Return a value as clients of texts get it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def test_a_client_of_openais_api_gets_it_as_text_whole_and_streamed():
    token = "a token of at least 16 characters"
    graphs = {name: graph_of(name).build() for name in CASES}
    app = app_of(
        RunService(MemoryJournal(), graphs, poll_seconds=0.01),
        Access.of_token(token, Caller(name="ada")),
        protocols={"openai": ChatCompletions()},
        limits=Limits(burst=1000),
    )
    with TestClient(app, base_url="http://127.0.0.1") as given:
        http: Any = given
        client = openai.OpenAI(base_url="http://127.0.0.1/v1", api_key=token, http_client=http)
        for name in CASES:
            model_said = [{"role": "user", "content": "?"}]
            ask: Any = client.chat.completions.create
            whole = ask(model=name, messages=model_said).choices[0].message.content
            stream = ask(model=name, messages=model_said, stream=True)
            parts = [each.choices[0].delta.content or "" for each in stream if each.choices]
            assert whole == "".join(parts) == text_of(CASES[name][2]), name


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("Perhaps", "plant")])
def test_a_file_names_the_type_by_its_import_path(name, tmp_path):
    model = {"type": "scripted", "rules": [{"replies": CASES[name][0]}]}
    config = {"model": model, "output": f"{__name__}:{name}"}
    graph = {"start": ["a"], "end": ["a"], "edges": []}
    nodes = [{"id": "a", "type": "agent", "config": config}]
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": {**graph, "nodes": nodes}}), "utf-8")
    result = load(file, allow_code=True).invoke("?")
    plain = CASES[name][2]
    assert result.output == (plain if keys_of(name) == ["value"] else json.dumps(plain))


APP = """
import os
from axil_openai import OpenAIModel
from tests.integration.test_output_ways import graph_of

model = OpenAIModel("m", base_url=os.environ["STUB_URL"], profile="openai")
graph = graph_of(os.environ["CASE"], model)
"""


@pytest.mark.parametrize("name", CASES)
def test_a_batch_asks_for_it_and_again_where_it_is_refused(name, tmp_path, monkeypatch, capsys):
    replies = list(CASES[name][0])
    for option in ("quiet_seconds", "first_wait_seconds"):
        monkeypatch.setitem(ModelBatches.__init__.__kwdefaults__, option, 0.05)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "app", raising=False)
    (tmp_path / "app.py").write_text(APP, "utf-8")
    (tmp_path / "rows.csv").write_text("message\n?\n", "utf-8")
    with Stub("chat") as server:
        monkeypatch.setenv("STUB_URL", server.url)
        monkeypatch.setenv("CASE", name)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        server.batches.answer = lambda body: replies.pop(0)
        options = ["--batch-api", "--output", "out.jsonl"]
        code = main(["batch", "app.py:graph", "rows.csv", *options])
        assert (code, capsys.readouterr().err) == (0, "")
        assert len(server.batches.requests) == len(CASES[name][0])
    [row] = map(json.loads, (tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    found = {key.removeprefix("output."): each for key, each in row.items() if "output" in key}
    assert found.get("output", found) == fields_of(name)
