"""``VerticalDecisionGraph``: rounds of critics and a solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node, count_of
from masfactory.utils.hook import masf_hook


class VerticalDecisionGraph(Loop):
    """Rounds in which critics speak side by side and a solver answers them."""

    def __init__(
        self,
        name: str,
        solver_args: Mapping[str, Any],
        critics_args: Sequence[Mapping[str, Any]],
        critics_output_keys_list: Sequence[Keys] | None = None,
        solver_input_keys: Keys | None = None,
        aggregator_args: Mapping[str, Any] | None = None,
        max_inner_turns: int = 3,
        controller_to_solver_keys: Keys | None = None,
        terminate_condition_function: Callable[..., Any] | None = None,
        terminate_condition_prompt: str | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        initial_messages: Mapping[str, Any] | None = None,
        pre_solver_terminate_condition_function: Callable[..., Any] | None = None,
        model: Any = None,
    ) -> None:
        """Take what each node is made of, as for ``create_node``, and what edges carry.

        Args:
            critics_output_keys_list: what each critic hands on; None: nothing.
            solver_input_keys: what the aggregator hands to the solver.
            aggregator_args: a node between critics and solver; None: none.
            controller_to_solver_keys: what goes to the solver past the critics; None: nothing.
            pre_solver_terminate_condition_function: asked for ``(message)`` or ``(message,
                attributes)`` before the solver; where it is true the loop ends.

        Raises: ValueError: no turns, or other numbers of critics and of what they hand on.
        """
        if max_inner_turns <= 0:
            raise ValueError(
                f'"{name}": found max_inner_turns {max_inner_turns}, expected one or more.'
            )
        super().__init__(
            name,
            max_inner_turns,
            model,
            terminate_condition_prompt,
            terminate_condition_function,
            pull_keys,
            push_keys,
            attributes,
            initial_messages,
        )
        self._solver_args, self._solver_input_keys = dict(solver_args), solver_input_keys
        self._critics_args = [dict(args) for args in critics_args]
        self._aggregator_args = dict(aggregator_args) if aggregator_args else None
        none: list[Keys] = [{}] * len(self._critics_args)
        self._said: list[Keys] = list(critics_output_keys_list or none)
        if len(self._said) != len(self._critics_args):
            raise ValueError(
                f'"{name}": found {len(self._said)} critics_output_keys_list, expected '
                f"{len(self._critics_args)}. Give one for each critic."
            )
        self._past_critics, self._early = (
            controller_to_solver_keys,
            pre_solver_terminate_condition_function,
        )
        self._solver: Node | None = None
        self._critics: list[Node] = []
        self._aggregator: Node | None = None

    @property
    def solver(self) -> Node | None:
        """The solver; after ``build``."""
        return self._solver

    @property
    def critics(self) -> list[Node]:
        """The critics; after ``build``."""
        return self._critics

    @property
    def aggregator(self) -> Node | None:
        """The node between critics and solver; after ``build``, if there is one."""
        return self._aggregator

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the nodes and the edges."""
        if self._solver is None:
            self._make()
        super().build()

    def _make(self) -> None:
        solver = self._solver = self.create_node(**self._solver_args)
        self._critics = [self.create_node(**args) for args in self._critics_args]
        target = solver if self._early is None else self._switch(solver, self._early)
        if self._aggregator_args is not None:
            self._aggregator = self.create_node(**self._aggregator_args)
            self.create_edge(self._aggregator, target, self._solver_input_keys)
            target = self._aggregator
        for critic, said in zip(self._critics, self._said, strict=True):
            self.edge_from_controller(critic, self.outer_in)
            self.create_edge(critic, target, said)
        self.edge_to_controller(solver, self.outer_out)
        if self._past_critics and self._early is None:
            self.edge_from_controller(solver, self._past_critics)

    def _switch(self, solver: Node, early: Callable[..., Any]) -> Node:
        """Make the switch before the solver, which may end the loop."""
        count = count_of(early, 2, f'"{self.name}"', "message, attributes")

        def is_over(message: Any, attributes: Any) -> bool:
            return bool(early(*(message, attributes)[:count]))

        def goes_on(message: Any, attributes: Any) -> bool:
            return not is_over(message, attributes)

        switch = self.create_node(
            LogicSwitch,
            name=f"{self.name}_pre_solver_switch",
            routes={"terminate": is_over, solver.name: goes_on},
        )
        past = dict(self._past_critics or {})
        spoken = {n: t for said in self._said for n, t in (said or {}).items()}
        joined = spoken if self._aggregator_args is None else dict(self._solver_input_keys or {})
        self.edge_from_controller(switch, {**self.outer_out, **past})
        self.create_edge(switch, solver, {**joined, **past} or None)
        self.edge_to_terminate_node(switch, self.outer_out)
        return switch
