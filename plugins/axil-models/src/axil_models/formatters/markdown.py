"""``markdown``: each field under a heading; fields of a mapping under headings one level down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil_models.formatters.json import Json
from axil_models.formatters.text import FormatError
from axil_models.thoughts import without_thoughts
from axil_models.values import as_text

_HEADING = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*\r?")
_LOOKS_LIKE_ONE = re.compile(r"\\*(?:#{1,6}[ \t]|```)")
_ESCAPED = re.compile(r"\\+(?:#{1,6}[ \t]|```)")
_DEEPEST = 6
BESIDE = "_content"
"""The field that holds what stands under a heading before the first heading below it."""


class Markdown:
    """``markdown``: headings are names. Lines in code fences are never headings."""

    introduction = (
        "Answer in Markdown with one heading for each field, "
        "the field's name exactly, and the value below it."
    )

    def dump(self, fields: Any) -> str:
        """Return the fields under headings, in the order given; mappings nest. ``""`` has no
        heading.
        """
        return "\n\n".join(_lines(fields, 1))

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        """Return the headings of ``text`` as fields; without any, one JSON object, or all of it as
        the field asked for (``content``). A heading that comes again adds to its text.
        """
        text = without_thoughts(text)
        top: dict[str, Any] = {}
        path: list[tuple[int, dict[str, Any]]] = [(0, top)]
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
        if top.keys() <= {BESIDE}:
            return _without_headings(text, fields)
        return {name: _folded(value) for name, value in top.items()}


def _lines(fields: Mapping[str, Any], depth: int) -> list[str]:
    parts: list[str] = []
    for name, value in fields.items():
        if name == "" or (name == BESIDE and depth > 1):
            parts.append(_escaped(as_text(value)))
            continue
        parts.append(f"{'#' * depth} {name}")
        if (
            isinstance(value, Mapping)
            and value
            and depth < _DEEPEST
            and all(_nests(key) for key in cast("Mapping[Any, Any]", value))
        ):
            parts.extend(_lines(cast("Mapping[str, Any]", value), depth + 1))
        elif (text := as_text(value)) != "":
            parts.append(_escaped(text))
    return parts


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
        elif match := _HEADING.fullmatch(line):
            read.append((line, (len(match[1]), match[2])))
        else:
            read.append((line[1:] if _ESCAPED.match(line) else line, None))
    return read


def _close(section: dict[str, Any], body: list[str]) -> None:
    """Put the lines gathered so far into the section they stand in."""
    text = "\n".join(body).strip("\n").rstrip()
    body.clear()
    if text:
        section[BESIDE] = f"{section[BESIDE]}\n\n{text}" if BESIDE in section else text


def _folded(section: Any) -> Any:
    """Return the text of a section without headings below it."""
    if not isinstance(section, dict):
        return section
    found = cast("dict[str, Any]", section)
    if found.keys() <= {BESIDE}:
        return found.get(BESIDE, "")
    return {name: _folded(value) for name, value in found.items()}


def _without_headings(text: str, fields: Sequence[str]) -> dict[str, Any]:
    try:
        return Json().parse(text)
    except FormatError:
        return {fields[0] if len(fields) == 1 else "content": text}
