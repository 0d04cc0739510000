"""Settings and states of tools and of servers of tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

TOOL_EXCLUDE_PRESERVED_PARAMS = ["inner_state", "stream_writer"]
"""Parameters of tools that a model does not see."""


class CodeExecDockerConfig(BaseModel):
    """The container that code is run in."""

    image: str = "python:3-slim"
    auto_remove: bool = True
    working_dir: str = "/tmp"  # within the container
    tty: bool = True
    detach: bool = True
    mem_limit: str = "4096m"
    cpu_quota: int = 50000
    entrypoint: str = "/bin/sh"
    command: str | list[str] | None = None
    name: str = "evofabric_sandbox"
    network: str = "host"
    volumes: dict[str, Any] | None = None


class PromptRequest(BaseModel):
    """A prompt that is asked of a server."""

    server_name: str
    prompt_name: str
    arguments: dict[str, str]


class ResourceRequest(BaseModel):
    """A resource that is asked of a server."""

    server_name: str
    url: str


class StdioLink(BaseModel):
    """A server that is a program."""

    type: Literal["StdioLink"] = "StdioLink"
    command: str
    args: list[str] = Field(default_factory=list[str])
    env: dict[str, str] | None = None
    cwd: str | None = None
    read_time_out: float = 10.0


class SseLink(BaseModel):
    """A server at an address, over server-sent events."""

    type: Literal["SseLink"] = "SseLink"
    url: str
    headers: dict[str, Any] | None = None
    timeout: float = 30.0
    sse_read_timeout: float = 300.0


class StreamableHttpLink(BaseModel):
    """A server at an address, over streamable HTTP."""

    type: Literal["StreamableHttpLink"] = "StreamableHttpLink"
    url: str
    headers: dict[str, Any] | None = None
    timeout: float = 30.0
    sse_read_timeout: float = 300.0
    terminate_on_close: bool = True


McpServerLink = Annotated[StdioLink | SseLink | StreamableHttpLink, Field(discriminator="type")]
"""The way to a server."""


class MCPConfig(BaseModel):
    """The address of a server."""

    url: str


class ToolInnerState(BaseModel):
    """Data that a tool keeps between its calls."""

    type: Literal["ToolInnerState"] = "ToolInnerState"
    state: dict[str, Any] | None = None
    meta_state: dict[str, Any] | None = None


class ToolManagerState(BaseModel):
    """The data of the tools of a manager, by their names."""

    type: Literal["ToolManagerState"] = "ToolManagerState"
    state: dict[str, ToolInnerState] | None = None


class ActiveToolPattern(BaseModel):
    """Names of tools that may be called."""

    mode: Literal["activate"] = "activate"
    pattern: str


class DeactivateToolPattern(BaseModel):
    """Names of tools that may not be called."""

    mode: Literal["deactivate"] = "deactivate"
    pattern: str


ToolControlPattern = Annotated[
    ActiveToolPattern | DeactivateToolPattern, Field(discriminator="mode")
]
"""A rule of a ``ToolController``."""
