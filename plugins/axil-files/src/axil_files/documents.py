"""Documents: the plain data of a workflow file with its lines, and the loaders for JSON and TOML.

A loader turns text into a ``Document`` and knows nothing of graphs. It refuses what is not data
(tags, dates, duplicate keys) and what is too much, before that has cost anything.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, NoReturn, Protocol, cast

from axil import Problem, SpecError
from axil.plugin import (
    Place,
    format_value,
    with_article,
)

KeyPath = tuple[str | int, ...]
"""A path in plain data: ``("graph", "nodes", 2, "config")``."""

MAX_SIZE: Final = 1 << 23
"""Bytes in a file, and characters of text in its data."""
MAX_DEPTH: Final = 64
"""Levels of nesting."""
MAX_VALUES: Final = 500_000
"""Values in a file, each use of a variable or an alias counted."""
MAX_DIGITS: Final = 400
"""Digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain data (text, numbers, booleans, None, lists, mappings with text keys) and where each
    part of it was written.
    """

    data: Any
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int], repr=False)
    """Lines, counted from 1, by keys; whatever is missing is on the line of what contains it."""
    name: str = ""
    """The name of the file in messages."""

    def place(self, *keys: str | int) -> Place:
        """Return where ``keys`` were written; the path leaves out ``graph`` at its beginning."""
        shown = keys[1:] if len(keys) > 1 and keys[0] == "graph" else keys
        path = ""
        for key in shown:
            path = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        line, known = self.lines.get(keys), keys
        while line is None and known:
            known = known[:-1]
            line = self.lines.get(known)
        return Place(file=self.name, line=line, path=path, keys=keys, lines=self.lines)


class Loader(Protocol):
    """``axil.loaders``: named like the suffix of its files, ``yaml`` for ``flow.yaml``."""

    def __call__(self, text: str, name: str, /) -> Document:
        """Return the document in ``text``.

        Raises: SpecError, with the line, for text that is not plain data.
        """
        ...


def document_error(id: str, name: str, line: int | None, message: str, hint: str = "") -> SpecError:
    """Return the one problem that ends the reading of a text, at its line."""
    return SpecError(Problem(id, str(Place(file=name, line=line)), message, hint))


def too_deep(where: Place, message: str = f"nested deeper than {MAX_DEPTH} levels.") -> SpecError:
    """Return the problem of a document that nests too deep."""
    return SpecError(Problem("AX110", str(where), message, "Reduce the nesting."))


def too_large(where: Place, message: str) -> SpecError:
    """Return the problem of a document that is too large."""
    hint = "Split the file: a subgraph can be a file of its own."
    return SpecError(Problem("AX144", str(where), message, hint))


def check_document(document: Document) -> int:
    """Return the number of values in a document whose data is plain and within bounds.

    Raises: SpecError. Cost: O(values), at most ``MAX_VALUES``.
    """

    def unfit(keys: KeyPath, message: str, hint: str) -> SpecError:
        return SpecError(Problem("AX103", str(document.place(*keys)), message, hint))

    count = size = 0
    waiting: list[tuple[Any, KeyPath]] = [(document.data, ())]
    while waiting:
        value, keys = waiting.pop()
        count += 1
        if len(keys) > MAX_DEPTH:
            raise too_deep(document.place(*keys[:8]))
        if isinstance(value, str):
            size += len(value)
            if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                raise unfit(keys, "half of a surrogate pair is not text.", "Remove it.")
        elif isinstance(value, dict):
            for key, item in cast("dict[Any, Any]", value).items():
                if not isinstance(key, str):
                    message = f"expected text as key, found {format_value(key)}."
                    raise unfit(keys, message, "Put it into quotes.")
                size += len(key)
                if type(item) is str and len(keys) < MAX_DEPTH and item.isascii():
                    size += len(item)  # most values: nothing more is asked of them
                    count += 1
                else:
                    waiting.append((item, (*keys, key)))
        elif isinstance(value, list):
            waiting.extend((item, (*keys, i)) for i, item in enumerate(cast("list[Any]", value)))
        elif isinstance(value, float) and not math.isfinite(value):
            hint = "Leave it out where no limit is meant."
            raise unfit(keys, "expected a number that is finite.", hint)
        elif not (value is None or isinstance(value, (bool, int, float))):
            message = f"expected plain data, found {with_article(type(value).__name__)}."
            raise unfit(keys, message, "Write it as text, in quotes.")
        if count + len(waiting) > MAX_VALUES:
            counted = "variables and aliases counted where they are used"
            raise too_large(document.place(), f"holds more than {MAX_VALUES} values, {counted}.")
        if size > MAX_SIZE:
            counted = "variables counted where they are used"
            raise too_large(document.place(), f"holds more than {MAX_SIZE} characters, {counted}.")
    return count


# --------------------------------------------------------------------------------------------------

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_JSON_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]')
_ADVICE: Final = (
    ("',' delimiter", "Put a comma between two items, or close the bracket."),
    ("property name", 'Write "name": value, with a comma between two of them only.'),
    ("':' delimiter", 'Write "name": value.'),
)


def parse_json(text: str, name: str) -> Document:
    """Read a JSON document, with the line of every key and item.

    Duplicate keys, NaN and infinities are refused.
    """

    def refuse(word: str) -> NoReturn:
        line = text.count("\n", 0, text.find(word)) + 1
        raise document_error("AX140", name, line, f"{word} is no number of JSON.", "Leave it out.")

    def whole(digits: str) -> int:
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        line = text.count("\n", 0, text.find(digits)) + 1
        message = f"a number of more than {MAX_DIGITS} digits."
        raise document_error("AX140", name, line, message, "Write it as text, in quotes.")

    try:
        data = json.loads(text, parse_constant=refuse, parse_int=whole)
    except json.JSONDecodeError as error:
        # since Python 3.14 its parser goes deeper than any limit on calls of functions
        _check_depth(text[: error.pos], name)
        advice = next((f"{words} " for part, words in _ADVICE if part in error.msg), "")
        at = text[error.pos : error.pos + 1]
        found = f"found {format_value(at)}" if at else "found the end of the file"
        message = f"{error.msg.replace('Expecting', 'expected').removesuffix(' at')}, {found}."
        hint = f"{advice}It is in column {error.colno}."
        raise document_error("AX140", name, error.lineno, message, hint) from None
    except RecursionError:
        _json_lines(text, name)  # it says at which line the nesting becomes too deep
        raise too_deep(Place(file=name)) from None
    return Document(data=data, lines=_json_lines(text, name), name=name)


def _check_depth(text: str, name: str) -> None:
    """Check the nesting of the beginning of a JSON text. Raises: SpecError (AX110)."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', text, re.DOTALL):
        depth += 1 if found[0] in "[{" else -1 if found[0] in "]}" else 0
        if depth > MAX_DEPTH:
            raise too_deep(Place(file=name, line=text.count("\n", 0, found.start()) + 1))


def _json_lines(text: str, name: str) -> dict[KeyPath, int]:
    """Find the lines of keys and items in a text that is JSON."""
    breaks = [found.start() for found in re.finditer("\n", text)]
    lines: dict[KeyPath, int] = {}
    path: list[str | int] = []  # the key or the index in each container that is open
    is_key = False

    def record(at: int) -> None:
        line = bisect.bisect_left(breaks, at) + 1
        if len(path) > MAX_DEPTH:
            raise too_deep(Place(file=name, line=line))
        if len(lines) > MAX_VALUES:
            raise too_large(Place(file=name, line=line), f"more than {MAX_VALUES} values.")
        keys = tuple(path)
        if keys in lines:
            message = f"the key {format_value(path[-1])} occurs twice."
            raise document_error("AX145", name, line, message, "Remove one.")
        lines[keys] = line

    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if mark == "{":
            path.append("")
            is_key = True
        elif mark in ("}", "]"):
            path.pop()
            is_key = False
        elif mark == "[" or (mark == "," and isinstance(path[-1], int)):
            start = cast("re.Match[str]", _SPACE.match(text, token.end())).end()
            if mark == "[":
                path.append(-1)
            if text[start] != "]":
                path[-1] = cast("int", path[-1]) + 1
                record(start)
        elif mark == ",":
            is_key = True
        elif is_key:
            path[-1], is_key = json.loads(mark) if "\\" in mark else mark[1:-1], False
            record(token.start())
    return lines


# --------------------------------------------------------------------------------------------------

_TOML_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*"
    r"|[\[\]{}=.,\n]",
    re.DOTALL,
)


class _Statement(NamedTuple):
    """A header of a table, or the key of an entry."""

    line: int
    text: str
    is_header: bool


def parse_toml(text: str, name: str) -> Document:
    """Read a TOML document, with the lines of tables, and of keys outside of inline tables.

    Keys of more than ``MAX_DEPTH`` parts are refused before the standard library reads them, in
    time and memory that grow with the square of their number.
    """
    import tomllib

    statements = list(_statements(text, name))
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        message = str(error)[: found.start()] if found else str(error)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        hint = "Put texts into quotes." if message == "Invalid value" else ""
        raise document_error("AX140", name, line, f"{message}.", hint) from error
    except (ValueError, RecursionError) as error:
        raise document_error(
            "AX144", name, None, "a number or a nesting is too long to be read.", "Make it smaller."
        ) from error
    return Document(data=data, lines=_toml_lines(statements, tomllib.loads), name=name)


def _statements(text: str, name: str) -> Iterator[_Statement]:
    """Yield the statements of a text that may be TOML. Cost: O(characters).

    Strings and comments are skipped as a whole, so that brackets, dots and line breaks mean what
    they mean in TOML.
    """
    line, depth, dots = 1, 0, 0
    start, begun, is_open = 0, 1, True  # the statement that may begin here
    for token in _TOML_TOKEN.finditer(text):
        mark = token[0]
        if mark == ".":
            dots += 1
            if dots >= MAX_DEPTH:
                message = f"a key of more than {MAX_DEPTH} parts."
                raise too_deep(Place(file=name, line=line), message)
            continue
        if mark[0] not in "\"'":
            dots = 0
        if mark in ("[", "{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep(Place(file=name, line=line))
        elif mark in ("]", "}"):
            depth -= 1
        elif mark == "=" and not depth and is_open:
            yield _Statement(begun, text[start : token.start()], False)
            is_open = False
        elif mark == "\n" and (depth <= 0 or is_open):  # nothing before a "=" goes over lines
            head = text[start : token.start()].lstrip()
            if is_open and head.startswith("["):
                yield _Statement(begun, head, True)
            depth, start, is_open = 0, token.end(), True
        line += mark.count("\n")
        if mark == "\n":
            begun = line
    if is_open and (head := text[start:].lstrip()).startswith("["):
        yield _Statement(begun, head, True)


def _toml_lines(
    statements: Iterable[_Statement], loads: Callable[[str], dict[str, Any]]
) -> dict[KeyPath, int]:
    """Find the keys of statements that were read already; ``loads`` reads each key once more."""
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, text, is_header in statements:
        parts, value = list[str](), cast("Any", loads(text if is_header else f"{text}=0"))
        while isinstance(value, dict) and value:
            [(part, value)] = cast("dict[str, Any]", value).items()
            parts.append(part)
        if is_header:
            table = ()
            for part in parts[:-1]:
                table = (*table, part)
                table = (*table, counts[table] - 1) if table in counts else table
            table = (*table, parts[-1])
            if isinstance(value, list):
                lines.setdefault(table, line)
                counts[table] = counts.get(table, 0) + 1
                table = (*table, counts[table] - 1)
            lines.setdefault(table, line)
        else:
            lines.setdefault((*table, *parts), line)
    return lines
