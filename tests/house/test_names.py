"""The glossary has a word for every class of the doors, each once, and none that is not used."""

from __future__ import annotations

import importlib
import re

import pytest
from tests.house.checkout import text_of

TERM = re.compile(r"\*\*([^*]+)\*\*")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
BY_ACT = {"axil.kernel.events", "axil.runtime.recorder"}
"""Modules whose classes are named for what they report or order: events, commands, facts."""
NO_NOUN = {
    "FromEnvironment": "text",
    "LoopLocal": "a value for each event loop",
    "NodeInfo": "facts about a node",
    "Out": "an outcome",
    "RunInfo": "facts about a run",
    "Send": "a token on its way",
    "Start": "a command",
}
"""Classes whose last word is no noun of ours, with what they are."""


@pytest.fixture(scope="module")
def glossary(root):
    return text_of(root / "docs/explanation/names.md")


def rows(glossary: str) -> list[str]:
    """Return the first cells of the tables."""
    return re.findall(r"^\| ([*`][^|]+?) \|", glossary, re.MULTILINE)


@pytest.mark.parametrize("door", ["axil", "axil.plugin", "axil.driver"])
def test_every_class_of_a_door_ends_with_a_word_of_the_glossary(door, glossary):
    words = {word.lower() for cell in rows(glossary) for word in WORD.findall(cell)}
    words |= {word.lower() for text in re.findall(r"\*(\w+)\*", glossary) for word in [text]}
    module = importlib.import_module(door)
    missing = []
    for name in module.__all__:
        thing = getattr(module, name)
        if not isinstance(thing, type) or issubclass(thing, BaseException):
            continue
        last = WORD.findall(name)[-1].lower()
        known = {last, last.removesuffix("s"), last.removesuffix("es")} & words
        if not known and thing.__module__ not in BY_ACT and name not in NO_NOUN:
            missing.append(name)
    assert missing == []


def test_a_word_of_the_glossary_stands_there_once(glossary):
    terms = [term for cell in rows(glossary) for term in TERM.findall(cell)]
    terms += [cell for cell in rows(glossary) if cell.startswith("`")]
    # a command of a run is an act; a command of the terminal is a component
    assert sorted({term for term in terms if terms.count(term) > 1}) == ["command"]


def test_every_word_of_the_glossary_is_used_in_the_sources(glossary, sources):
    code = "\n".join(text_of(file) for file in sources).lower()
    terms = {term.lower() for cell in rows(glossary) for term in TERM.findall(cell)}
    unused = [
        term
        for term in sorted(terms)
        if not re.search(rf"\b{re.sub('[ -]', '[ _-]?', term)}", code)
    ]
    assert unused == []
