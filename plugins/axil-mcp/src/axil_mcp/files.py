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
from axil_mcp.errors import ListingRefused
from axil_mcp.listing import Listing, drift
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

    @classmethod
    def hold(cls, config: Mapping[str, Any], pinned: Mapping[str, Any]) -> None:
        """Let toolsets with these settings use these tools only, in this process."""
        _held[_settings(make_component(Tools, config, "tools"))] = pinned["tools"]

    async def listing(self, ctx: Any = None) -> Listing:
        """Return the offered tools. Raises: as ``tools``; AX922: the lock has others."""
        listing = await super().listing(ctx)
        held = _held.get(_settings(self))
        if held is not None and held != listing.parts:
            report = {name: part for name, part in drift(held, listing.parts).items() if part}
            raise ListingRefused(
                "AX922",
                f"its tools are not those of the lock any more: {report}.",
                "Look what the server has changed (axil mcp tools); lock again if that is meant.",
                self.server.place,
            )
        return listing


_held: dict[str, Mapping[str, Any]] = {}
"""The tools that a locked run uses, by the settings of the toolset."""


def _settings(tools: Tools) -> str:
    return tools.config.model_dump_json(exclude={"expect"})


async def listed(config: Mapping[str, Any], allow: frozenset[str]) -> Listing:
    """Return the tools that the server of a toolset's settings offers. Raises: as
    ``Tools.pinned``.
    """
    toolset, ctx = make_component(Tools, config, "tools"), Asking(allow)
    toolset.permit(ctx)
    async with toolset:
        return await MCPTools.listing(toolset, ctx)


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
