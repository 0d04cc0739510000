"""``GeneratorVerifierGraph``: one node makes, another one checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node, count_of
from masfactory.utils.hook import masf_hook

_ACCEPTED = ("accepted", "verified", "success")
"""Fields by which a verifier says that it accepts, the first that is there counting."""


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
        accept_condition_function: Callable[..., Any] | None = None,
        generator_name: str | None = None,
        verifier_name: str | None = None,
        decision_name: str | None = None,
        generator_input_keys: Keys | None = None,
        generator_output_keys: Keys | None = None,
        verifier_output_keys: Keys | None = None,
        retry_keys: Keys | None = None,
        success_keys: Keys | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        initial_messages: Mapping[str, Any] | None = None,
    ) -> None:
        """Take the two nodes and what edges carry; without keys an edge carries ``message``, and
        where that does not come, all that comes.

        Args:
            generator, verifier: templates, or what ``create_node`` is given.
            accept_condition_function: asked for ``(message)`` or ``(message, attributes)``; None:
                whether ``accepted``, ``verified`` or ``success`` is true.
            generator_name, verifier_name, decision_name: names of the nodes; None: the graph's
                name and ``_generator``, ``_verifier``, ``_decision``.
            generator_input_keys: what the generator gets.
            generator_output_keys: what the verifier gets.
            verifier_output_keys: what the verifier gives.
            retry_keys, success_keys: what goes back, and out.
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
        self._accepts = accept_condition_function
        self._names = (
            generator_name or f"{name}_generator",
            verifier_name or f"{name}_verifier",
            decision_name or f"{name}_decision",
        )
        self._two: list[Node] = []
        self._decision: LogicSwitch | None = None

    @property
    def generator(self) -> Node:
        """The node that makes. Raises: RuntimeError: the graph is not built."""
        return self._built()[0]

    @property
    def verifier(self) -> Node:
        """The node that checks. Raises: RuntimeError: the graph is not built."""
        return self._built()[1]

    @property
    def decision(self) -> LogicSwitch:
        """The switch behind them. Raises: RuntimeError: the graph is not built."""
        self._built()
        assert self._decision is not None
        return self._decision

    def _built(self) -> list[Node]:
        if not self._two:
            raise RuntimeError(f'"{self.name}" is not built yet. Call build() first.')
        return self._two

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the two nodes and the switch behind them."""
        if not self._two:
            pairs = zip(self._given, self._names, strict=False)
            generator, verifier = self._two = [self._made(given, name) for given, name in pairs]
            decision = self._decision = self.create_node(
                LogicSwitch,
                name=self._names[2],
                routes={"terminate": self._is_accepted, "controller": self._is_refused},
            )
            verified = self._verified
            if verified is None:
                verified = _message_of(self.outer_out)
            into = _message_of(self.outer_in) if self._into is None else self._into
            self.edge_from_controller(generator, into)
            self.create_edge(generator, verifier, self._between)
            self.create_edge(verifier, decision, verified)
            back, success = (
                _message_of(verified) if keys is None else keys
                for keys in (self._back, self._success)
            )
            self.edge_to_controller(decision, back)
            self.edge_to_terminate_node(decision, success)
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
            inner = message.get("message")
            said: list[Any] = [inner, message] if isinstance(inner, Mapping) else [message]
            found = [each.get(name) for each in said for name in _ACCEPTED]
            return next((value for value in found if isinstance(value, bool)), False)
        count = count_of(self._accepts, 2, f'"{self.name}"', "message, attributes")
        return bool(self._accepts(*(message, attributes)[:count]))


def _message_of(keys: Keys) -> Keys:
    return {"message": keys["message"]} if "message" in keys else keys
