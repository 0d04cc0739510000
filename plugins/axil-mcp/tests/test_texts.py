"""Texts of servers are made fit to be shown, and their tools get names that models take."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st

from axil.plugin import is_hidden
from axil_mcp.asking import Unfit, answer_of
from axil_mcp.config import Offer
from axil_mcp.errors import ListingRefused
from axil_mcp.listing import Offered, chosen, digest_of, names_of
from axil_mcp.texts import Tail, clean, cleaned, without


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_cleaned_text_hides_nothing_and_is_bounded(text, limit):
    reported = clean(text, limit)
    assert not any(is_hidden(character) for character in reported)
    assert len(reported) <= limit + len("… (cut:  characters)") + 9
    assert reported == clean(reported, len(reported) + 1)


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\u00ad",
        "\x1b",
        "\x00",
        "\U000e0041",
        "\ufe0f",
        "\u2028",
        "\ud800",
    ],
)
def test_what_hides_or_steers_is_taken_out(hidden):
    assert clean(f"a{hidden}b", 10) == "ab"


def test_what_people_read_stays():
    assert clean("Größe: 5 µm\n\t日本語 👍 é", 100) == "Größe: 5 µm\n\t日本語 👍 é"


def test_a_cut_is_reported():
    assert clean("x" * 30, 10) == "x" * 10 + "… (cut: 30 characters)"


def test_a_schema_is_whole_but_for_what_hides():
    schema = {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "a\u202eb"},
            "n\u200b": {"enum": ["x\u200b"]},
        },
        "required": ["description"],
        "x-own": {"deep": [1, {"title": "t\u200b"}]},
    }
    assert cleaned(schema) == {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "ab"},
            "n\u200b": {"enum": ["x\u200b"]},
        },
        "required": ["description"],
        "x-own": {"deep": [1, {"title": "t"}]},
    }


def test_a_secret_that_was_echoed_is_not_shown():
    assert without("key=abc and abcdef", ["abc", "abcdef"]) == "key=*** and ***"


def test_a_tail_keeps_the_end():
    tail = Tail(10)
    for each in (b"first ", b"second ", b"last"):
        tail.add(each)
    assert tail.text() == "… econd last"


@pytest.mark.parametrize("more", range(10, 24))
def test_a_tail_shows_no_part_of_a_secret(more):
    tail = Tail(20)
    tail.add(b"key=s3cret-token" + b"." * more)
    assert not any(part in tail.text(["s3cret-token"]) for part in ("tok", "ken", "n."))


@pytest.mark.parametrize("given", ["nan", "inf", "1e400", "9" * 5000, '{"n":' * 100_000])
def test_what_json_cannot_say_is_no_answer(given):
    class Form:
        mode = "form"
        requested_schema: ClassVar[Any] = {
            "type": "object",
            "properties": {"n": {"type": "number"}},
        }

    with pytest.raises(Unfit):
        answer_of(Form, given)


# --------------------------------------------------------------------------------------------------

NAMES = st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=12)


@given(NAMES)
def test_every_tool_has_a_name_of_its_own_that_models_take(names):
    found = names_of("server", names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(
        re.fullmatch(r"server__[A-Za-z0-9_-]*", name) and len(name) <= 64 for name in found.values()
    )


@given(NAMES, NAMES)
def test_tools_of_two_servers_are_never_called_the_same(ours, theirs):
    assert not set(names_of("a", ours).values()) & set(names_of("a_b", theirs).values())


def test_a_plain_name_is_kept_whatever_its_neighbours_are_called():
    assert names_of("s", ["a_b", "a.b", "a/b"])["a_b"] == "s__a_b"


# --------------------------------------------------------------------------------------------------


def tool(name: str, description: str = "", **more) -> Offered:
    return Offered(name=name, description=description, input_schema={"type": "object"}, **more)


def test_a_digest_does_not_depend_on_the_order_and_depends_on_everything_else():
    a, b = tool("a"), tool("b")
    assert digest_of([a, b]) == digest_of([b, a])
    others = [
        tool("a", "x"),
        tool("a", output_schema={"type": "object"}),
        tool("a", annotations={"readOnlyHint": True}),
        tool("c"),
    ]
    assert len({digest_of([each, b]) for each in (a, *others)}) == 5


def test_only_what_is_offered_counts_for_the_digest():
    offer = Offer(allow=("a",), expect=digest_of([tool("a")]))
    assert [
        shown.name for shown in chosen("s", [tool("a"), tool("b", "changed")], offer).tools
    ] == ["s__a"]
    with pytest.raises(ListingRefused, match=r"AX922.*sha256:"):
        chosen("s", [tool("a", "changed")], offer)


def test_patterns_choose_and_deny_is_stronger():
    tools = [tool(name) for name in ("read_file", "read_all", "write_file")]
    assert [
        s.tool.name
        for s in chosen("s", tools, Offer(allow=("read_*", "write_file"), deny=("*_all",))).tools
    ] == [
        "read_file",
        "write_file",
    ]


@pytest.mark.parametrize(
    ("tools", "offer", "reported"),
    [
        (["a", "a"], {}, "several tools are called 'a'"),
        (["read"], {"allow": ("reed",)}, 'Did you mean "read"'),
        (["a", "b"], {"max_tools": 1}, "offers 2 tools, more than 1"),
    ],
)
def test_a_listing_that_cannot_be_used_is_refused(tools, offer, reported):
    with pytest.raises(ListingRefused, match=f"AX923.*{reported}"):
        chosen("s", [tool(name) for name in tools], Offer(**offer))
