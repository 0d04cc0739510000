"""Tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing
from evofabric.core.tool.base import BaseTool, ToolManagerBase, parse_callable_schema
from evofabric.core.tool.controller import ToolController
from evofabric.core.tool.manager import ToolManager
from evofabric.core.tool.mcp import McpToolManager

__all__ = [
    "BaseTool",
    "McpToolManager",
    "ToolController",
    "ToolManager",
    "ToolManagerBase",
    "parse_callable_schema",
]

__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "McpSessionController": "McpToolManager connects by itself; see axil_mcp.MCPServer.",
        "CodeSandbox": "See axil's how-to on running code safely: axil_process.Docker and others.",
    },
)
