"""``CustomNode``: a function as a node."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from axil import CustomNode as AxilNode
from masfactory.core.node import ATTRIBUTES, Keys, Node, count_of

_ROLES = "input, attributes, memories, tools, retrievers, node"


class CustomNode(Node):
    """A function as a node: it is called by position, with as many of ``(input, attributes,
    memories, tools, retrievers, node)`` as it takes.

    An async function is awaited. Without a function, a subclass's ``_forward`` works, or the input
    goes on.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any] | None = None,
        memories: Sequence[Any] | None = None,
        tools: Sequence[Callable[..., Any]] | None = None,
        retrievers: Sequence[Any] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, pull_keys, push_keys, attributes)
        self._function: Callable[..., Any] | None = None
        self.memories, self.tools, self.retrievers = memories, tools, retrievers
        if forward is not None:
            self.set_forward(forward)

    @property
    def function(self) -> Callable[..., Any] | None:
        """Its function."""
        return self._function

    def set_forward(self, forward: Callable[..., Any]) -> None:
        """Give, or replace, the function. Raises: ValueError: it takes none or more than six."""
        count_of(forward, 6, f'node "{self.name}"', _ROLES)
        self._function = forward
        self.changed()

    def _given(self) -> tuple[Any, ...]:
        assert self._function is not None
        count = count_of(self._function, 6, f'node "{self.name}"', _ROLES)
        return (ATTRIBUTES, self.memories, self.tools, self.retrievers, self)[: count - 1]

    def _forward(self, input: dict[str, Any]) -> Any:  # MASFactory's name
        if self._function is None:
            return input
        given = [self.attributes if each is ATTRIBUTES else each for each in self._given()]
        return self._function(input, *given)

    def component(self) -> Any:
        function = self._function
        if function is not None and inspect.iscoroutinefunction(function):
            return AxilNode(forward=self.body(function, *self._given()))
        return AxilNode(forward=self.body(self._forward))
