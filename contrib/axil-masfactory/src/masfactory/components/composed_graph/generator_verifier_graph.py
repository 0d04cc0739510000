"""``GeneratorVerifierGraph``: one node makes, another one checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node, count_of
from masfactory.utils.hook import masf_hook


class GeneratorVerifierGraph(Loop):
    """One node makes, another one checks, again and again until what was made is accepted.

    At the limit of rounds, what was made last goes out.
    """

    def __init__(
        self,
        name: str,
        generator: Any,
        verifier: Any,
        max_iterations: int = 3,
        generator_input_keys: Keys | None = None,
        generator_output_keys: Keys | None = None,
        verifier_output_keys: Keys | None = None,
        retry_keys: Keys | None = None,
        success_keys: Keys | None = None,
        success_condition: Callable[..., Any] | None = None,
        accepted_key: str = "accepted",
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        initial_messages: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the two nodes and what edges carry.

        Args:
            generator, verifier: templates, or what ``create_node`` is given.
            generator_input_keys: what the generator gets; None: what the graph gets.
            generator_output_keys: what the verifier gets; None: ``message``.
            verifier_output_keys: what the verifier gives; None: what the graph gives.
            retry_keys, success_keys: what goes back, and out; None: what the verifier gives.
            success_condition: asked for ``(message, attributes)``; None: whether the field
                ``accepted_key`` is true.
        """
        super().__init__(
            name,
            max_iterations,
            pull_keys=pull_keys,
            push_keys=push_keys,
            attributes=attributes,
            initial_messages=initial_messages,
        )
        self._given = (generator, verifier)
        self._into, self._between = generator_input_keys, generator_output_keys
        self._verified, self._back, self._success = verifier_output_keys, retry_keys, success_keys
        self._accepts, self._accepted_key = success_condition, accepted_key
        self._two: list[Node] = []

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the two nodes and the switch behind them."""
        if not self._two:
            names = ("generator", "verifier")
            self._two = [
                self._made(given, name) for given, name in zip(self._given, names, strict=True)
            ]
            generator, verifier = self._two
            decision = self.create_node(
                LogicSwitch,
                name="decision",
                routes={
                    "terminate": self._is_accepted,
                    "controller": self._is_refused,
                },
            )
            given = self.outer_out if self._verified is None else self._verified
            self.edge_from_controller(
                generator, self.outer_in if self._into is None else self._into
            )
            self.create_edge(generator, verifier, self._between)
            self.create_edge(verifier, decision, given)
            self.edge_to_terminate_node(decision, given if self._success is None else self._success)
            self.edge_to_controller(decision, given if self._back is None else self._back)
        super().build()

    def _made(self, given: Any, name: str) -> Node:
        if isinstance(given, Mapping):
            reported: dict[str, Any] = {"name": name, **cast("Mapping[str, Any]", given)}
            return self.create_node(reported.pop("cls"), **reported)
        return self.create_node(given, name=name)

    def _is_refused(self, message: dict[str, Any], attributes: dict[str, Any]) -> bool:
        return not self._is_accepted(message, attributes)

    def _is_accepted(self, message: dict[str, Any], attributes: dict[str, Any]) -> bool:
        if self._accepts is None:
            return bool(message.get(self._accepted_key))
        count = count_of(self._accepts, 2, f'"{self.name}"', "message, attributes")
        return bool(self._accepts(*(message, attributes)[:count]))
