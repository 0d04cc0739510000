"""Documents: the plain data of a workflow file with the lines it stands on, the loaders for JSON
and TOML, and variables.

A loader turns text into a ``Document`` and knows nothing of graphs. It refuses what is not data
(tags, dates, duplicate keys) and what is too much of it, before it has cost anything: see
``LARGEST``, ``DEEPEST`` and ``MOST``.
"""

from __future__ import annotations

import bisect
import json
import json.decoder
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol, cast

from axil import Problem, SpecError
from axil.plugin import FromEnvironment, Place, did_you_mean, format_names, format_value

Keys = tuple[str | int, ...]
"""Where something is in plain data: ``("graph", "nodes", 2, "config")``."""

LARGEST: Final = 1 << 20
"""Bytes in a file, and characters of text in its data."""
DEEPEST: Final = 64
"""Levels of nesting."""
MOST: Final = 50_000
"""Values in a file, each use of a variable or an alias counted."""
LONGEST_NUMBER: Final = 400
"""Digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Plain data (text, numbers, booleans, None, lists, mappings with text keys) and where each
    part of it was written.
    """

    data: Any
    lines: Mapping[Keys, int] = field(default_factory=dict[Keys, int], repr=False)
    """Lines, counted from 1, by keys; whatever is missing is on the line of what contains it."""
    name: str = ""
    """What messages call the file."""

    def place(self, *keys: str | int) -> Place:
        """Where ``keys`` were written.

        The path leaves out ``graph``, where nearly everything is.
        """
        shown = keys[1:] if len(keys) > 1 and keys[0] == "graph" else keys
        first = keys[: len(keys) - len(shown)]
        start = Place(
            file=self.name,
            line=self.lines.get(first, self.lines.get(())),
            keys=first,
            lines=self.lines,
        )
        return start.at(*shown) if shown else start


class Loader(Protocol):
    """``axil.loaders``: named like the suffix of its files, ``yaml`` for ``flow.yaml``."""

    def __call__(self, text: str, name: str, /) -> Document:
        """The document in ``text``.

        Raises: SpecError, with the line, for text that is not plain data.
        """
        ...


def refused(id: str, name: str, line: int | None, message: str, hint: str = "") -> SpecError:
    """The one problem that ends the reading of a text, at its line."""
    return SpecError(Problem(id, str(Place(file=name, line=line)), message, hint))


def measure(document: Document, *, limits: tuple[int, int, int] = (DEEPEST, MOST, LARGEST)) -> None:
    """Nothing, if the document's data is plain and within bounds.

    Raises: SpecError. Cost: O(values), at most ``MOST``.
    """
    deepest, most, largest = limits
    count = size = 0
    waiting: list[tuple[Any, Keys]] = [(document.data, ())]
    while waiting:
        value, keys = waiting.pop()
        count += 1
        if len(keys) > deepest:
            raise _too(
                "AX110",
                document,
                keys[:8],
                f"nested deeper than {deepest} levels.",
                "Make it flatter.",
            )
        if isinstance(value, str):
            size += len(value)
            if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                raise _too(
                    "AX103", document, keys, "half of a surrogate pair is not text.", "Remove it."
                )
        elif isinstance(value, dict):
            for key, item in cast("dict[Any, Any]", value).items():
                if not isinstance(key, str):
                    raise _too(
                        "AX103",
                        document,
                        keys,
                        f"expected text as key, found {format_value(key)}.",
                        "Put it into quotes.",
                    )
                size += len(key)
                waiting.append((item, (*keys, key)))
        elif isinstance(value, list):
            waiting.extend((item, (*keys, i)) for i, item in enumerate(cast("list[Any]", value)))
        elif isinstance(value, float) and not math.isfinite(value):
            raise _too(
                "AX103",
                document,
                keys,
                "expected a number that is finite.",
                "Leave it out where no limit is meant.",
            )
        elif not (value is None or isinstance(value, (bool, int, float))):
            kind = type(value).__name__
            raise _too(
                "AX103",
                document,
                keys,
                f"expected plain data, found a {kind}.",
                "Write it as text, in quotes.",
            )
        if count + len(waiting) > most:
            raise _too(
                "AX144",
                document,
                (),
                f"holds more than {most} values, "
                "variables and aliases counted where they are used.",
            )
        if size > largest:
            raise _too(
                "AX144",
                document,
                (),
                f"holds more than {largest} characters, variables counted where they are used.",
            )


def _too(id: str, document: Document, keys: Keys, message: str, hint: str = "") -> SpecError:
    return SpecError(
        Problem(
            id,
            str(document.place(*keys)),
            message,
            hint or "Split the file; a subgraph can be a file of its own.",
        )
    )


# --------------------------------------------------------------------------------------------------

_DECODER: Any = json.decoder  # type checkers know nothing of its ``scanstring``
_scan = cast("Callable[[str, int, bool], tuple[str, int]]", _DECODER.scanstring)
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}


def parse_json(text: str, name: str) -> Document:
    """A JSON document, with the line of every key and item.

    Duplicate keys, NaN and infinities are refused.
    """
    reader = _Json(text, name)
    data, end = reader.value(reader.skip(0), ())
    if reader.skip(end) != len(text):
        reader.fail(reader.skip(end), "expected the end of the file.")
    return Document(data=data, lines=reader.lines, name=name)


class _Json:
    """The standard library's parser gives no positions; scanning of strings is left to it."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.lines: dict[Keys, int] = {}
        self._breaks = [m.start() for m in re.finditer("\n", text)]

    def line(self, at: int) -> int:
        return bisect.bisect_left(self._breaks, at) + 1

    def skip(self, at: int) -> int:
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def fail(self, at: int, message: str, id: str = "AX140", hint: str = "") -> NoReturn:
        column = f"It is in column {at - self.text.rfind(chr(10), 0, at)}."
        raise refused(id, self.name, self.line(at), message, f"{hint} {column}".lstrip())

    def value(self, at: int, keys: Keys) -> tuple[Any, int]:
        first = self.text[at : at + 1]
        if len(keys) > DEEPEST:
            self.fail(at, f"nested deeper than {DEEPEST} levels.", "AX110", "Make it flatter.")
        if len(self.lines) > MOST:
            self.fail(
                at,
                f"more than {MOST} values.",
                "AX144",
                "Split the file; a subgraph can be a file of its own.",
            )
        if first == '"':
            return self.string(at)
        if first == "{":
            return self.members(at, keys)
        if first == "[":
            return self.items(at, keys)
        for word, value in _WORDS.items():
            if self.text.startswith(word, at):
                return value, at + len(word)
        number = _NUMBER.match(self.text, at)
        if number is None:
            found = f"found {format_value(first)}" if first else "found the end of the file"
            self.fail(at, f"expected a value, {found}.")
        if number.end() - at > LONGEST_NUMBER:
            self.fail(
                at,
                f"a number of more than {LONGEST_NUMBER} digits.",
                hint="Write it as text, in quotes.",
            )
        return (float if number[1] or number[2] else int)(number[0]), number.end()

    def string(self, at: int) -> tuple[str, int]:
        if not self.text.startswith('"', at):
            self.fail(at, "expected a key in double quotes.", hint='Write "name": value.')
        try:
            return _scan(self.text, at + 1, True)
        except json.JSONDecodeError as error:
            self.fail(error.pos, f"{error.msg.rstrip(' at')}.")

    def items(self, at: int, keys: Keys) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "]":
            here = (*keys, len(found))
            self.lines[here] = self.line(at)
            value, at = self.value(at, here)
            found.append(value)
            at = self.next(at, "]")
        return found, at + 1

    def members(self, at: int, keys: Keys) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.skip(at + 1)
        while self.text[at : at + 1] != "}":
            start = at
            key, at = self.string(at)
            if key in found:
                self.fail(
                    start, f"the key {format_value(key)} is there twice.", "AX145", "Remove one."
                )
            self.lines[(*keys, key)] = self.line(start)
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                self.fail(at, 'expected ":".')
            found[key], at = self.value(self.skip(at + 1), (*keys, key))
            at = self.next(at, "}")
        return found, at + 1

    def next(self, at: int, end: str) -> int:
        """Behind a comma, with something to follow, or at ``end``."""
        at = self.skip(at)
        if self.text[at : at + 1] == ",":
            at = self.skip(at + 1)
            if self.text[at : at + 1] == end:
                self.fail(at, f'expected something between "," and "{end}".')
        elif self.text[at : at + 1] != end:
            self.fail(
                at,
                f'expected "," or "{end}".',
                hint="Put a comma between two parts, or close what was opened.",
            )
        return at


# --------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_ENTRY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
    r"""(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_TRIPLE = re.compile(r"\"\"\"|'''")


def parse_toml(text: str, name: str) -> Document:
    """A TOML document. Lines are those of tables and of keys at the start of a line."""
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        message = str(error)[: found.start()] if found else str(error)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise refused("AX140", name, line, f"{message}.") from error
    except (ValueError, RecursionError) as error:
        raise refused(
            "AX144", name, None, "a number or a nesting is too long to be read.", "Make it smaller."
        ) from error
    return Document(data=data, lines=_toml_lines(text), name=name)


def _toml_lines(text: str) -> dict[Keys, int]:
    """Guess by the shape of lines; what looks like a key inside a longer text is skipped."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    table: tuple[Any, ...] = ()
    inside = ""
    for number, line in enumerate(text.split("\n"), 1):
        was_inside = inside
        for quotes in _TRIPLE.findall(line):
            inside = "" if inside == quotes else inside or quotes
        if was_inside:
            continue
        if header := _HEADER.match(line):
            table = cast("tuple[Any, ...]", ())
            parts = _parts(header[2])
            for part in parts[:-1]:
                table = (*table, part)
                table = (*table, counts[table] - 1) if table in counts else table
            table = (*table, parts[-1]) if parts else table
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                table = (*table, counts[table] - 1)
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            lines.setdefault((*table, *_parts(entry[1])), number)
    return lines


def _parts(dotted: str) -> list[str]:
    found: list[str] = _PART.findall(dotted)
    return [part.strip("\"'") for part in found]


# --------------------------------------------------------------------------------------------------

PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A document without placeholders, and the names of the environment variables it took its
    values from.
    """

    document: Document
    environment: tuple[str, ...]


def resolve(
    document: Document,
    variables: Mapping[str, Any],
    environment: Mapping[str, str],
    report: Callable[[Problem], None],
) -> Resolved:
    """``${NAME}`` replaced in all values: a text that is one placeholder takes the variable's value
    and type, else its text.

    Variables may use variables. Names that are not among them are looked up in the environment;
    what comes from there is marked (``FromEnvironment``) and not searched for placeholders. Unknown
    names, each once with all its places, and circles are reported. Raises: SpecError (AX144):
    values that grow without bound.
    """
    work = _Resolver(document, variables, environment, report)
    data = work.walk(document.data, ())
    work.tell_unknown()
    return Resolved(
        Document(data=data, lines=document.lines, name=document.name), tuple(sorted(work.used))
    )


class _Resolver:
    def __init__(
        self,
        document: Document,
        variables: Mapping[str, Any],
        environment: Mapping[str, str],
        report: Callable[[Problem], None],
    ) -> None:
        self._document, self._variables, self._environment, self._report = (
            document,
            variables,
            environment,
            report,
        )
        self._known: dict[str, Any] = {}  # each variable is resolved once, however often it is used
        self._open: list[str] = []
        self._depth = 0  # of the values that the open variables are used in
        self._unknown: dict[str, list[Place]] = {}
        self.used: set[str] = set()

    def walk(self, value: Any, keys: Keys) -> Any:
        if isinstance(value, str):
            return self.text(value, keys) if "${" in value else value
        if isinstance(value, dict):
            return {
                k: self.walk(v, (*keys, k))
                for k, v in cast("dict[str, Any]", value).items()
                if keys or k != "vars"
            }
        if isinstance(value, list):
            return [self.walk(v, (*keys, i)) for i, v in enumerate(cast("list[Any]", value))]
        return value

    def text(self, text: str, keys: Keys) -> Any:
        if whole := PLACEHOLDER.fullmatch(text):
            return self.value(whole[1], keys, text)
        parts: list[str] = []
        end = size = 0
        marked = False
        for found in PLACEHOLDER.finditer(text):
            value = self.value(found[1], keys, found[0])
            marked = marked or isinstance(value, FromEnvironment)
            parts += [
                text[end : found.start()],
                value if isinstance(value, str) else _as_text(value),
            ]
            end = found.end()
            size += len(parts[-1])
            if size > LARGEST:
                raise _too(
                    "AX144",
                    self._document,
                    keys,
                    f"variables make more than {LARGEST} characters of it.",
                )
        joined = "".join([*parts, text[end:]])
        return FromEnvironment(joined, text) if marked else joined

    def value(self, name: str, keys: Keys, found: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in self._variables:
            if name in self._open or len(self._open) >= DEEPEST:
                circle = " → ".join(
                    [*self._open[self._open.index(name) if name in self._open else 0 :], name]
                )
                self.problem(
                    "AX147",
                    keys,
                    f"the variable {name} needs itself: {circle}.",
                    "Give one of them a plain value.",
                )
                return found
            inside = max(0, len(keys) - 2)
            self._depth += inside
            if self._depth > DEEPEST:
                raise _too(
                    "AX110",
                    self._document,
                    keys,
                    f"variables nest deeper than {DEEPEST} levels.",
                    "Make them flatter.",
                )
            self._open.append(name)
            value = self.walk(self._variables[name], ("vars", name))
            self._open.pop()
            self._depth -= inside
        elif name in self._environment:
            self.used.add(name)
            value = FromEnvironment(self._environment[name], "${" + name + "}")
        else:
            self._unknown.setdefault(name, []).append(self._document.place(*keys))
            return found
        self._known[name] = value
        return value

    def tell_unknown(self) -> None:
        """Report what nothing is known for."""
        for name, (first, *others) in self._unknown.items():
            hint = did_you_mean(name, self._variables) or (
                f"Add it to vars, give it with --set {name}=…, "
                f"or set the environment variable {name}."
            )
            lines = list(
                dict.fromkeys(
                    f"line {place.line}" if place.line else place.path for place in others
                )
            )
            also = f", nor at {format_names(lines)}" if lines else ""
            self._report(
                Problem("AX146", str(first), f"nothing is known for ${{{name}}}{also}.", hint)
            )

    def problem(self, id: str, keys: Keys, message: str, hint: str) -> None:
        self._report(Problem(id, str(self._document.place(*keys)), message, hint))


def _as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def template_of(value: Any) -> Any:
    """``value`` as a file says it: what came from the environment is a placeholder again."""
    return value.template if isinstance(value, FromEnvironment) else value
