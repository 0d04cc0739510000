"""The ends of graphs: entry and exit, controller and terminate node."""

from __future__ import annotations

from typing import Any

from masfactory.core.node import Node
from masfactory.utils.naming import validate_name


class InternalGraphNode(Node):
    """An end of a graph, which axil has without a node."""

    def __init__(self, owner: Any, role: str) -> None:
        super().__init__(validate_name(f"{owner.name}_{role}"))
        self.owner, self.role = owner, role
        self._current_iteration = 0

    @property
    def _max_iterations(self) -> int | None:
        return getattr(self.owner, "max_iterations", None)
