"""Descriptions of a function and its parameters from its docstring, in Google's, NumPy's or
Sphinx's format.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import NamedTuple


class Described(NamedTuple):
    """A docstring, taken apart."""

    text: str
    """All that is said of the function itself."""
    parameters: Mapping[str, str]
    result: str = ""
    """The description of the result."""


_GOOGLE = re.compile(
    r"(Args|Arguments|Parameters|Params|Returns|Return|Yields|Raises|Examples?|Notes?):[ \t]*"
)
_GOOGLE_ITEM = re.compile(r"(\*{0,2}\w+)(?:[ \t]*\([^)]*\))?:[ \t]*(.*)")
_RESULTS = ("returns", "return", "yields", "returns-", "return-", "yields-")
_RESULT = "->"
_NUMPY_RULE = re.compile(r"-{3,}[ \t]*")
_SPHINX = re.compile(r":(\w+)(?:[ \t]+([^:]*))?:[ \t]*(.*)")


def docstring_of(docstring: str | None) -> Described:
    """Return the text, the parameters and the result that a docstring describes; sections on errors
    are left out.

    >>> docstring_of("Add.\\n\\nArgs:\\n    a: one,\\n        or so\\n    b (int): the second")
    Described(text='Add.', parameters={'a': 'one, or so', 'b': 'the second'}, result='')
    >>> docstring_of("Add.\\n\\nReturns:\\n    int: the sum").result
    'int: the sum'
    """
    lines = inspect.cleandoc(docstring or "").split("\n")
    text: list[str] = []
    items: dict[str, list[str]] = {}
    result: list[str] = []
    section, current = "", ""
    at = depth = 0
    while at < len(lines):
        line = lines[at]
        if match := _GOOGLE.fullmatch(line):
            section, current = match[1].lower(), ""
        elif line.strip() and at + 1 < len(lines) and _NUMPY_RULE.fullmatch(lines[at + 1]):
            section, current = f"{line.strip().lower()}-", ""
            at += 1
        elif match := _SPHINX.fullmatch(line):
            section, current = "sphinx", ""
            if match[1] in ("param", "parameter", "arg", "argument") and match[2]:
                current = match[2].split()[-1]
                items[current] = [match[3]]
            elif match[1] in ("return", "returns"):
                current = _RESULT
                items[current] = [match[3]]
        elif section in ("args", "arguments", "parameters", "params"):
            depth = _depth(line) if not current else depth
            current = _google_item(line, depth, current, items)
        elif section in ("parameters-", "other parameters-"):
            current = _numpy_item(line, current, items)
        elif section == "sphinx" and line[:1].isspace() and current:
            items[current].append(line)
        elif section in _RESULTS and (line[:1].isspace() or section.endswith("-")):
            result.append(line)
        elif (
            section
            and section != "sphinx"
            and (line[:1].isspace() or not line.strip() or section.endswith("-"))
        ):
            pass  # a section that says nothing of parameters or the result
        else:
            section = "" if line.strip() else section
            text.append(line)
        at += 1
    described = {name: " ".join(" ".join(words).split()) for name, words in items.items()}
    of_result = " ".join(" ".join(result).split()) or described.pop(_RESULT, "")
    return Described("\n".join(text).strip(), described, of_result)


def _google_item(line: str, depth: int, current: str, items: dict[str, list[str]]) -> str:
    """Return the parameter that a line belongs to: one that stands deeper than the items goes on
    with the last of them.
    """
    match = _GOOGLE_ITEM.fullmatch(line.strip())
    if match and (not current or _depth(line) <= depth):
        name = match[1].lstrip("*")
        items[name] = [match[2]]
        return name
    if current and line.strip():
        items[current].append(line)
    return current


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _numpy_item(line: str, current: str, items: dict[str, list[str]]) -> str:
    if line.strip() and not line[:1].isspace():
        name = line.partition(":")[0].split(",")[0].strip().lstrip("*")
        items[name] = []
        return name
    if current:
        items[current].append(line)
    return current
