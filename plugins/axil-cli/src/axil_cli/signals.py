"""Interrupts of a command: in good order at first, then at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from axil_cli.command import Exit

_ANSWER_SECONDS: Final = 5.0
"""The time in which an event loop has to react to the first interrupt."""


@contextmanager
def interruptible(stop: Callable[[], object]) -> Generator[None]:
    """Call ``stop`` in the handler of the first Ctrl-C (or SIGTERM); end the process at the second.

    The process also ends if a body holds up the event loop for ``_ANSWER_SECONDS`` after the first
    one, or if it has not ended half a second after the second. What a journal has stays.
    """
    before: dict[signal.Signals, Any] = {}

    # Not handlers of the loop: it may be blocked by a body.
    def first(number: int, frame: Any) -> None:
        for each in before:
            signal.signal(each, second)
        stop()
        with suppress(RuntimeError):  # no loop is running
            loop = asyncio.get_running_loop()
            leaving = _leave_after(_ANSWER_SECONDS)
            loop.call_soon_threadsafe(leaving.cancel)

    def second(number: int, frame: Any) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        _leave_after(0.5)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # not in the main thread
            before[each] = signal.signal(each, first)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, signal.SIG_DFL if handler is None else handler)


def _leave_after(seconds: float) -> threading.Timer:
    """End the process after a time, whatever its other threads do."""
    leaving = threading.Timer(seconds, os._exit, (Exit.INTERRUPTED,))
    leaving.daemon = True
    leaving.start()
    return leaving
