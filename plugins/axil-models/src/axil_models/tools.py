"""Tools: what a model may ask for, and what is done then.

``axil_models.functions`` makes them of functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from axil.plugin import Effects, did_you_mean, format_names, is_async
from axil_models.errors import ToolError
from axil_models.parts import Part, checked_part, is_content, is_part, parts_of
from axil_models.requests import ToolSpec
from axil_models.threads import call_async
from axil_models.values import plain_data

CONTEXT = "ctx"
EFFECTS = ("none", "idempotent", "external")


class Refused(ValueError):
    """The arguments are not what the tool takes; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Command:
    """The result of a tool that writes state or selects the next nodes, as part of the agent's
    firing.

    >>> Command("Billing answers next.", write={"topic": "refund"}, go_to="billing").targets
    ('billing',)
    """

    text: object = ""
    """The text that the model is sent."""
    write: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values of fields that the state has."""
    go_to: str | Sequence[str] = ()
    """Nodes to which edges of the agent lead: the only ones that its output goes to."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of ``go_to``."""
        return (self.go_to,) if isinstance(self.go_to, str) else tuple(self.go_to)


class Toolset(Protocol):
    """Several tools from one place, found out when they are needed. ``axil.tools``."""

    async def tools(self) -> Sequence[object]:
        """Return the tools.

        With a parameter ``ctx`` it is given the context of the firing that they are for.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The rules for asking a person whether a tool may be called."""

    within_seconds: float | None = None
    """The seconds to answer; None: no limit."""
    late: Literal["allow", "deny", "fail"] = "deny"
    """The answer that counts where none comes in time; ``fail``: the node fails (AX520)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: its description for the model, and its function.

    >>> from axil_models import tool_of
    >>> def add(a: int, b: int = 2) -> int:
    ...     '''Add numbers.'''
    ...     return a + b
    >>> tool_of(add).spec.parameters["required"]
    ['a']
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[..., object]
    validate: (
        Callable[[Mapping[str, object]], tuple[Sequence[object], Mapping[str, object]]] | None
    ) = None
    """Arguments as the model gave them → by position and by name; None: by name, as they are.

    Raises: Refused.
    """
    wants_ctx: bool = False
    needs_approval: bool | Callable[[Mapping[str, object]], bool] = False
    """True if a person has to agree to each call; a function: to calls with such arguments.

    This and what follows are, of a function, read from its attributes.
    """
    approval: Approval = Approval()
    effects: Effects | Callable[[Mapping[str, object]], Effects] = "idempotent"
    """``external``: a call must not be made twice; after a crash in one a person is asked."""
    recorded: bool = True
    """False: a resumed body calls it again, instead of reading its recorded result."""
    pin: str = ""
    """A digest of a tool that somebody else describes, and may describe otherwise: what a person
    agreed to is agreed for this one only.
    """
    notice: str = ""
    """The sentence before the question to a person, such as that the tool has changed."""
    kind: str = ""
    """The kind of a tool that the model's provider has; empty: this one is called here."""
    options: object = None
    """The settings of such a tool."""

    def effects_of(self, arguments: Mapping[str, object]) -> Effects:
        """Return the effects of a call with these arguments; ``external``, if unknown."""
        if not callable(self.effects):
            return self.effects
        try:
            given = self.effects(arguments)
        except Exception:  # noqa: BLE001  # it has not said that a second call does no harm
            return "external"
        return given if given in EFFECTS else "external"

    @property
    def spec(self) -> ToolSpec:
        """The description of the tool for the model."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            kind=self.kind,
            options=self.options,
        )

    async def __call__(
        self, arguments: Mapping[str, object], ctx: object = None
    ) -> str | list[Part] | Command:
        """Return the result as text, as the parts of a message's content, or as a command.

        Raises: Refused; and what the function raises.
        """
        given, named = ((), dict(arguments)) if self.validate is None else self.validate(arguments)
        if self.wants_ctx:
            named = {**named, CONTEXT: ctx}
        result = await call_async(self.call, *given, **named)
        return result if isinstance(result, Command) else result_of(result)


def result_of(value: Any) -> str | list[Part]:
    """Return a tool's result: an image, a file or a recording, or a list with some, as parts of the
    content; all else as text.

    >>> result_of({"type": "image", "url": "https://example.org/leaf.png"})
    [{'type': 'image', 'url': 'https://example.org/leaf.png'}]
    >>> result_of([1, 2])
    '[1, 2]'

    Raises: PartError (AX802, AX803): a part is malformed or too large.
    """
    if isinstance(value, Command):
        value = value.text
    if is_part(value):
        return [checked_part(value)]
    if is_content(value) and any(is_part(each) for each in value):
        return parts_of(value)
    return result_text(value)


def result_text(value: object) -> str:
    """Return a tool's result as the model reads it: text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(plain_data(value), ensure_ascii=False, default=str)


def tools_by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Return the tools by their names. Raises: ToolError (AX656): a name comes twice."""
    known: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in known:
            message = f'two tools are called "{tool.name}".'
            raise ToolError("AX656", message, "Rename one: the model could not tell them apart.")
        known[tool.name] = tool
    return known


def with_approval(
    tools: Mapping[str, Tool], approve: Sequence[str], approval: Approval | None = None
) -> dict[str, Tool]:
    """Return the tools, with those that ``approve`` names in need of approval; ``*`` names all.

    ``approval``: how it is asked for, of all tools that need it. Raises: ToolError (AX885): one is
    not there.
    """
    for name in approve:
        if name != "*" and name not in tools:
            known = f"Available: {format_names(list(tools), 20)}." if tools else "There are none."
            message = f'"{name}" is to be approved, and there is no such tool.'
            raise ToolError("AX885", message, did_you_mean(name, tools) or known)
    if not approve and approval is None:
        return dict(tools)
    guarded = {
        name: replace(tool, needs_approval=True) if {name, "*"} & set(approve) else tool
        for name, tool in tools.items()
    }
    if approval is None:
        return guarded
    return {
        name: replace(tool, approval=approval) if tool.needs_approval is not False else tool
        for name, tool in guarded.items()
    }


def is_toolset(given: object) -> bool:
    """Return whether it has tools rather than being one."""
    tools = None if isinstance(given, (Tool, type)) else getattr(given, "tools", None)
    return tools is not None and is_async(tools)
