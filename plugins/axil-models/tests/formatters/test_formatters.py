"""Laws of the formatters: what was dumped is parsed as it was, and what models really send is
understood.
"""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel

from axil_models import FormatError, Json, LenientJson, Markdown, Paragraph, Tagged, Twins, as_text
from axil_models.formatters import json as json_module
from axil_models.formatters.text import MOST_BLOCKS, fenced
from axil_models.thoughts import without_thoughts

law = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
"""A failure prints how to repeat it; no law is about seconds."""

LINES = [
    "see http://a.b/c?d=1",
    "def f(x):",
    "else:",
    "for a in b:",
    "name: value",
    " name:",
    "  name:",
    "```",
    "```py",
    "# title",
    "\\# x",
]
SIGNS = [
    "<a>",
    "<b>x</b>",
    "\\<a>",
    "{",
    "}",
    '"',
    ",}",
    "\n",
    "a:\nb",
    "## x #",
    "-----",
    "…",
    "\x0b",
    "\x85",
    "\u2028",
    "<think>",
    "a:",
]
PIECES = st.one_of(st.text(max_size=12), st.sampled_from(LINES), st.sampled_from(SIGNS))
TEXT = (
    st.lists(PIECES, max_size=5)
    .map("\n".join)
    .filter(lambda t: t == t.strip() and not t.lower().startswith("<think"))
)
NAMES = st.sampled_from(["a", "b", "plan", "next step", "MESSAGE TO YOU", "x_1", "Name"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def clean(text: str) -> bool:
    return "think>" not in text.lower() and "thinking>" not in text.lower()


# ---------------------------------------------------------------------- round trips


@law
@given(st.dictionaries(NAMES | st.text(max_size=5), VALUES | TEXT, max_size=4))
def test_json_gives_back_what_it_was_given(fields):
    assert Json().parse(Json().dump(fields)) == fields
    assert LenientJson().parse(LenientJson().dump(fields)) == fields


def printable(text: str) -> bool:
    return "\r" not in text and clean(text)


@law
@given(st.dictionaries(NAMES, TEXT.filter(printable), min_size=1, max_size=4))
def test_paragraphs_give_back_texts(fields):
    dumped = Paragraph().dump(fields)
    assert Paragraph().parse(dumped) == fields
    assert Paragraph().parse(dumped, list(fields)) == fields


@law
@given(st.dictionaries(NAMES, TEXT.filter(printable), min_size=1, max_size=4))
def test_tagged_texts_come_back(fields):
    dumped = Tagged().dump(fields)
    closes = any(value.endswith(f"</{name}>") for name, value in fields.items())
    assert closes or Tagged().parse(dumped, list(fields)) == fields


@law
@given(
    st.dictionaries(
        NAMES,
        st.recursive(
            TEXT.filter(printable),
            lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3),
            max_leaves=6,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_markdown_gives_back_nested_texts(fields):
    assert Markdown().parse(Markdown().dump(fields)) == fields


@law
@given(TEXT.filter(printable))
def test_twins_give_each_field_the_whole_text(text):
    assert Twins().parse(text, ["a", "b"]) == {"a": text, "b": text}
    assert Twins().parse(Twins().dump({"": text})) == {"message": text}


@law
@given(VALUES, st.randoms())
def test_equal_values_have_equal_text(value, random):
    def shuffled(each):
        if isinstance(each, dict):
            items = list(each.items())
            random.shuffle(items)
            return {name: shuffled(inner) for name, inner in items}
        return [shuffled(inner) for inner in each] if isinstance(each, list) else each

    assert as_text(value) == as_text(shuffled(value))


@pytest.mark.parametrize(
    "formatter", [Json(), LenientJson(), Markdown(), Paragraph(), Tagged(), Twins()]
)
@law
@given(st.text(max_size=60) | TEXT)
def test_any_text_is_parsed_or_refused_by_name(formatter, text):
    try:
        found = formatter.parse(text, ["a"])
    except FormatError:
        return
    assert isinstance(found, dict)


# ---------------------------------------------------------------------- what models send


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '```json\n{"a": 1}\n```',
        'Sure!\n```\n{"a": 1}\n```\nAnything else?',
        '<think>{"a": 2}</think>{"a": 1}',
        '<THINKING>\n{}\n</THINKING>\n\n{"a": 1}',
        'hm, {"a": 2}?</think>{"a": 1}',
        'The answer is {"a": 1}.',
        '{"a": 1,}',
        '{"a": 1',
        '{"a": 1}}',
        '{"a": 1} {"b": 2}',
        '\ufeff{"a": 1}',
    ],
)
def test_json_is_found_and_repaired(text):
    assert Json().parse(text) == {"a": 1}


def test_json_keeps_empty_objects_and_repairs_inside_them():
    assert Json().parse('{"a": {}, "b": [], "c": [1, 2,], }') == {"a": {}, "b": [], "c": [1, 2]}


def test_control_characters_in_strings_are_kept():
    assert Json().parse('{"a": "one\ntwo\tthree"}') == {"a": "one\ntwo\tthree"}


def test_commas_and_brackets_in_strings_are_left_alone():
    assert Json().parse('{"a": ",}", "b": "[1,]",}') == {"a": ",}", "b": "[1,]"}


def test_inner_brackets_that_were_forgotten_are_closed():
    assert Json().parse('{"a": [1, {"b": 2}') == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize("text", ["", "bad", '{"a": "one', "{'a': x}", '{"a": NaN}', '{"a" 1}'])
def test_what_has_no_one_meaning_is_refused(text):
    with pytest.raises(FormatError, match="AX690"):
        Json().parse(text)


@pytest.mark.parametrize("text", ["[1]", '"a"', "3", "null"])
def test_the_root_is_an_object(text):
    with pytest.raises(FormatError, match="AX691"):
        Json().parse(text)


def test_deep_nesting_is_refused_not_crashed():
    with pytest.raises(FormatError):
        Json().parse("[" * 100_000)
    with pytest.raises(FormatError):
        LenientJson().parse("[" * 100_000)


def test_an_error_shows_where_and_what():
    with pytest.raises(FormatError, match=r'"bad".*line 1, column 1'):
        Json().parse("bad")


def test_lenient_json_reads_what_python_writes():
    assert LenientJson().parse("So: {'a': True, 'b': None}") == {"a": True, "b": None}


def test_a_url_or_a_line_of_code_in_a_value_stays_a_value():
    value = "http://a.b/c\ndef f(x):\n    return {'a': 1}\nnote: this"
    assert Paragraph().parse(f"answer:\n{value}\nscore:\n3") == {"answer": value, "score": "3"}


def test_values_beside_their_names_are_understood():
    assert Paragraph().parse("answer: http://a.b\nscore: 3") == {
        "answer": "http://a.b",
        "score": "3",
    }
    assert Paragraph().parse("**Answer:** x\n\n- score: 3", ["answer", "score"]) == {
        "answer": "x",
        "score": "3",
    }
    assert Paragraph().parse("thought:\nwell\nanswer: 3", ["thought", "answer"]) == {
        "thought": "well",
        "answer": "3",
    }


def test_fields_that_were_not_asked_for_are_part_of_a_value():
    assert Paragraph().parse("answer:\nif a:\nelse:\nb", ["answer"]) == {
        "answer": "if a:\nelse:\nb"
    }


def test_an_empty_value_and_a_repeated_name_are_kept():
    assert Paragraph().parse("a:\nb:\nx\nb:\ny") == {"a": "", "b": "x\ny"}


def test_no_name_at_all_is_the_one_field_or_an_error():
    assert Paragraph().parse("just this", ["answer"]) == {"answer": "just this"}
    with pytest.raises(FormatError, match="AX692"):
        Paragraph().parse("just this", ["a", "b"])


def test_a_tag_need_not_be_closed_and_text_before_it_is_no_field():
    assert Tagged().parse("So:\n<plan>one\ntwo\n<score>3</score>", ["plan", "score"]) == {
        "plan": "one\ntwo",
        "score": "3",
    }


def test_only_asked_for_tags_are_tags():
    assert Tagged().parse("<html>\n<b>x", ["html"]) == {"html": "<b>x"}
    assert Tagged().parse('{"a": "x"}', ["a", "b"]) == {"a": "x"}
    with pytest.raises(FormatError, match="AX693"):
        Tagged().parse("nothing", ["a", "b"])


def test_tagged_drops_no_part_of_a_prompt():
    assert (
        Tagged().dump({"MESSAGE TO YOU": "hi", "CONTEXT": [1]})
        == "<MESSAGE TO YOU>hi\n<CONTEXT>[\n  1\n]"
    )


def test_code_under_a_heading_keeps_its_comments_and_a_second_heading_adds():
    text = "# Code\n```python\n# not a heading\nx = 1\n```\n# Note\na\n## More\nb\n# Note\nc"
    assert Markdown().parse(text) == {
        "Code": "```python\n# not a heading\nx = 1\n```",
        "Note": {"_content": "a\n\nc", "More": "b"},
    }


def test_markdown_without_headings_is_json_or_the_content():
    assert Markdown().parse('{"a": 1}') == {"a": 1}
    assert Markdown().parse("hello") == {"content": "hello"}
    assert Markdown().parse("hello", ["answer"]) == {"answer": "hello"}


def test_the_untitled_field_has_no_title():
    for formatter in (Paragraph(), Twins(), Tagged(), Markdown()):
        assert formatter.dump({"": "hi"}) == "hi"


def test_every_kind_of_value_has_a_text():
    class Point(BaseModel):
        y: int
        x: int

    assert json.loads(as_text({"p": Point(y=1, x=2), "s": {3, 1}, "t": (1,)})) == {
        "p": {"x": 2, "y": 1},
        "s": [1, 3],
        "t": [1],
    }
    assert Paragraph().dump({"é": "ü"}) == "é:\nü"
    assert Json().dump({"é": "ü"}) == '{"é": "ü"}'


def test_thoughts_are_not_spoken():
    assert without_thoughts("<think>never ends") == ""
    assert fenced("````\n```\na\n```\n````") == ["```\na\n```\n"]


@pytest.mark.parametrize("block", ["```\n", "```json\n{\n```\n", "a\n```\n"])
@pytest.mark.parametrize("formatter", [Json, LenientJson, Tagged, Markdown])
def test_a_reply_of_fences_is_read_as_an_answer_so_many_times_and_no_more(
    formatter, block, monkeypatch
):
    """The forms of each block are three; of other parts of the text there are a few."""
    reads: list[str] = []
    real = json_module._loads
    monkeypatch.setattr(json_module, "_loads", lambda text: reads.append(text) or real(text))
    with contextlib.suppress(FormatError):
        formatter().parse(block * 20_000, ["a", "b"])
    assert len(reads) <= 3 * (MOST_BLOCKS + 4)


def test_the_first_hundred_blocks_are_read():
    others = "```\n[1]\n```\n" * (MOST_BLOCKS - 1)
    assert Json().parse(f'{others}```\n{{"a": 1}}\n```\n}}') == {"a": 1}
    assert len(fenced("```\n```\n" * 200)) == MOST_BLOCKS


@pytest.mark.parametrize(
    "text",
    [
        "{'a': 'it is', 'b': [1, True, None]}",
        '{a: "it is", b: [1, true, null]}',
        '{"a": "it is", // said\n "b": [1, true, null] /* all */}',
        '{"a": "it is"\n "b": [1, true, null]}',
        "{“a”: “it is”, “b”: [1, true, null]}",
        '{"a": "it is", "b": [1 True None],}',
        "Here you are:\n```json\n{'a': 'it is', 'b': [1, True, None,]\n```",
    ],
)
def test_json_that_is_slightly_wrong_is_read_where_it_has_one_meaning(text):
    assert Json().parse(text) == {"a": "it is", "b": [1, True, None]}


@pytest.mark.parametrize("text", ['{"a": "she said "no" twice"}', "{a: maybe}", "{'a': 'it"])
def test_json_that_has_no_one_meaning_is_not_guessed(text):
    with pytest.raises(FormatError):
        Json().parse(text)
