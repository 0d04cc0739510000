"""``fallback``: a value, another node, another model."""

from __future__ import annotations

import asyncio
import threading

import pytest
from pydantic import BaseModel

from axil import ConfigError, Graph, LimitReached, PluginError, RootGraph, SpecError, Workflow
from axil.plugin import CompileOptions
from axil_files import Document, LoadOptions, spec_from_document
from axil_wrappers import Fallback, FallbackModel, Retry


async def broken(ctx, local):
    local["kept"] = 1
    ctx.emit({"kind": "text", "text": "half"})
    raise ConnectionError("no server")


def test_a_value_is_given_and_written_as_if_the_node_had_given_it(stage):
    result = stage.run(broken, Fallback(value={"n": 7, "seen": 3}))
    assert (result.status, result.output, result.attributes["seen"]) == ("done", {"n": 7}, 3)
    assert stage.watch.kinds() == ["text", "reset", "fallback"]


def test_a_node_that_ends_well_needs_none(stage):
    async def fine():
        return {"n": 1}

    assert stage.run(fine, Fallback(value={"n": 7})).output == {"n": 1}
    assert stage.watch.chunks == []


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({}, "done"),
        ({"on": ["OSError"]}, "done"),
        ({"on": ["ValueError"]}, "failed"),
        ({"not_on": ["ConnectionError"]}, "failed"),
    ],
)
def test_which_failures_are_meant(stage, config, status):
    assert stage.run(broken, Fallback(value={"n": 0}, **config)).status == status


def test_any_failure_is_meant_where_nothing_is_said(stage):
    async def wrong():
        raise TypeError("a mistake")

    assert stage.run(wrong, Fallback(value={"n": 0})).output == {"n": 0}


class Stand:
    """A node type that says what it was given."""

    opened = 0

    class Config(BaseModel, extra="forbid"):
        plus: int = 0

    def __init__(self, config):
        self.config = config

    def bind(self, edges):
        self.keys = [list(edge.keys or ()) for edge in edges]

    async def provision(self):
        type(self).opened += 1

    async def close(self):
        type(self).opened -= 1

    async def run(self, inputs, attributes, local):
        assert type(self).opened == 1
        assert local == {}
        return {
            "n": inputs["n"] + attributes["seen"] + self.config.plus,
            "seen": 9,
            "keys": self.keys,
        }


def test_another_node_stands_in_with_the_same_input_state_and_edges(stage, registry):
    registry.register("nodes", "stand", Stand)
    graph = stage.graph(broken, Fallback(use={"type": "stand", "config": {"plus": 5}}))
    output, attributes = graph.invoke({"n": 1})
    assert (output, attributes["seen"]) == ({"n": 6}, 9)
    assert Stand.opened == 0


def test_a_graph_stands_in_for_a_node_and_a_value_for_a_graph(stage, registry):
    def build(name="sub"):
        sub = Graph(name)
        sub.create_node(lambda inputs: {"n": inputs["n"] * 10}, name="ten", inline=True)
        sub.edge_from_entry("ten", ["n"])
        sub.edge_to_exit("ten", ["n"])
        return sub

    graph = stage.graph(broken, Fallback(use=build()))
    assert graph.invoke({"n": 4})[0] == {"n": 40}

    outer = RootGraph("outer")
    inner = outer.create_node(Graph, name="sub", wrappers=[Fallback(value={"n": 0})])
    inner.create_node(broken, name="bad")
    inner.edge_from_entry("bad", ["n"])
    inner.edge_to_exit("bad", ["n"])
    outer.edge_from_entry(inner, ["n"])
    outer.edge_to_exit(inner, ["n"])
    assert outer.build().invoke({"n": 4})[0] == {"n": 0}


def test_what_the_one_that_stands_in_raises_is_raised(stage, registry):
    async def also(inputs):
        raise ValueError("neither")

    registry.register("nodes", "also", also)
    assert isinstance(stage.run(broken, Fallback(use="also")).error.__cause__, ValueError)


@pytest.mark.parametrize("config", [{}, {"value": 1, "use": "x"}, {"use": "x", "why": 1}])
def test_a_setting_without_meaning_is_refused(config):
    with pytest.raises(ConfigError):
        Fallback(**config)


def test_a_limit_goes_through(stage):
    async def body():
        raise LimitReached("enough")

    assert stage.run(body, Fallback(value={"n": 0})).status == "failed"


def test_in_a_file_of_messages_the_value_is_a_text(registry):
    registry.register("nodes", "broken", broken)
    nodes = [
        {
            "id": "A",
            "type": "broken",
            "wrappers": ["retry", {"type": "fallback", "config": {"value": "I do not know."}}],
        }
    ]
    data = {"graph": {"id": "t", "nodes": nodes, "edges": [], "start": ["A"], "end": ["A"]}}
    spec = spec_from_document(Document(data=data, name="flow.json"), LoadOptions())
    assert Workflow(spec, CompileOptions(registry=registry)).invoke("hello")[0] == "I do not know."


def test_it_composes_with_retry(stage):
    calls = []

    async def body():
        calls.append(1)
        raise ConnectionError

    assert stage.run(body, Fallback(value={"n": 0}), Retry(tries=4)).output == {"n": 0}
    assert len(calls) == 4


# --------------------------------------------------------------------------------------------------


class Model:
    """Answers, or fails."""

    def __init__(self, name, error=None, show=()):
        self.name, self.error, self.show, self.asked, self.closed = name, error, show, 0, 0

    async def reply(self, request, emit):
        self.asked += 1
        for chunk in self.show:
            emit(chunk)
        if self.error is not None:
            raise self.error
        return f"{self.name}: {request}"

    async def close(self):
        self.closed += 1


def ask(model, shown=None):
    return asyncio.run(model.reply("why?", (shown if shown is not None else []).append))


def test_models_are_asked_in_order_until_one_answers():
    models, shown = (
        [
            Model("a", ConnectionError("x"), ["par"]),
            Model("b", ConnectionError("y")),
            Model("c"),
            Model("d"),
        ],
        [],
    )
    assert ask(FallbackModel(models), shown) == "c: why?"
    assert [model.asked for model in models] == [1, 1, 1, 0]
    assert [chunk if isinstance(chunk, str) else chunk["kind"] for chunk in shown] == [
        "par",
        "reset",
        "fallback",
        "fallback",
    ]


def test_the_last_ones_failure_is_raised():
    with pytest.raises(OSError, match="y"):
        ask(FallbackModel([Model("a", ValueError("x")), Model("b", OSError("y"))]))


@pytest.mark.parametrize(
    ("error", "config", "asked"),
    [(TypeError("x"), {}, 0), (ValueError("x"), {}, 1), (ValueError("x"), {"on": ["OSError"]}, 0),
     (TypeError("x"), {"on": ["TypeError"]}, 1), (LimitReached("x"), {"on": ["Exception"]}, 0)],
)  # fmt: skip
def test_after_which_failures_the_next_one_is_asked(error, config, asked):
    second = Model("b")
    model = FallbackModel([Model("a", error), second], **config)
    if asked:
        ask(model)
    else:
        with pytest.raises(type(error)):
            ask(model)
    assert second.asked == asked


def test_models_by_name_are_made_and_closed_with_it(registry):
    made = []

    class Named(Model):
        def __init__(self, name):
            super().__init__(name)
            made.append(self)

    registry.register("models", "named", Named)
    model = FallbackModel(
        FallbackModel.Config(
            models=[
                {"type": "named", "name": "small"},
                {"type": "named", "config": {"name": "large"}},
            ]
        )
    )
    assert made == []
    assert model.names == ("small", "large")
    asyncio.run(model.close())
    assert [each.closed for each in made] == [1, 1]


def test_what_is_no_model_is_refused():
    with pytest.raises(SpecError, match="AX835"):
        FallbackModel([object()]).bind(None)


def test_models_of_which_one_cannot_be_made_are_not_asked_the_second_time_either():
    model = FallbackModel([Model("a", OSError("x")), {"type": "nowhere"}])
    for _ in range(2):
        with pytest.raises(PluginError):
            ask(model)


def test_who_asks_while_another_thread_makes_the_models_has_all_of_them(registry):
    seen: list[int] = []

    class Late(Model):
        def __init__(self) -> None:
            super().__init__("late")
            if threading.current_thread() is threading.main_thread():
                thread = threading.Thread(target=lambda: seen.append(len(model.models())))
                thread.start()
                thread.join()

    registry.register("models", "late", Late)
    model = FallbackModel([Model("a"), "late"])
    assert len(model.models()) == 2
    assert seen == [2]


def test_a_model_that_fails_to_close_keeps_no_other_open(registry):
    closed: list[str] = []

    class First(Model):
        def __init__(self) -> None:
            super().__init__("first")

        async def close(self) -> None:
            closed.append(type(self).__name__)

    class Last(First):
        async def close(self) -> None:
            raise OSError("it does not close")

    registry.register("models", "first", First)
    registry.register("models", "last", Last)
    model = FallbackModel(["first", "last"])
    model.bind(None)
    with pytest.raises(OSError, match="does not close"):
        asyncio.run(model.close())
    asyncio.run(model.close())  # there is nothing left to close
    assert closed == ["First"]
