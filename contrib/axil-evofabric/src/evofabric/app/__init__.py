"""EvoFabric's applications, which axil has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

_INSTEAD = "Write the workflow as a graph, or as a workflow file; axil designs none from a text."
__getattr__: Callable[[str], Any] = missing(
    __name__, dict.fromkeys(("sop2workflow", "rethinker", "kernel_evolve"), _INSTEAD)
)
