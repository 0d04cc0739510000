"""Gates, whose names remain: axil has dead tokens instead."""

from __future__ import annotations

from enum import Enum


class Gate(Enum):
    """The state of an edge or a node: open or closed."""

    OPEN = "open"
    CLOSED = "closed"
