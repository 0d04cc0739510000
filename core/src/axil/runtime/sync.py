"""The one sync door."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
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


async def _as_coroutine(doing: Awaitable[Any]) -> Any:
    return await doing
