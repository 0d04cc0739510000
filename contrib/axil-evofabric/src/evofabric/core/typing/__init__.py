"""Messages, states and words."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Discriminator, Field, Tag, TypeAdapter

from axil import MISSING
from evofabric.core.typing.tools import (
    TOOL_EXCLUDE_PRESERVED_PARAMS,
    ActiveToolPattern,
    CodeExecDockerConfig,
    DeactivateToolPattern,
    MCPConfig,
    McpServerLink,
    PromptRequest,
    ResourceRequest,
    SseLink,
    StdioLink,
    StreamableHttpLink,
    ToolControlPattern,
    ToolInnerState,
    ToolManagerState,
)

__all__ = [
    "DEFAULT_EDGE_GROUP",
    "MISSING",
    "STREAM_CHUNK",
    "TOOL_EXCLUDE_PRESERVED_PARAMS",
    "ActiveToolPattern",
    "AssistantMessage",
    "ChatStreamChunk",
    "ChatUsage",
    "CodeExecDockerConfig",
    "DBItem",
    "DeactivateToolPattern",
    "EmbedResponse",
    "EmbedUsage",
    "Function",
    "GraphMode",
    "LLMChatResponse",
    "MCPConfig",
    "McpServerLink",
    "NodeActionMode",
    "PromptRequest",
    "RerankResponse",
    "RerankUsage",
    "ResourceRequest",
    "SearchResult",
    "SpecialNode",
    "SseLink",
    "State",
    "StateBaseMessage",
    "StateDelta",
    "StateMessage",
    "StateSchema",
    "StdioLink",
    "StreamableHttpLink",
    "SystemMessage",
    "ToolCall",
    "ToolCallResult",
    "ToolControlPattern",
    "ToolInnerState",
    "ToolManagerState",
    "ToolMessage",
    "UserMessage",
    "cast_state_message",
]

DEFAULT_EDGE_GROUP = "all"

STREAM_CHUNK = Any
"""A value that a node shows while it works."""
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
    START_NODE = "start"
    END_NODE = "end"

    @classmethod
    def is_special_node(cls, name: str) -> bool:
        """Say whether a name is one of an end."""
        return name in ("start", "end")

    @classmethod
    def is_start_node(cls, name: str) -> bool:
        """Say whether a name is that of the beginning."""
        return name == "start"

    @classmethod
    def is_end_node(cls, name: str) -> bool:
        """Say whether a name is that of the end."""
        return name == "end"


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


class EmbedUsage(BaseModel):
    """The usage of a model of vectors."""

    generation_time: int


class RerankUsage(BaseModel):
    """The usage of a model that ranks."""

    generation_time: int


class EmbedResponse(BaseModel):
    """A vector."""

    embeddings: list[float]
    usage: EmbedUsage | None = None


class RerankResponse(BaseModel):
    """Texts and how well they fit."""

    scores: list[float]
    texts: list[str]
    usage: RerankUsage | None = None


class DBItem(BaseModel):
    """A text for a store."""

    text: str
    ids: str | None = None
    metadata: dict[str, Any] | None = None


class SearchResult(BaseModel):
    """A text of a store, and how well it fits."""

    text: str
    metadata: dict[str, Any] | None = None
    score: float | None = None
    id: str = ""

    @classmethod
    def from_db_item(cls, item: DBItem, *, score: float | None = None) -> SearchResult:
        """Give an item as a result."""
        return cls(text=item.text, metadata=item.metadata, score=score, id=item.ids or "")

    def to_db_item(self) -> DBItem:
        """Give a result as an item."""
        return DBItem(text=self.text, ids=self.id or None, metadata=self.metadata)


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
    """Give a message, with an id, for a mapping with a ``role``.

    Raises: pydantic.ValidationError.
    """
    found = _adapter.validate_python(given)
    found.msg_id = found.msg_id or uuid.uuid4().hex
    return found
