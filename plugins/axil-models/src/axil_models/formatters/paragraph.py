"""``paragraph``: each field as a paragraph under its name.

    plan:
    first this, then that
    score:
    3

A name stands alone on its line, with a colon. A line of a value that could be taken for a name is
written with one more blank before it, and read with one less. ``score: 3`` on one line is
understood for fields that were asked for, and where no name stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from axil_models.formatters.text import FormatError, excerpt
from axil_models.thoughts import without_thoughts
from axil_models.values import as_text

_ALONE = re.compile(r"([^\W\d][\w -]*):[ \t]*\r?")
_BESIDE = re.compile(r"([^\W\d][\w -]*):[ \t]+(\S.*)")
_COULD_BE_A_NAME = re.compile(r" *[^\W\d][\w -]*:[ \t]*\r?")
_INDENTED_NAME = re.compile(r" +[^\W\d][\w -]*:[ \t]*\r?")
_DECORATED = re.compile(r"^(?:[#>*-]+[ \t]+)?\**([^\W\d][\w -]*?)\**:\**(?=\s|$)")


class Paragraph:
    """``paragraph``: a name on a line of its own, its value below. All values are read as text."""

    introduction = (
        "Answer with one paragraph for each field: the field's name and a colon alone on a line, "
        "the value on the lines below it. "
        "Write nothing before the first name."
    )

    def dump(self, fields: Any) -> str:
        """Return the fields as paragraphs, in the order given; the field named ``""`` has no
        title.
        """
        parts: list[str] = []
        for name, value in fields.items():
            text = as_text(value)
            if name == "":
                parts.append(text)
                continue
            lines = [
                f" {line}" if _COULD_BE_A_NAME.fullmatch(line) else line
                for line in text.split("\n")
            ]
            parts.append(f"{name}:\n" + "\n".join(lines))
        return "\n".join(parts)

    def parse(self, text: str, fields: Sequence[str] = ()) -> dict[str, object]:
        """Return the fields in ``text``; those named in ``fields`` are found in any case.

        Blank lines around a value are not part of it; a name that comes again adds to its value.
        Raises: FormatError (AX692): no name was found, and not just one field was asked for.
        """
        text = without_thoughts(text)
        lines = text.split("\n")
        wanted = {_bare(name): name for name in fields}
        starts = _starts(lines, wanted)
        if not starts:
            if len(fields) == 1 and text:
                return {fields[0]: text}
            expected = "expected paragraphs with a name and a colon on a line of its own"
            hint = f"Begin with {fields[0]}: on a line of its own." if fields else ""
            raise FormatError("AX692", f'{expected}, found "{excerpt(text)}".', hint)
        values: dict[str, list[str]] = {}
        for (at, name, beside), end in zip(
            starts, [*(start[0] for start in starts[1:]), len(lines)], strict=True
        ):
            body = [
                line[1:] if _INDENTED_NAME.fullmatch(line) else line for line in lines[at + 1 : end]
            ]
            value = "\n".join(_trimmed([beside, *body] if beside else body))
            values.setdefault(name, []).append(value)
        return {name: "\n".join(_filled(each)) for name, each in values.items()}


def _filled(values: list[str]) -> list[str]:
    """Return values that are joined by line breaks: none is empty before the first text."""
    first = next((at for at, value in enumerate(values) if value), len(values))
    return values[first:]


def _bare(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def _trimmed(lines: list[str]) -> list[str]:
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return lines[first:last]


def _outside_code(lines: Sequence[str]) -> Iterable[tuple[int, str]]:
    """Return lines that are not in a code fence; a fence that is never closed is none."""
    fences = [at for at, line in enumerate(lines) if line.lstrip().startswith("```")]
    inside = {
        at
        for first, last in zip(fences[::2], fences[1::2], strict=False)
        for at in range(first, last + 1)
    }
    return ((at, line) for at, line in enumerate(lines) if at not in inside)


def _starts(lines: Sequence[str], wanted: dict[str, str]) -> list[tuple[int, str, str]]:
    """Return where a field begins: the line, the field's name, and the text beside the name."""
    if wanted:
        return _asked_for(lines, wanted)
    alone = [(at, m[1], "") for at, line in enumerate(lines) if (m := _ALONE.fullmatch(line))]
    beside = [(at, _BESIDE.fullmatch(line)) for at, line in _outside_code(lines)]
    return alone or [(at, match[1], match[2]) for at, match in beside if match]


def _asked_for(lines: Sequence[str], wanted: dict[str, str]) -> list[tuple[int, str, str]]:
    """Return where known names are: alone on their lines, beside their values, or as Markdown."""
    starts = [
        (at, wanted[_bare(m[1])], "")
        for at, line in enumerate(lines)
        if (m := _ALONE.fullmatch(line)) and _bare(m[1]) in wanted
    ]
    missing = {
        bare: name for bare, name in wanted.items() if name not in {start[1] for start in starts}
    }
    if missing:
        for at, line in _outside_code(lines):
            match = _DECORATED.match(line)
            if match and _bare(match[1]) in missing:
                starts.append((at, missing[_bare(match[1])], line[match.end() :].strip()))
    return sorted(starts)
