"""The names that EvoFabric has in ``core.mem``, and axil in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

_INSTEAD = "Memories of axil's agents are in axil-context."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "MemBase": _INSTEAD,
        "ChatMem": _INSTEAD,
        "TaskMem": _INSTEAD,
        "RetrievalMem": _INSTEAD,
        "CognitiveMem": _INSTEAD,
    },
)
