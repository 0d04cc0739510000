"""``McpToolManager``: the tools of servers that speak MCP, by ``axil_mcp``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, PrivateAttr

from evofabric.absent import Unsupported
from evofabric.core.tool.base import ToolManagerBase
from evofabric.core.typing import McpServerLink, StdioLink, ToolCall, ToolCallResult


class McpToolManager(ToolManagerBase):
    """Servers by name; their tools are called ``SERVER_TOOL``. Needs axil-mcp.

    A connection is opened by its first use and serves all calls, whatever ``persistent_link`` says.
    """

    server_links: dict[str, McpServerLink] = Field(default_factory=dict[str, McpServerLink])
    timeout: float = 300
    persistent_link: bool = False

    _toolsets: dict[str, Any] = PrivateAttr(default_factory=dict[str, Any])

    def _toolset(self, name: str) -> Any:
        if name not in self._toolsets:
            try:
                from axil_mcp import MCPTools
            except ImportError as error:
                raise ImportError("McpToolManager needs axil-mcp. Install it.") from error

            settings = _settings(self.server_links[name])
            called = re.sub("[^A-Za-z0-9]+", "-", name).strip("-") or "mcp"
            self._toolsets[name] = MCPTools(
                name=called, call_timeout_seconds=self.timeout, **settings
            )
        return self._toolsets[name]

    async def _tools(self, server_name: str | None = None) -> dict[str, Any]:
        """Give the active tools, by the names that a model sees."""
        found: dict[str, Any] = {}
        for server in self.server_links if server_name is None else [server_name]:
            toolset = self._toolset(server)
            for tool in await toolset.tools():
                own = tool.name.removeprefix(f"{toolset.server.name}__")
                name = f"{server}_{own}"
                if self.tool_controller is None or self.tool_controller.check_tool_status(name):
                    found[name] = tool
        return found

    async def list_tools(self, server_name: str | None = None, **kwargs: Any) -> Any:
        """Give the active tools for a model, as OpenAI's API has it."""
        del kwargs
        return [
            {
                "type": "function",
                "function": {
                    "name": name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for name, tool in (await self._tools(server_name)).items()
        ]

    async def call_tools(self, tasks: Sequence[ToolCall]) -> list[ToolCallResult]:
        """Call tools: a result for each, in order; a failure is a result, too."""
        tools = await self._tools()
        return [await _called(tools, task) for task in tasks]

    async def add_mcp_servers(self, mcp_server_links: Mapping[str, Any]) -> None:
        """Add servers."""
        self.server_links = {**self.server_links, **mcp_server_links}

    async def delete_mcp_servers(self, mcp_server_names: Sequence[str]) -> None:
        """Take servers out, and close their connections."""
        for name in mcp_server_names:
            await self.disconnect(name)
        gone = set(mcp_server_names)
        self.server_links = {n: link for n, link in self.server_links.items() if n not in gone}

    async def connect(self, server_name: str | None = None) -> None:
        """Open connections."""
        await self._tools(server_name)

    async def disconnect(self, server_name: str | None = None) -> None:
        """Close connections."""
        for name in list(self._toolsets) if server_name is None else [server_name]:
            if name in self._toolsets:
                await self._toolsets.pop(name).close()

    start, stop = connect, disconnect

    async def get_mcp_status(self) -> dict[str, bool]:
        """Say of each server whether it was connected to."""
        return {name: name in self._toolsets for name in self.server_links}

    async def __aenter__(self) -> McpToolManager:
        await self.connect()
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self.disconnect()

    async def list_prompts(self, server_name: str | None = None) -> Any:
        """Raise ``Unsupported``."""
        raise Unsupported(
            "McpToolManager: prompts and resources of servers are not read under EvoFabric's "
            "names. Give axil_agent.Agent the context provider axil_mcp.MCPContext."
        )

    list_resources = list_resource_templates = read_resource = get_prompt = list_prompts


def _settings(link: Any) -> dict[str, Any]:
    if isinstance(link, StdioLink):
        return {
            "command": [link.command],
            "args": link.args,
            "env": link.env or {},
            "cwd": link.cwd or "",
            "connect_timeout_seconds": link.read_time_out,
        }
    return {
        "url": link.url,
        "headers": link.headers or {},
        "connect_timeout_seconds": link.timeout,
    }


async def _called(tools: Mapping[str, Any], task: ToolCall) -> ToolCallResult:
    try:
        if task.function.name not in tools:
            raise ValueError(f"Tool not found: {task.function.name}")  # is a result
        content = await tools[task.function.name](json.loads(task.function.arguments or "{}"))
    except Exception as error:  # noqa: BLE001  # a server is anybody's: the model is told
        return ToolCallResult(tool_call_id=task.id, success=False, content=str(error))
    return ToolCallResult(tool_call_id=task.id, success=True, content=content)
