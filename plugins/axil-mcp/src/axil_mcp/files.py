"""``tools: [{type: mcp, …}]`` and ``retrievers: [{type: mcp, …}]`` of workflow files: a program
starts only where the run allows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axil import run_sync
from axil.plugin import Grants, make_component
from axil_mcp.config import ContextConfig, ToolsConfig
from axil_mcp.context import MCPContext
from axil_mcp.listing import Listing
from axil_mcp.tools import MCPTools, permit, words_of


class Asking:
    """The context of a toolset outside a firing."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed

    def allows(self, what: str) -> bool:
        """Return whether an action is allowed."""
        return Grants(words=self._allowed).allows(what)

    def emit(self, chunk: Any) -> None:
        """Do nothing: there are no observers."""


class Tools(MCPTools):
    """``mcp``: the tools of a server."""

    examples = ({"url": "https://tools.example.org/mcp", "allow": ["search_*"]},)

    Config = ToolsConfig

    def __init__(self, config: ToolsConfig) -> None:
        super().__init__(config)
        self.config = config
        self.wants = words_of(self.server)

    def permit(self, ctx: Any) -> None:
        """Raises: ComponentBlocked (AX921)."""
        permit(self.server, ctx)

    @classmethod
    def pinned(cls, config: Mapping[str, Any], allow: frozenset[str]) -> dict[str, Any]:
        """Return the server's present tools for a lock: digests of each tool's description,
        schemas and annotations, by its name.

        Raises: ComponentBlocked (AX921): a program would have to start, and ``mcp`` is not in
        ``allow``; and as ``tools`` does.
        """
        listing: Listing = run_sync(
            listed({key: value for key, value in config.items() if key != "expect"}, allow)
        )
        return {"server": listing.server, "tools": dict(sorted(listing.parts.items()))}


async def listed(config: Mapping[str, Any], allow: frozenset[str]) -> Listing:
    """Return the tools that the server of a toolset's settings offers. Raises: as
    ``Tools.pinned``.
    """
    toolset, ctx = make_component(Tools, config, "tools"), Asking(allow)
    toolset.permit(ctx)
    async with toolset:
        return await toolset.listing(ctx)


class Context(MCPContext):
    """``mcp``: the resources and prompts of a server."""

    examples = ({"url": "https://docs.example.org/mcp", "resources": ["docs://*"]},)
    kit_excuse = "it asks a server; the tests of axil-mcp give it one"

    Config = ContextConfig

    def __init__(self, config: ContextConfig) -> None:
        super().__init__(config)
        self.config = config
        self.wants = words_of(self.server)

    def permit(self, ctx: Any) -> None:
        """Raises: ComponentBlocked (AX921)."""
        permit(self.server, ctx)
