"""Laws of edge processors."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from axil.plugin import PatternLimit, UnknownComponent
from axil_control.errors import InputError
from axil_control.processors import Function, RegexExtract, Template, Uppercase

CODE = "```python\nprint(1)\n```"


def extract(**config):
    return RegexExtract(RegexExtract.Config(**config))


@pytest.mark.parametrize(
    ("config", "text", "carried"),
    [
        ({"pattern": r"\d+"}, "a 12 b 3", "12"),
        ({"pattern": r"\d+", "multiple": True}, "a 12 b 3", "12\n3"),
        ({"pattern": r"(a)(b)?", "group": 2}, "a ab", "b"),
        ({"pattern": r"(?P<n>\d)x", "group": "n"}, "7x", "7"),
        ({"pattern": r"(\d)x", "group": "1"}, "7x", "7"),
        (
            {
                "pattern": r"```(?P<lang>\w*)?\s*\n(?P<code>.*?)```",
                "group": "code",
                "dotall": True,
                "template": "",
            },
            CODE,
            "print(1)\n",
        ),
        ({"pattern": r"\d", "template": "<{match}|{match}>"}, "a7", "<7|7>"),
        ({"pattern": r"\d", "template": "<{match}>", "multiple": True}, "7 8", "<7>\n<8>"),
        ({"pattern": "B", "case_sensitive": False}, "abc", "b"),
        ({"pattern": "^b", "multiline": True}, "a\nb", "b"),
        ({"pattern": "x", "on_no_match": "default", "default_value": "D"}, "a", "D"),
        ({"pattern": "x", "on_no_match": "default"}, "a", ""),
        ({"pattern": "x", "on_no_match": "drop"}, "a", None),
        ({"pattern": "(a)|b", "group": 1, "on_no_match": "drop"}, "b", None),
        ({"pattern": "a*"}, "b", ""),
    ],
)
def test_a_match_is_extracted(config, text, carried, seen):
    assert extract(**config)(seen(text)) == carried


def test_where_nothing_matches_the_payload_passes_as_it_is(seen):
    payload = {"role": "user", "content": "a", "keep": True}
    assert extract(pattern="x")(seen(payload)) is payload


@pytest.mark.parametrize(
    "config",
    [
        {"pattern": "("},
        {"pattern": ""},
        {"pattern": "a", "group": 1},
        {"pattern": "a", "group": "n"},
    ],
)
def test_a_pattern_or_group_that_is_none_is_refused(config):
    with pytest.raises(ValidationError):
        RegexExtract.Config(**config)


def template(text, **config):
    return Template(Template.Config(template=text, **config))


def test_a_template_puts_in_text_fields_and_state(seen):
    payload = {"role": "user", "content": "hi", "n": 2, "deep": {"a": [1, "x"]}}
    reported = template("{text}|{match}|{message.n}|{n}|{deep}|{deep.a[1]}|{state.who}|{{n}}")(
        seen(payload, who="me")
    )
    assert reported == 'hi|hi|2|2|{"a": [1, "x"]}|x|me|{n}'


def test_what_is_put_in_is_not_read_again(seen):
    assert (
        template("<{text}>")(seen("{state.secret} {0.__class__}", secret="s"))
        == "<{state.secret} {0.__class__}>"
    )


def test_a_field_that_is_missing_is_an_error_or_empty_as_asked(seen):
    with pytest.raises(InputError, match=r"AX632 .*message\.name"):
        template("{name}")(seen("x"))
    assert template("<{name}>", on_missing="empty")(seen("x")) == "<>"


@pytest.mark.parametrize("text", ["{", "a}", "{}", "{a b}", "{a!r}", "{a:>10}", "{0}", "{a.}"])
def test_a_place_that_is_no_path_is_refused(text):
    with pytest.raises(ValidationError, match="AX602"):
        Template.Config(template=text)


def test_a_function_is_a_registered_processor(registry, seen):
    assert Function(Function.Config(name="uppercase_payload"))(seen("a")) == "A"
    with pytest.raises(UnknownComponent):
        Function(Function.Config(name="code_save_and_run"))


def test_a_plain_function_takes_the_text_and_may_drop_or_replace(registry, seen):
    registry.register("processors", "twice", lambda text: text * 2)
    registry.register(
        "processors",
        "framed",
        lambda text, state: {"content": f"<{text}{state['n']}>", "metadata": {"m": 1}},
    )
    registry.register("processors", "gone", lambda text: {"content": "x", "drop": True})
    given = seen("a", n=3)
    assert Function(Function.Config(name="twice"))(given) == "aa"
    assert Function(Function.Config(name="framed"))(given) == {
        "role": "user",
        "content": "<a3>",
        "m": 1,
    }
    assert Function(Function.Config(name="gone"))(given) is None


def test_uppercase_writes_capitals(seen):
    assert Uppercase()(seen("aß")) == "ASS"


@pytest.mark.parametrize(("on_no_match", "fired"), [("pass", ["A", "B"]), ("drop", ["A"])])
def test_a_dropped_payload_kills_the_edge(run, watch, on_no_match, fired):
    graph = {
        "nodes": [
            {"id": "A", "type": "literal", "config": {"content": "text"}},
            {"id": "B", "type": "passthrough", "config": {}},
        ],
        "edges": [
            {
                "from": "A",
                "to": "B",
                "process": {
                    "type": "regex_extract",
                    "config": {"pattern": "No", "on_no_match": on_no_match},
                },
            }
        ],
        "start": ["A"],
    }
    run(graph, watch=watch)
    assert watch.fired == fired


def test_an_extraction_that_would_not_end_is_an_error(seen):
    extract = RegexExtract(RegexExtract.Config(pattern="^(a|aa)+$", multiple=True))
    with pytest.raises(PatternLimit, match="AX633"):
        extract(seen("a" * 60 + "b"))
