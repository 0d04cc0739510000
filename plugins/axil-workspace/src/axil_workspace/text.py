"""Texts in files: reading them without losing what they were, and editing them."""

from __future__ import annotations

import codecs
import re
from typing import Final, Literal

from axil_workspace.errors import TextFault

Newline = Literal["preserve", "lf", "crlf", "cr"]
_BREAKS: Final = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_PDF: Final = b"%PDF-"
"""The beginning of a document that may hold nothing but signs of ASCII, and is no text."""


def decoded(data: bytes, encoding: str, path: str) -> tuple[str, str]:
    r"""Return the text, and the encoding that gives the same bytes again.

    ``auto``: by its mark, else UTF-8, else Latin-1.

    >>> decoded(b"caf\xe9", "auto", "menu.txt")
    ('café', 'latin-1')

    Raises: TextFault (AX883): it is no text, or not in that encoding.
    """
    if encoding != "auto":
        return _strict(data, encoding, path), encoding
    marked = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    if marked is not None:
        return _strict(data, marked, path), marked
    if b"\0" in data or data.startswith(_PDF):
        hint = "Call describe_file for its type, and process it with a program."
        raise TextFault("AX883", f'"{path}" is not a text file.', hint)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"


def _strict(data: bytes, encoding: str, path: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        message = f'"{path}" is not text in {encoding}: {error}.'
        raise TextFault("AX883", message, "Use the encoding auto.") from error
    except (LookupError, ValueError) as error:  # or its name has a zero byte
        raise _unknown(encoding) from error


def encoded(text: str, encoding: str, path: str) -> bytes:
    """Return the bytes of a text. Raises: TextFault (AX883)."""
    try:
        return text.encode("utf-8" if encoding == "auto" else encoding)
    except UnicodeError as error:
        message = f'the text for "{path}" cannot be written in {encoding}: {error}.'
        raise TextFault("AX883", message, "Use utf-8.") from error
    except (LookupError, ValueError) as error:
        raise _unknown(encoding) from error


def _unknown(encoding: str) -> TextFault:
    return TextFault("AX883", f'there is no encoding "{encoding}".', "Use utf-8.")


def lines_of(text: str) -> list[str]:
    r"""Return the lines, with their breaks: line feeds, carriage returns or both, and nothing else.

    >>> lines_of("a\r\nb\x0cc\n\nd")
    ['a\r\n', 'b\x0cc\n', '\n', 'd']
    """
    return _LINE.findall(text)


def break_of(text: str) -> str:
    """Return the line break that a text uses; of several the first."""
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"


def exchanged(text: str, old: str, new: str, everywhere: bool, path: str) -> tuple[str, int]:
    """``text`` with ``old`` replaced, and how often.

    Raises: TextFault (AX882): it is not there, or more than once.
    """
    if not old:
        message = "old_text is empty, so nothing can be replaced."
        raise TextFault("AX882", message, "Set old_text to the text to be replaced.")
    count = text.count(old)
    if not count and break_of(text) == "\r\n" and "\n" in old:  # models write line feeds
        old, new = (re.sub(r"\r?\n", "\r\n", each) for each in (old, new))
        count = text.count(old)
    if not count:
        message = f'"{path}" does not contain old_text.{_near(text, old)}'
        hint = "Copy old_text exactly, with its spaces and line breaks."
        raise TextFault("AX882", message, hint)
    if count > 1 and not everywhere:
        message = f'"{path}" contains old_text {count} times.'
        hint = "Add more of the surrounding text to old_text, or set everywhere."
        raise TextFault("AX882", message, hint)
    return text.replace(old, new), count


def _near(text: str, old: str) -> str:
    """Return where the first line of ``old`` is, apart from its spaces."""
    wanted = "".join(old.strip().partition("\n")[0].split())
    for number, line in enumerate(lines_of(text), 1):
        if wanted and wanted in "".join(line.split()):
            return f" Line {number} resembles its first line: {line.strip()!r:.120}."
    return ""


def with_lines(
    text: str,
    first: int,
    last: int,
    replacement: str,
    newline: Newline,
    ends: bool | None,
    path: str,
) -> str:
    r"""``text`` with the lines ``first`` to ``last`` replaced, counted from 1; ``last`` is ``first
    - 1`` to insert before ``first``.

    >>> with_lines("a\nb\nc\n", 2, 2, "B\nBB", "preserve", None, "x")
    'a\nB\nBB\nc\n'

    Args:
        ends: whether the last line ends with a break; None: as it did.
    Raises: TextFault (AX882): there are no such lines.
    """
    lines = lines_of(text)
    bodies = [line.rstrip("\r\n") for line in lines]
    if not (1 <= first <= len(bodies) + 1 and first - 1 <= last <= len(bodies)):
        message = f'"{path}" has {len(bodies)} lines; {first} to {last} cannot be replaced.'
        insert = "to insert before start_line, set end_line to start_line - 1"
        raise TextFault("AX882", message, f"Lines are numbered from 1; {insert}.")
    kept = break_of(text) if newline == "preserve" else _BREAKS[newline]
    ended = bool(lines) and lines[-1].endswith(("\r", "\n")) if ends is None else ends
    bodies[first - 1 : last] = [line.rstrip("\r\n") for line in lines_of(replacement)]
    return kept.join(bodies) + (kept if ended and bodies else "")
