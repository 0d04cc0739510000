"""MCP for axil: servers as tools and as context of agents, workflows as a server.

The SDK is imported when it is used.
"""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Servers in workflows": {
        "config": "MCPServer Offer Shelf",
        "context": "MCPContext",
        "tools": "MCPTools",
    },
    "Workflows as a server": {
        "protocol": "McpProtocol",
        "serving": "WorkflowServer",
    },
    "Errors": {
        "errors": """
            CallFailed ListingRefused McpFault ToolFailed Unreachable Unserved
        """,
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
