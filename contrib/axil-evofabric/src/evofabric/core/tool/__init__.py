"""Tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing
from evofabric.core.tool.manager import ToolManager

__all__ = ["ToolManager"]

_MCP = "Servers that speak MCP are axil_mcp.MCPTools."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "McpToolManager": _MCP,
        "McpSessionController": _MCP,
        "CodeSandbox": "See axil's how-to on running code safely.",
        "ToolController": "Give each agent the tools that it may call; axil_agent.Agent(approve=…) "
        "lets a person allow calls.",
        "BaseTool": "A tool is a function, or axil_models.Tool.",
        "parse_callable_schema": "axil_models.tool_of(function).parameters is the schema.",
    },
)
