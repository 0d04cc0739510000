"""The least that keeps what a run promises of its bodies, as the floors of joins and of crowds use
it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

SLICE = 0.005
"""Seconds of work before the event loop gets a turn."""


class Job:
    """One body to be done."""

    __slots__ = ("by", "node", "state", "tokens")

    def __init__(self, node: int, tokens: Any, state: dict[str, Any]) -> None:
        self.node, self.tokens, self.state = node, tokens, state
        self.by: asyncio.Task[None] | None = None


class Hands:
    """Bodies that may wait, run without a task for each.

    What is due is done in order by a task that another one steps in for before a body that might
    wait. The tasks at work are known, and could be cancelled; what a body raises is reported; no
    body finds what another left in its context; the loop gets its turn.
    """

    def __init__(
        self,
        begin: Callable[[Job], Awaitable[dict[str, Any]]],
        hear: Callable[[Job, dict[str, Any]], None],
    ) -> None:
        """``hear``: takes in what a body gave, and puts what follows."""
        self.begin, self.hear = begin, hear
        self.due: deque[Job] = deque()
        self.working: dict[Job, None] = {}
        self.called = 0
        self.context = copy_context()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, job: Job) -> None:
        self.working[job] = None
        self.due.append(job)

    def call(self) -> None:
        if self.due and not self.called:
            self.called = 1
            asyncio.Task(self.hand(), context=self.context.copy())

    async def hand(self) -> None:
        me, due, working = asyncio.current_task(), self.due, self.working
        assert me is not None
        self.called = 0
        ends = time.monotonic() + SLICE
        while due:
            job = due.popleft()
            if due and not self.called:
                self.call()
            job.by = me
            error: BaseException | None = None
            output: dict[str, Any] = {}
            try:
                output = await self.begin(job)
            except Exception as raised:  # noqa: BLE001  # a body may raise anything
                error = raised
            finally:
                del working[job]
            if error is None:
                self.hear(job, output)
            elif not self.over.done():
                self.over.set_exception(error)
            if not working and not self.over.done():
                self.over.set_result(None)
            if me.cancelling() or copy_context() != self.context:
                break
            if time.monotonic() > ends:
                await asyncio.sleep(0)
                ends = time.monotonic() + SLICE
        self.call()

    async def done(self) -> None:
        """Until nothing is due and nothing at work."""
        self.call()
        await self.over
