"""Interrupts of a command: in good order at first, then at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from axil_cli.command import Exit


@contextmanager
def interruptible(stop: Callable[[], None]) -> Generator[None]:
    """Call ``stop`` at the first Ctrl-C (or SIGTERM), and end the process at the second.

    What has not ended half a second after the second one is left as it is.

    Args:
        stop: called in a signal handler: it may set a mark, or ask an event loop.
    """
    before: dict[signal.Signals, Any] = {}

    # Not handlers of the loop: it may be blocked by a body.
    def first(number: int, frame: Any) -> None:
        for each in before:
            signal.signal(each, second)
        stop()

    def second(number: int, frame: Any) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        leaving = threading.Timer(0.5, os._exit, (Exit.INTERRUPTED,))
        leaving.daemon = True
        leaving.start()
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError):  # not in the main thread
            before[each] = signal.signal(each, first)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, signal.SIG_DFL if handler is None else handler)
