"""Conditions that files name as functions."""

from __future__ import annotations

import pytest

from axil_devall.conditions import (
    contains_keyword,
    length_greater_than_5,
    need_reflection_loop,
    not_contains_keyword,
    should_stop_loop,
)


@pytest.mark.parametrize(("text", "holds"), [("Trigger it", True), ("nothing", False), ("", False)])
def test_the_word_is_looked_for_in_any_case(text, holds):
    assert contains_keyword(text) is holds
    assert not_contains_keyword(text) is not holds


def test_length_is_counted_in_characters():
    assert (length_greater_than_5("12345"), length_greater_than_5("äöüäöü")) == (False, True)


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("Score: 0.9\n- Verdict: STOP", True),
        ("**Verdict:** stop", True),
        ("Verdict: CONTINUE|STOP\nVerdict: CONTINUE", False),
        ("Do not stop.", False),
        ("Verdict: STOPPED", False),
        ("", False),
    ],
)
def test_a_loop_stops_at_its_last_verdict_and_at_nothing_else(text, stops):
    assert should_stop_loop(text) is stops
    assert need_reflection_loop(text) is not stops


def test_files_name_them_as_functions(flow):
    def literal(name: str, content: str) -> dict[str, object]:
        return {"id": name, "type": "literal", "config": {"content": content}}

    edges = [
        {"from": "A", "to": "B", "condition": "should_stop_loop"},
        {
            "from": "A",
            "to": "C",
            "condition": {"type": "function", "config": {"name": "need_reflection_loop"}},
        },
    ]
    work = flow(
        [literal("A", "Verdict: STOP"), literal("B", "stopped"), literal("C", "again")],
        edges,
        end=["C", "B"],
    )
    assert work.invoke("")[0] == "stopped"
