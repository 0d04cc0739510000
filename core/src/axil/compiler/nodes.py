"""The node kinds of core: ``CustomNode``, and plain functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from axil.compiler.bodies import (
    BodyRules,
    Plain,
    as_body,
    is_async,
    mode_of,
    parameters_of,
    result_reader,
    supplied,
)
from axil.errors import Problem, SpecError, format_names
from axil.kernel.plan import Body

_POSITIONS = ("inputs", "attributes", "memories", "tools", "retrievers", "node")


class CustomNode:
    """A node whose body is a function.

    The function's parameters are taken by name if all of them are names that a body may ask for; if
    none is, by position: ``(input, attributes, memories, tools, retrievers, node)``, as many as it
    has. It returns a mapping. Without a function the node passes its input on.
    """

    strict = True

    def __init__(
        self,
        forward: Callable[..., Any] | None = None,
        *,
        memories: Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        retrievers: Sequence[Any] | None = None,
        inline: bool = False,
    ) -> None:
        self.forward = forward
        self.memories, self.tools, self.retrievers = memories, tools, retrievers
        self.inline = inline
        self.name = ""

    def set_forward(self, forward: Callable[..., Any]) -> None:
        """Give, or replace, the function; before ``build``."""
        self.forward = forward

    def adapted(self, rules: BodyRules) -> Body:
        """The body, as the graph's rules want it."""
        if self.forward is None:
            return as_body(_pass_on, rules, inline=True)
        given = {
            "memories": self.memories,
            "tools": self.tools,
            "retrievers": self.retrievers,
            "node": self,
        }
        rules = replace(rules, given=given)
        wanted = parameters_of(self.forward)
        names = list(wanted)
        known = [name for name in names if name in supplied(rules)]
        strangers = [name for name, required in wanted.items() if required and name not in known]
        inline = self.inline or bool(getattr(self.forward, "inline", False))
        if not strangers and (known or not names):
            return as_body(self.forward, rules, inline=inline)
        if known:
            raise SpecError(
                Problem(
                    "AX162",
                    f'node "{rules.node}"',
                    f"the function mixes known names ({format_names(known)}) with others "
                    f"({format_names(strangers)}).",
                    "Use only names a body may ask for, or none: then values are given by "
                    "position.",
                )
            )
        if not 1 <= len(names) <= len(_POSITIONS):
            raise SpecError(
                Problem(
                    "AX163",
                    f'node "{rules.node}"',
                    f"the function takes {len(names)} arguments; by position it is given 1 to "
                    f"{len(_POSITIONS)}: {', '.join(_POSITIONS)}.",
                )
            )
        return as_body(_Positional(self.forward, len(names)).called(), rules, inline=inline)


def _pass_on(inputs: dict[str, Any]) -> Any:
    return inputs


class _Positional:
    """A function called by position, as one called by name."""

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.function, self.count = function, count

    def called(self) -> Callable[..., Any]:
        """A function with named parameters that hands them on in order."""
        if is_async(self.function):

            async def forward_async(
                inputs: Any, attributes: Any, memories: Any, tools: Any, retrievers: Any, node: Any
            ) -> Any:
                return await self.function(
                    *(inputs, attributes, memories, tools, retrievers, node)[: self.count]
                )

            return forward_async

        def forward(
            inputs: Any, attributes: Any, memories: Any, tools: Any, retrievers: Any, node: Any
        ) -> Any:
            return self.function(
                *(inputs, attributes, memories, tools, retrievers, node)[: self.count]
            )

        return forward


class FunctionNode:
    """A plain function as a node; parameters by name."""

    strict = True

    def __init__(self, function: Callable[..., Any], inline: bool = False) -> None:
        self.function = function
        self.inline = inline or bool(getattr(function, "inline", False))
        self.name = self.__name__ = getattr(function, "__name__", type(function).__name__)

    def adapted(self, rules: BodyRules) -> Body:
        """The body, as the graph's rules want it."""
        names = list(parameters_of(self.function))
        rules = replace(rules, given={"node": self})
        if rules.payload == "state" and len(names) == 1 and names[0] not in supplied(rules):
            only = names[0]
            original = rules
            rules = replace(rules, given={})
            view = supplied(original)["state"]
            return Plain(
                self.function,
                {only: view},
                result_reader(rules),
                mode_of(self.function, self.inline),
            )
        return as_body(self.function, rules, inline=self.inline)


def node(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Mark a function as a node's body.

    ``inline``: it is cheap and never blocks, so it is called directly, without a thread.

    >>> @node(inline=True)
    ... def double(inputs): return {"n": 2 * inputs["n"]}
    """

    def mark(marked: Callable[..., Any]) -> Callable[..., Any]:
        marked.inline = inline  # type: ignore[attr-defined]  # a function's own attribute
        return marked

    return mark if function is None else mark(function)
