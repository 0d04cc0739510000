"""The node kinds of core: ``CustomNode`` and plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from axil.compiler.bodies import BodyRules, as_body, as_forward, parameters_of
from axil.kernel.plan import Body
from axil.signatures import signature_of

_POSITIONS = ("inputs", "attributes", "memories", "tools", "retrievers", "node")

F = TypeVar("F", bound=Callable[..., Any])


class CustomNode:
    """A node whose body is a function that returns a mapping.

    Its parameters are given by name if all are names that a body may ask for; else by position:
    ``(input, attributes, memories, tools, retrievers, self)``. One with a default is given nothing,
    unless it names a value. Without a function, the method ``forward`` or ``_forward`` of a
    subclass is the body; without one of these the node passes its input on.
    """

    strict = True

    def __init__(
        self,
        forward: Callable[..., object] | None = None,
        *,
        memories: Sequence[object] | None = None,
        tools: Sequence[object] | None = None,
        retrievers: Sequence[object] | None = None,
        inline: bool = False,
    ) -> None:
        if forward is None:
            forward = getattr(self, "forward", None) or getattr(self, "_forward", None)
        self.forward = forward
        self.memories, self.tools, self.retrievers = memories, tools, retrievers
        self.inline = inline
        self.name = ""

    def set_forward(self, forward: Callable[..., object]) -> None:
        """Set the function, before ``build``."""
        self.forward = forward

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body under the graph's rules."""
        if self.forward is None:
            return as_body(_pass_on, rules, inline=True)
        given = {
            "memories": self.memories,
            "tools": self.tools,
            "retrievers": self.retrievers,
            "node": self,
        }
        rules = replace(rules, given=given)
        inline = self.inline or bool(getattr(self.forward, "inline", False))
        without = ("messages",) if _is_shape(self.forward) else ()
        return as_forward(self.forward, rules, _POSITIONS, without=without, inline=inline)


def takes_name_first(kind: Any) -> bool:
    """Return whether a class takes its name as its first argument."""
    try:
        return next(iter(signature_of(kind).parameters), "") == "name"
    except (TypeError, ValueError):
        return False


def _is_shape(forward: Callable[..., object]) -> bool:
    """Return whether a function is written as in MASFactory, where ``messages`` are the fields."""
    names = list(parameters_of(forward))
    return names[:1] == ["messages"] and names[1:] == list(_POSITIONS[1 : len(names)])


def _pass_on(inputs: dict[str, object]) -> object:
    return inputs


class FunctionNode:
    """A plain function as a node; parameters by name, or the first two by position."""

    strict = True

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.inline = bool(getattr(function, "inline", False))
        self.name = self.__name__ = getattr(function, "__name__", type(function).__name__)

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body under the graph's rules."""
        return as_forward(self.function, rules, _POSITIONS[:2], inline=self.inline)


@overload
def node(function: F, *, inline: bool = ...) -> F: ...
@overload
def node(function: None = ..., *, inline: bool = ...) -> Callable[[F], F]: ...
def node(function: Callable[..., object] | None = None, *, inline: bool = False) -> Any:
    """Mark a function as a node's body.

    ``inline``: it is cheap and never blocks, so it is called directly, without a thread.

    >>> @node(inline=True)
    ... def double(inputs): return {"n": 2 * inputs["n"]}
    """

    def mark(marked: Callable[..., object]) -> Callable[..., Any]:
        marked.inline = inline  # type: ignore[attr-defined]  # a function's own attribute
        return marked

    return mark if function is None else mark(function)
