"""Events: a chain by hand, then the same with an observer that is called twice for each firing, and
with two events of each handed over; µs a firing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, NamedTuple

from .measure import awaited, lines

SIZES: Sequence[int] = (1000,)
QUICK: Sequence[int] = (20,)


class Name(NamedTuple):
    """The name of a firing."""

    frame: tuple[int, ...]
    node: str
    ordinal: tuple[int, ...]


class Event(NamedTuple):
    """One event of a firing."""

    kind: str
    name: Name
    data: Any


def add(state: dict[str, int]) -> dict[str, int]:
    return {"n": state["n"] + 1}


class Reported:
    """An observer that counts."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def started(self, name: Name, kind: str) -> None:
        self.begun += 1

    def finished(self, name: Name, kind: str, output: Any) -> None:
        self.ended += 1


def guarded(call: Callable[..., None]) -> Callable[..., None]:
    """Call it, and ignore what it raises."""

    def reported(*values: Any) -> None:
        try:
            call(*values)
        except Exception as error:  # whatever it is
            raise AssertionError from error

    return reported


async def bare(size: int) -> None:
    state = {"n": 0}
    for _ in range(size):
        state.update(add(state))
    assert state["n"] == size


async def watched(size: int) -> None:
    reported = Reported()
    started, finished = guarded(reported.started), guarded(reported.finished)
    state = {"n": 0}
    for _ in range(size):
        name = Name((), "n", ())
        started(name, "node")
        output = add(state)
        state.update(output)
        finished(name, "node", {**output})
    assert reported.begun == reported.ended == size


async def streamed(size: int) -> None:
    """Run the chain on, giving way by the clock; afterwards its events are read."""
    events: deque[Event] = deque()

    async def read() -> AsyncIterator[Event]:
        while events:
            yield events.popleft()

    state = {"n": 0}
    for _ in range(size):
        name = Name((), "n", ())
        events.append(Event("started", name, "node"))
        output = add(state)
        state.update(output)
        events.append(Event("finished", name, {**output}))
    assert len([event async for event in read() if event.kind == "finished"]) == size


def table(sizes: Sequence[int]) -> str:
    """Return what each adds to the bare chain."""
    (size,) = sizes
    took = {
        act.__name__: awaited(lambda act=act: act(size), times=100) / size * 1e6
        for act in (bare, watched, streamed)
    }
    return lines(
        ("by hand", "a firing", "more than bare"),
        [(name, value, value - took["bare"]) for name, value in took.items()],
    )
