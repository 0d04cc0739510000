"""The settings of agents, people and switches, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from axil.plugin import NodeOptions
from axil_models import Approval, ContextLike, FormatterLike, ModelLike, ToolLike, Use

if TYPE_CHECKING:
    from pathlib import Path

    from axil_agent.context import ContextPolicy
    from axil_agent.converse import OnReply
    from axil_agent.thinking import After, Before

First: TypeAlias = ModelLike | Sequence[str]
"""An argument of an agent by position: its model, instructions, template; or its name first."""


class AgentOptions(TypedDict, total=False):
    """The settings of ``Agent`` but for ``output_type`` and ``name``."""

    model: ModelLike | None
    """A ``Model``, an object with MASFactory's ``invoke``, the name of an installed adapter, or
    ``{type: …, …}``.
    """

    instructions: str | Sequence[str]
    """The system prompt, or its lines."""

    prompt_template: str | Sequence[str] | Mapping[str, object] | None
    """The message; a mapping makes a titled part of each entry."""

    formatters: FormatterLike | Sequence[FormatterLike] | None
    """A formatter, or ``[in, out]``."""

    tools: Sequence[ToolLike] | None
    """Functions, ``Tool``s, toolsets, agents, names of installed tools."""

    memories: ContextLike | Sequence[ContextLike] | None
    """Memories, or names of installed ones."""

    retrievers: ContextLike | Sequence[ContextLike] | None
    """Retrievers, or names of installed ones."""

    model_settings: Mapping[str, object] | None
    """Settings for the model; those with well-known ranges are checked."""

    role_name: str
    """The name of the agent in prompts; empty: its node's name."""

    hide_unused_fields: bool
    """Fields that the prompt does not name are left out of it."""

    titles: Mapping[str, str | None] | None
    """Other titles for the parts ``message``, ``format``, ``fields``, ``context``."""

    context: ContextPolicy | None
    """The amount of context in a prompt."""

    approve: Sequence[str]
    """Names of tools whose calls a person has to allow first; ``*``: all."""

    approval: Approval | None
    """The time for it, and the answer without one; None: as each tool says."""

    thinking: Before | After | Use | Sequence[Before | After | Use] | None
    """A ``Reflection``, another ``Thinking``, or several."""

    max_turns: int
    """The number of times that the model may ask for tools."""

    max_repairs: int
    """The number of times that a reply that cannot be read is asked for again."""

    on_reply: OnReply | None
    """A function that is given each reply of the model and the messages that it answers."""


class AgentNodeOptions(AgentOptions, NodeOptions, total=False):
    """The settings of ``Agent``, and the options of a node."""

    output_type: object
    """The type of the output, or a function that gives it."""


class DynamicOptions(AgentOptions, total=False):
    """The settings of ``DynamicAgent`` but for its own."""

    output_type: object
    name: str


class DynamicNodeOptions(AgentNodeOptions, total=False):
    """The settings of ``DynamicAgent``, and the options of a node."""

    instruction_key: str
    """The field that holds the instructions."""

    default_instructions: str | Sequence[str]
    """The instructions where the field is missing; else that is an error."""


class SingleOptions(AgentOptions, total=False):
    """The settings of ``SingleAgent`` but for ``output_type``."""

    name: str
    """The name of the agent."""

    output_keys: Mapping[str, str] | Sequence[str] | None
    """Fields that a reply has to have, with descriptions."""

    workspace: str | Path | None
    """The folder at which the paths of images and files begin."""


class HumanOptions(TypedDict, total=False):
    """The settings of ``HumanNode`` but for ``prompt`` and ``name``."""

    fields: Mapping[str, str] | None
    """The fields to ask for, with descriptions, instead of those that edges carry."""

    as_form: bool
    """One question of kind ``form`` for all fields; else one question a field."""

    within: float | str | None
    """The time for each question: seconds, or ``"15m"``."""

    defaults: Mapping[str, object] | None
    """The answers, by field, if there is none in time."""


class FileEditOptions(HumanOptions, total=False):
    """The settings of ``HumanFileEdit`` but for its first two."""

    name: str


class HumanNodeOptions(HumanOptions, NodeOptions, total=False):
    """The settings of ``HumanNode``, and the options of a node."""

    prompt: str | Sequence[str]
    """The text for the person; ``{name}`` is the place of an input."""


class FileEditNodeOptions(HumanNodeOptions, total=False):
    """The settings of ``HumanFileEdit``, and the options of a node."""

    file_fields: Mapping[str, str]
    """A path for each field, below the run's workspace."""


class SwitchNodeOptions(NodeOptions, total=False):
    """The settings of ``AgentSwitch``, and the options of a node."""

    model: ModelLike | None
    """The model, as of ``Agent``."""

    routes: Mapping[str, str] | None
    """A condition for each receiver's name."""

    in_one_call: bool
    """All conditions are judged in one call."""
