"""Tokens of the reference model, how firings are named, and how payloads are put together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .history import NOTHING, State

Path = tuple[Any, ...]
"""The name of a frame."""
Ordinal = tuple[int, ...]


class Token(NamedTuple):
    """The content of an edge.

    ``state`` is None where it waited since an earlier round, or came from outside the cycle.
    """

    edge: int
    payload: Any
    state: State | None
    ordinal: Ordinal = ()


class Left(NamedTuple):
    """A token that left a scope, or came back to its beginning."""

    edge: int
    payload: Any
    values: Mapping[str, Any] | None
    """The state that a filter gave; None: no filter."""
    ordinal: Ordinal


class Ended(NamedTuple):
    """The result of a scope."""

    state: State
    exits: list[Left]
    returns: list[Left]
    data: list[Token]
    """Payloads of data edges that no firing took."""
    has_fired: bool


class Firing(NamedTuple):
    """A firing that is due."""

    ordinal: Ordinal
    tokens: list[Token]


Send = tuple[int, Any, Mapping[str, Any] | None]
"""An edge, what it carries, and what its filter made of the state."""


class Outcome(NamedTuple):
    """The state after a firing, and what it sends on which edges, in order."""

    state: State
    sends: list[Send]


def next_ordinal(position: int, source: Ordinal) -> Ordinal:
    """Return the ordinal of a firing for one token; long ones become a length and a digest."""
    if len(source) < 24:
        return (*source, position)
    whole = hashlib.blake2b(repr((source, position)).encode(), digest_size=7).digest()
    length = source[1] + 1 if source[0] == -1 else len(source) + 1
    return (-1, length, int.from_bytes(whole, "big"), *([0] * 21))


def place_of(token: Token) -> tuple[bool, int, Ordinal]:
    """Return a token's place at a join: what waited since an earlier round comes first."""
    return token.state is not None, token.edge, token.ordinal


def folded(payloads: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return all payloads as one: lists are extended, mappings updated, other values listed."""
    result: dict[str, Any] = {}
    for payload in payloads:
        for name, new in payload.items():
            old = result.get(name, NOTHING)
            if old is NOTHING:
                result[name] = new
            elif isinstance(old, list):
                result[name] = [*old, *new] if isinstance(new, list) else [*old, new]
            elif isinstance(old, dict) and isinstance(new, dict):
                result[name] = {**old, **new}
            else:
                result[name] = [old, new]
    return result


def inner_path(path: Path, node: str, ordinal: Ordinal) -> Path:
    """Return the name of the frame that a firing opens."""
    return (*path, node, "#" + ".".join(map(str, ordinal))) if ordinal else (*path, node)
