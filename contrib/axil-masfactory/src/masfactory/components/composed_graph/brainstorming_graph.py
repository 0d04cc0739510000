"""``BrainstormingGraph``: critics in a line, and then a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from masfactory.components.custom_node import CustomNode
from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class BrainstormingGraph(Graph):
    """Critics in a line, and then a solver: what each critic said is, for those after it, in the
    attribute ``broadcast_label``, by the critic's name.
    """

    def __init__(
        self,
        name: str,
        solver_args: Mapping[str, Any],
        critics_args: Sequence[Mapping[str, Any]],
        critic_keys: Keys | Sequence[Keys],
        broadcast_label: str = "broadcast",
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the critics, what each of them hands on, and the solver.

        Raises: ValueError: there are more or fewer keys than critics.
        """
        super().__init__(
            name, pull_keys, push_keys, {**dict(attributes or {}), broadcast_label: {}}
        )
        self._solver_args = dict(solver_args)
        self._critics_args = [dict(args) for args in critics_args]
        count = len(self._critics_args)
        same = isinstance(critic_keys, Mapping)
        self._critic_keys: list[Any] = [critic_keys] * count if same else list(critic_keys)
        if len(self._critic_keys) != count:
            raise ValueError(
                f'"{name}": found {len(self._critic_keys)} critic_keys, expected {count}. '
                "Give one for each critic, or one dict for all."
            )
        self.broadcast_label = broadcast_label
        self._solver: Node | None = None

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the line; behind each critic a node writes down what it said."""
        if self._solver is None:
            before: Any = "entry"
            keys = self.outer_in
            for args, said in zip(self._critics_args, self._critic_keys, strict=True):
                critic = self.create_node(**args)
                noting = self.create_node(
                    CustomNode,
                    name=f"{critic.name}_{self.broadcast_label}",
                    forward=self._noting(critic.name),
                    push_keys={self.broadcast_label: ""},
                )
                self.create_edge(before, critic, keys)
                self.create_edge(critic, noting, said)
                before, keys = noting, said
            self._solver = self.create_node(**self._solver_args)
            self.create_edge(before, self._solver, keys)
            self.edge_to_exit(self._solver, self.outer_out)
        super().build()

    def _noting(self, critic: str) -> Any:
        label = self.broadcast_label

        def note(message: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
            attributes[label] = {**attributes.get(label, {}), critic: dict(message)}
            return message

        return note
