"""The one sync door."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
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


class _Threads(ThreadPoolExecutor):
    """The threads of ``asyncio.to_thread``: those that still run when the loop ends finish unseen,
    as those of bodies do.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=True)


def _is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _as_coroutine(doing: Awaitable[Any]) -> Any:
    asyncio.get_running_loop().set_default_executor(_Threads(thread_name_prefix="asyncio"))
    return await doing
