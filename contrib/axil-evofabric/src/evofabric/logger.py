"""The logger of programs: Python's own, unless another is set."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["get_logger", "set_logger"]

_chosen: list[Any] = []


class _Logger:
    """The logger that is set at the moment of each call."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_chosen[0] if _chosen else logging.getLogger("evofabric"), name)


def get_logger() -> Any:
    """Give the logger."""
    return _Logger()


def set_logger(logger: Any) -> None:
    """Set the logger of the process; None: Python's own, named ``evofabric``."""
    _chosen[:] = [] if logger is None else [logger]
