"""Values that exist once for each event loop: clients, locks, semaphores, worker processes.

An object of asyncio belongs to the event loop of its first use, while a component may be used on
several, one after the other or side by side in threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class LoopLocal(Generic[T]):
    """One value for each event loop, made when it is first asked for there.

    A value is forgotten when it is popped, when its event loop is collected, and, as it may refer
    to its event loop, at the first use on a new one after its own was closed. Forgetting closes
    nothing. Threads may use it at the same time.

    >>> import asyncio
    >>> log = LoopLocal(list)
    >>> async def add(entry):
    ...     log.get().append(entry)
    ...     return log.get()
    >>> async def both():
    ...     await add(1)
    ...     return await add(2)
    >>> asyncio.run(both()), asyncio.run(add(3))
    ([1, 2], [3])
    """

    __slots__ = ("_lock", "_make", "_values")

    def __init__(self, make: Callable[[], T]) -> None:
        """Args: make: makes the value on its event loop; it must not wait."""
        self._make = make
        self._lock = threading.Lock()
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the value of the running event loop.

        Raises: RuntimeError: none is running; and what making the value raises.
        """
        loop = _running()
        with self._lock:
            if loop in self._values:
                return self._values[loop]
        made = self._make()  # only this thread runs this loop: no second one is made meanwhile
        with self._lock:
            for closed in [each for each in self._values if each.is_closed()]:
                del self._values[closed]
            return self._values.setdefault(loop, made)

    def peek(self) -> T | None:
        """Return the value of the running event loop, if it was made."""
        loop = _running()
        with self._lock:
            return self._values.get(loop)

    def pop(self) -> T | None:
        """Forget and return the value of the running event loop, if it was made."""
        loop = _running()
        with self._lock:
            return self._values.pop(loop, None)

    def __len__(self) -> int:
        """Count the event loops that have a value."""
        with self._lock:
            return len(self._values)


def _running() -> asyncio.AbstractEventLoop:
    import asyncio  # importing axil does not load it

    return asyncio.get_running_loop()
