"""The errors for names of MASFactory that axil replaces."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


class Unsupported(NotImplementedError):
    """A use of MASFactory that has no counterpart under this name; it says what axil has."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what}: axil does not do this under MASFactory's name. {instead}")


def missing(module: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """Give a ``__getattr__`` of a module that raises ``Unsupported`` for these names."""

    def look(name: str) -> Any:
        if name in instead:
            raise Unsupported(f"{module}.{name}", instead[name])
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return look


def also_in(package: str, module: str) -> Callable[[str], Any]:
    """Give a ``__getattr__`` of a module whose other names its package has."""

    def look(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module(package), name)

    return look
