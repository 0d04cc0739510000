"""Gates, whose names remain: axil has dead tokens instead."""

from __future__ import annotations

from enum import Enum


class Gate(Enum):
    """Whether an edge or a node is open."""

    OPEN = "open"
    CLOSED = "closed"
