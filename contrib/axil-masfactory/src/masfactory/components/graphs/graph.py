"""``Graph``: a graph inside a graph."""

from __future__ import annotations

from typing import Any, ClassVar

import axil
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.core.edge import Edge
from masfactory.core.node import Keys


class Graph(BaseGraph):
    """A graph that is a node of another: ``entry`` and ``exit`` are its ends."""

    ends: ClassVar = {"entry": "entry", "exit": "exit"}

    @property
    def _entry(self) -> Any:
        return self._internal["entry"]

    @property
    def _exit(self) -> Any:
        return self._internal["exit"]

    def edge_from_entry(self, receiver: Any, keys: Keys | None = None) -> Edge:
        """Connect what comes in with a node."""
        return self.create_edge("entry", receiver, keys)

    def edge_to_exit(self, sender: Any, keys: Keys | None = None) -> Edge:
        """Connect a node with what goes out."""
        return self.create_edge(sender, "exit", keys)

    def component(self) -> Any:
        return axil.Graph("", attributes=self.attributes)
