"""Laws of ``inbox``: what a node remembers of its messages."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pydantic import ValidationError

from axil import Token
from axil.plugin import message
from axil_control import Replies
from axil_control.inbox import Inbox, own, received, remembered, windowed
from axil_journals import MemoryJournal


def tokens(*payloads: Any) -> list[Token]:
    return [Token(i, payload, None) for i, payload in enumerate(payloads)]


def kept(text: str) -> dict[str, Any]:
    return message(text, keep=True)


def test_what_waited_comes_before_what_arrived():
    assert received([message("old")], tokens([message("a")], [message("b")])) == [
        message("old"),
        message("a"),
        message("b"),
    ]


def test_clearing_context_spares_kept_messages():
    gave = received(
        [kept("k"), message("old")], tokens([message("a")], [message("b", clear="context")])
    )
    assert gave == [kept("k"), message("b")]


def test_clearing_what_is_kept_spares_all_else():
    gave = received([kept("k"), message("old")], tokens([message("a", clear="kept")]))
    assert gave == [message("old"), message("a")]


def test_edges_that_clear_one_each_clear_both():
    came = tokens([message("a", clear="kept")], [message("b", clear="context")])
    assert received([kept("k"), message("old")], came) == [message("b")]


def test_clearing_all_spares_nothing_that_was_there_before():
    assert received(
        [kept("k")], tokens([message("a")], [message("b", clear="all")], [message("c")])
    ) == [message("b"), message("c")]


def test_an_edge_clears_once_for_all_its_messages():
    assert received(
        [message("old")], tokens([message("a", clear="context"), message("b", clear="context")])
    ) == [
        message("a"),
        message("b"),
    ]


def test_a_bearer_of_marks_is_no_message():
    assert received(
        [message("old"), kept("k")], tokens([message("", empty=True, clear="context")])
    ) == [kept("k")]


@pytest.mark.parametrize(
    ("window", "stays"),
    [(0, "K"), (1, "K"), (2, "Kd"), (3, "Kcd"), (9, "aKbcd"), (-1, "aKbcd")],
)
def test_a_window_counts_kept_messages_and_never_drops_them(window, stays):
    messages = [message("a"), kept("K"), message("b"), message("c"), message("d")]
    assert "".join(m["content"] for m in windowed(messages, window)) == stays


def test_kept_messages_may_be_more_than_the_window():
    assert windowed([kept("a"), message("b"), kept("c")], 1) == [kept("a"), kept("c")]


def test_own_outputs_are_an_assistants_unless_they_keep_their_role():
    said = own([message("x", "user", keep=True, score=1)], "W")
    assert said == [message("x", "assistant", keep=True, score=1, source="W")]
    assert own([message("x", "user", preserve_role=True)], "W")[0]["role"] == "user"


def test_what_a_node_sends_itself_comes_before_its_own_outputs_and_clears_none_of_them():
    said = own([message("x", "assistant")], "W")
    local = {"inbox": [message("old")], "said": said}
    back = message("sent", "assistant", source="W", clear="context")
    other = message("other", source="V")
    texts = [m["content"] for m in remembered(local, tokens([other], [back]), "W")]
    assert texts == ["sent", "x", "other"]


def test_a_window_below_minus_one_is_refused():
    with pytest.raises(ValidationError):
        Inbox.Config(window=-2)


# ---------------------------------------------------------------------- in runs


class Recording:
    """Says ``out1``, ``out2`` … and remembers what it saw, of all runs of a test."""

    saw: ClassVar[list[list[tuple[str, str, str]]]] = []

    def __init__(self) -> None:
        Recording.saw = []

    def run(self, messages: list[Any], local: dict[str, Any]) -> str:
        local["times"] = local.get("times", 0) + 1
        Recording.saw.append([(m["role"], m.get("source", ""), m["content"]) for m in messages])
        return f"out{local['times']}"


def loop(kind: str, window: int, times: int = 3, **edge: Any) -> dict[str, Any]:
    """W and a counter turn round each other; the counter's side says ``again``."""
    return {
        "nodes": [
            {"id": "W", "type": kind, "context_window": window},
            {"id": "R", "type": "literal", "config": {"content": "again"}},
            {"id": "K", "type": "loop_counter", "config": {"max_iterations": times}},
            {"id": "Z", "type": "passthrough", "config": {}},
        ],
        "edges": [
            {"from": "W", "to": "R"},
            {"from": "R", "to": "W", **edge},
            {"from": "R", "to": "K"},
            {"from": "K", "to": "W"},
            {"from": "K", "to": "Z"},
        ],
        "start": ["W"],
        "end": ["Z"],
    }


TASK, AGAIN = ("user", "TASK", "TASK"), ("user", "R", "again")


def out(number: int) -> tuple[str, str, str]:
    return ("assistant", "W", f"out{number}")


@pytest.mark.parametrize(
    ("window", "saw"),
    [
        (0, [[TASK], [AGAIN], [AGAIN]]),
        (-1, [[TASK], [TASK, out(1), AGAIN], [TASK, out(1), AGAIN, out(2), AGAIN]]),
        (2, [[TASK], [TASK, out(1), AGAIN], [out(1), AGAIN, out(2), AGAIN]]),
    ],
)
def test_a_node_sees_what_its_window_left(run, registry, window, saw):
    registry.register("nodes", "recording", Recording)
    assert run(loop("recording", window)).status == "done"
    assert Recording.saw == saw


def test_what_a_kept_edge_brings_stays_until_it_is_cleared(run, registry):
    registry.register("nodes", "recording", Recording)
    run(loop("recording", 0, keep_message=True))
    assert Recording.saw == [[TASK], [AGAIN], [AGAIN, AGAIN]]
    run(loop("recording", 0, keep_message=True, clear_context=True))
    assert Recording.saw == [[TASK], [AGAIN], [AGAIN, AGAIN]]
    run(loop("recording", 0, keep_message=True, clear_kept_context=True))
    assert Recording.saw == [[TASK], [AGAIN], [AGAIN]]


def test_an_edge_that_carries_nothing_can_still_clear(run, registry):
    registry.register("nodes", "recording", Recording)
    run(loop("recording", -1, carry_data=False, clear_context=True))
    assert Recording.saw == [[TASK], [], []]


def test_what_the_body_keeps_for_itself_stays_beside_the_inbox(run, registry):
    registry.register("nodes", "recording", Recording)
    assert run(loop("recording", -1)).status == "done"
    assert Recording.saw[-1][-2] == out(2)


def test_what_waits_in_an_inbox_is_in_the_journal(run, registry):
    registry.register("nodes", "recording", Recording)
    journal = MemoryJournal()
    graph = loop("recording", -1, times=2)
    graph["nodes"].append({"id": "H", "type": "human", "context_window": -1})
    graph["edges"] = [edge for edge in graph["edges"] if edge != {"from": "R", "to": "W"}]
    graph["edges"] += [{"from": "R", "to": "H"}, {"from": "H", "to": "W"}]
    paused = run(graph, journal=journal)
    saw = Recording.saw
    resumed = run(
        graph, journal=journal, run_id=paused.run_id, answers={paused.questions[0].id: "more"}
    )
    assert saw == [[TASK]]
    assert Recording.saw == [[TASK, out(1), ("user", "H", "more")]]
    assert resumed.status in ("done", "paused")


def test_edges_clear_in_their_order_on_one_firing(run, texts):
    graph = {
        "nodes": [
            {"id": "K", "type": "literal", "config": {"content": "keepme"}},
            {"id": "N", "type": "literal", "config": {"content": "normal"}},
            {"id": "C", "type": "literal", "config": {"content": "soft"}},
            {"id": "J", "type": "passthrough", "config": {"only_last_message": False}},
        ],
        "edges": [
            {"from": "K", "to": "J", "keep_message": True},
            {"from": "K", "to": "N"},
            {"from": "N", "to": "C"},
            {"from": "N", "to": "J"},
            {"from": "C", "to": "J", "clear_context": True},
        ],
        "start": ["K"],
    }
    assert texts(run(graph).messages) == ["keepme", "soft"]


@pytest.mark.parametrize("body", ["human", "subgraph"])
def test_bodies_of_every_mode_have_an_inbox(run, texts, body):
    inner = {
        "type": "config",
        "config": {
            "nodes": [{"id": "P", "type": "passthrough", "config": {"only_last_message": False}}],
            "edges": [],
            "start": ["P"],
        },
    }
    graph = loop(body, -1, times=2)
    graph["nodes"][0]["config"] = inner if body == "subgraph" else {}
    channel = Replies(["h1", "h2"])
    result = run(graph, channel=channel)
    assert result.status == "done"
    if body == "human":
        blocks = channel.asked[1].text.split("\n\n")
        assert [block.partition(": ")[0] for block in blocks] == ["TASK", "W", "R"]


def test_a_mapped_node_has_one_inbox(run, registry, texts):
    registry.register("nodes", "recording", Recording)
    graph = loop("recording", -1, times=2, dynamic={"type": "map"})
    assert run(graph).status == "done"
    # First firing: TASK is no item and comes alone. Second: what stayed is the same for all, the
    # new message the item.
    assert Recording.saw == [[TASK], [TASK, out(1), AGAIN]]
