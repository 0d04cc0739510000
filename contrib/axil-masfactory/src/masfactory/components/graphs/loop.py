"""``Loop``: a graph that repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import axil_control
from masfactory.components.graphs.base_graph import BaseGraph
from masfactory.core.edge import Edge
from masfactory.core.node import Keys, count_of

_ROLES = "input, attributes, controller, memories, tools, retrievers"

_COUNTERS = {"current_iteration": "The round.", "max_iterations": "The most rounds."}


class Loop(BaseGraph):
    """A graph that repeats, controlled by one node, the controller."""

    ends: ClassVar = {
        "controller": "controller",
        "entry": "controller",
        "exit": "controller",
        "terminate": "terminate",
    }

    def __init__(
        self,
        name: str,
        max_iterations: int | None = 10,
        model: Any = None,
        terminate_condition_prompt: str | None = None,
        terminate_condition_function: Callable[..., Any] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        initial_messages: Mapping[str, Any] | None = None,
        edges: Sequence[Sequence[Any]] | None = None,
        nodes: Sequence[Sequence[Any]] | None = None,
        build_func: Callable[[Any], Any] | None = None,
    ) -> None:
        """Take what ends it: a number of rounds, a function, or a model with a prompt.

        ``push_keys``: None: the counters; with what is named, the counters, too; ``{}``: nothing.
        """
        if push_keys is None or push_keys:
            push_keys = {**(push_keys or {}), **_COUNTERS}
        super().__init__(
            name, pull_keys, push_keys, attributes, build_func, edges=edges, nodes=nodes
        )
        self.max_iterations = max_iterations
        self.model, self.terminate_condition_prompt = model, terminate_condition_prompt
        self.terminate_condition_function = terminate_condition_function
        self._initial_messages = dict(initial_messages or {})
        self._controller = self._internal["controller"]
        self._terminate_node = self._internal["terminate"]
        judged = model is not None and terminate_condition_prompt is not None
        if not ((max_iterations or 0) > 0 or terminate_condition_function or judged):
            raise ValueError(
                f'loop "{name}": nothing would end it. Give a positive max_iterations, a '
                "terminate_condition_function, or a model with a terminate_condition_prompt."
            )

    def set_initial_messages(self, message: Mapping[str, Any]) -> None:
        """Set the fields that the controller holds before anything came in."""
        self._initial_messages = dict(message)
        self.changed()

    def edge_from_controller(self, receiver: Any, keys: Keys | None = None) -> Edge:
        """Connect the controller with a node of the body."""
        return self.create_edge("controller", receiver, keys)

    def edge_to_controller(self, sender: Any, keys: Keys | None = None) -> Edge:
        """Connect a node with the controller: the next round."""
        return self.create_edge(sender, "controller", keys)

    def edge_to_terminate_node(self, sender: Any, keys: Keys | None = None) -> Edge:
        """Connect a node with the end of the loop."""
        return self.create_edge(sender, "terminate", keys)

    def component(self) -> Any:
        stop = self.terminate_condition_function
        return axil_control.Loop(
            "",
            self.max_iterations,
            terminate_condition_function=None if stop is None else self._stopping(stop),
            model=self.model,
            terminate_condition_prompt=self.terminate_condition_prompt,
            initial_messages=self._initial_messages,
            attributes=self.attributes,
        )

    def _stopping(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give a function that axil asks, around one that is called by position."""
        where = f'loop "{self.name}", terminate_condition_function'
        count, controller = count_of(function, 6, where, _ROLES), self._internal["controller"]

        def stop(inputs: Any, attributes: Any) -> Any:
            with controller.seeing(attributes) as seen:
                controller.count_rounds(seen)
                return function(*(inputs, seen, controller, [], [], [])[:count])

        return stop
