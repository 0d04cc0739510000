"""The names that EvoFabric has in ``core.multi_agent``, and axil in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

_INSTEAD = (
    "Draw the handoffs as edges: agents on one typed state, and GraphBuilder.add_condition_edge."
)
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "Swarm": _INSTEAD,
    },
)
