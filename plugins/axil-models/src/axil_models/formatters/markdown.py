"""``markdown``: each field under a heading; fields of a mapping under headings one level down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from axil_models.formatters.json import Json
from axil_models.formatters.text import FormatError
from axil_models.thoughts import without_thoughts
from axil_models.values import as_text

_HEADING = re.compile(r"(#{1,6})([ \t]+)(.*)")
_LOOKS_LIKE_ONE = re.compile(r"\\*(?:#{1,6}[ \t]|```)")
_ESCAPED = re.compile(r"\\+(?:#{1,6}[ \t]|```)")
_DEEPEST = 6
_Section = dict[str | None, Any]
"""The sections below a heading by name; None: the texts beside them."""
BESIDE = "_content"
"""The field that holds what stands under a heading before the first heading below it."""


class Markdown:
    """``markdown``: headings are names. Lines in code fences are never headings."""

    introduction = (
        "Answer in Markdown with one heading for each field, "
        "the field's name exactly, and the value below it."
    )

    def dump(self, fields: Mapping[str, object]) -> str:
        """Return the fields under headings, in the order given; mappings nest. ``""`` has no
        heading.
        """
        return "\n\n".join(_lines(fields, 1))

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the headings of ``text`` as fields; without any, one JSON object, or all of it as
        the field asked for (``content``). A heading that comes again adds to its text.
        """
        text = without_thoughts(text)
        top: _Section = {}
        path: list[tuple[int, _Section]] = [(0, top)]
        body: list[str] = []
        known = {name.casefold(): name for name in fields}
        for line, heading in _read(text):
            if heading is None:
                body.append(line)
                continue
            _close(path[-1][1], body)
            depth, name = heading
            while path[-1][0] >= depth:
                path.pop()
            name = known.get(name.casefold(), name) if len(path) == 1 else name
            path.append((depth, path[-1][1].setdefault(name, {})))
        _close(path[-1][1], body)
        if top.keys() <= {None}:
            return _without_headings(text, fields)
        return cast("dict[str, Any]", _folded(top))


def _lines(fields: Mapping[str, object], depth: int) -> list[str]:
    parts: list[str] = []
    for name, value in fields.items():
        if name == "" or (name == BESIDE and depth > 1):
            parts.append(_escaped(as_text(value)))
            continue
        parts.append(f"{'#' * depth} {name}")
        if depth < _DEEPEST and _is_section(value):
            parts.extend(_lines(value, depth + 1))
        elif (text := as_text(value)) != "":
            parts.append(_escaped(text))
    return parts


def _is_section(value: object) -> TypeGuard[Mapping[str, object]]:
    if not isinstance(value, Mapping) or not value:
        return False
    return all(_nests(key) for key in cast("Mapping[object, object]", value))


def _nests(name: Any) -> bool:
    is_plain = isinstance(name, str) and name != "" and name == " ".join(name.split())
    return is_plain and not name.endswith("#")


def _escaped(text: str) -> str:
    lines, fences = text.split("\n"), 0
    shown: list[str] = []
    odd = sum(line.startswith("```") for line in lines) % 2 == 1
    for line in lines:
        fence = line.startswith("```")
        fences += fence
        inside = not odd and (fences % 2 == 1 or fence)
        shown.append(f"\\{line}" if _LOOKS_LIKE_ONE.match(line) and not inside else line)
    return "\n".join(shown)


def _read(text: str) -> list[tuple[str, tuple[int, str] | None]]:
    """Return each line, with the depth and the name of its heading if it is one."""
    lines = text.split("\n")
    fences = sum(line.startswith("```") for line in lines)
    read: list[tuple[str, tuple[int, str] | None]] = []
    seen = 0
    for line in lines:
        # the last one of an odd number opens nothing
        if line.startswith("```") and not (seen % 2 == 0 and seen + 1 == fences):
            seen += 1
            read.append((line, None))
        elif seen % 2 == 1:
            read.append((line, None))
        elif (match := _HEADING.fullmatch(line)) and (name := _name(match[2], match[3])):
            read.append((line, (len(match[1]), name)))
        else:
            read.append((line[1:] if _ESCAPED.match(line) else line, None))
    return read


def _name(blanks: str, rest: str) -> str:
    """Return the name of a heading without the signs after it; empty: it has none."""
    name = rest.removesuffix("\r").rstrip(" \t").rstrip("#").rstrip(" \t")
    return name or rest[:1] or blanks[1:2]


def _close(section: _Section, body: list[str]) -> None:
    """Put the lines gathered so far into the section they stand in."""
    text = "\n".join(body).strip("\n").rstrip()
    body.clear()
    if text:
        section.setdefault(None, []).append(text)


def _folded(section: _Section) -> Any:
    """Return a section as fields; the text of one without headings below it."""
    text = "\n\n".join(section.pop(None, ()))
    if not section:
        return text
    fields = {str(name): _folded(below) for name, below in section.items()}
    return {BESIDE: text, **fields} if text else fields


def _without_headings(text: str, fields: Sequence[str]) -> dict[str, Any]:
    try:
        return Json().parse(text)
    except FormatError:
        return {fields[0] if len(fields) == 1 else "content": text}
