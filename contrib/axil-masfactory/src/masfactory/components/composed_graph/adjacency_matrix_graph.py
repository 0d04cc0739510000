"""``AdjacencyMatrixGraph``: nodes, and a table of the edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class AdjacencyMatrixGraph(Graph):
    """Nodes, and a table of the edges between them: row 0 is the entry, the last column the exit.

    A cell that is None is an edge that carries ``message``, a dict is an edge with these keys,
    anything else is no edge.
    """

    def __init__(
        self,
        name: str,
        node_args_list: Sequence[Mapping[str, Any] | None],
        adjacency_matrix: Iterable[Iterable[Any]],
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take a row and a column for each entry of ``node_args_list``; the first and the last of
        them stand for the ends.

        Raises: ValueError: the table is not square, or has another size.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._args = list(node_args_list)
        self._rows: list[list[Any]] = [list(row) for row in adjacency_matrix]
        size = len(self._args)
        if size < 2 or len(self._rows) != size or any(len(row) != size for row in self._rows):
            raise ValueError(
                f'"{name}": found a table of {len(self._rows)} rows of '
                f"{sorted({len(row) for row in self._rows})} cells, expected {size} rows of "
                f"{size}. Give a row and a cell for each node, entry and exit included."
            )

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the nodes and the edges."""
        if self._rows:
            rows, self._rows = self._rows, []
            inner = [self.create_node(**dict(args or {})) for args in self._args[1:-1]]
            places: list[Any] = ["entry", *inner, "exit"]
            for sender, row in zip(places, rows, strict=True):
                for receiver, cell in zip(places, row, strict=True):
                    if cell is None or isinstance(cell, Mapping):
                        self.create_edge(sender, receiver, cast("Keys | None", cell))
        super().build()
