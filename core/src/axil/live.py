"""One frame that is running: a machine, and who wants to know when it has nothing left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from axil.composite import Visit
from axil.context import Question
from axil.errors import AxilError, NodeFailed
from axil.journal import Entry
from axil.machine import Machine
from axil.outcome import Ended, Step
from axil.tokens import Activation, Task

T = TypeVar("T")


class Live:
    """A machine that a run drives, and its place among the others: the frame and the task that opened it."""

    __slots__ = (
        "again", "contained", "depth", "dropped", "in_turn", "machine", "over", "parent",
        "paused", "questions", "queued", "task", "turn", "visit", "waiter",
    )  # fmt: skip

    def __init__(self, machine: Machine, parent: Live | None = None, task: Task | None = None) -> None:
        self.machine, self.parent, self.task = machine, parent, task
        self.visit: Visit | None = None
        """The scope this is a part of; None for the run itself and for sub-runs of bodies."""
        self.again: Callable[[Step, Callable[[Entry], None] | None], Task | None] | None = None
        """The short way into the next round of the cycle this is a part of; see ``CycleVisit.turn``."""
        self.waiter: asyncio.Future[Ended] | None = None
        """The body that waits for a sub-run."""
        self.contained = False
        """A failure inside is raised to that body, and does not end the run."""
        self.paused = 0
        """Tasks that ended with an open question."""
        self.questions: tuple[Question, ...] = ()
        self.queued = False
        self.over = False
        """Its machine has ended, and its scope has met a limit."""
        self.dropped = False
        """Nobody waits for it any more."""
        self.in_turn: dict[Activation, tuple[Task, Entry]] = {}
        """Recorded firings of a shared state that wait for their turn to be applied."""
        self.turn = 0
        self.depth: int = parent.depth + 1 if parent else 0

    def turns(self, task: Task, entry: Entry, order: Sequence[Activation]) -> Iterator[tuple[Task, Entry]]:
        """Recorded firings whose turn has come: this one, and of a shared state, where ``order`` counts, those that waited for it."""
        if self.machine.head is None:
            yield task, entry
            return
        self.in_turn[entry.activation] = (task, entry)
        while self.turn < len(order) and order[self.turn] in self.in_turn:
            self.turn += 1
            yield self.in_turn.pop(order[self.turn - 1])

    def tell(self, came: Ended | BaseException) -> None:
        """Tell the body that waits what this came to, if it still waits."""
        if self.waiter is None or self.waiter.done():
            return
        if isinstance(came, BaseException):
            self.waiter.set_exception(came)
        else:
            self.waiter.set_result(came)

    @property
    def is_dropped(self) -> bool:
        """Whether nobody waits any more for this frame, or for one around it."""
        live: Live | None = self
        while live is not None:
            if live.dropped:
                return True
            live = live.parent
        return False

    def contain(self, failed: NodeFailed) -> Live | None:
        """The nearest frame, this one or one around it, that keeps its failures to itself; the first is raised where it is waited for."""
        live: Live | None = self
        while live is not None and not live.contained:
            live = live.parent
        if live is not None:
            live.tell(failed)
        return live

    def order(self) -> tuple[Any, ...]:
        """The place of this frame in plan order: the nodes, ordinals and rounds that lead to it."""
        parts: list[tuple[Any, ...]] = []
        live: Live | None = self
        while live is not None and live.task is not None:
            part = live.machine.frame[-1]
            parts.append((live.task.node, live.task.ordinal, part if isinstance(part, int) else -1))
            live = live.parent
        return tuple(reversed(parts))


class Queue(Generic[T]):
    """First come, first served; a list each for those in front and those behind, so that it is small where few wait."""

    __slots__ = ("_behind", "front")

    def __init__(self) -> None:
        self.front: list[T] = []
        """The next one last; not empty as long as there are any."""
        self._behind: list[T] | None = None  # the next one first; None: there were never two

    def __len__(self) -> int:
        return len(self.front) + len(self._behind or ())

    def put(self, item: T) -> None:
        """Behind all others."""
        if not self.front:
            self.front.append(item)
        elif self._behind is None:
            self._behind = [item]
        else:
            self._behind.append(item)

    def take(self) -> T:
        """The next one, which waits no more."""
        item = self.front.pop()
        if not self.front and self._behind:
            self._behind.reverse()
            self.front, self._behind = self._behind, self.front
        return item


def broken_off(root: Live, scopes: Iterable[Live]) -> Ended:
    """What there is of a run that did not end by itself: the writes of open scopes, innermost first, go to those around them."""
    machine = root.machine
    try:
        for live in sorted(scopes, key=lambda live: -live.depth):
            if live.parent is not None and live.task is not None and live.visit is not None:
                live.parent.machine.abandon(live.task, live.visit.so_far(None if live.over else live.machine.end()))
        return machine.end()
    except AxilError:  # its paths cannot be joined: that is told, or another failure came first
        return Ended(machine.root, {}, tuple(machine.exits), (), (), True)
