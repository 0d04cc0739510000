"""Laws of the expression language: what holds, what is missing, what is refused, and that running
never raises.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from axil import MISSING
from axil.plugin import Log
from axil_control.errors import ExpressionError
from axil_control.expression import Expression

MESSAGE = {
    "role": "user",
    "content": "the text",
    "score": 7,
    "tags": ["a", "b"],
    "deep": {"a b": [{"x": 1}]},
    "0": "zero",
}
STATE = {"limit": 5, "mode": "draft", "none": None, "flag": True, "log": Log([1, 2])}


@pytest.mark.parametrize(
    "text",
    [
        "message.score > state.limit",
        "message.score == 7.0 and text == 'the text'",
        '"text" in text',
        "'b' in message.tags and 'c' not in message.tags",
        "'score' in message",
        "len(message.tags) == 2 and len(text) >= 8 and len(state.log) == 2",
        'message.deep["a b"][0].x == 1',
        "message.tags[-1] == 'b' and message.tags.0 == 'a' and message[\"0\"] == 'zero'",
        "state.none == null",
        "state.flag and not (state.mode == 'final')",
        "not not state.flag",
        "-1 < 0 and 1e3 == 1000 and 1.5 != 2",
        "state.mode in ['draft', 'review']",
        "(1 == 2 or 3 == 3) and true",
        "message.role == \"user\" and 'it\\'s\\n' == \"it's\\n\"",
        "2 in state.log",
    ],
)
def test_what_is_true_holds(text, seen):
    assert Expression(text).holds(seen(MESSAGE, **STATE))


@pytest.mark.parametrize(
    "text",
    [
        "message.nothing",
        "message.nothing == 1",
        "message.nothing != 1",
        "message.nothing == message.nothing",
        "1 not in message.nothing",
        "message.nothing in [1]",
        "message.tags[5] == 'a'",
        "message.tags.a",
        "message.score.x == 1",
        "text.x",
        "len(message.score) >= 0",
        "state.none.x == null",
    ],
)
def test_what_is_missing_is_never_true(text, seen):
    assert not Expression(text).holds(seen(MESSAGE, **STATE))


def test_what_is_missing_can_be_asked_for(seen):
    assert Expression("not message.nothing").holds(seen(MESSAGE))
    assert Expression("not (message.nothing == 1)").holds(seen(MESSAGE))


@pytest.mark.parametrize(
    "text",
    ["1 < 'a'", "'a' >= 1", "null < 1", "[1] < 1", "1 in 'text'", "1 in 5", "message.tags > 'a'"],
)
def test_what_cannot_be_compared_is_false(text, seen):
    assert Expression(text).holds(seen(MESSAGE)) is False


def test_and_and_or_give_an_operand(seen):
    assert Expression("message.next or 'writer'")(seen(MESSAGE)) == "writer"
    assert Expression("message.score and text")(seen(MESSAGE)) == "the text"
    assert Expression("message.a or message.b")(seen(MESSAGE)) is MISSING


def test_a_path_reads_fields_and_never_attributes(seen):
    @dataclass
    class Plan:
        title: str
        secret = "class attribute"

    class Model(BaseModel):
        name: str

    state = {"plan": Plan("t"), "model": Model(name="m")}
    assert Expression("state.plan.title == 't' and state.model.name == 'm'").holds(
        seen("x", **state)
    )
    for path in (
        "state.plan.secret",
        "state.plan.__class__",
        "state.model.model_dump",
        "text.upper",
        "state.keys",
        "message.items",
    ):
        assert Expression(path)(seen("x", **state)) is MISSING


def test_of_several_messages_the_last_is_the_message(seen):
    both = seen([{"role": "user", "content": "a"}, {"role": "user", "content": "b", "n": 1}])
    assert Expression("message.n == 1 and text == 'a\\nb'").holds(both)


def test_fields_of_a_payload_are_the_message(seen):
    assert Expression("message.score > 1 and message.message == 'm'").holds(
        seen({"score": 2, "message": "m"})
    )


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "column 1: expected a value, found 'the end'"),
        ("message.score >", "column 16: expected a value"),
        ("mesage.score > 1", "column 1: unknown name 'mesage'. Did you mean \"message\"?"),
        ("score > 1", "message.score, state.score"),
        ("message.score = 1", "column 15: found '='. Compare with ==."),
        ("1 < 2 < 3", "column 7: a second comparison. Join two comparisons with and."),
        ("text + 'a'", "column 6: found '+'. There is no arithmetic"),
        ("open('x')", "column 1: 'open' cannot be called. Only len can."),
        ("message.save()", "column 13: expected the end, found '('"),
        ("'abc", 'column 1: found "\'". The text in quotes does not end.'),
        ("(1 == 1", "column 8: expected ')', found 'the end'"),
        ("message[text]", "column 9: expected a field or a position, found 'text'"),
        ("message.1.5", "expected a field or a position, found '1.5'"),
        ("a && b", "column 3: found '&'. Write and."),
        ("1 2", "column 3: expected the end, found '2'"),
        ("and", "column 1: expected a value, found 'and'"),
        ("(" * 60 + "1" + ")" * 60, "more than 40 brackets"),
        ("1 == 1 and " * 2000 + "true", "more than 10000 characters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_column(text, reported):
    with pytest.raises(ExpressionError) as refused:
        Expression(text)
    assert refused.value.id == "AX600"
    assert reported in str(refused.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "content"]), inner, max_size=3)
    ),
    max_leaves=8,
)
terms = st.sampled_from(
    [
        "message.a",
        "message.b[0]",
        "state.a.b",
        "text",
        "1",
        "-2.5",
        "'x'",
        "null",
        "true",
        "[1, 'x', message.a]",
        "len(state.a)",
    ]
)
operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"])
expressions = st.recursive(
    terms,
    lambda inner: (
        st.builds("({} {} {})".format, inner, operators, inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=8,
)


@given(
    text=expressions,
    payload=st.dictionaries(st.sampled_from(["a", "b"]), values),
    state=st.dictionaries(st.just("a"), values),
)
def test_running_an_expression_never_raises(text, payload, state):
    from axil import Schema
    from axil.plugin import EdgeInput

    assert Expression(text).holds(EdgeInput(payload, Schema().start(state))) in (True, False)


@given(st.text(alphabet="message.txand or()[]'\"=<>!0-9,notilen\\ \n", max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(ExpressionError):
        Expression(text)
