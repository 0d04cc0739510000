"""Laws of conditions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from axil.plugin import (
    ComponentBlocked,
    PatternLimit,
    Policy,
    Registry,
    UnknownComponent,
    use_registry,
)
from axil_control.conditions import (
    Always,
    CodeFailed,
    CodePassed,
    Function,
    Keyword,
    Never,
    Regex,
    Stated,
)


def keyword(**config):
    return Keyword(Keyword.Config(**config))


@pytest.mark.parametrize(
    ("config", "text", "taken"),
    [
        ({"any": ["ok", "yes"]}, "so yes", True),
        ({"any": ["ok"]}, "no", False),
        ({"any": ["OK"]}, "ok", False),
        ({"any": ["OK"], "case_sensitive": False}, "ok", True),
        ({"none": ["stop"]}, "go", True),
        ({"none": ["stop"]}, "stop", False),
        ({"none": ["STOP"], "case_sensitive": False}, "stop", False),
        ({"any": ["go"], "none": ["stop"]}, "go and stop", False),
        ({"regex": [r"\d+"]}, "a 7", True),
        ({"regex": [r"\d+"]}, "a", False),
        ({"regex": ["A$"], "case_sensitive": False}, "xa", True),
        ({"regex": [r"\d"], "any": ["x"]}, "x", True),
        ({"regex": [r"\d"], "none": ["no"]}, "no 7", False),
        ({"any": [""]}, "anything", False),
        ({"none": [""]}, "anything", True),
        ({"any": [], "none": ["a"], "regex": []}, "b", True),
        ({"any": ["a"], "none": None, "regex": None}, "a", True),
        ({"any": "a"}, "a", True),
    ],
)
def test_keyword_asks_none_then_any_then_regex(config, text, taken, seen):
    assert keyword(**config)(seen(text)) is taken


@pytest.mark.parametrize("config", [{}, {"any": []}, {"regex": ["("]}, {"any": ["a"], "al": ["b"]}])
def test_a_keyword_that_asks_nothing_or_cannot_be_read_is_refused(config):
    with pytest.raises(ValidationError):
        Keyword.Config(**config)


def test_a_pattern_is_searched_anywhere(seen):
    condition = Regex(
        Regex.Config(pattern="^b.c$", multiline=True, dotall=True, case_sensitive=False)
    )
    assert condition(seen("a\nB\nC\nd"))
    assert not condition(seen("a"))


def test_an_expression_holds_or_does_not(seen):
    condition = Stated(Stated.Config(expression="message.score >= state.limit"))
    assert condition(seen({"score": 3}, limit=3)) is True
    assert condition(seen({"score": 2}, limit=3)) is False


def test_an_expression_that_cannot_be_read_is_refused_with_the_config():
    with pytest.raises(ValidationError, match="AX600"):
        Stated.Config(expression="score >")


def test_failed_code_is_known_by_its_first_line(seen):
    failed, fine = seen("==CODE EXECUTION FAILED==\nwhy"), seen("42")
    assert [CodeFailed()(failed), CodeFailed()(fine), CodePassed()(failed), CodePassed()(fine)] == [
        True,
        False,
        False,
        True,
    ]


def test_always_and_never(seen):
    assert Always()(seen("x")) is True
    assert Never()(seen("x")) is False


def test_a_function_is_a_registered_condition(registry, seen):
    registry.register("conditions", "short", lambda text: len(text) < 3)
    assert Function(Function.Config(name="short"))(seen("ab")) is True
    assert Function(Function.Config(name="short"))(seen("abc")) is False
    registry.register("conditions", "third", lambda text, _context: _context["n"] == 3)
    assert Function(Function.Config(name="third"))(seen("a", n=3)) is True
    assert Function(Function.Config(name="code_fail"))(seen("fine")) is False


def test_an_unregistered_function_is_an_error_when_it_is_made(registry):
    with pytest.raises(UnknownComponent, match="contains_keyword"):
        Function(Function.Config(name="contains_keyword"))


def test_a_function_that_policy_blocks_is_not_found_by_name(registry):
    dist = registry.distribution("axil-control")
    entries = [
        SimpleNamespace(name=c.name, group="axil.conditions", value=c.value, dist=dist)
        for c in registry.candidates("conditions")
    ]
    blocking = Registry(Policy(block=frozenset({"conditions:code_fail"})), entries)
    with use_registry(blocking), pytest.raises(ComponentBlocked):
        Function(Function.Config(name="code_fail"))


def test_conditions_route_in_a_run(run, watch):
    graph = {
        "nodes": [{"id": "A", "type": "literal", "config": {"content": "x7"}}]
        + [{"id": name, "type": "passthrough", "config": {}} for name in "BCDE"],
        "edges": [
            {"from": "A", "to": "B", "condition": {"type": "regex", "config": {"pattern": r"\d"}}},
            {
                "from": "A",
                "to": "C",
                "condition": {"type": "expression", "config": {"expression": "len(text) > 2"}},
            },
            {"from": "A", "to": "D", "condition": False},
            {"from": "A", "to": "E", "condition": "code_pass"},
        ],
        "start": ["A"],
        "end": ["E"],
    }
    run(graph, watch=watch)
    assert sorted(watch.fired) == ["A", "B", "E"]


ENDLESS = "^(a|aa)+$"
HOSTILE = "a" * 60 + "b"
HUGE = "((((a{100}){100}){100}){100}){100}"


@pytest.mark.parametrize(
    "condition",
    [Regex(Regex.Config(pattern=ENDLESS)), keyword(regex=[ENDLESS])],
    ids=["regex", "keyword"],
)
def test_a_search_that_would_not_end_is_an_error(condition, seen):
    with pytest.raises(PatternLimit, match="AX633"):
        condition(seen(HOSTILE))


@pytest.mark.parametrize("pattern", [HUGE, "a{99999999999}", "(" * 5_000 + ")" * 5_000])
def test_a_pattern_that_is_too_large_is_refused_with_the_config(pattern):
    with pytest.raises(ValidationError, match="AX601"):
        Regex.Config(pattern=pattern)
    with pytest.raises(ValidationError, match="AX601"):
        keyword(regex=[pattern])


def test_a_search_that_would_not_end_is_the_failure_of_a_run_that_ends(run):
    nodes = [
        {"id": "A", "type": "literal", "config": {"content": HOSTILE}},
        {"id": "B", "type": "passthrough", "config": {}},
    ]
    condition = {"type": "regex", "config": {"pattern": ENDLESS}}
    edges = [{"from": "A", "to": "B", "condition": condition}]
    result = run({"nodes": nodes, "edges": edges, "start": ["A"], "end": ["B"]})
    assert result.status == "failed"
    assert "AX633" in str(result.error)
