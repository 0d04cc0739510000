"""A covering array: rows in which every two values of different factors that may meet do meet.

Greedy and deterministic: each row begins with a pair that is missing, and is filled with the values
that cover most of what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product

Row = dict[str, str]
Pair = frozenset[tuple[str, str]]


def pairs_of(row: Mapping[str, str]) -> set[Pair]:
    """Return the pairs that a row covers."""
    return {frozenset(pair) for pair in combinations(row.items(), 2)}


def completed(
    row: Row, factors: Mapping[str, Sequence[str]], allowed: Callable[[Row], bool]
) -> Iterator[Row]:
    """Yield the whole rows that a part of one may become."""
    names = [name for name in factors if name not in row]
    for values in product(*(factors[name] for name in names)):
        whole = {**row, **dict(zip(names, values, strict=True))}
        if allowed(whole):
            yield {name: whole[name] for name in factors}


def covering(
    factors: Mapping[str, Sequence[str]], allowed: Callable[[Row], bool]
) -> tuple[list[Row], set[Pair]]:
    """Return rows, and the pairs that no allowed row has.

    >>> rows, never = covering({"a": "12", "b": "12", "c": "12"}, lambda row: row != {})
    >>> len(rows), never
    (4, set())
    """
    missing = {
        frozenset(pair)
        for one, other in combinations(factors, 2)
        for pair in product(
            [(one, value) for value in factors[one]], [(other, value) for value in factors[other]]
        )
    }
    rows: list[Row] = []
    never: set[Pair] = set()
    while missing:
        pair = min(missing, key=sorted)
        best = max(
            completed(dict(pair), factors, allowed),
            key=lambda row: len(pairs_of(row) & missing),
            default=None,
        )
        if best is None:
            never.add(pair)
            missing.discard(pair)
            continue
        rows.append(best)
        missing -= pairs_of(best)
    return rows, never
