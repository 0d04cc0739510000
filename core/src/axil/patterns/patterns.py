"""Regular expressions that are compiled and searched with within bounds.

A pattern of a file, a model or a server may be hostile in two ways. Compiling it may need any
amount of memory, as counted repetitions multiply where they are nested: so its size is found out
first, from the text alone (``size_of``). Searching with it may need any amount of time: so each
search has a limit, in the processor's time.

The size has to be an upper bound for each text. Two kinds of syntax would mislead the reader below,
and are only allowed where no repetition is counted: verbose patterns, ``(?x)``, and nested sets,
``(?V1)``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

from axil._installing import install_advice
from axil.bounds import check_time, seconds_left
from axil.errors import NotInstalled
from axil.patterns.errors import PatternFault, PatternLimit

LONGEST: Final = 10_000
"""Characters of a pattern."""
LARGEST: Final = 100_000
"""Elements of a pattern, repeated ones as often as they are repeated."""
SECONDS: Final = 1.0
"""The processor's time that a search may take by default."""

_COUNT: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_OTHER_SYNTAX: Final = re.compile(r"\(\?[a-zA-Z0-9]*[xV]")


class Match(Protocol):
    """The part of a text that a pattern matched."""

    def group(self, group: int | str = 0, /) -> str | None:
        """Return what a group matched; None where it took no part."""
        ...

    def start(self) -> int:
        """Return where the match begins."""
        ...

    def end(self) -> int:
        """Return where the match ends."""
        ...


class Pattern:
    """A compiled regular expression."""

    __slots__ = ("_engine", "text")

    def __init__(self, text: str, engine: Any) -> None:
        self.text = text
        self._engine = engine

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self._engine.groups

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of groups."""
        return tuple(self._engine.groupindex)

    def search(self, text: str, *, seconds: float = SECONDS) -> Match | None:
        """Return the first match.

        Raises: PatternLimit (AX633): it took more than these seconds; LimitReached (AX415): more
        than the run has left.
        """
        seconds = seconds_left(seconds)
        try:
            return self._engine.search(text, timeout=seconds, concurrent=True)
        except (TimeoutError, MemoryError) as error:
            raise self._limit(text, seconds) from error

    def matches(self, text: str, *, seconds: float = SECONDS) -> Iterator[Match]:
        """Yield all matches.

        Raises: PatternLimit (AX633): they took more than these seconds in all; LimitReached
        (AX415): more than the run has left.
        """
        seconds = seconds_left(seconds)
        try:
            yield from self._engine.finditer(text, timeout=seconds, concurrent=True)
        except (TimeoutError, MemoryError) as error:
            raise self._limit(text, seconds) from error

    def _limit(self, text: str, seconds: float) -> PatternLimit:
        check_time()
        return PatternLimit(
            "AX633",
            f"searching {len(text)} characters for {_shown(self.text)} takes more than "
            f"{seconds:g} seconds or more memory than there is.",
            "Simplify the pattern: no repetition inside another repetition of the same characters.",
        )


def compile_pattern(
    text: str, *, case_sensitive: bool = True, multiline: bool = False, dotall: bool = False
) -> Pattern:
    """Return a pattern that can be searched with.

    >>> compile_pattern("b+").search("abba").start()
    1

    Raises: PatternFault (AX601): the text is no regular expression, or too large a one;
    NotInstalled (AX306).
    """
    return _compiled(text, case_sensitive, multiline, dotall)


@lru_cache(maxsize=256)
def _compiled(text: str, case_sensitive: bool, multiline: bool, dotall: bool) -> Pattern:
    if len(text) > LONGEST:
        raise PatternFault(
            "AX601",
            f"expected a regular expression of at most {LONGEST:,} characters, "
            f"found one of {len(text):,}.",
            "Make it shorter.",
        )
    if _OTHER_SYNTAX.search(text) and re.search(r"\{\s*\d", text):
        raise PatternFault(
            "AX601",
            f"expected no counted repetition in a verbose pattern or one of version 1, found "
            f"{_shown(text)}.",
            "Leave out (?x) or (?V1), or the counts.",
        )
    if size_of(text) > LARGEST:
        raise PatternFault(
            "AX601",
            f"expected a regular expression whose counted repetitions stand for at most "
            f"{LARGEST:,} elements, found {_shown(text)}.",
            "Make the counts smaller, or do not nest them.",
        )
    try:
        import regex  # half of what a small run imports without it
    except ImportError as error:
        message = "regular expressions need the library regex, which is not installed."
        raise NotInstalled(message, hint=install_advice("axil-core[patterns]")) from error
    flags = (
        (0 if case_sensitive else regex.IGNORECASE)
        | (regex.MULTILINE if multiline else 0)
        | (regex.DOTALL if dotall else 0)
    )
    try:
        with warnings.catch_warnings():
            # What version 1 would read otherwise means here what it means in `re`.
            warnings.simplefilter("ignore", FutureWarning)
            engine: object = regex.compile(text, flags, cache_pattern=False)
    except (regex.error, OverflowError, RecursionError, ValueError, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise PatternFault(
            "AX601",
            f"expected a regular expression, found {_shown(text)}: {why}.",
            "Correct the pattern.",
        ) from error
    return Pattern(text, engine)


def size_of(text: str) -> int:
    """Return an upper bound for the elements that a pattern stands for.

    >>> size_of("ab"), size_of("(ab){10}"), size_of("((a{10}){10}b){10}")
    (2, 20, 1010)
    """
    totals, last, at = [0], 0, 0
    while at < len(text):
        sign = text[at]
        counted = _COUNT.match(text, at) if sign == "{" else None
        if counted is not None:
            least = counted[1] or "0"
            # More digits than any count that is allowed has; a longer one is not turned into a
            # number.
            times = int(least) if len(least) < 12 else LARGEST + 1
            totals[-1] += last * max(times - 1, 0)
            last, at = last * max(times, 1), counted.end()
            continue
        if text.startswith("(?#", at):
            at = (text.find(")", at) + 1) or len(text)
            continue
        if sign == "(":
            totals.append(0)
            last, at = 0, at + 1
            continue
        if sign == ")":
            last = totals.pop() if len(totals) > 1 else 0
            totals[-1] += last
            at += 1
            continue
        if sign == "\\":
            at += 2
        elif sign == "[":
            at = _end_of_set(text, at)
        else:
            at += 1
        if sign not in "?*+|":
            last = 1
            totals[-1] += 1
    return sum(totals)


def _end_of_set(text: str, at: int) -> int:
    at += 2 if text.startswith("[^", at) else 1
    first = at
    while at < len(text) and (text[at] != "]" or at == first):
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
