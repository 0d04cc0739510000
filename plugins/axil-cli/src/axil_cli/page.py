"""A stream as a page for people: as wide as its terminal, coloured if it may be, word by word.

What is written has no control characters of its own, and no sign that the stream's encoding lacks.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from axil_cli.command import can_show, clean, write

_WIDEST: Final = 120
"""Columns; longer lines are hard to read."""
_BARE: Final[Mapping[str, str]] = {
    "─": "-",
    "✗": "x",
    "·": "-",
    "⚙": "*",
    "→": "->",
    "…": "...",
    "▸": ">",
    "↻": "~",
    "∴": ":",
}
_STYLES: Final[Mapping[str, str]] = {"bold": "1", "dim": "2", "bad": "31", "good": "32"}
_NAMES: Final = ("36", "35", "33", "34", "32", "96", "95", "93")
_WORD: Final = re.compile(r"\s+|\S+")


class Page:
    """Writes lines and paragraphs to a stream; ``hold`` collects instead, until ``release``."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_coloured = _is_coloured(stream)
        self._signs = {
            sign: sign if can_show(stream, sign) else bare for sign, bare in _BARE.items()
        }
        self._held: list[str] | None = None

    @property
    def width(self) -> int:
        """Columns, now: a window may change."""
        try:
            known = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError, AttributeError):
            known = 0
        return max(min(known or shutil.get_terminal_size((80, 24)).columns, _WIDEST), 40)

    def sign(self, sign: str) -> str:
        """Return the sign, or what stands for it where the encoding lacks it."""
        return self._signs[sign]

    def fit(self, text: str, room: int) -> str:
        """Return ``text`` on one line of at most ``room`` columns."""
        return shortened(text, room, self.sign("…"))

    def styled(self, text: str, style: str | int) -> str:
        """Put ``text`` in a style (``bold``, ``dim``, ``good``, ``bad``), or a numbered colour."""
        code = _STYLES[style] if isinstance(style, str) else _NAMES[style % len(_NAMES)]
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_coloured and text else text

    def write(self, text: str) -> None:
        """Write what is known to be clean."""
        if self._held is not None:
            self._held.append(text)
        else:
            write(self._stream, text)

    def hold(self) -> None:
        """Write nothing until ``release``."""
        self._held = []

    def release(self) -> None:
        """Write what was held."""
        held, self._held = self._held or [], None
        self.write("".join(held))

    def rule(self, title: str) -> None:
        """Write a line across the page with a title."""
        line = self.sign("─")
        title = self.fit(clean(title), self.width - 6)
        rest = line * max(self.width - columns(title) - 4, 2)
        self.write(
            self.styled(f"{line * 2} ", "dim")
            + self.styled(title, "bold")
            + self.styled(f" {rest}", "dim")
            + "\n"
        )


class Paragraph:
    """A text that is written as it comes: wrapped behind a margin, at most so many lines."""

    def __init__(
        self, page: Page, margin: int, *, column: int | None = None, lines: int = 0, style: str = ""
    ) -> None:
        """``column``: where the cursor is; None: at the margin.

        ``lines``: 0: all of them; more are counted instead of shown.
        """
        self._page, self._margin, self._most = page, margin, lines
        self._column = margin if column is None else column
        self._style: Callable[[str], str] = (
            (lambda text: page.styled(text, style)) if style else str
        )
        self._rest = ""
        self._line = 1
        self._fresh = True
        """Nothing is on this line yet: a word needs no gap."""
        self.left_out = 0
        """Words that were not shown."""

    def feed(self, text: str) -> None:
        """More text; a word is written when it is known to be whole."""
        words = _WORD.findall(self._rest + text)
        self._rest = words.pop() if words and not words[-1].isspace() else ""
        for word in words:
            self._put(word)

    def end(self, tail: str = "") -> None:
        """Write what is left, and ``tail`` behind it, and end the line."""
        if self._rest:
            self._put(self._rest)
            self._rest = ""
        if self.left_out:
            self._page.write(
                self._page.styled(f" {self._page.sign('…')} {self.left_out} more words", "dim")
            )
        self._page.write((self._page.styled(f"  {tail}", "dim") if tail else "") + "\n")

    def _put(self, word: str) -> None:
        if word.isspace():
            if "\n" in word and not self._fresh:
                self._break()
            return
        if self.left_out:
            self.left_out += 1
            return
        word = clean(word)
        room = self._page.width - 1
        while True:
            gap = 0 if self._fresh else 1
            if self._column + gap + columns(word) <= room:
                self._show(word, gap)
                return
            if self._fresh:
                cut = _fitting(word, max(room - self._column, 1))
                self._show(word[:cut], 0)
                word = word[cut:]
            if not self._break():
                self.left_out += 1
                return

    def _show(self, word: str, gap: int) -> None:
        self._page.write(self._style(" " * gap + word))
        self._column += gap + columns(word)
        self._fresh = False

    def _break(self) -> bool:
        """Begin a new line, if there may be one."""
        if self._most and self._line >= self._most:
            return False
        self._page.write("\n" + " " * self._margin)
        self._column, self._fresh, self._line = self._margin, True, self._line + 1
        return True


def columns(text: str) -> int:
    """Return the width of a text on a terminal, in columns.

    >>> columns("axil"), columns("日本"), columns("e\\u0301")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    # wcwidth also knows joined emoji; its 3.6 MB would be a fifth of a small distribution
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _fitting(word: str, room: int) -> int:
    """Return how many characters of a word that is too long fit; at least one."""
    used = 0
    for at, character in enumerate(word):
        used += columns(character)
        if used > room:
            return max(at, 1)
    return len(word)


def shortened(text: str, room: int, sign: str = "…") -> str:
    r"""Return ``text`` on one line of at most ``room`` columns; ``sign``: there is more.

    >>> shortened("one  two\nthree", 9)
    'one two …'
    """
    line = " ".join(text[: 4 * room + 4].split())
    if columns(line) <= room and len(text) <= 4 * room + 4:
        return line
    return line[: _fitting(line, max(room - len(sign), 1))] + sign


def _is_coloured(stream: TextIO) -> bool:
    """Say whether to colour: on terminals, but not if ``NO_COLOR``, always if ``FORCE_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
