"""``VerticalGraph``: nodes side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class VerticalGraph(Graph):
    """Nodes side by side; what they give goes out, or to a node that puts it together."""

    def __init__(
        self,
        name: str,
        node_configs: Sequence[Mapping[str, Any]],
        aggregator_args: Mapping[str, Any] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the nodes.

        Args:
            node_configs: ``{"node": …, "input_keys": …, "output_keys": …}`` each; ``node`` is what
                ``create_node`` is given.
            aggregator_args: what ``create_node`` is given for the node behind them; None: none.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._configs = [dict(config) for config in node_configs]
        self._aggregator_args = None if aggregator_args is None else dict(aggregator_args)
        self._side: list[Node] = []
        self._aggregator: Node | None = None

    @property
    def aggregator(self) -> Node | None:
        """The node that puts together what the others give; after ``build``."""
        return self._aggregator

    @property
    def vertical_node_list(self) -> list[Node]:
        """The nodes side by side; after ``build``."""
        return self._side

    @property
    def veritical_node_list(self) -> list[Node]:  # the name that MASFactory gave it
        """The nodes side by side; after ``build``."""
        return self._side

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the nodes."""
        if not self._side:
            self._side = [self.create_node(**config["node"]) for config in self._configs]
            behind: Any = "exit"
            if self._aggregator_args is not None:
                behind = self._aggregator = self.create_node(**self._aggregator_args)
            for node, config in zip(self._side, self._configs, strict=True):
                self.edge_from_entry(node, config.get("input_keys", self.outer_in))
                usual = self.outer_out if behind == "exit" else None
                self.create_edge(node, behind, config.get("output_keys", usual))
            if self._aggregator is not None:
                self.edge_to_exit(self._aggregator, self.outer_out)
        super().build()
