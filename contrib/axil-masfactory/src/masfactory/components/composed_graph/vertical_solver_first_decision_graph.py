"""``VerticalSolverFirstDecisionGraph``: a draft, and then rounds of critics and a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masfactory.components.composed_graph.vertical_decision_graph import VerticalDecisionGraph
from masfactory.components.graphs.graph import Graph
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook


class VerticalSolverFirstDecisionGraph(Graph):
    """A draft by one node, and a ``VerticalDecisionGraph`` that works on it."""

    def __init__(
        self,
        name: str,
        prepend_solver_args: Mapping[str, Any],
        prepend_solver_output_keys: Keys,
        critics_args: Sequence[Mapping[str, Any]],
        critics_output_keys_list: Sequence[Keys] | None,
        solver_args: Mapping[str, Any],
        solver_input_keys: Keys | None = None,
        aggregator_args: Mapping[str, Any] | None = None,
        max_inner_turns: int = 3,
        controller_to_solver_keys: Keys | None = None,
        terminate_condition_function: Callable[..., Any] | None = None,
        terminate_condition_prompt: str | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        initial_messages: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        pre_solver_terminate_condition_function: Callable[..., Any] | None = None,
        entry_to_vertical_decision_graph_keys: Keys | None = None,
    ) -> None:
        """Take the node that drafts, what it hands on, and the rest as ``VerticalDecisionGraph``.

        ``entry_to_vertical_decision_graph_keys``: what goes past it; None: nothing.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._first_args, self._first_keys = dict(prepend_solver_args), prepend_solver_output_keys
        self._past_first = entry_to_vertical_decision_graph_keys
        self._rounds: dict[str, Any] = {
            "solver_args": solver_args,
            "critics_args": critics_args,
            "critics_output_keys_list": critics_output_keys_list,
            "solver_input_keys": solver_input_keys,
            "aggregator_args": aggregator_args,
            "max_inner_turns": max_inner_turns,
            "controller_to_solver_keys": controller_to_solver_keys,
            "terminate_condition_function": terminate_condition_function,
            "terminate_condition_prompt": terminate_condition_prompt,
            "initial_messages": initial_messages,
            "pre_solver_terminate_condition_function": pre_solver_terminate_condition_function,
        }
        self._first: Node | None = None
        self._loop: VerticalDecisionGraph | None = None

    @property
    def prepend_solver(self) -> Node | None:
        """The node that drafts; after ``build``."""
        return self._first

    @property
    def vertical_decision_graph(self) -> VerticalDecisionGraph:
        """The rounds. Raises: RuntimeError: the graph is not built."""
        if self._loop is None:
            raise RuntimeError(f'"{self.name}" is not built yet. Call build() first.')
        return self._loop

    @property
    def solver(self) -> Node | None:
        """The solver of the rounds."""
        return self.vertical_decision_graph.solver

    @property
    def critics(self) -> list[Node]:
        """The critics of the rounds."""
        return self.vertical_decision_graph.critics

    @property
    def aggregator(self) -> Node | None:
        """The node between critics and solver, if there is one."""
        return self.vertical_decision_graph.aggregator

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the two nodes."""
        if self._first is None:
            rounds = self._loop = self.create_node(
                VerticalDecisionGraph, name=f"{self.name}_vertical_decision_graph", **self._rounds
            )
            first = self._first = self.create_node(**self._first_args)
            self.edge_from_entry(first, self.outer_in)
            self.create_edge(first, rounds, self._first_keys)
            if self._past_first:
                self.edge_from_entry(rounds, self._past_first)
            self.edge_to_exit(rounds, self.outer_out)
        super().build()
