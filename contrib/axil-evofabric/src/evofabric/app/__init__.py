"""EvoFabric's applications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "rethinker": "Write its branches, critics and selector as a graph.",
        "kernel_evolve": "Write its loop as a graph, and measure with axil-evals.",
    },
)
