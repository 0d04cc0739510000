"""Names of EvoFabric that axil has in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Unsupported(NotImplementedError):
    """A name of EvoFabric without a counterpart here; the message says what axil has."""


def missing(module: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """Give a ``__getattr__`` of a module that raises ``Unsupported`` for these names."""

    def look(name: str) -> Any:
        if name in instead:
            raise Unsupported(
                f"{module}.{name}: axil does not do this under EvoFabric's name. {instead[name]}"
            )
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look
