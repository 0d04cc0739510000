"""Plain functions that may block, awaited: each has its own thread, and none waits for another."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from axil.plugin import is_async

Result = TypeVar("Result")


async def in_thread(call: Callable[[], Result], name: str = "axil-call") -> Result:
    """Return what ``call`` gives, run in a thread.

    If the waiting is cancelled, the thread finishes unseen.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()
    context = contextvars.copy_context()

    def tell(settle: Callable[[], None]) -> None:
        if not answer.done():
            settle()

    def work() -> None:
        try:
            settle = partial(answer.set_result, context.run(call))
        except BaseException as error:  # noqa: BLE001  # it is raised again where it is waited for
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            settle = partial(answer.set_exception, error if is_plain else _raisable(error))
        try:
            loop.call_soon_threadsafe(tell, settle)
        except RuntimeError:  # the loop is closed: nothing waits any more
            return

    threading.Thread(target=work, name=name, daemon=True).start()
    return await answer


def _raisable(error: BaseException) -> RuntimeError:
    """Replace an error that means something else to an event loop: ``sys.exit()`` ends no run."""
    report = RuntimeError(f"{type(error).__name__}: {error}".removesuffix(": "))
    report.__cause__ = error
    return report


async def call_async(function: Callable[..., Any], /, *args: object, **named: object) -> Any:
    """Return what ``function`` gives, awaited if it is async, else in a thread."""
    if is_async(function):
        return await function(*args, **named)
    value = await in_thread(
        lambda: function(*args, **named), getattr(function, "__name__", "axil-call")
    )
    return await value if inspect.isawaitable(value) else value
