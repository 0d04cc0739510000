"""The settings of agents, people and switches, for editors and type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

from axil.plugin import Body, BodyRules, NodeOptions
from axil_models import Approval, ContextProvider, Formatter, Model, Tool, Toolset

if TYPE_CHECKING:
    from pathlib import Path

    from axil_agent.context import ContextPolicy
    from axil_agent.converse import OnReply
    from axil_agent.thinking import After, Before


class Invokes(Protocol):
    """A model as MASFactory has it: ``invoke(messages, tools, settings)``."""

    @property
    def invoke(self) -> Callable[..., object]: ...


class Node(Protocol):
    """An agent or another node, as a tool."""

    def adapted(self, rules: BodyRules) -> Body: ...


class Recalls(Protocol):
    """A memory that keeps the conversation itself."""

    @property
    def recall(self) -> Callable[..., object]: ...


class Inserts(Protocol):
    """A memory that receives turns."""

    @property
    def insert(self) -> Callable[..., object]: ...


class Notes(Protocol):
    """A provider of notes."""

    @property
    def notes(self) -> Callable[..., object]: ...


class Learns(Protocol):
    """A memory that learns from turns."""

    @property
    def learn(self) -> Callable[..., object]: ...


class Dumps(Protocol):
    """A formatter as MASFactory has it, with ``dump``."""

    @property
    def dump(self) -> Callable[..., object]: ...


class Formats(Protocol):
    """A formatter as MASFactory has it, with ``format``."""

    @property
    def format(self) -> Callable[..., object]: ...


class LangChainTool(Protocol):
    """A tool of LangChain or LangGraph."""

    @property
    def tool_call_schema(self) -> object: ...
    @property
    def ainvoke(self) -> Callable[..., object]: ...


class LlamaIndexTool(Protocol):
    """A tool of LlamaIndex."""

    @property
    def metadata(self) -> object: ...
    @property
    def call(self) -> Callable[..., object]: ...


class PydanticAITool(Protocol):
    """A tool of Pydantic AI."""

    @property
    def function_schema(self) -> object: ...
    @property
    def takes_ctx(self) -> object: ...


class Kit(Protocol):
    """Several tools of another library: ``get_tools`` of LangChain and Pydantic AI."""

    @property
    def get_tools(self) -> Callable[..., object]: ...


class ToolSpecKit(Protocol):
    """Several tools of LlamaIndex."""

    @property
    def to_tool_list(self) -> Callable[..., object]: ...


Foreign: TypeAlias = LangChainTool | LlamaIndexTool | PydanticAITool | Kit | ToolSpecKit
"""Tools of other libraries."""
Use: TypeAlias = str | Mapping[str, Any]
"""A component by its name, or as ``{type: …, …}``."""
ModelLike: TypeAlias = Model | Invokes | Use
First: TypeAlias = ModelLike | Sequence[str]
"""An argument of an agent by position: its model, instructions, template; or its name first."""
ToolLike: TypeAlias = Callable[..., object] | Tool | Toolset | Node | Foreign | Use
ContextLike: TypeAlias = ContextProvider | Toolset | Recalls | Inserts | Notes | Learns | Use
FormatterLike: TypeAlias = Formatter | Dumps | Formats | type[object] | Use


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
