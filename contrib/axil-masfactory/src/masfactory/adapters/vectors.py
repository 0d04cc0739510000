"""Texts that are compared by their vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Embedding = Callable[[str], Any]
"""From a text to its vector: a list of numbers, or anything that can be read as one."""


def nearness(one: Iterable[Any], other: Iterable[Any]) -> float:
    """Give the cosine of two vectors; 0 where one of them has no length.

    >>> nearness([1, 0], [2, 0]), nearness([1, 0], [0, 3]), nearness([], [])
    (1.0, 0.0, 0.0)
    """
    a, b = [float(x) for x in one], [float(x) for x in other]
    length = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0
