"""The sync doors: on an event loop of their own, if need be in a thread of their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any


def run_sync(doing: Awaitable[Any]) -> Any:
    """Drive ``doing`` to its end on an event loop of its own and give what it gives.

    Raises: RuntimeError: called from a running event loop; await there instead.
    """
    if _is_running():
        if inspect.iscoroutine(doing):
            doing.close()
        raise RuntimeError(
            "a sync door was opened on a running event loop; await the async form (run, stream) "
            "there instead."
        )
    return asyncio.run(_as_coroutine(doing))


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``: those that still run when the loop ends finish unseen,
    as those of bodies do.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


async def _as_coroutine(doing: Awaitable[Any]) -> Any:
    asyncio.get_running_loop().set_default_executor(_Threads(thread_name_prefix="asyncio"))
    return await doing


def run_blocking(doing: Coroutine[Any, Any, Any]) -> Any:
    """Drive ``doing`` to its end and return what it returns.

    Where an event loop is running in this thread, as in a notebook, another thread drives it, in a
    copy of the context, and this one waits. An interrupt of the waiting thread cancels it.
    """
    if not _is_running():
        return run_sync(doing)
    driven = _Driven(doing)
    thread = Thread(target=copy_context().run, args=(driven.drive,), name="axil-invoke")
    thread.start()
    try:
        thread.join()
    except BaseException:
        driven.cancel()
        thread.join()
        raise
    if driven.error is not None:
        raise driven.error
    return driven.value


class _Driven:
    """A coroutine in a thread of its own, and its result."""

    def __init__(self, doing: Coroutine[Any, Any, Any]) -> None:
        self._doing = doing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self.value: Any = None
        self.error: BaseException | None = None

    def drive(self) -> None:
        try:
            self.value = asyncio.run(_as_coroutine(self._known()))
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            self.error = error

    async def _known(self) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        return await self._doing

    def cancel(self) -> None:
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it is over, and its loop closed
                self._loop.call_soon_threadsafe(self._task.cancel)
