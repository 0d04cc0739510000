"""Searching files by pattern, within a time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from axil.plugin import Match, Pattern, PatternFault, PatternLimit, compile_pattern
from axil_workspace.entries import Entry
from axil_workspace.errors import FileFault, LimitExceeded, TextFault
from axil_workspace.text import lines_of
from axil_workspace.workspace import Workspace

_PATTERN: Final = 1_000
"""Characters of a pattern."""
_LINE: Final = 20_000
"""Characters of a line that are searched."""
_SHOWN: Final = 400
"""Characters of a line that are shown."""
_LARGEST: Final = 4 << 20
"""Bytes of a file that is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The search: its pattern and place."""

    pattern: str
    globs: Sequence[str] = ()
    """Empty: all files."""
    without: Sequence[str] = ()
    is_regex: bool = True
    case_sensitive: bool = False
    most: int = 200
    before: int = 0
    """Lines that are shown before one that matches, and ``after`` it."""
    after: int = 0
    hidden: bool = False


@dataclass(slots=True)
class Found:
    """The result of the search."""

    matches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    limited: bool = False
    """There may be more."""
    searched: int = 0
    """Files that were read."""
    passed_over: int = 0
    """Files that are too large, or no text."""


class Budget:
    """Seconds that matching may take."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds, self._now = seconds, now
        self._end = now() + seconds

    def matched(self, pattern: Pattern, text: str) -> Match | None:
        """Return the first match. Raises: LimitExceeded (AX880): no time is left."""
        left = self._end - self._now()
        if left > 0:
            with suppress(PatternLimit):
                return pattern.search(text, seconds=left)
        message = f"the search took more than {self.seconds:g} seconds."
        raise LimitExceeded("AX880", message, "Use a simpler pattern, or fewer files.")


def compiled(pattern: str, *, is_regex: bool = True, case_sensitive: bool = True) -> Pattern:
    """Return the pattern, ready to search with. Raises: TextFault (AX880): it is not a pattern."""
    if len(pattern) > _PATTERN:
        message = f"the pattern has {len(pattern)} characters; {_PATTERN} are allowed."
        raise TextFault("AX880", message, "Use a shorter pattern.")
    text = pattern if is_regex else re.escape(pattern)
    try:
        return compile_pattern(text, case_sensitive=case_sensitive, multiline=True)
    except PatternFault as error:
        hint = f"{error.hint} Or set use_regex to false."
        raise TextFault("AX880", error.message, hint) from error


def glob(pattern: str) -> Pattern:
    """Return a glob as a pattern of whole paths; without a ``/`` it is one of names.

    ``**`` crosses folders.

    >>> [bool(glob("src/**/*.py").search(path)) for path in ("src/a.py", "src/b/a.py", "a.py")]
    [True, True, False]
    """
    stated, text = pattern if "/" in pattern else f"**/{pattern}", ""
    while stated:
        for sign, meaning in (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]")):
            if stated.startswith(sign):
                text, stated = text + meaning, stated[len(sign) :]
                break
        else:
            text, stated = text + re.escape(stated[0]), stated[1:]
    return compiled(rf"\A{text}\Z")


def search(place: Workspace, wanted: Wanted, budget: Budget) -> Found:
    """Return the matches in the files of a workspace, by path and line.

    Raises: TextFault, LimitExceeded (AX880).
    """
    pattern = compiled(
        wanted.pattern, is_regex=wanted.is_regex, case_sensitive=wanted.case_sensitive
    )
    globs, without = [glob(each) for each in wanted.globs], [glob(each) for each in wanted.without]
    found = Found()
    for each in place.entries(depth=100, hidden=wanted.hidden):
        if each.kind != "file" or not _is_meant(each, globs, without, budget):
            continue
        text = _text(place, each)
        if text is None:
            found.passed_over += 1
            continue
        found.searched += 1
        for match in _matches(each.path, text, pattern, wanted, budget):
            if len(found.matches) >= wanted.most:
                found.limited = True
                return found
            found.matches.append(match)
    return found


def _is_meant(
    each: Entry, globs: Sequence[Pattern], without: Sequence[Pattern], budget: Budget
) -> bool:
    if globs and not any(budget.matched(pattern, each.path) for pattern in globs):
        return False
    return not any(budget.matched(pattern, each.path) for pattern in without)


def _text(place: Workspace, each: Entry) -> str | None:
    if each.size > _LARGEST:
        return None
    try:
        data = place.read(each.path)
    except (FileFault, LimitExceeded):  # it has gone, has grown, or is not ours to read
        return None
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def _matches(
    path: str, text: str, pattern: Pattern, wanted: Wanted, budget: Budget
) -> Iterator[dict[str, Any]]:
    lines = [line.rstrip("\r\n") for line in lines_of(text)]
    for number, line in enumerate(lines):
        match = budget.matched(pattern, line[:_LINE])
        if match is None:
            continue
        data: dict[str, Any] = {"file": path, "line": number + 1, "column": match.start() + 1}
        data["text"] = _shown(line)
        if wanted.before:
            before = lines[max(0, number - wanted.before) : number]
            data["before"] = [_shown(each) for each in before]
        if wanted.after:
            data["after"] = [_shown(each) for each in lines[number + 1 : number + 1 + wanted.after]]
        yield data


def _shown(line: str) -> str:
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
