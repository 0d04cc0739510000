"""Messages, states and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter

from axil import MISSING
from evofabric.absent import missing

__all__ = [
    "DEFAULT_EDGE_GROUP",
    "MISSING",
    "AssistantMessage",
    "ChatStreamChunk",
    "ChatUsage",
    "Function",
    "GraphMode",
    "LLMChatResponse",
    "NodeActionMode",
    "SpecialNode",
    "State",
    "StateBaseMessage",
    "StateDelta",
    "StateMessage",
    "StateSchema",
    "SystemMessage",
    "ToolCall",
    "ToolCallResult",
    "ToolMessage",
    "UserMessage",
    "cast_state_message",
]

DEFAULT_EDGE_GROUP = "all"

State = Any
"""The state that a node sees: an instance of the schema, or a dict."""
StateDelta = Any
"""The result of a node: the fields that it writes."""
StateSchema = Any
"""A class of pydantic models, a TypedDict, or what ``generate_state_schema`` gives."""


class NodeActionMode(StrEnum):
    """The moment at which a node with several predecessors works."""

    ANY = "any"
    """For each of them."""
    ALL = "all"
    """Once, when all are there."""


class SpecialNode(StrEnum):
    """The ends of a graph."""

    START = "start"
    END = "end"


class GraphMode(StrEnum):
    """The way a graph is run."""

    RUN = "run"
    DEBUG = "debug"


class ChatUsage(BaseModel):
    """The usage of a model."""

    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    total_tokens: int | None = None
    generation_time: float | None = None


class Function(BaseModel):
    """The tool that a model wants called, and its arguments as JSON."""

    arguments: str
    name: str


class ToolCall(BaseModel):
    """A call that a model wants."""

    id: str
    function: Function
    type: Literal["function"] = "function"


class ToolCallResult(BaseModel):
    """The result of a call."""

    tool_call_id: str
    success: bool
    content: Any
    traceback: str | None = None


class ChatStreamChunk(BaseModel):
    """A part of a reply, as it comes."""

    reasoning_content: str | None = None
    content: str | None = None


class LLMChatResponse(BaseModel):
    """A reply."""

    content: str
    tool_calls: list[ToolCall] | None = None
    reasoning_content: str | None = None
    usage: ChatUsage | None = None
    id: str = ""
    meta: dict[str, Any] = Field(default_factory=dict[str, Any])


class StateBaseMessage(BaseModel):
    """A message in a state."""

    content: Any
    node_name: str | None = None
    msg_id: str | None = None


class SystemMessage(StateBaseMessage):
    """A message of the system."""

    role: Literal["system"] = "system"


class UserMessage(StateBaseMessage):
    """A message of a person."""

    role: Literal["user"] = "user"


class AssistantMessage(StateBaseMessage):
    """A message of a model."""

    role: Literal["assistant"] = "assistant"
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    usage: ChatUsage | None = None


class ToolMessage(StateBaseMessage):
    """The result of a tool."""

    tool_call_id: str
    role: Literal["tool"] = "tool"


def _role(given: Any) -> Any:
    reported = cast("Mapping[str, Any]", given)
    return reported.get("role") if isinstance(given, Mapping) else getattr(given, "role", None)


StateMessage = Annotated[
    Annotated[SystemMessage, Tag("system")]
    | Annotated[UserMessage, Tag("user")]
    | Annotated[AssistantMessage, Tag("assistant")]
    | Annotated[ToolMessage, Tag("tool")],
    Discriminator(_role),
]
"""A message of any kind; a mapping becomes the one that its ``role`` says."""

_adapter: TypeAdapter[Any] = TypeAdapter(StateMessage)


def cast_state_message(given: Any) -> Any:
    """Give a message for a mapping with a ``role``. Raises: pydantic.ValidationError."""
    return _adapter.validate_python(given)


_MCP = "Servers that speak MCP are axil_mcp.MCPTools, whose settings name their transport."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "StdioLink": _MCP,
        "SseLink": _MCP,
        "StreamableHttpLink": _MCP,
        "MCPConfig": _MCP,
        "CodeExecDockerConfig": "See axil's how-to on running code safely.",
        "ToolControlPattern": "Give each agent the tools that it may call.",
        "DBItem": "Documents with vectors are in axil-context and axil-chroma.",
        "SearchResult": "Documents with vectors are in axil-context and axil-chroma.",
    },
)
