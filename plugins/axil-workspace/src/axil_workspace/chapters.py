"""Chapters of a text in Markdown: a heading, and what follows up to the next heading of its level
or of one above it.

Headings are lines that begin with one to six ``#`` and a space; in a block of code there are none.
A path names a chapter by the titles on the way to it: ``Introduction/Background``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from axil_workspace.errors import TextFault

_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.+?)[ \t]*")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """The place of a chapter in a list of lines."""

    title: str
    level: int
    """The number of ``#``."""
    start: int
    """The line of its heading."""
    end: int
    """The line after its last one; the chapters inside it are before that."""


def chapters_of(lines: Sequence[str]) -> list[Chapter]:
    """Return all chapters, in the order in which they begin.

    >>> [(each.title, each.start, each.end) for each in chapters_of(["# A", "## B", "b", "# C"])]
    [('A', 0, 3), ('B', 1, 3), ('C', 3, 4)]
    """
    headings = _headings(lines)
    found: list[Chapter] = []
    for number, (line, level, title) in enumerate(headings):
        later = (other for other, depth, _ in headings[number + 1 :] if depth <= level)
        found.append(Chapter(title=title, level=level, start=line, end=next(later, len(lines))))
    return found


def _headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the line, level and title of each heading."""
    found: list[tuple[int, int, str]] = []
    fence = ""
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _HEADING.fullmatch(line):
            found.append((number, len(heading[1]), heading[2]))
    return found


def chapter_at(lines: Sequence[str], path: str) -> Chapter:
    """Return the first chapter that ``path`` names; each title is looked for inside the chapter
    before it.

    Raises: TextFault (AX882): there is none.
    """
    known = chapters_of(lines)
    whole = next((each for each in known if each.title == path.strip()), None)
    if whole is not None:  # a title may hold a slash
        return whole
    start, end = -1, len(lines)
    found: Chapter | None = None
    for title in path.split("/"):
        inside = [each for each in known if start < each.start < end]
        found = next((each for each in inside if each.title == title.strip()), None)
        if found is None:
            titles = ", ".join(f'"{each.title}"' for each in known[:20])
            hint = f"The report's chapters are {titles}."
            if not known:
                hint = "The report has no chapters yet: add one."
            raise TextFault("AX882", f'the report has no chapter "{path}".', hint)
        start, end = found.start, found.end
    assert found is not None  # a split text has a part
    return found


def with_chapter(lines: Sequence[str], path: str, level: int, content: str) -> list[str]:
    """Return the lines with a new chapter.

    The last part of ``path`` is its title. ``Parent/Title`` puts it at the end of that chapter,
    ``Before|Title`` after the chapter ``Before``, ``|Title`` before all other chapters there.

    Raises: TextFault (AX882): ``path`` names a missing chapter; AX888: the title is malformed.
    """
    parent, slash, leaf = path.rpartition("/")
    before, bar, title = leaf.rpartition("|")
    title = " ".join(title.split())
    if not title:
        raise TextFault("AX888", f'"{path}" has no title.', "Write a title, like Introduction.")
    around = chapter_at(lines, parent) if slash else None
    at = around.end if around else len(lines)
    if bar and before.strip():
        at = chapter_at(lines, f"{parent}/{before}" if slash else before).end
    elif bar:
        start = around.start + 1 if around else 0
        at = next((each.start for each in chapters_of(lines) if start <= each.start < at), at)
    return _joined(lines[:at], [f"{'#' * level} {title}", *content.splitlines()], lines[at:])


def rewritten(lines: Sequence[str], path: str, content: str) -> list[str]:
    """Return the lines with another text under a chapter's heading, the chapters inside it
    included.

    Raises: TextFault (AX882): it is not there.
    """
    found = chapter_at(lines, path)
    kept = [lines[found.start], *content.splitlines()]
    return _joined(lines[: found.start], kept, lines[found.end :])


def extended(lines: Sequence[str], path: str, content: str) -> list[str]:
    """Return the lines with a text more at a chapter's end. Raises: TextFault (AX882)."""
    end = chapter_at(lines, path).end
    return _joined(lines[:end], content.splitlines(), lines[end:])


def without(lines: Sequence[str], path: str) -> list[str]:
    """Return the lines without a chapter. Raises: TextFault (AX882): it is not there."""
    found = chapter_at(lines, path)
    return [*lines[: found.start], *lines[found.end :]]


def ordered(lines: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Return the lines with the chapters that are named in that order, in the places that they
    have together; all else stays where it is.

    Raises: TextFault (AX882): one is not there, or is inside another, or named twice.
    """
    wanted = [chapter_at(lines, path) for path in paths]
    places = sorted(wanted, key=lambda each: each.start)
    for one, other in pairwise(places):
        if one.end > other.start:
            both = f'"{one.title}" and "{other.title}"'
            message = f"{both} cannot be exchanged: one contains the other."
            hint = "Name two chapters, neither of which contains the other."
            raise TextFault("AX882", message, hint)
    new: list[str] = []
    end = 0
    for place, chapter in zip(places, wanted, strict=True):
        text = lines[chapter.start : chapter.end]
        new = _joined([*new, *lines[end : place.start]], text, [])
        end = place.end
    return _joined(new, lines[end:], []) if lines[end:] else new


def _joined(before: Sequence[str], new: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the three, with one empty line between two of them."""
    parts = [_trimmed(before), _trimmed(new), _trimmed(after)]
    found: list[str] = []
    for part in parts:
        if part:
            found += ["", *part] if found else part
    return found


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Return the lines without the empty ones at both ends."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[full[0] : full[-1] + 1]) if full else []
