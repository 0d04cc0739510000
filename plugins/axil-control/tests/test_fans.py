"""Laws of ``map`` and ``tree``, run by the kernel."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import ValidationError

from axil import GraphWarning, NodeFailed, Out, RootGraph, SpecError
from axil_control import Map, Replies
from axil_journals import MemoryJournal

TREE = {"type": "regex", "config": {"pattern": r"\d"}}


class Echo:
    """Says what came in brackets; the first item takes longest."""

    at_work = most = 0

    def __init__(self) -> None:
        Echo.at_work = Echo.most = 0

    async def run(self, messages: list[Any], ctx: Any) -> Any:
        Echo.at_work += 1
        Echo.most = max(Echo.most, Echo.at_work)
        for _ in range(5 if "1" in str(messages) else 1):
            await asyncio.sleep(0)
        Echo.at_work -= 1
        text = "+".join(str(m["content"]) for m in messages)
        return Out([{"role": "assistant", "content": f"({text})"}], {"seen": text})


class Picky:
    """Fails at 2."""

    def run(self, messages: list[Any]) -> Any:
        if messages[-1]["content"] == "2":
            raise ValueError("two")
        return messages


class Doubling:
    """Gives two messages for each group."""

    def run(self, messages: list[Any]) -> Any:
        return [messages[0], messages[0]]


class Silent:
    """Gives nothing."""

    def run(self, messages: list[Any]) -> None:
        return None


@pytest.fixture
def fan(run, registry):
    """Run ``@entry -> A -> Z -> O`` with ``S -> Z`` beside it, where the edge from A to Z is
    dynamic.
    """
    for kind in (Echo, Picky, Doubling, Silent):
        registry.register("nodes", kind.__name__.lower(), kind)

    def go(
        kind: str, text: str, body: Any = "echo", static: str = "", split: Any = TREE, **more: Any
    ) -> Any:
        config = {
            name: more.pop(name)
            for name in ("max_parallel", "max_items", "group_size")
            if name in more
        }
        node = {"type": body} if isinstance(body, str) else body
        nodes = [
            {"id": "A", "type": "passthrough", "config": {}},
            {"id": "Z", **node},
            {"id": "O", "type": "passthrough", "config": {"only_last_message": False}},
        ]
        edges: list[Any] = [
            {"from": "A", "to": "Z", "dynamic": {"type": kind, "split": split, "config": config}},
            {"from": "Z", "to": "O"},
        ]
        if static:
            nodes.append({"id": "S", "type": "literal", "config": {"content": static}})
            edges += [{"from": "A", "to": "S"}, {"from": "S", "to": "Z"}]
        return run(
            {"nodes": nodes, "edges": edges, "start": ["A"], "end": ["O"], **more.pop("graph", {})},
            text,
            **more,
        )

    return go


def test_a_map_runs_once_per_item_and_answers_in_item_order(fan, texts, watch):
    result = fan("map", "1 2 3", watch=watch)
    assert texts(result.messages) == ["(1)", "(2)", "(3)"]
    assert watch.fired.count("Z") == 1
    assert watch.fired.count("Z/Z") == 3


def test_what_is_the_same_for_all_is_put_before_each_item(fan, texts):
    assert texts(fan("map", "1 2", static="st").messages) == ["(st+1)", "(st+2)"]


def test_no_more_items_than_allowed_are_at_work(fan):
    fan("map", "1 2 3 4 5 6", max_parallel=2)
    assert Echo.most == 2


@pytest.mark.parametrize("kind", ["map", "tree"])
def test_more_items_than_allowed_are_refused_before_any_is_worked_on(fan, kind):
    result = fan(kind, "1 2 3", max_items=3)
    assert result.status == "done"
    Echo.most = 0
    result = fan(kind, "1 2 3 4", max_items=3)
    assert (result.status, Echo.most) == ("failed", 0)
    assert "more than 3 items" in str(result.error)


def test_without_items_the_node_runs_once_with_what_is_the_same_for_all(fan, texts):
    split = {"type": "json_path", "config": {"json_path": ""}}
    assert texts(fan("map", "[]", static="st", split=split).messages) == ["(st)"]


def test_a_map_over_nothing_sends_nothing(fan, watch):
    split = {"type": "json_path", "config": {"json_path": ""}}
    result = fan("map", "[]", split=split, watch=watch)
    assert result.status == "done"
    assert "O" not in watch.fired
    assert "Z/Z" not in watch.fired


def test_items_that_give_nothing_leave_no_gap(fan):
    assert fan("map", "1 2", "silent").messages == ()


def test_a_failing_item_fails_the_run_with_the_nodes_path(fan):
    result = fan("map", "1 2 3", "picky")
    assert result.status == "failed"
    assert result.error.path == "Z/Z"


def test_what_items_write_is_joined_in_item_order(fan):
    assert fan("map", "1 2 3", graph={"attributes": {"seen": ""}}).attributes["seen"] == "3"


def test_a_tree_groups_until_one_message_is_left(fan, texts, watch):
    result = fan("tree", "1 2 3 4 5", group_size=2, watch=watch)
    assert texts(result.messages) == ["(((1+2)+(3+4))+((5)))"]
    assert watch.fired.count("Z/Z") == 6


def test_in_a_tree_what_is_the_same_for_all_goes_into_the_first_layer(fan, texts):
    assert texts(fan("tree", "1 2 3 4", static="st").messages) == ["((st+1+2+3)+(st+4))"]


def test_a_single_item_of_a_tree_is_worked_on(fan, texts):
    assert texts(fan("tree", "1").messages) == ["(1)"]


def test_what_a_layer_wrote_is_upstream_of_the_next(fan, registry):
    class Counting:
        def run(self, messages: list[Any], attributes: Any) -> Any:
            return Out(messages[:1], {"count": attributes["count"] + 1})

    registry.register("nodes", "counting", Counting)
    # Three layers: the groups of one layer are beside each other and each adds one to what was
    # before.
    assert (
        fan(
            "tree", "1 2 3 4 5", "counting", group_size=2, graph={"attributes": {"count": 0}}
        ).attributes["count"]
        == 3
    )


def test_a_tree_that_does_not_come_down_to_one_is_an_error(fan):
    result = fan("tree", "1 2", "doubling", group_size=2)
    assert result.status == "failed"
    assert "AX631" in str(result.error)


def test_items_that_ask_pause_the_run_with_all_questions(fan, texts):
    result = fan("map", "1 2 3", "human", channel=Replies(["a"]))
    assert result.status == "paused"
    assert [q.text.rpartition("\n")[2] for q in result.questions] == ["2", "3"]
    assert texts(fan("map", "1 2", "human", channel=Replies(["a", "b"])).messages) == ["a", "b"]


def test_a_resumed_map_asks_only_what_is_unanswered(fan, texts):
    journal = MemoryJournal()
    paused = fan("map", "1 2 3", "human", channel=Replies(["a"]), journal=journal)
    answers = {question.id: f"re {question.id[-4:]}" for question in paused.questions}
    resumed = fan("map", "1 2 3", "human", journal=journal, run_id=paused.run_id, answers=answers)
    assert resumed.status == "done"
    assert texts(resumed.messages) == ["a", *answers.values()]


def test_more_items_than_may_be_at_work_all_ask(fan):
    assert len(fan("map", "1 2 3 4", "human", max_parallel=1).questions) == 4


INNER = {
    "nodes": [{"id": "L", "type": "passthrough", "config": {}}, {"id": "M", "type": "echo"}],
    "edges": [{"from": "L", "to": "M"}],
    "start": ["L"],
}


@pytest.mark.parametrize(("kind", "gave"), [("map", ["(1)", "(2)"]), ("tree", ["(1+2)"])])
def test_a_subgraph_is_mapped_like_any_node(fan, texts, kind, gave):
    inner = {
        **INNER,
        "nodes": [{**INNER["nodes"][0], "config": {"only_last_message": False}}, INNER["nodes"][1]],
    }
    body = {"type": "subgraph", "config": {"type": "config", "config": inner}}
    assert texts(fan(kind, "1 2", body).messages) == gave


@pytest.mark.parametrize("body", [{"type": "echo"}, INNER])
def test_map_and_tree_are_node_types_with_a_body(run, registry, texts, body):
    registry.register("nodes", "echo", Echo)
    graph = {
        "nodes": [{"id": "M", "type": "map", "config": {"split": TREE, "body": body}}],
        "edges": [],
        "start": ["M"],
    }
    assert texts(run(graph, "1 2").messages) == ["(1)", "(2)"]
    graph["nodes"] = [
        {
            "id": "M",
            "type": "tree",
            "config": {"split": TREE, "body": {"type": "echo"}, "group_size": 2},
        }
    ]
    assert texts(run(graph, "1 2 3").messages) == ["((1+2)+(3))"]


@pytest.mark.parametrize(
    "config",
    [
        {"max_parallel": 0},
        {"group_size": 1},
        {"size": 3},
        {"body": {}},
        {"body": {"type": "a", "nodes": []}},
        {"over": "texts", "split": "regex"},
        {"over": "texts", "edges": ["A"]},
        {"item": "text"},
    ],
)
def test_settings_that_make_no_sense_are_refused(config):
    from axil_control.fans import TreeNode

    with pytest.raises(ValidationError):
        TreeNode.Config(**{"body": {"type": "echo"}, **config})


# ---------------------------------------------------------------------- items of a list in a field


def noted(inputs: Any) -> Any:
    return {"note": inputs["text"].upper(), "score": len(inputs["text"]) * inputs["weight"]}


def over(*wrappers: Any, body: Any = noted, gives: Any = ("note", "score"), **graph: Any) -> Any:
    made = RootGraph("over", **graph)
    made.create_node(body, name="read", wrappers=wrappers)
    made.edge_from_entry("read", ["texts", "weight"])
    made.edge_to_exit("read", gives)
    return made.build()


def test_a_list_in_a_field_gives_a_list_in_each_field():
    graph = over(Map(over="texts", item="text"))
    given = {"texts": ["a", "bbb", "cc"], "weight": 2}
    assert graph.invoke(given).output == {"note": ["A", "BBB", "CC"], "score": [2, 6, 4]}
    none: Any = {"note": [], "score": []}
    assert graph.invoke({"texts": [], "weight": 2}).output == none


def test_attributes_that_are_pushed_are_the_lists():
    graph = over(Map(over="texts", item="text"), attributes={"note": [], "score": 0})
    attributes = graph.invoke({"texts": ["a", "bb"], "weight": 1}).attributes
    assert attributes == {"note": ["A", "BB"], "score": [1, 2]}


def test_a_tree_over_a_field_gives_each_layer_the_other_fields():
    def merged(inputs: Any) -> Any:
        return {"sum": "(" + "+".join(inputs["texts"]) + inputs["weight"] + ")"}

    graph = over({"type": "tree", "over": "texts", "group_size": 2}, body=merged, gives=["sum"])
    given = {"texts": ["a", "b", "c"], "weight": "!"}
    assert graph.invoke(given).output == {"sum": "((a+b!)+(c!)!)"}


def test_items_of_a_typed_state_are_fields_of_it():
    class Reading(TypedDict):
        texts: list[str]
        text: str
        total: Annotated[int, "sum"]

    made = RootGraph("typed", state=Reading)
    made.create_node(
        lambda state: {"total": len(state["text"])},
        name="read",
        wrappers=[Map(over="texts", item="text")],
    )
    made.edge_from_entry("read")
    made.edge_to_exit("read")
    state = made.build().invoke({"texts": ["a", "bb"], "text": "", "total": 0}).state
    assert (state["total"], state["text"]) == (3, "")


@pytest.mark.parametrize(
    ("given", "body", "found"),
    [
        ("ab", noted, 'AX636 "read" runs once per item of the list in "texts", and it is a str'),
        (
            ["a", "b"],
            lambda inputs: {inputs["text"]: 1},
            'AX635 an item of "read" gave b, the first one a',
        ),
    ],
)
def test_lists_that_would_not_stay_side_by_side_are_refused(given, body, found):
    graph = over(Map(over="texts", item="text"), body=body)
    with pytest.raises(NodeFailed, match=found):
        graph.invoke({"texts": given, "weight": 1})


def test_a_field_that_nothing_has_is_found_by_the_check():
    with pytest.raises(SpecError, match=r'AX159 node "read": it runs over "text",.*mean "texts"'):
        over(Map(over="text"))
    with pytest.warns(GraphWarning, match=r"AX159.*bring texts, weight, and it takes all"):
        over(Map())


def test_a_dynamic_edge_runs_its_target_over_a_field(run, registry):
    registry.register("nodes", "echo", Echo)
    graph: Any = {
        "payload": "fields",
        "nodes": [{"id": "Z", "type": "echo"}],
        "edges": [
            {
                "from": "@entry",
                "to": "Z",
                "keys": ["texts"],
                "dynamic": {"type": "map", "over": "texts", "item": "message"},
            },
            {"from": "Z", "to": "@exit", "keys": ["message"]},
        ],
    }
    assert run(graph, {"texts": ["1", "2"]}).output == {"message": ["(1)", "(2)"]}
    graph["edges"][0]["dynamic"]["over"] = "text"
    with pytest.raises(SpecError, match=r"edges\[0\].dynamic: it runs over"):
        run(graph, {"texts": ["1", "2"]})


def test_a_map_node_runs_its_body_over_a_field(run, registry, texts):
    class Planning:
        def run(self) -> Any:
            return {"steps": ["1", "2"]}

    registry.register("nodes", "echo", Echo)
    registry.register("nodes", "planning", Planning)
    config = {"over": "steps", "item": "message", "body": {"type": "echo"}}
    nodes = [
        {"id": "P", "type": "planning"},
        {"id": "M", "type": "map", "config": config},
        {"id": "O", "type": "passthrough", "config": {"only_last_message": False}},
    ]
    edges = [{"from": "P", "to": "M"}, {"from": "M", "to": "O"}]
    graph = {"nodes": nodes, "edges": edges, "start": ["P"]}
    assert texts(run(graph).messages) == ["(1)", "(2)"]
