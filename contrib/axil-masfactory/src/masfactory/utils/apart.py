"""Calls of what runs an event loop, from where one may be running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any


def apart(call: Callable[[], Any]) -> Any:
    """Call here, or in a thread of its own where an event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1, "masfactory") as pool:
        return pool.submit(copy_context().run, call).result()
