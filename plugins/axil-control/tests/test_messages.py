"""Laws of ``literal``, ``passthrough`` and ``vote``."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from axil import Out, RootGraph
from axil.plugin import message
from axil_control.messages import Constant, Passthrough, Vote
from axil_control.switches import Switch


def test_a_literal_says_its_text_and_keeps_its_role():
    node = Constant(Constant.Config(content="hi", role="assistant"))
    assert node.run() == [{"role": "assistant", "content": "hi", "preserve_role": True}]


def test_a_literal_without_text_is_refused():
    with pytest.raises(ValidationError):
        Constant.Config(content="")


def test_a_literal_keeps_its_role_on_edges_through_a_passthrough(run):
    graph = {
        "nodes": [
            {"id": "A", "type": "literal", "config": {"content": "hi", "role": "assistant"}},
            {"id": "J", "type": "passthrough", "config": {}},
            {"id": "Z", "type": "passthrough", "config": {}},
        ],
        "edges": [{"from": "A", "to": "J"}, {"from": "J", "to": "Z"}],
        "start": ["A"],
    }
    assert run(graph).messages[-1]["role"] == "assistant"


def test_a_passthrough_repeats_the_last_message():
    assert Passthrough().run([[message("a"), message("b")], [message("c")]]) == [message("c")]


def test_a_passthrough_repeats_all_messages_in_edge_order_if_asked():
    node = Passthrough(Passthrough.Config(only_last_message=False))
    assert node.run([[message("a"), message("b")], [message("c")]]) == [
        message("a"),
        message("b"),
        message("c"),
    ]


def test_a_passthrough_to_which_nothing_came_says_one_empty_user_message():
    assert Passthrough().run([]) == [message("")]
    assert Passthrough().run([[]]) == [message("")]


def test_a_passthrough_repeats_fields_folded():
    node = Passthrough(Passthrough.Config(only_last_message=False))
    assert node.run([{"a": 1}, {"a": 2}]) == Out({"a": [1, 2]})
    assert Passthrough().run([{"a": 1}, {"b": 2}]) == Out({"b": 2})


def test_a_vote_goes_to_the_most_frequent_text():
    assert Vote().run([[message("yes")], [message("no")], [message("no")]]) == [
        message("no", "assistant")
    ]


def test_of_equal_votes_the_first_edge_wins():
    assert Vote().run([[message("b")], [message("a")], [message("a")], [message("b")]]) == [
        message("b", "assistant")
    ]


def test_what_a_pattern_finds_is_the_vote():
    said = ["6 * 7 ANSWER: 42", "ANSWER: 41", "I think ANSWER: 42", "No idea."]
    config = Vote.Config(pattern="ANSWER: *(.+)")
    assert Vote(config).run([[message(text)] for text in said]) == [message("42", "assistant")]
    assert Vote(Vote.Config(pattern="[ab]")).run([[message("xa")]]) == [message("a", "assistant")]
    with pytest.raises(ValueError, match="AX601"):
        Vote.Config(pattern="(")


def test_blank_texts_do_not_vote():
    assert Vote().run([[message(" ")], [message("")], [message("x")]]) == [
        message("x", "assistant")
    ]


def test_only_the_last_message_of_a_source_votes():
    gathered = [
        message("a", source="A"),
        message("b", source="A"),
        message("c", source="C"),
        message("c", source="D"),
    ]
    assert Vote().run([gathered]) == [message("c", "assistant")]
    assert Vote().run([[message("a"), message("b")], [message("b")], [message("a")]]) == [
        message("b", "assistant")
    ]


def test_a_vote_without_votes_sends_nothing():
    assert Vote().run([[message("")]]) == Out([], to=frozenset())


def test_majority_voting_of_a_file_ends_in_a_vote(run):
    graph = {
        "is_majority_voting": True,
        "nodes": [
            {"id": name, "type": "literal", "config": {"content": text}}
            for name, text in (("A", "yes"), ("B", "no"), ("C", "no"))
        ],
        "start": ["A"],
    }
    assert run(graph).output == "no"


def test_nodes_of_a_typed_graph_read_and_write_its_conversation():
    g = RootGraph("g", state="messages")
    g.create_node(Constant(Constant.Config(content="Go on.")), name="say")
    g.create_node(Switch(Switch.Config(routes={"again": "'Go' in text"})), name="choose")
    g.create_node(Constant(Constant.Config(content="Go on.")), name="again")
    g.create_node(Passthrough(), name="pass")
    g.create_edges([("entry", "say"), ("say", "choose"), ("choose", "again"), ("again", "pass")])
    g.create_edge("pass", "exit")
    messages = g.build().invoke({"messages": [message("hi")]})[1]["messages"]
    assert [m["content"] for m in messages] == ["hi", "Go on.", "Go on."]
