"""Chunks: how documents are cut. A chunk is ``text[start:end]`` of its document; these two numbers
are its id, the same in every index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from axil_models import ContextBlock, Document

Boundary = Literal["heading", "paragraph", "size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document: ``document.text[start:end]``."""

    text: str
    start: int
    """Characters before it."""
    end: int
    heading: str = ""
    """The headings above it: ``Guide > Install``."""

    @property
    def id(self) -> str:
        """The position in the document: ``120-480``."""
        return f"{self.start}-{self.end}"

    def block(self, document: Document) -> ContextBlock:
        """Return the chunk as a block that says where it is from."""
        metadata: dict[str, object] = {**document.metadata, "start": self.start, "end": self.end}
        if self.heading:
            metadata["heading"] = self.heading
        return ContextBlock(
            self.text,
            document.uri,
            self.id,
            title=document.title or self.heading or None,
            metadata=metadata,
            part=document.part,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The settings by which documents are cut into chunks."""

    at: Boundary = "heading"
    """``heading``: at Markdown headings; ``paragraph``: at empty lines; both at most ``chars``
    long. ``size``: wherever that ends.
    """
    chars: int = 1200
    """A chunk's length at most, in characters."""
    overlap_chars: int = 150
    """The characters that a chunk repeats of the one before it, where a section had to be cut."""


_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_LONGEST = 200
"""Characters of a heading that its chunks show: all that are below it repeat it."""
_SOLID = re.compile(r"\S")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})")
_BREAKS = (
    re.compile(r"\n[ \t\r]*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?。！？][\"'”’)]*\s"),
    re.compile(r"\s"),
)
"""Places to cut a text at, the best one first: paragraph, line, sentence, word."""


def chunked(text: str, cut: Cut | None = None) -> list[Chunk]:
    """Return the chunks of a text, in order. What is not white space is in at least one of them.

    >>> [(c.heading, c.text) for c in chunked("# A\\none\\n# B\\ntwo")]
    [('A', '# A\\none'), ('B', '# B\\ntwo')]
    """
    cut = cut or Cut()
    sections = _sections(text) if cut.at == "heading" else [("", 0, len(text))]
    return [
        chunk
        for heading, start, end in sections
        for chunk in _pieces(text, start, end, heading, cut)
    ]


def _sections(text: str) -> list[tuple[str, int, int]]:
    """Find ``(headings, start, end)`` of the text under each heading; fenced code has none."""
    found: list[tuple[str, int]] = [("", 0)]
    path: list[tuple[int, str]] = []
    fence = ""
    at = 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        heading = None if fence else _HEADING.match(line.lstrip("\ufeff").rstrip("\r\n"))
        name = heading[2].rstrip(" \t").rstrip("#").rstrip(" \t") if heading else ""
        if heading and name:
            depth = len(heading[1])
            path = [*(step for step in path if step[0] < depth), (depth, name[:_LONGEST])]
            found.append((" > ".join(name for _, name in path), at))
        at += len(line)
    ends = [start for _, start in found[1:]] + [len(text)]
    return [(heading, start, end) for (heading, start), end in zip(found, ends, strict=True)]


def _pieces(text: str, start: int, end: int, heading: str, cut: Cut) -> Iterator[Chunk]:
    """Yield pieces of ``text[start:end]``, each at most ``cut.chars`` long."""
    while True:
        start, end = _stripped(text, start, end)
        if start == end:
            return
        stop = end if end - start <= cut.chars else _stop(text, start, start + cut.chars, cut)
        first, shown = _stripped(text, start, stop)
        yield Chunk(text=text[first:shown], start=first, end=shown, heading=heading)
        if stop >= end:
            return
        start = max(_again(text, start, stop, cut.overlap_chars), start + 1)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    first = solid.start() if (solid := _SOLID.search(text, start, end)) else end
    while end > first and text[end - 1].isspace():
        end -= 1
    return first, end


def _stop(text: str, start: int, limit: int, cut: Cut) -> int:
    """Return where a chunk ends: at the last good place in its second half."""
    least = start + max(cut.chars // 2, cut.overlap_chars + 1, 1)
    breaks = _BREAKS[3:] if cut.at == "size" else _BREAKS
    for pattern in breaks:
        places = [match.end() for match in pattern.finditer(text, least, limit)]
        if places:
            return places[-1]
    return limit


def _again(text: str, start: int, stop: int, overlap: int) -> int:
    """Return where the next chunk begins: ``overlap`` characters back, if possible at a word."""
    if not overlap:
        return stop
    back = max(stop - overlap, start + 1)
    word = _BREAKS[3].search(text, back, stop)
    return word.end() if word else back
