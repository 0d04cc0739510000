"""``HorizontalGraph``: nodes in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class HorizontalGraph(Graph):
    """Nodes in a line: what the graph gets goes to the first, what the last gives goes out."""

    def __init__(
        self,
        name: str,
        node_args_list: Sequence[Mapping[str, Any]],
        edge_keys_list: Sequence[Keys | None] | Keys | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the nodes and what is carried between them.

        Args:
            node_args_list: what ``create_node`` is given for each node.
            edge_keys_list: the keys of each edge between two nodes, or those of all.
        Raises: ValueError: there are more or fewer keys than edges.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._args = [dict(args) for args in node_args_list]
        between = max(len(self._args) - 1, 0)
        if edge_keys_list is None or isinstance(edge_keys_list, Mapping):
            self._keys: list[Keys | None] = [edge_keys_list] * between
        else:
            self._keys = list(edge_keys_list)
        if len(self._keys) != between:
            raise ValueError(
                f'"{name}": found {len(self._keys)} keys for {between} edges, expected one for '
                "each edge. Give a list of that length, or one dict for all."
            )
        self._line: list[Node] = []

    def node_list(self) -> list[Node]:
        """Give the nodes of the line; after ``build``."""
        return self._line

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the line."""
        if not self._line:
            self._line = [self.create_node(**args) for args in self._args]
            if self._line:
                self.edge_from_entry(self._line[0], self.outer_in)
                pairs = zip(self._line, self._line[1:], self._keys, strict=False)
                self.create_edges(list(pairs))
                self.edge_to_exit(self._line[-1], self.outer_out)
        super().build()
