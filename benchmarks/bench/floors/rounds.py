"""A loop of two functions by hand; each line adds something that a round promises; µs a round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .measure import lines, processor, sentence

SIZES: Sequence[int] = (1000, 10_000)
QUICK: Sequence[int] = (10,)
SCALARS = frozenset({int, float, str, bool, type(None)})
SLICE = 1000.0


class Token(NamedTuple):
    """The payload and the state of an edge."""

    edge: int
    payload: Mapping[str, Any]
    state: Mapping[str, int]
    ordinal: tuple[int, ...]


class Task(NamedTuple):
    """A firing that is due."""

    frame: tuple[str | int, ...]
    node: int
    tokens: tuple[Token, ...]
    state: Mapping[str, int]


class View:
    """A state as a body sees it: its changes are not seen elsewhere."""

    __slots__ = ("_own", "_state")

    def __init__(self, state: Mapping[str, int]) -> None:
        self._state = state
        self._own: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        value = self._state[name] if self._own is None else self._own.get(name, self._state[name])
        return value if type(value) in SCALARS and not name.startswith("@") else None


def add(state: Any) -> dict[str, int]:
    return {"n": state["n"] + 1}


def nothing(state: Any) -> dict[str, int]:
    return {}


def bare(rounds: int) -> int:
    """Calls of both, and a condition on each edge that leads on."""
    state = {"n": 0}
    while True:
        state.update(add(state))
        state.update(nothing(state))
        back, out = state["n"] < rounds, state["n"] >= rounds
        if out or not back:
            return state["n"]


def kept_apart(rounds: int) -> int:
    """Turn with a state of its own for each body, into which its checked result is copied."""
    state: Mapping[str, int] = {"n": 0}
    while True:
        for body in (add, nothing):
            state = written(state, body(View(state)))
        if View(state)["n"] >= rounds or not View(state)["n"] < rounds:
            return state["n"]


def written(state: Mapping[str, int], output: Mapping[str, int]) -> Mapping[str, int]:
    """Return the state after it."""
    if not output:
        return state
    for value in output.values():
        if type(value) not in SCALARS:
            raise TypeError(value)
    return {**state, **{name: value for name, value in output.items() if name in state}}


def promised(rounds: int) -> int:
    """And a firing has a name and tokens, says where it failed, is under way until it is done, and
    is counted; so are rounds and time.
    """
    edges: Sequence[tuple[int, Callable[[Any], bool]]] = (
        (1, lambda state: state["n"] < rounds),
        (2, lambda state: state["n"] >= rounds),
    )
    bodies = (add, nothing)
    fired, ends, most, at = 0, time.monotonic() + SLICE, 10**9, 0
    total: dict[str, int] = {}
    start: Mapping[str, int] = {"n": 0}
    task = Task(("loop", 0), 0, (Token(0, {}, start, ()),), start)
    under_way = {0: task}
    while True:
        try:
            output = bodies[task.node](View(task.state))
            if type(output) is not dict:
                raise TypeError(task.node)
            state = written(task.state, output)
            if task.node:
                sends = [(edge, output) for edge, holds in edges if holds(View(state))]
            else:
                sends = [(0, output)]
        except Exception as error:
            error.add_note(f"in {task.frame}, node {task.node}")
            raise
        fired += 1
        if fired >= most or (not fired & 3 and time.monotonic() > ends):
            raise AssertionError("a limit")
        under_way.pop(task.node)
        if task.node:
            ((edge, payload),) = sends
            total.update(state)
            if edge == 2:
                return total["n"]
            at += 1
            task = Task(("loop", at), 0, (Token(edge, payload, state, ()),), state)
        else:
            task = Task(task.frame, 1, (Token(0, sends[0][1], state, ()),), state)
        under_way[task.node] = task


WAYS = (bare, kept_apart, promised)


def table(sizes: Sequence[int]) -> str:
    """Return a line for each way."""

    def figures(way: Callable[[int], int]) -> Iterator[float]:
        for size in sizes:
            assert way(size) == size
            yield processor(lambda size=size: way(size), times=30) / size * 1e6

    return lines(
        ("by hand", *(f"{size:,} rounds" for size in sizes)),
        ([sentence(way), *figures(way)] for way in WAYS),
    )
