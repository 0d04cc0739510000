"""Documents: the plain data of a workflow file with its lines, the loaders for JSON and TOML, and
variables.

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
    FromEnvironment,
    Grants,
    Place,
    Want,
    did_you_mean,
    format_names,
    format_value,
    is_private,
    keep_password,
    keep_secret,
    note_want,
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


# --------------------------------------------------------------------------------------------------

_MAKERS_KEY: Final = re.compile(r"[A-Z0-9]+_API_KEY")
_FILLED: Final = re.compile(r"\b(?:basic|bearer)\s+\$\{|://[^/\s@]*\$\{[^/\s]*@", re.IGNORECASE)
"""A text in which a variable is a token, or the password of a URL."""
PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A document without placeholders."""

    document: Document
    environment: tuple[str, ...]
    """The names of the environment variables that it took values from."""
    secrets: tuple[str, ...] = ()
    """The names of the variables that are the whole of a setting which is secret by its name."""


def resolve(
    document: Document,
    variables: Mapping[str, Any],
    environment: Mapping[str, str],
    report: Callable[[Problem], None],
    grants: Grants | None = None,
) -> Resolved:
    """Replace ``${NAME}`` in all values: a text that is one placeholder takes the variable's value
    and type, else its text.

    Variables may use variables. Other names are looked up in the environment; what comes from there
    is marked (``FromEnvironment``) and not searched for placeholders. Reported are unknown names,
    each once with all its places, circles, and names of the environment that ``grants`` does not
    hold (AX138). Raises: SpecError (AX110, AX144): values that grow without bound.
    """
    work, data = _Resolver(document, variables, environment, report, grants), document.data
    if isinstance(data, dict):
        data = {key: value for key, value in cast("dict[str, Any]", data).items() if key != "vars"}
    if "${" in repr(data):  # which is found sooner than by a walk through all values
        work.find_secrets(data, ())
        data = work.walk(data, ())
    work.tell_unknown()
    return Resolved(
        Document(data=data, lines=document.lines, name=document.name),
        tuple(sorted(work.used)),
        tuple(sorted(work.secrets)),
    )


class _Resolver:
    def __init__(
        self,
        document: Document,
        variables: Mapping[str, Any],
        environment: Mapping[str, str],
        report: Callable[[Problem], None],
        grants: Grants | None,
    ) -> None:
        self._document, self._variables, self._environment = document, variables, environment
        self._report, self._grants = report, grants
        self._withheld: set[str] = set()
        self.secrets: set[str] = set()
        self._known: dict[str, Any] = {}  # each variable is resolved once, however often it is used
        self._open: list[str] = []
        self._depth = 0  # of the values that the open variables are used in
        self._unknown: dict[str, list[Place]] = {}
        self.used: set[str] = set()

    def find_secrets(self, value: Any, keys: KeyPath, *, is_secret: bool = False) -> None:
        """Note the variables that fill secrets, also by way of others, before any is used."""
        if isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                self.find_secrets(item, (*keys, key), is_secret=is_secret)
        elif isinstance(value, list):
            for number, item in enumerate(cast("list[Any]", value)):
                self.find_secrets(item, (*keys, number), is_secret=is_secret)
        elif isinstance(value, str) and "${" in value and (is_secret or _is_secret(value, keys)):
            for name in {found[1] for found in PLACEHOLDER.finditer(value)} - self.secrets:
                self.secrets.add(name)
                self.find_secrets(self._variables.get(name), ("vars", name), is_secret=True)

    def walk(self, value: Any, keys: KeyPath) -> Any:
        if isinstance(value, str):
            return self.text(value, keys) if "${" in value else value
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {key: self.walk(item, (*keys, key)) for key, item in members.items()}
        if isinstance(value, list):
            return [self.walk(v, (*keys, i)) for i, v in enumerate(cast("list[Any]", value))]
        return value

    def text(self, text: str, keys: KeyPath) -> Any:
        if whole := PLACEHOLDER.fullmatch(text):
            return self.value(whole[1], keys, is_whole=True)
        parts: list[str] = []
        end = size = 0
        marked = False
        for found in PLACEHOLDER.finditer(text):
            value = self.value(found[1], keys)
            marked = marked or isinstance(value, FromEnvironment)
            parts += [text[end : found.start()], _as_text(value)]
            end = found.end()
            size += len(parts[-1])
            if size > MAX_SIZE:
                message = f"variables make more than {MAX_SIZE} characters of it."
                raise too_large(self._document.place(*keys), message)
        joined = "".join([*parts, text[end:]])
        return FromEnvironment(joined, text) if marked else joined

    def value(self, name: str, keys: KeyPath, *, is_whole: bool = False) -> Any:
        """Return the value of a name; its placeholder where there is none. ``is_whole``: nothing
        stands beside it.
        """
        found = "${" + name + "}"
        if name in self._known:
            return self._known[name]
        if name in self._variables:
            if name in self._open or len(self._open) >= MAX_DEPTH:
                begun = self._open.index(name) if name in self._open else 0
                circle = " → ".join([*self._open[begun:], name])
                message = f"the variable {name} needs itself: {circle}."
                where = str(self._document.place(*keys))
                self._report(Problem("AX147", where, message, "Give one of them a plain value."))
                return found
            inside = max(0, len(keys) - 2)
            self._depth += inside
            if self._depth > MAX_DEPTH:
                message = f"variables nest deeper than {MAX_DEPTH} levels."
                raise too_deep(self._document.place(*keys), message)
            self._open.append(name)
            value = self.walk(self._variables[name], ("vars", name))
            self._open.pop()
            self._depth -= inside
        elif name in self._environment:
            if self._grants is not None and not self._grants.allows(f"env:{name}"):
                is_key = is_whole and bool(keys) and keys[-1] == "api_key"
                if not (is_key and _MAKERS_KEY.fullmatch(name)):
                    self.withhold(name, keys)
                return found
            status = "own" if self._grants is None else "granted"
            where = str(self._document.place(*keys))
            note_want(Want(word=f"env:{name}", where=where, status=status))
            self.used.add(name)
            value = FromEnvironment(self._environment[name], "${" + name + "}")
        else:
            self._unknown.setdefault(name, []).append(self._document.place(*keys))
            return found
        if isinstance(value, str) and (name in self.secrets or is_private(name)):
            keep_secret(value, "${" + name + "}")
            value = FromEnvironment(value, "${" + name + "}")
        elif isinstance(value, str) and keep_password(value):  # of an address
            value = FromEnvironment(value, "${" + name + "}")
        self._known[name] = value
        return value

    def withhold(self, name: str, keys: KeyPath) -> None:
        """Report a variable that the file may not read.

        A maker's key, as the whole of an ``api_key``, is none: it stays a reference, and the
        adapter that gets it decides whether it goes to its maker.
        """
        if name not in self._withheld:
            self._withheld.add(name)
            problem = Problem(
                "AX138",
                str(self._document.place(*keys)),
                f"the workflow file tries to read the environment variable {name}.",
                f"Allow it if you trust the workflow: --allow env:{name}; "
                f"or give a value: --set {name}=…",
            )
            want = Want(word=f"env:{name}", where=problem.where, status="missing", problem=problem)
            if not note_want(want):
                self._report(problem)

    def tell_unknown(self) -> None:
        """Report what nothing is known for."""
        for name, (first, *others) in self._unknown.items():
            hint = did_you_mean(name, self._variables) or (
                f"Add it to vars, give it with --set {name}=…, "
                f"or set the environment variable {name}."
            )
            lines = dict.fromkeys(f"line {at.line}" if at.line else at.path for at in others)
            also = f", nor at {format_names(list(lines))}" if lines else ""
            message = f"there is no value for ${{{name}}}{also}."
            self._report(Problem("AX146", str(first), message, hint))


def _is_secret(text: str, keys: KeyPath) -> bool:
    """Return whether what fills a text is a secret, by the name of its setting or by the text."""
    names = [key for key in keys[-2:] if isinstance(key, str)]
    return (
        any(is_private(name) for name in names)
        or any(name.lower() == "headers" for name in names[:-1])
        or _FILLED.search(text) is not None
    )


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)
