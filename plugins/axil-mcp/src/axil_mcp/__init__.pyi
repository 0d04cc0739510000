"""Names of ``axil_mcp`` for type checkers; written by ``make manifests``."""

from axil_mcp.config import MCPServer as MCPServer, Offer as Offer, Shelf as Shelf
from axil_mcp.context import MCPContext as MCPContext
from axil_mcp.errors import (
    CallFailed as CallFailed,
    ListingRefused as ListingRefused,
    McpFault as McpFault,
    ToolFailed as ToolFailed,
    Unreachable as Unreachable,
    Unserved as Unserved,
)
from axil_mcp.protocol import McpProtocol as McpProtocol
from axil_mcp.serving import WorkflowServer as WorkflowServer
from axil_mcp.tools import MCPTools as MCPTools
