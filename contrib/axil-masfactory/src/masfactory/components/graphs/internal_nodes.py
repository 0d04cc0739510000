"""The ends of graphs: entry and exit, controller and terminate node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from masfactory.core.node import Node
from masfactory.errors import Unsupported
from masfactory.utils.naming import validate_name


class InternalGraphNode(Node):
    """An end of a graph, which axil has without a node."""

    def __init__(self, owner: Any, role: str) -> None:
        super().__init__(validate_name(f"{owner.name}_{role}"))
        self.owner, self.role = owner, role
        self._current_iteration = 0

    def count_rounds(self, attributes: Mapping[str, Any]) -> None:
        """Take the round that a loop is in."""
        self._current_iteration = int(attributes.get("current_iteration") or 0)

    @property
    def output(self) -> dict[str, Any]:
        """Raise ``Unsupported``."""
        raise Unsupported("the output of a graph's end", "RootGraph.invoke gives the output.")

    @property
    def _max_iterations(self) -> int | None:
        return getattr(self.owner, "max_iterations", None)
