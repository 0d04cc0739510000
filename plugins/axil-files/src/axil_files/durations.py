"""Durations as people write them: ``90``, ``"15m"``, ``"2h 30m"``, ``"3 days"``."""

from __future__ import annotations

import math
import re
from typing import Final

_NAMES: Final = {"second": 1, "min": 60, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_UNITS: Final = {
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86_400,
    "w": 604_800,
    **_NAMES,
    **{f"{name}s": size for name, size in _NAMES.items()},
}
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def parse_duration(given: float | str) -> float:
    """Return a duration in seconds: a number of them, or numbers with units.

    Units: ``s``, ``m`` (minutes), ``h``, ``d``, ``w``, and their names. Raises: ValueError: it is
    none, or not above zero.

    >>> [parse_duration(each) for each in (1.5, "90", "15m", "2h 30m", "3 days")]
    [1.5, 90.0, 900.0, 9000.0, 259200.0]
    """
    try:
        found = _read(given) if isinstance(given, str) else float(given)
    except OverflowError:
        found = None
    if found is None or not math.isfinite(found) or found <= 0:
        raise ValueError(
            'expected a duration above zero, such as 90 (seconds), "15m", "2h 30m" or "3 days"; '
            f"found {given!r}"
        )
    return found


def _read(text: str) -> float | None:
    text = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    return total


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> [format_duration(each) for each in (5, 200, 7300, 200000, 0.25)]
    ['5s', '3m 20s', '2h 1m', '2d 7h', '0.25s']
    """
    if seconds < 60:
        return f"{seconds:g}s" if seconds < 10 else f"{int(seconds)}s"
    sizes = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
    left, parts = int(seconds), list[str]()
    for unit, size in sizes:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)
