"""MASFactory's visualizer, which is never there: watch a run by ``RootGraph.axil.stream``.

``visualizer.serialize`` gives what it draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory.errors import missing

VISUALIZER_PROTOCOL_VERSION = 1

__all__ = [
    "VISUALIZER_PROTOCOL_VERSION",
    "connect",
    "connect_bridge",
    "get_bridge",
    "get_client",
    "is_available",
]


def is_available() -> bool:
    """Say that there is none."""
    return False


def connect(*args: Any, **kwargs: Any) -> None:
    """Give None, as MASFactory does where no visualizer answers."""
    del args, kwargs


def connect_bridge(*args: Any, **kwargs: Any) -> None:
    """Give None, as MASFactory does where no visualizer answers."""
    del args, kwargs


def get_client() -> None:
    """Give None, as MASFactory does where no visualizer answers."""


def get_bridge() -> None:
    """Give None, as MASFactory does where no visualizer answers."""


__getattr__: Callable[[str], Any] = missing(
    __name__,
    dict.fromkeys(
        (
            *("VisualizerBridge", "VisualizerClient", "VisualizerOpenFileOptions"),
            *("VisualizerRuntime", "get_visualizer_runtime"),
        ),
        "Watch a run by graph.axil.stream.",
    ),
)
