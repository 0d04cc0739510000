"""Docstrings and pages use plain words: verbs for functions, nouns for the rest, none of the
banned. Those of variables and fields, written below them, are nouns as well.

The lists are short on purpose: each word in them stood for something that has a better name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.house.checkout import faults, nodes_of, text_of

QUESTIONS = (
    *("What", "Who", "Whoever", "Whose", "Where", "Whether", "How", "Which", "When", "Why"),
    *("Whatever", "Nobody", "Somebody", "Those"),
)
"""First words that name no thing and no act."""

NOUNS = ("The", "A", "An", "All", "One", "Every", "Each", "Another", "Its")
"""First words of a noun phrase: right for a class, a module or a property; wrong for a function."""

BANNED = re.compile(
    r"\b(told|nobody|whoever|whomever|came to|(?:go|goes|gone|going) on with|lets? go of)\b",
    re.IGNORECASE,
)

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
Variable = ast.Assign | ast.AnnAssign
Documented = Scope | Variable


def documented(source: Path) -> Iterator[tuple[Documented, str]]:
    """Yield the modules, classes, functions and variables of a file that have docstrings."""
    for node in nodes_of(source):
        if isinstance(node, Scope) and (text := ast.get_docstring(node)):
            yield node, text
        body = getattr(node, "body", ())
        for each, below in pairwise(body if isinstance(body, list) else ()):
            text = getattr(getattr(below, "value", None), "value", None)
            if isinstance(each, Variable) and isinstance(below, ast.Expr) and isinstance(text, str):
                yield each, text


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_act(node: Documented) -> bool:
    """Return whether a docstring describes an act: tests, fixtures and properties are things."""
    if not isinstance(node, FUNCTIONS):
        return False
    marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    return not node.name.startswith("test_") and not re.search("property|fixture", marks)


def own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is inside a function, less what is inside functions in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            yield from own(child)


def is_misnamed(node: Documented, word: str) -> bool:
    """Return whether ``word`` cannot be the first one of a docstring of this definition."""
    if not is_act(node):
        return word in QUESTIONS
    assert isinstance(node, FUNCTIONS)
    yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own(node))
    gives = node.returns is None or ast.unparse(node.returns) not in ("None", "NoReturn", "Never")
    return word in (*QUESTIONS, *NOUNS, *(["Return"] if yields or not gives else []))


def place(node: Documented) -> str:
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    name = getattr(node, "name", ast.unparse(targets[0]) if targets[0] else "module")
    return f"{getattr(node, 'lineno', 1)}: {name}"


def unnamed(source: Path) -> list[str]:
    """Return the places whose docstring begins with the wrong kind of word."""
    return [
        place(node)
        for node, text in documented(source)
        if is_misnamed(node, text.split()[0].rstrip(",.:"))
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('def f():\n    """What f gives."""', ["1: f"]),
        ('def f():\n    """The sum."""', ["1: f"]),
        ('def f():\n    """Return the sum."""', []),
        ('def f():\n    """Return the sums."""\n    yield 1', ["1: f"]),
        ('def f():\n    """Yield the sums."""\n    yield 1', []),
        ('def f() -> None:\n    """Return whether it adds up."""', ["1: f"]),
        ('class C:\n    """The sums."""', []),
        ('class C:\n    """Where sums are."""', ["1: C"]),
        ('class C:\n    a: int = 1\n    """How many there are."""', ["2: a"]),
        ('class C:\n    a: int = 1\n    """The number of sums."""', []),
        ('A = 1\n"""Whether it adds up."""', ["1: A"]),
        ('def f(self):\n    self.a = 1\n    """Who adds them up."""', ["2: self.a"]),
        ('class C:\n    @property\n    def f(self):\n        """The sum."""', []),
    ],
)
def test_the_first_word_is_looked_at(code: str, found: list[str], tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text(code, "utf-8")
    assert unnamed(path) == found


@pytest.fixture(scope="module")
def programs(texts: tuple[Path, ...]) -> list[Path]:
    """All Python files: sources, tests, benchmarks, examples."""
    return [file for file in texts if file.suffix == ".py"]


def test_a_docstring_begins_with_an_act_or_a_thing(programs):
    written = [file for file in programs if file.name != "keywords.py"]  # descriptions of fields
    assert faults(written, unnamed) == {}


def banned(source: Path) -> list[str]:
    return [
        f"{place(node)}: {', '.join(BANNED.findall(text))}"
        for node, text in documented(source)
        if BANNED.search(text)
    ]


def test_a_docstring_uses_plain_words(programs):
    assert faults(programs, banned) == {}


def banned_in_prose(page: Path) -> list[str]:
    if {"decisions", "handbook"} & set(page.parts):
        return []  # records of decisions, and texts to be searched, stay as they were written
    marked = r"```.*?```|`[^`\n]*`|\[[^\]\n]*\]\([^)\n]*\)"
    prose = re.sub(marked, "", text_of(page), flags=re.DOTALL)
    return [line for line in prose.splitlines() if BANNED.search(line)]


def test_a_page_uses_plain_words(pages):
    assert faults(pages, banned_in_prose) == {}


BANNED_IN_NAMES = re.compile(
    r"(?:^|_)(?:told|retold|nobody|whoever|whomever|came_to|comes_to_the_same|gone_on_with)(?:_|$)",
    re.IGNORECASE,
)


def misnamed(source: Path) -> list[str]:
    """Return the definitions of a file whose names use banned words."""
    return [
        place(node)
        for node in nodes_of(source)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and BANNED_IN_NAMES.search(node.name)
    ]


def test_a_banned_word_in_a_name_is_found(tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text("def test_a_model_is_told_of_it(): ...\ndef untold(): ...\nclass Told: ...\n")
    assert misnamed(path) == ["1: test_a_model_is_told_of_it", "3: Told"]


def test_a_name_uses_plain_words(programs):
    assert faults(programs, misnamed) == {}
