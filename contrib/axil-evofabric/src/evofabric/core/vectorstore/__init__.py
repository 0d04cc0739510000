"""The names that EvoFabric has in ``core.vectorstore``, and axil in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing

_INSTEAD = "Documents with vectors are in axil-context and axil-chroma."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "DBBase": _INSTEAD,
        "VectorDB": _INSTEAD,
        "ChromaDB": _INSTEAD,
    },
)
