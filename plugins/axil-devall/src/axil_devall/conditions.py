"""Conditions that DevAll files name as functions: pure functions of the text on an edge."""

from __future__ import annotations

import re
from typing import Final

WORD: Final = "trigger"
"""The words that ``contains_keyword`` looks for, in any case."""
_VERDICT: Final = re.compile(r"verdict\s*:\W*(\w+)", re.IGNORECASE)


def contains_keyword(text: str) -> bool:
    """Return whether the text holds the word ``trigger``, in any case."""
    return WORD in text.casefold()


def not_contains_keyword(text: str) -> bool:
    """Return whether the text does not hold the word ``trigger``."""
    return not contains_keyword(text)


def length_greater_than_5(text: str) -> bool:
    """Return whether the text has more than five characters."""
    return len(text) > 5


def should_stop_loop(text: str) -> bool:
    """Return whether the last verdict in the text is to stop.

    >>> (
    ...     should_stop_loop("Score: 0.9\\nVerdict: STOP"),
    ...     should_stop_loop("**Verdict:** continue"),
    ...     should_stop_loop("no verdict"),
    ... )
    (True, False, False)
    """
    verdicts: list[str] = _VERDICT.findall(text)
    return bool(verdicts) and verdicts[-1].upper() == "STOP"


def need_reflection_loop(text: str) -> bool:
    """Return whether another round is needed, because the text does not say to stop."""
    return not should_stop_loop(text)
