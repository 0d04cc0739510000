"""Laws of a recorded run in outline."""

from __future__ import annotations

from itertools import pairwise

from axil import RootGraph, run_sync
from axil_journals import MemoryJournal, outline


def made(*bodies):
    graph = RootGraph("row")
    nodes = [graph.create_node(body, name=body.__name__) for body in bodies]
    for sender, receiver in pairwise(nodes):
        graph.create_edge(sender, receiver)
    graph.edge_from_entry(nodes[0])
    graph.edge_to_exit(nodes[-1])
    return graph.build()


async def spend(inputs, ctx):
    ctx.spend(cost=0.5, input_tokens=3)
    return inputs


async def ask(inputs, ctx):
    ctx.spend(input_tokens=4)
    return {"message": await ctx.ask("Which?")}


def shout(inputs):
    return {"message": inputs["message"].upper()}


def test_an_outline_tells_what_each_node_used_and_which_one_waits():
    graph, journal = made(spend, ask, shout), MemoryJournal()
    run_sync(graph.run("hello", run_id="r", journal=journal))
    drawn = outline(list(journal.entries("r")))
    first, second = drawn.nodes
    assert (first.path, first.times, first.tokens, first.cost) == (
        ("spend",),
        1,
        {"input_tokens": 3.0},
        0.5,
    )
    assert (second.path, second.times, second.waits) == (("ask",), 0, 1)
    assert (drawn.input, drawn.output) == ({"message": "hello"}, None)


def test_an_outline_of_a_run_that_went_on_has_its_output_and_no_question():
    graph, journal = made(ask, shout), MemoryJournal()
    (question,) = run_sync(graph.run("hello", run_id="r", journal=journal)).questions
    run_sync(graph.resume("r", journal=journal, answers={question.id: "this"}))
    drawn = outline(list(journal.entries("r")))
    assert [(node.path, node.times, node.waits) for node in drawn.nodes] == [
        (("ask",), 1, 0),
        (("shout",), 1, 0),
    ]
    assert (drawn.output, drawn.error) == ({"message": "THIS"}, "")
    spent = sum(sum(node.tokens.values()) for node in drawn.nodes)
    assert spent == sum(drawn.used["tokens"].values()) > 0


def test_a_graph_inside_is_before_what_is_in_it():
    from axil import Graph

    outer = RootGraph("outer")
    inner = Graph()
    first, last = inner.create_node(shout, name="shout"), inner.create_node(ask, name="ask")
    inner.edge_from_entry(first)
    inner.create_edge(first, last)
    inner.edge_to_exit(last)
    outer.create_node(inner, name="inside")
    outer.edge_from_entry("inside")
    outer.edge_to_exit("inside")
    journal = MemoryJournal()
    run_sync(outer.build().run("hello", run_id="r", journal=journal))
    paths = [node.path for node in outline(list(journal.entries("r"))).nodes]
    assert paths == [("inside",), ("inside", "shout"), ("inside", "ask")]
