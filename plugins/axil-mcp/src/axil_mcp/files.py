"""``tools: [{type: mcp, …}]`` and ``retrievers: [{type: mcp, …}]`` of workflow files: a program starts only where the run allows it."""

from __future__ import annotations

from typing import Any

from axil_mcp.config import ContextConfig, ToolsConfig
from axil_mcp.context import MCPContext
from axil_mcp.tools import MCPTools, permit


class Tools(MCPTools):
    """``mcp``: the tools of a server."""

    Config = ToolsConfig

    def __init__(self, config: ToolsConfig) -> None:
        super().__init__(**_given(config))
        self.config = config

    def permit(self, ctx: Any) -> None:
        """Raises: ComponentBlocked (AX921)."""
        permit(self.server, ctx)


class Context(MCPContext):
    """``mcp``: the resources and prompts of a server."""

    Config = ContextConfig

    def __init__(self, config: ContextConfig) -> None:
        super().__init__(**_given(config))
        self.config = config

    def permit(self, ctx: Any) -> None:
        """Raises: ComponentBlocked (AX921)."""
        permit(self.server, ctx)


def _given(config: ToolsConfig | ContextConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.model_fields_set}
