"""``MCPContext``: the resources and prompts of an MCP server as context of an agent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from axil.plugin import without_secrets
from axil_mcp.addresses import is_plain_uri
from axil_mcp.config import ContextConfig, MCPServer, Shelf, split
from axil_mcp.connection import link_of
from axil_mcp.results import parts_of, shown_part
from axil_mcp.texts import clean
from axil_mcp.tools import pages
from axil_models import ContextBlock, ContextQuery

if TYPE_CHECKING:
    from axil_mcp.keywords import ContextConfigKeywords

_WORD = re.compile(r"\w{2,}")


class MCPContext:
    """The context from a server's resources and prompts:
    ``Agent(retrievers=[MCPContext(url="https://…/mcp", resources=["docs://*"])])``.

    Every block says where it comes from: in its label, its ``uri``, and ``metadata["origin"]``.
    """

    def __init__(
        self, server: MCPServer | None = None, /, **settings: Unpack[ContextConfigKeywords]
    ) -> None:
        """Set the server, and the resources and prompts to read.

        Args:
            server: several toolsets and providers that are given one share its connections.
            settings: those of ``Shelf``, and without ``server`` those of ``MCPServer``.
        Raises: ConfigError.
        """
        self.server, self.shelf = split(server, settings, ContextConfig, Shelf, "MCPContext")
        self._link = link_of(self.server)
        self.origin = f"mcp:{self.server.name}"
        self.context_label = self.shelf.label or self.origin
        self.passive, self.active = self.shelf.passive, self.shelf.active

    async def get_blocks(
        self, query: ContextQuery, top_k: int = 8, ctx: object = None
    ) -> list[ContextBlock]:
        """Return the blocks that share most words with the query, best first; prompts and
        templates, which were named for it, first of all.

        Raises: Unreachable (AX920); CallFailed; ListingRefused (AX923): the lists have no end.
        """
        self.permit(ctx)
        line = self._link
        text = query.query_text
        blocks: list[ContextBlock] = []
        for name, given in self.shelf.prompts.items():
            arguments = {key: value.replace("{query}", text) for key, value in given.items()}
            found = await line.ask(
                f"the prompt {name}", lambda c, n=name, a=arguments: c.get_prompt(n, a), ctx=ctx
            )
            blocks += self._prompt(name, found)
        for template in self.shelf.templates:
            uri = template.replace("{query}", quote(text, safe=""))
            if is_plain_uri(uri):  # a query such as .. would lead out of the template
                blocks += await self._read(uri, "", ctx)
        wanted = _words(text)
        resources: list[Any] = []
        if self.shelf.resources:
            resources = await line.ask("listing its resources", self._resources, ctx=ctx)
        resources.sort(
            key=lambda each: (
                -_shared(
                    wanted, f"{each.name} {each.title or ''} {each.description or ''} {each.uri}"
                )
            )
        )
        rest: list[ContextBlock] = []
        for each in resources[: self.shelf.most_read]:
            rest += await self._read(str(each.uri), each.title or each.name, ctx)
        rest = [self._scored(block, wanted) for block in rest]
        return [*blocks, *sorted(rest, key=lambda block: -(block.score or 0.0))][:top_k]

    async def _resources(self, client: Any) -> list[Any]:
        if client.server_capabilities.resources is None:
            return []
        found = await pages(client.list_resources, lambda page: page.resources, self.server)
        return [each for each in found if self.shelf.takes(str(each.uri))]

    async def _read(self, uri: str, title: str, ctx: Any) -> list[ContextBlock]:
        found = await self._link.ask(
            f"reading {clean(uri, 200)}", lambda client: client.read_resource(uri), ctx=ctx
        )
        texts = [
            (str(each.uri), each.text) for each in found.contents if getattr(each, "text", None)
        ]
        blocks = [
            self._block(text, uri, clean(title, 200), str(n) if n else None)
            for n, (uri, text) in enumerate(texts)
        ]
        for number, each in enumerate(found.contents if self.shelf.images else ()):
            part = (
                shown_part(each.mime_type or "", each.blob) if getattr(each, "blob", None) else None
            )
            if part is not None:
                shown = self._block(
                    title or str(each.uri), str(each.uri), clean(title, 200), f"part:{number}"
                )
                blocks.append(replace(shown, part=part))
        return blocks

    def _prompt(self, name: str, found: Any) -> list[ContextBlock]:
        contents = [message.content for message in found.messages]
        texts = [part["text"] for part in parts_of(_Result(contents)) if part["type"] == "text"]
        return (
            [self._block("\n".join(texts), f"prompt:{self.server.name}/{name}", name)]
            if texts
            else []
        )

    def _block(self, text: str, uri: str, title: str, part: str | None = None) -> ContextBlock:
        data: Mapping[str, Any] = {"origin": self.origin, "server": self.server.name}
        shown = clean(without_secrets(text), self.shelf.block_chars)
        return ContextBlock(shown, clean(uri, 500), part, 1.0, title or None, data)

    def _scored(self, block: ContextBlock, wanted: frozenset[str]) -> ContextBlock:
        score = (
            _shared(wanted, f"{block.title or ''} {block.text}") / len(wanted) if wanted else 0.0
        )
        return replace(block, score=min(score, 0.99))

    def permit(self, ctx: object) -> None:
        """Refuse a firing that may not use the server; a server from Python code may be used."""

    async def close(self) -> None:
        """Close the connection of the running event loop; using it opens it again."""
        await self._link.close()

    async def __aenter__(self) -> MCPContext:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"MCPContext({self.server.name})"


class _Result:
    """A prompt's contents, in the form of a tool's result."""

    structured_content = None

    def __init__(self, content: Sequence[Any]) -> None:
        self.content = content


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _shared(wanted: frozenset[str], text: str) -> int:
    return len(wanted & _words(text))
