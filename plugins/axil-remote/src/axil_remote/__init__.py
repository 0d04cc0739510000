"""Services and agents elsewhere: OpenAPI documents as tools, HTTP requests as nodes, A2A agents as
tools and nodes.
"""

from __future__ import annotations

from axil_remote.agents import A2ANode, A2ATool
from axil_remote.http import Http
from axil_remote.operations import OpenAPITools

__all__ = ["A2ANode", "A2ATool", "Http", "OpenAPITools"]
