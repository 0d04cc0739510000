"""The kernel's own node kinds: ``CustomNode``, plain functions, and the controller of a
``Loop``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from axil.compiler.bodies import (
    Attributes,
    BodyRules,
    Plain,
    as_body,
    inputs_of,
    is_async,
    mode_of,
    parameters_of,
    pushed_fields,
    result_reader,
    supplied,
    with_own,
)
from axil.contract.context import Context
from axil.errors import Problem, SpecError, format_names
from axil.kernel.plan import Body, Mode
from axil.kernel.tokens import EXIT, Out, Task
from axil.kernel.values import isolate
from axil.spec.graph import local_field

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


NOT_SET = "(not set yet)"
"""What a field that is fed back holds in the first round of a loop, before anything fed it."""


class Controller:
    """The node at which every round of a ``Loop`` begins: counts, decides whether to stop, sends
    on.
    """

    mode: Mode

    def __init__(
        self,
        *,
        most: int | None,
        stop: Callable[..., Any] | None,
        judge: Any,
        first: Mapping[str, Any],
        fed_back: Sequence[str],
        targets: Sequence[str],
        given: Sequence[Any] = (),
    ) -> None:
        """``given``: memories, tools and retrievers, for a stop function that takes them by
        position.
        """
        self.most, self.stop, self.judge = most, stop, judge
        self.first, self.fed_back, self.targets = dict(first), tuple(fed_back), frozenset(targets)
        self._given = tuple(given)
        self.inline = judge is None and not is_async(stop)
        self._names = list(parameters_of(stop)) if stop is not None else []
        if stop is not None and not 1 <= len(self._names) <= 6:
            raise SpecError(
                Problem(
                    "AX164",
                    "terminate_condition_function",
                    f"it takes {len(self._names)} arguments, of 1 to 6: input, attributes, "
                    "controller, memories, tools, retrievers",
                )
            )

    def adapted(self, rules: BodyRules) -> Body:
        """The body."""
        return _ControllerBody(self, rules)

    def asked(self, fields: dict[str, Any], attributes: Attributes) -> Any:
        """The stop function's answer, or something to await."""
        assert self.stop is not None
        ways: dict[str, Any] = {
            "inputs": fields,
            "input": fields,
            "message": fields,
            "attributes": attributes,
            "controller": self,
        }
        if self._names and all(name in ways for name in self._names):
            return self.stop(**{name: ways[name] for name in self._names})
        return self.stop(*(fields, attributes, self, *self._given)[: len(self._names)])


class _ControllerBody:
    def __init__(self, controller: Controller, rules: BodyRules) -> None:
        self.controller, self.rules = controller, rules
        self.mode: Mode = "inline" if controller.inline else "async"
        self.wants_ctx = True
        self._attributes = supplied(rules)["attributes"]

    def __call__(self, task: Task, ctx: Context, /) -> Any:
        controller = self.controller
        fields, attributes, count = self._begin(task, ctx)
        if controller.inline:
            met = (
                bool(controller.asked(fields, attributes)) if controller.stop is not None else False
            )
            return self._out(fields, attributes, count, met, task, ctx)
        return self._judged(task, ctx, fields, attributes, count)

    def _begin(self, task: Task, ctx: Context) -> tuple[dict[str, Any], Attributes, int]:
        controller, local = self.controller, ctx.local
        if "count" not in local:
            local["count"] = 0
            local["cache"] = {**dict.fromkeys(controller.fed_back, NOT_SET), **controller.first}
        local["cache"] = {**cast("dict[str, Any]", local["cache"]), **inputs_of(task)}
        local["count"] = count = int(local["count"]) + 1
        attributes: Attributes = self._attributes(task, ctx)
        attributes["current_iteration"] = count
        attributes["max_iterations"] = controller.most
        return isolate(dict(local["cache"])), attributes, count

    async def _judged(
        self, task: Task, ctx: Context, fields: dict[str, Any], attributes: Attributes, count: int
    ) -> Out:
        controller = self.controller
        met = False
        if controller.judge is not None:
            met = bool(await controller.judge.decide(fields, attributes, ctx))
        if controller.stop is not None:
            answer = controller.asked(fields, attributes)
            met = bool(await answer if hasattr(answer, "__await__") else answer)
        return self._out(fields, attributes, count, met, task, ctx)

    def _out(
        self,
        fields: dict[str, Any],
        attributes: Attributes,
        count: int,
        met: bool,
        task: Task,
        ctx: Context,
    ) -> Out:
        controller = self.controller
        spent = controller.most is not None and controller.most > 0 and count > controller.most
        if spent and not met and controller.most is not None:
            attributes["current_iteration"] = controller.most
        delta = pushed_fields(
            replace(self.rules, push=dict.fromkeys(attributes.written, "")),
            {},
            task.state,
            attributes,
        )
        out = Out(fields, delta, frozenset({EXIT}) if spent or met else controller.targets)
        return with_own(out, {local_field(self.rules.node): ctx.local})
