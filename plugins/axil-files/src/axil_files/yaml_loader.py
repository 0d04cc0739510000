"""YAML text → ``Document``, from PyYAML's stream of events.

Scalars are the booleans of YAML 1.1 (DevAll's files use them), decimal numbers, null. Everything
else stays text: dates, times, ``0x10``, ``010``, ``1:30``. Keys are always text.

Refused, at its line, as soon as it is seen: tags, duplicate keys, keys that are not text, several
documents, more than ``MAX_DEPTH`` levels or ``MAX_VALUES`` values. Aliases and merge keys count as
the values they stand for, and a document that uses any has at most ``MOST_WITH_ALIASES``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, cast

import yaml

from axil.plugin import Place
from axil_files.documents import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_SIZE,
    MAX_VALUES,
    Document,
    KeyPath,
    document_error,
    too_deep,
    too_large,
)

MOST_WITH_ALIASES: Final = 10_000
"""Values of a document that uses aliases, each use counted."""

_WORDS: Final = {
    **{
        form: value
        for value, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off")))
        for word in words
        for form in (word, word.title(), word.upper())
    },
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
_MERGE: Final = "<<"

# libyaml is some ten times faster; its events are the same.
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Made(NamedTuple):
    value: Any
    weight: int
    """Values in it, aliases counted as often as they are used."""


def parse_yaml(text: str, name: str) -> Document:
    """Return a YAML document.

    Raises: SpecError, with the line: AX140 not YAML, AX110 and AX144 too deep or too much, AX145
    refused.
    """
    if len(text) > MAX_SIZE:
        raise too_large(Place(file=name), f"larger than {MAX_SIZE} characters.")
    builder: _Builder | None = None
    try:
        builder = _Builder(text, name)
        return Document(data=builder.document(), lines=builder.lines, name=name)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise document_error(
            "AX140", name, line, "half of a surrogate pair is not text.", "Remove it."
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        message = " ".join(part for part in (error.context, error.problem) if part)
        if "maximum nesting depth" in message:  # libyaml's own bound, met before ours
            raise too_deep(Place(file=name, line=line)) from error
        message = f"{message or 'this is not YAML'}."
        raise document_error("AX140", name, line, message, _advice(text, error)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        hint = "Remove it, or write an escape in double quotes."
        raise document_error(
            "AX140", name, line, "a character that YAML does not allow.", hint
        ) from error
    finally:
        if builder is not None:
            builder.close()


_ADVICE: Final = (
    (
        "mapping values are not allowed",
        'Put a text that contains ": " into quotes, and begin the keys of one mapping in the '
        "same column.",
    ),
    ("',' or '", "Put a comma between two items, or close the bracket."),
    ("end of stream", "Close the quotes."),
    ("expected", "Check the indentation: items of one collection begin in the same column."),
)


def _advice(text: str, error: yaml.MarkedYAMLError) -> str:
    """Return how to correct text that is not YAML, in plain words, and the column."""
    mark = error.problem_mark or error.context_mark
    message = f"{error.problem}"
    hint = next((words for part, words in _ADVICE if part in message), "")
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if "cannot start any token" in message:
        is_tab = mark is not None and line[: mark.column + 1].strip(" ").startswith("\t")
        hint = "Indent with spaces instead of tabs." if is_tab else "Put the text into quotes."
    opened = error.context_mark
    begun = (
        f" It began in line {opened.line + 1}."
        if opened is not None and mark is not None and opened.line != mark.line
        else ""
    )
    return f"{hint}{begun}" + (f" It is in column {mark.column + 1}." if mark is not None else "")


class _Builder:
    """One pass over the events. Recursion is bounded by ``MAX_DEPTH``."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._loader: Any = LOADER(text)
        self._anchors: dict[str, _Made | None] = {}
        self._count = 0
        self._aliased = False
        self.lines: dict[KeyPath, int] = {}

    def close(self) -> None:
        """Free the parser."""
        self._loader.dispose()

    def document(self) -> Any:
        event = self._next()
        while not isinstance(event, (yaml.DocumentStartEvent, yaml.StreamEndEvent)):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        if event.tags:
            self._fail(event, "tags are refused: a workflow file is data.", "Remove %TAG.")
        first = self._next()
        self.lines[()] = self._line(first)
        made = self._node(first, ())
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            self._fail(after, "the file has a second document.", "Write one workflow in one file.")
        return made.value

    def _next(self) -> Any:
        return self._loader.get_event()

    def _line(self, event: Any) -> int:
        return event.start_mark.line + 1

    def _fail(self, event: Any, message: str, hint: str, *, id: str = "AX145") -> NoReturn:
        raise document_error(id, self._name, self._line(event), message, hint)

    def _spend(self, event: Any, weight: int) -> None:
        self._count += weight
        most = MOST_WITH_ALIASES if self._aliased else MAX_VALUES
        if self._count > most:
            counted = ", aliases counted where they are used" if self._aliased else ""
            where = Place(file=self._name, line=self._line(event))
            raise too_large(where, f"holds more than {most} values{counted}.")

    def _node(self, event: Any, keys: KeyPath) -> _Made:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if len(keys) > MAX_DEPTH:
            raise too_deep(Place(file=self._name, line=self._line(event)))
        if event.tag is not None:
            message = f"the tag {event.tag[:60]} is refused: a workflow file is data."
            self._fail(event, message, "Remove it.")
        if event.anchor is not None:
            # until it is complete: what refers to itself has no end
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            self._spend(event, 1)
            made = _Made(self._scalar(event), 1 + len(event.value) // 1000)
        else:
            made = (
                self._items(event, keys)
                if isinstance(event, yaml.SequenceStartEvent)
                else self._members(event, keys)
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = made
        return made

    def _alias(self, event: Any) -> _Made:
        if event.anchor not in self._anchors:
            message = f"the anchor &{event.anchor} is not defined before this line."
            self._fail(event, message, "Correct the name.")
        made = self._anchors[event.anchor]
        if made is None:
            hint = "Write the value instead of the alias."
            self._fail(event, f"&{event.anchor} would contain itself.", hint)
        self._aliased = True
        self._spend(event, made.weight)
        return made

    def _items(self, start: Any, keys: KeyPath) -> _Made:
        self._spend(start, 1)
        items: list[Any] = []
        weight = 1
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            here = (*keys, len(items))
            self.lines[here] = self._line(event)
            made = self._node(event, here)
            items.append(made.value)
            weight += made.weight
        return _Made(items, weight)

    def _members(self, start: Any, keys: KeyPath) -> _Made:
        self._spend(start, 1)
        members: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        weight = 1
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event)
            here = (*keys, key)
            is_merge = key == _MERGE and event.implicit[0]
            if key in members or (is_merge and merged):
                self._fail(event, f'the key "{key[:60]}" occurs twice.', "Remove one.")
            if not is_merge:
                self.lines[here] = self._line(event)
            follows = self._next()
            made = self._node(follows, here)
            weight += made.weight
            if is_merge:
                # The first one that has a key wins. Merging into one mapping, rather than into a
                # new one for each, keeps the time linear in their values.
                for source in reversed(list(self._merged(follows, made.value))):
                    merged.update(source)
            else:
                members[key] = made.value
        return _Made({**merged, **members}, weight)

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.AliasEvent) or not isinstance(event, yaml.ScalarEvent):
            self._fail(event, "expected a text as the key.", "Put it into quotes.")
        if event.tag is not None or event.anchor is not None:
            message = "the key has a tag or an anchor, which keys cannot have."
            self._fail(event, message, "Remove it.")
        if not event.value and event.implicit[0]:
            self._fail(event, "a key is missing.", 'Write "" for the empty text.')
        return event.value

    def _merged(self, event: Any, value: Any) -> Iterator[dict[str, Any]]:
        for source in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                message = "<< is followed by a value that is not a mapping."
                self._fail(event, message, "Refer to a mapping: <<: *name.")
            yield cast("dict[str, Any]", source)

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if not event.implicit[0]:  # quoted or block: text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if len(text) > MAX_DIGITS and text.lstrip("+-").isdigit():
            message = f"a number of more than {MAX_DIGITS} digits."
            self._fail(event, message, "Write it as text, in quotes.", id="AX140")
        if _INTEGER.fullmatch(text):
            return int(text)
        if FLOAT.fullmatch(text):
            return float(text)
        return float(_SPECIAL[text.lower()]) if text.lower() in _SPECIAL else text
