"""MCP for axil: servers as tools and as context of agents, workflows as a server.

The SDK is imported when it is used.
"""

from __future__ import annotations

from axil_mcp.config import MCPServer, Offer, Shelf
from axil_mcp.context import MCPContext
from axil_mcp.errors import CallFailed, ListingRefused, McpFault, ToolFailed, Unreachable, Unserved
from axil_mcp.tools import MCPTools

__all__ = [
    "CallFailed",
    "ListingRefused",
    "MCPContext",
    "MCPServer",
    "MCPTools",
    "McpFault",
    "Offer",
    "Shelf",
    "ToolFailed",
    "Unreachable",
    "Unserved",
]
