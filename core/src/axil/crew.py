"""Bodies at work: how many at once, in which lanes, in whose hands, and how they are sent home.

A firing that cannot start yet waits in its lane, in order. One that may start is *due*, and a *hand* does it: an asyncio task that
does one body after another as long as none of them has to wait. Where one waits, the hand waits with it, and another hand,
called before the body began, does what else is due. So a body that waits costs a task and one that does not costs none, and each
has a task of its own while it is at work. A hand ends with the body that leaves something behind in it: a changed context variable,
a cancellation.

``Executor`` is the seam for running bodies elsewhere: it gets one body, its task and its context, and gives what the body gives.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, cast

from axil.context import Context
from axil.errors import RunCancelled
from axil.journal import Book
from axil.live import Live, Queue
from axil.plan import Body, Node
from axil.spec import Limits
from axil.tokens import Task

SLICE = 0.005
"""Seconds of work before the event loop gets a turn."""

_AT_LENGTH = 10
"""Bodies that take longer than a slice before the loop gets a turn in any case: most of them wait, and give it one themselves."""


class LocalExecutor:
    """Async bodies on the event loop, the others in threads of their own pool."""

    __slots__ = ("_name", "_pool", "_threads")

    def __init__(self, threads: int, name: str) -> None:
        """``threads``: how many bodies may block at the same time; ``name``: of whom they are."""
        self._threads, self._name = threads, name
        self._pool: ThreadPoolExecutor | None = None

    async def execute(self, body: Body, task: Task, ctx: Context) -> Any:
        """See ``Executor``. A thread that is cancelled is left to finish; what it gives is thrown away."""
        if body.mode != "thread":
            out = body(task, ctx)
            return await out if inspect.isawaitable(out) else out
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=f"axil-{self._name}")
        context = copy_context()

        def call() -> Any:
            try:
                return context.run(body, task, ctx)
            except StopIteration as error:  # a future refuses it, and whoever awaits it would wait for ever
                raise RuntimeError("the body raised StopIteration") from error

        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def close(self) -> None:
        """Let the threads go; those that still run finish unseen."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


class Work:
    """One body to be set to work, or at work."""

    __slots__ = ("doing", "hand", "live", "node", "task")

    def __init__(self, live: Live, task: Task, node: Node, doing: Awaitable[Any] | None = None) -> None:
        self.live, self.task, self.node = live, task, node
        self.doing = doing
        """What the body gave, if it was begun as a call and has to be awaited after all."""
        self.hand: asyncio.Task[None] | None = None
        """Who does it; None: nobody yet."""


class Foreman(Protocol):
    """What a crew asks of the run it works for."""

    def begin(self, work: Work) -> Awaitable[Any]:
        """Begin a body."""
        ...

    def hear(self, work: Work, out: Any, error: BaseException | None) -> None:
        """Take in what it came to, an outcome or an error, and put what follows from it."""
        ...

    def notice(self, live: Live) -> None:
        """A frame's machine moved, or there is a new one: see what is due in it."""
        ...

    def wake(self) -> None:
        """See to what no hand does: one has broken, no body is at work any more, or there may be room for those who wait for it."""
        ...


class _Nobody:
    """Whom a crew works for when its run has ended: threads that could not be stopped may still come by."""

    def begin(self, work: Work) -> Awaitable[Any]:
        raise RunCancelled("the run has ended")

    def hear(self, work: Work, out: Any, error: BaseException | None) -> None:
        pass

    def notice(self, live: Live) -> None:
        pass

    def wake(self) -> None:
        pass


class Crew:
    """The bodies of one run: those that wait for room, those that are due, and those at work."""

    __slots__ = (
        "_book", "_context", "_due", "_idle", "_inside", "_is_roomy", "_is_securing", "_lanes", "_many", "_next", "_returning",
        "_waiting", "_working", "announce", "broken", "foreman", "is_sent_home", "limits",
    )  # fmt: skip

    def __init__(self, limits: Limits, book: Book | None, foreman: Foreman) -> None:
        """``book``: what is written in it before a body is due is safe before the body begins."""
        self.limits = limits
        self.announce: Callable[[Work], None] | None = None
        """Who is told of a body for which there is room."""
        self.is_sent_home = False
        """Nothing more is begun."""
        self.broken: BaseException | None = None
        """What a hand met that is no outcome of a body."""
        self.foreman, self._book = foreman, book
        self._due: Queue[Work] = Queue()
        self._next: Queue[Work] = self._due if book is None else Queue()  # due as soon as what was journaled before is safe
        self._is_roomy = limits.concurrency is None
        self._is_securing = False
        self._idle = 0  # hands that were called and have not come yet
        self._many = 1  # to call at once: twice as many whenever one finds something to do, for then bodies wait
        self._context: contextvars.Context | None = None  # what each hand begins with
        self._waiting: dict[str | None, deque[Work]] = {}
        self._working: dict[Task, Work] = {}  # due, or in a hand
        self._inside: dict[Task, int] = {}  # bodies that wait for sub-runs of their own, which need the room they take
        self._returning: dict[Task, asyncio.Future[None]] = {}  # bodies whose sub-run has ended, waiting for room
        self._lanes: dict[str | None, int] = {}

    def __bool__(self) -> bool:
        """Whether any body is due or at work."""
        return bool(self._working)

    @property
    def at_work(self) -> int:
        """How many bodies are at work or wait for room; not those that wait for sub-runs of their own."""
        return len(self._working) - len(self._inside) + sum(map(len, self._waiting.values()))

    # ------------------------------------------------------------------ room

    def put(self, work: Work) -> None:
        """A body to be done: due if there is room and nobody waits for it, else behind those who do."""
        lane = work.node.vertex.lane
        if lane is None and self._is_roomy:
            self._admit(work)
            return
        if lane not in self._waiting:
            self._waiting[lane] = deque()
        self._waiting[lane].append(work)
        self.admit()

    def admit(self) -> None:
        """Make due what there is room for now: bodies that come back from a sub-run first, then lane by lane, in order."""
        if self.is_sent_home:
            return
        for task, coming_back in list(self._returning.items()):
            if self._has_room(self._lane_of(task)):
                self._come_back(task)
                del self._returning[task]
                coming_back.set_result(None)
        for lane, queue in self._waiting.items():
            while queue and self._has_room(lane):
                self._lanes[lane] = self._lanes.get(lane, 0) + 1
                self._admit(queue.popleft())

    def _admit(self, work: Work) -> None:
        self._working[work.task] = work
        self._next.put(work)
        if self.announce is not None:
            self.announce(work)

    def _has_room(self, lane: str | None) -> bool:
        most = self.limits.concurrency
        if most is not None and len(self._working) - len(self._inside) >= most:
            return False
        return lane is None or self._lanes.get(lane, 0) < self.limits.lanes.get(lane, 1)

    # ------------------------------------------------------------------ hands

    def call(self) -> None:
        """Call hands for what is to be done, unless some are on their way."""
        if self._idle or self.is_sent_home or not (self._due.front or (self._next.front and not self._is_securing)):
            return
        if self._context is None:
            self._context = copy_context()
        self._idle = max(1, min(self._many, len(self._due)))
        for _ in range(self._idle):
            # Not made by the loop's factory, which may begin tasks at once: hands would begin in one another.
            asyncio.Task(self._hand(), context=self._context.copy())

    async def _secure(self, book: Book) -> None:
        """Wait until all that is journaled is safe; then what was to be done when the waiting began is due."""
        self._is_securing = True
        try:
            many = len(self._next)
            if (waiting := book.kept()) is not None:
                await waiting
            for _ in range(many):
                self._due.put(self._next.take())
        finally:
            self._is_securing = False

    async def _hand(self) -> None:
        """Do what is due, one body after another, until nothing is, or a body left something behind."""
        me = cast("asyncio.Task[None]", asyncio.current_task())
        due, working = self._due, self._working
        self._idle -= 1
        self._many = min(2 * self._many, 64) if due.front else 1
        began, at_length = time.monotonic(), 0
        turn_ends = began + SLICE
        try:
            while not self.is_sent_home:
                if not due.front:
                    if self._book is None or self._is_securing or not self._next.front:
                        break
                    await self._secure(self._book)
                    continue
                work = due.take()
                if due.front and not self._idle:
                    self.call()  # while this one waits, should it have to
                if work.task not in working:  # it was dropped
                    continue
                work.hand = me
                out: Any = None
                error: BaseException | None = None
                try:
                    out = await self.foreman.begin(work)
                except (GeneratorExit, KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as raised:  # noqa: BLE001  # a body may raise anything
                    error = raised
                finally:
                    self._leave(work)
                self.foreman.hear(work, out, error)
                if self._waiting or self._returning:
                    self.admit()
                if not working:
                    self.foreman.wake()
                if me.cancelling() or copy_context() != self._context:  # left behind by the body: the next one is not to find it
                    break
                now = time.monotonic()
                if now > turn_ends:
                    at_length += 1
                    if now - began < SLICE or at_length > _AT_LENGTH:
                        await asyncio.sleep(0)
                        now, at_length = time.monotonic(), 0
                    turn_ends = now + SLICE
                began = now
        except asyncio.CancelledError:  # by somebody who took it for the task of a body that has ended
            pass
        except GeneratorExit:  # the loop is gone
            raise
        except BaseException as broken:  # noqa: BLE001  # the journal failed, or we did, or the process is to end: the run raises it
            self.broken, self.is_sent_home = broken, True
            self.foreman.wake()
        self.call()

    def _leave(self, work: Work) -> None:
        del self._working[work.task]
        if (lane := work.node.vertex.lane) is not None:
            self._lanes[lane] -= 1

    # ------------------------------------------------------------------ sub-runs of bodies

    def frame_of(self, task: Task) -> Live:
        """The frame whose body is at work on ``task``."""
        return self._working[task].live

    def _lane_of(self, task: Task) -> str | None:
        return task.owner.plan.nodes[task.node].vertex.lane

    def step_inside(self, task: Task) -> None:
        """The body of ``task`` waits for a sub-run of its own: it leaves its room, in its lane too, to others."""
        self._inside[task] = self._inside.get(task, 0) + 1
        if self._inside[task] == 1:
            lane = self._lane_of(task)
            self._lanes[lane] = self._lanes.get(lane, 0) - 1
        self.foreman.wake()

    async def step_out(self, task: Task) -> None:
        """The sub-run has ended: wait for room to go on, ahead of those who have not begun."""
        self._inside[task] -= 1
        if self._inside[task]:
            return
        self._inside[task] = 1  # still without room
        if self._has_room(self._lane_of(task)):
            self._come_back(task)
            return
        back = self._returning[task] = asyncio.get_running_loop().create_future()
        try:
            await back
        except asyncio.CancelledError:
            if self._returning.pop(task, None) is not None:
                self._come_back(task)
            raise

    def _come_back(self, task: Task) -> None:
        del self._inside[task]
        lane = self._lane_of(task)
        self._lanes[lane] = self._lanes.get(lane, 0) + 1

    # ------------------------------------------------------------------ going home

    def drop(self) -> None:
        """Give up bodies in frames that nobody waits for any more: cancel those at work, and begin none of the others."""
        for work in [work for work in self._working.values() if work.live.is_dropped]:
            if work.hand is not None:
                work.hand.cancel()
            else:
                self._leave(work)
        for lane, queue in self._waiting.items():
            self._waiting[lane] = deque(work for work in queue if not work.live.is_dropped)

    async def send_home(self) -> None:
        """Begin nothing more, cancel the bodies of the deepest frames, and wait until they are gone."""
        self.is_sent_home = True
        for work in [work for work in self._working.values() if work.hand is None]:
            self._leave(work)
        if not self._working:
            return
        deepest = max(work.live.depth for work in self._working.values())
        hands = [work.hand for work in self._working.values() if work.hand is not None and work.live.depth == deepest]
        for hand in hands:
            hand.cancel()
        await asyncio.wait(hands)

    def close(self) -> None:
        """The run has ended, and is held by nothing here: it is freed with whoever held it last, not when a collector comes by."""
        self.foreman, self.announce = _Nobody(), None
