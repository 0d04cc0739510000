"""Laws of patterns: what is found, and which bounds hold."""

from __future__ import annotations

import re
import sys

import pytest

from axil.patterns.patterns import LARGEST, LONGEST, size_of
from axil.plugin import NotInstalled, Pattern, PatternFault, PatternLimit, compile_pattern

ENDLESS = [
    ("^(a|aa)+$", "a" * 60 + "b"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5_000 + "b"),
    ("(?:foobarbaz){e<=6}", "xyzq" * 200_000),
    ("((a{1,9}){1,9}){1,9}c", "a" * 5_000),
]
HUGE = [
    "((((a{100}){100}){100}){100}){100}",
    "(?:(?:a{50,}){50,}){50,}",
    "a{9999999}",
    "a{99999999999999999999999999}",
    "a{" + "9" * 5_000 + "}",
    "(?:[(]{1000}){1000}",
    r"(?:\({1000}){1000}",
    "[^]{9}]{1000}" * 200,
    "(?#[)((a{1000}){1000})",
    "(?x)#[\n((a{1000}){1000})#]",
    "(?i-x:(?x:#[\n((a{1 000}){1 000})))",
    "(?V1)[[a](?#]((a{1000}){1000})",
    "a" * (LONGEST + 1),
]


@pytest.mark.parametrize(("text", "searched"), ENDLESS)
def test_a_search_that_would_not_end_is_an_error(text, searched):
    with pytest.raises(PatternLimit, match="AX633"):
        compile_pattern(text).search(searched, seconds=0.1)


def test_all_matches_share_one_limit():
    with pytest.raises(PatternLimit, match="AX633"):
        list(compile_pattern("(a|aa)+c|b").matches("b" + "a" * 60, seconds=0.1))


@pytest.mark.parametrize("text", HUGE)
def test_a_pattern_that_is_too_large_is_not_compiled(text, monkeypatch):
    def compiled(*args, **options):
        raise AssertionError("was compiled")

    monkeypatch.setattr("regex.compile", compiled)
    with pytest.raises(PatternFault, match="AX601"):
        compile_pattern(text)


@pytest.mark.parametrize("text", ["(", "a**", "(?P<a>", "[", "(" * 5_000 + ")" * 5_000, r"\L<x>"])
def test_what_is_no_pattern_is_an_error_that_says_so(text):
    with pytest.raises(PatternFault, match="AX601 expected a regular expression, found"):
        compile_pattern(text)


@pytest.mark.parametrize(
    "text",
    ["a|b", "(?i)AB", r"(?P<n>\d{4})-\d{2}", "x*?y", r"\bword\b", "(?<=a)b", "(?=.*z)a", "[]a]{2}"],
)
@pytest.mark.parametrize("searched", ["ab 2024-11 word", "xxyaz]a", "AB\nword", ""])
def test_what_is_found_is_what_the_standard_library_finds(text, searched):
    ours, theirs = compile_pattern(text).search(searched), re.search(text, searched)
    assert (ours and (ours.start(), ours.end())) == (theirs and (theirs.start(), theirs.end()))


def test_matches_come_one_after_another():
    assert [match.group() for match in compile_pattern("[a-c]").matches("a1b2c3")] == [*"abc"]


def test_flags_mean_what_they_say():
    assert compile_pattern("^b.c$", case_sensitive=False, multiline=True, dotall=True).search(
        "a\nB\nC"
    )
    assert not compile_pattern("b").search("B")


def test_groups_have_numbers_and_names():
    pattern = compile_pattern(r"(?P<year>\d+)-(\d+)")
    assert isinstance(pattern, Pattern)
    assert (pattern.groups, pattern.group_names) == (2, ("year",))


def test_the_size_counts_repetitions_as_often_as_they_are_repeated():
    assert size_of("(?:ab{3}){4}") <= 24
    assert size_of(r"(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}") < LARGEST


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(NotInstalled, match=r"(?s)AX306 .*the library regex.*core.*\[patterns\]"):
        compile_pattern("not compiled before")
