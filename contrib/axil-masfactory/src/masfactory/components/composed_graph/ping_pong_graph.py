"""``PingPongGraph``: two nodes in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class PingPongGraph(Loop):
    """Two nodes in turn; each turn is a round of the loop.

    Keys that are not given are those that the edges around the graph carry.
    """

    def __init__(
        self,
        name: str,
        node_a: Mapping[str, Any],
        node_b: Mapping[str, Any],
        node_a_in_keys: Keys | None = None,
        node_a_out_keys: Keys | None = None,
        node_b_in_keys: Keys | None = None,
        node_b_out_keys: Keys | None = None,
        node_a_first: bool = True,
        max_turns: int = 20,
        terminate_condition_function: Callable[..., Any] | None = None,
        terminate_condition_prompt: str | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        model: Any = None,
    ) -> None:
        """``node_a``, ``node_b``: what ``create_node`` is given for each."""
        super().__init__(
            name,
            max_turns,
            model,
            terminate_condition_prompt,
            terminate_condition_function,
            pull_keys,
            push_keys,
            attributes,
        )
        self._args = (dict(node_a), dict(node_b))
        self._keys = (
            (node_a_in_keys, node_a_out_keys, node_b_out_keys),
            (node_b_in_keys, node_b_out_keys, node_a_out_keys),
        )
        self.node_a_first = node_a_first
        self._two: list[Node] = []

    @property
    def node_a(self) -> Node:
        """The one node; after ``build``."""
        return self._two[0]

    @property
    def node_b(self) -> Node:
        """The other node; after ``build``."""
        return self._two[1]

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the two nodes and the switch between them."""
        if not self._two:
            self._two = [self.create_node(**args) for args in self._args]
            first = 1 if self.node_a_first else 0
            odd, even = [node.name for node in self._two][:: 1 if first else -1]
            switch = self.create_node(
                LogicSwitch, name=f"{self.name}_switch", routes={odd: _odd, even: _even}
            )
            outer = {**self.outer_in, **self.outer_out}
            heard: dict[str, Any] = {}
            for node, (into, out, other) in zip(self._two, self._keys, strict=True):
                taken = into if into is not None else other if other is not None else outer
                heard |= taken
                self.create_edge(switch, node, taken)
                self.edge_to_controller(node, self.outer_out if out is None else out)
            self.edge_from_controller(switch, heard)
        super().build()


def _odd(message: Any, attributes: Mapping[str, Any]) -> bool:
    return int(attributes["current_iteration"]) % 2 == 1


def _even(message: Any, attributes: Mapping[str, Any]) -> bool:
    return not _odd(message, attributes)
