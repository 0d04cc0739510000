"""``MCPTools``: the tools of an MCP server as tools of an agent."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from axil.plugin import ComponentBlocked, format_names
from axil_mcp.config import MCPServer, Offer, ToolsConfig, split
from axil_mcp.connection import link_of
from axil_mcp.errors import ListingRefused, ToolFailed
from axil_mcp.listing import Listing, Offered, chosen, difference, drift
from axil_mcp.results import content_of
from axil_mcp.texts import clean
from axil_models import Tool

if TYPE_CHECKING:
    from axil_mcp.keywords import ToolsConfigKeywords

log = logging.getLogger("axil_mcp")
_STEERING = re.compile(r"PATH|(LD|DYLD)_.*")
"""Variables of the environment that change which program starts, or what is loaded into it."""
PAGES = 100
"""Pages of a listing that are read; a server that has no end is refused."""
ITEMS = 10_000
"""Items of a listing that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTool(Tool):
    """A tool that a server carries out. Calls run side by side; the firing is known to each."""

    ask: Callable[[Mapping[str, Any], Any], Awaitable[str | list[dict[str, Any]]]]
    still: Callable[[Any], Awaitable[None]] | None = None
    """The check before a call that a person allowed; it raises if the server changed the tool."""

    async def __call__(
        self, arguments: Mapping[str, Any], ctx: Any = None
    ) -> str | list[dict[str, Any]]:
        """Return the result.

        Raises: ToolFailed: the tool says so; CallFailed, Unreachable; ListingRefused (AX922): it is
        not the tool any more that a person allowed.
        """
        if self.still is not None and self.needs_approval is not False:
            await self.still(ctx)
        return await self.ask(arguments, ctx)


class MCPTools:
    """The tools of a server: ``Agent(tools=[MCPTools(command=["notes"], allow=["read_*"])])``.

    Connections are opened when they are needed, one on each event loop, and closed by ``close`` (or
    ``async with``), or with the loop.
    """

    def __init__(
        self, server: MCPServer | None = None, /, **settings: Unpack[ToolsConfigKeywords]
    ) -> None:
        """Set the server, and the tools to offer.

        Args:
            server: several toolsets and providers that are given one share its connections.
            settings: those of ``Offer``, and without ``server`` those of ``MCPServer``.
        Raises: ConfigError.
        """
        self.server, self.offer = split(server, settings, ToolsConfig, Offer, "MCPTools")
        self._link = link_of(self.server)
        self._last: dict[str, dict[str, str]] | None = None

    async def tools(self, ctx: object = None) -> Sequence[Tool]:
        """Return the present tools.

        That they changed since the last time is shown as a chunk ``mcp_changed``.

        Raises: Unreachable (AX920); ListingRefused: AX922: they are not the expected ones, AX923:
        they cannot be used; CallFailed.
        """
        self.permit(ctx)
        listing = await self.listing(ctx)
        changed = await self._compare(listing, ctx)
        tools = [
            RemoteTool(
                name=shown.name,
                description=shown.description,
                parameters=shown.parameters,
                call=_elsewhere,
                effects=self.offer.effects_of(shown.tool.name, shown.tool.annotations),
                ask=functools.partial(self._call, shown.tool.name),
                still=functools.partial(self._still, shown.tool),
                pin=shown.tool.digest,
                notice=_notice(changed, shown.tool.name),
            )
            for shown in listing.tools
        ]
        if self.offer.read_resources:
            tools.append(self._reading(tools))
        return tools

    def _reading(self, others: Sequence[Tool]) -> RemoteTool:
        name = f"{self.server.name}__read_resource"
        if any(tool.name == name for tool in others):
            message = "it has a tool read_resource, and read_resources is set."
            raise ListingRefused("AX923", message, "Deny the tool, or unset it.", self.server.place)
        return RemoteTool(
            name=name,
            description=f"Reads a resource of {self.server.name}. Without an address: lists them.",
            parameters={
                "type": "object",
                "properties": {"uri": {"type": "string", "description": "The address."}},
            },
            call=_elsewhere,
            effects="none",
            ask=self._read,
        )

    async def _read(self, arguments: Mapping[str, Any], ctx: Any) -> str | list[dict[str, Any]]:
        uri = str(arguments.get("uri") or "")
        if not uri:
            found = await self._link.ask("listing its resources", self._resources, ctx=ctx)
            text = json.dumps([each for each in found if self.offer.reads(each["uri"])])
            return clean(text, self.offer.max_result_chars)
        if not self.offer.reads(uri):
            message = f"the resource {clean(uri, 200)} may not be read."
            raise ToolFailed("AX926", message, "Call without uri to list those that may.")

        async def use(client: Any) -> Any:
            return await client.read_resource(uri)

        result = await self._link.ask(f"reading {clean(uri, 200)}", use, ctx=ctx)
        return content_of(_Contents(result.contents), self.offer)

    async def _resources(self, client: Any) -> list[dict[str, str]]:
        if client.server_capabilities.resources is None:
            return []
        listed = await pages(client.list_resources, lambda page: page.resources, self.server)
        kept = ("uri", "name", "title", "description", "mime_type")
        return [
            {key: clean(str(value), 500) for key in kept if (value := getattr(each, key))}
            for each in listed
        ]

    async def listing(self, ctx: object = None) -> Listing:
        """Return the offered tools and their digest. Raises: as ``tools``."""
        return chosen(
            self.server.name,
            await self._link.ask("listing its tools", self._listed, ctx=ctx),
            self.offer,
        )

    async def _listed(self, client: Any) -> list[Offered]:
        if client.server_capabilities.tools is None:
            return []
        found = await pages(client.list_tools, lambda page: page.tools, self.server)
        return [_offered(tool) for tool in found]

    async def _compare(self, listing: Listing, ctx: Any) -> dict[str, Any]:
        """Report to observers that the tools are others than before, in this process or when the
        run was begun; return how they differ from the latter.
        """
        now = listing.parts

        async def offered() -> dict[str, Any]:
            return now

        begun = await ctx.step(f"mcp:{listing.server}", offered) if ctx is not None else now
        if any(isinstance(each, str) for each in begun.values()):  # of a run of an older version
            begun = {
                name: now[name] if listing.digests.get(name) == each else each
                for name, each in begun.items()
            }
        for before in (self._last, begun):
            if before is not None and before != now:
                report = drift(before, now)
                log.warning("%s offers other tools than before: %s", self.server.place, report)
                if ctx is not None:
                    ctx.emit(
                        {
                            "kind": "mcp_changed",
                            "server": listing.server,
                            "digest": listing.digest,
                            **report,
                        }
                    )
                break
        self._last = now
        return drift(begun, now)

    async def _still(self, agreed: Offered, ctx: Any) -> None:
        """Raises: ListingRefused (AX922): the server has changed a tool that a person allowed."""
        listed = await self._link.ask("listing its tools", self._listed, ctx=ctx)
        same = [tool for tool in listed if tool.name == agreed.name]
        now = same[0] if len(same) == 1 else None
        if now is None or now.digest != agreed.digest:
            raise ListingRefused(
                "AX922",
                f'the tool "{agreed.name}" is not the one that a person allowed: '
                f"{difference(agreed, now)}.",
                "Run the node again: it asks about the tool as it is now.",
                self.server.place,
            )

    async def _call(
        self, tool: str, arguments: Mapping[str, Any], ctx: Any
    ) -> str | list[dict[str, Any]]:
        from axil_mcp.calls import current

        async def use(client: Any) -> Any:
            call = current.get()
            return await client.call_tool(
                tool, dict(arguments), progress_callback=None if call is None else call.progress
            )

        result = await self._link.ask(f"the call of {tool}", use, ctx=ctx, tool=tool)
        content = content_of(result, self.offer)
        if result.is_error:
            text = (
                content
                if isinstance(content, str)
                else "\n".join(part["text"] for part in content if part["type"] == "text")
            )
            raise ToolFailed(
                "AX926", text or "the tool failed and does not say why.", where=self.server.place
            )
        return content

    def permit(self, ctx: object) -> None:
        """Refuse a firing that may not use the server; a server from Python code may be used."""

    async def close(self) -> None:
        """Close the connection of the running event loop; using it opens it again."""
        await self._link.close()

    async def __aenter__(self) -> MCPTools:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"MCPTools({self.server.name})"


class _Contents:
    """The contents of a resource, in the form of a tool's result."""

    structured_content = None

    def __init__(self, contents: Sequence[Any]) -> None:
        self.content = [_Resource(each) for each in contents]


class _Resource:
    """One of them, in the form of a block."""

    type = "resource"

    def __init__(self, resource: Any) -> None:
        self.resource = resource


async def pages(
    listing: Callable[..., Awaitable[Any]], of: Callable[[Any], Sequence[Any]], server: MCPServer
) -> list[Any]:
    """Return all of a list that comes in pages, all together no longer than a message may be.

    Raises: ListingRefused (AX923): it is longer, or has no end.
    """
    where, most_bytes = server.place, server.max_message_bytes
    found: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    size = 0
    for _ in range(PAGES):
        page = await listing(cursor=cursor)
        found += of(page)
        if len(found) > ITEMS:
            raise ListingRefused(
                "AX923", f"one of its lists has more than {ITEMS} items.", where=where
            )
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            raise ListingRefused(
                "AX923", "one of its lists has no end: a page comes again.", where=where
            )
        seen.add(cursor)
        size += len(page.model_dump_json())
        if size > most_bytes:
            message = f"one of its lists is longer than {most_bytes} bytes."
            raise ListingRefused("AX923", message, "Raise max_message_bytes if it may.", where)
    raise ListingRefused("AX923", f"one of its lists has more than {PAGES} pages.", where=where)


def _notice(changed: Mapping[str, Any], tool: str) -> str:
    if tool in changed["added"]:
        return "The server did not have this tool when the run asked for it first."
    if tool not in changed["changed"]:
        return ""
    parts = format_names([part.replace("_", " ") for part in changed["parts"][tool]])
    return f"The server has changed this tool since the run asked for it first: {parts or 'it'}."


def _elsewhere() -> None:
    """Stand for the code of a remote tool."""


def _offered(tool: Any) -> Offered:
    return Offered(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        needs="tasks, which this client does not have"
        if tool.execution is not None and tool.execution.task_support == "required"
        else "",
        annotations=None
        if tool.annotations is None
        else tool.annotations.model_dump(mode="json", exclude_none=True),
    )


def permit(server: MCPServer, ctx: Any) -> None:
    """Refuse a program from a file unless the run allows it.

    Raises: ComponentBlocked (AX921).
    """
    allows = getattr(ctx, "allows", None)
    if not server.command:
        return
    name = server.command[0]
    words = ("code", f"mcp:{name}", f"program:{name}")
    if not (allows is not None and any(map(allows, words))):
        raise ComponentBlocked(
            f'the workflow would start a program as an MCP server: "{name}". '
            "This run does not allow it.",
            id="AX921",
            where=server.place,
            hint=f"Allow it if you trust the workflow: --allow mcp:{name}, or all with mcp.",
        )
    if not any(map(allows, ("code", "mcp", "program"))) and (steering := _steering(server)):
        raise ComponentBlocked(
            f"its setting {steering} changes which program {name} is, and only that one is "
            "allowed.",
            id="AX921",
            where=server.place,
            hint=f"Remove {steering}, or allow all servers: --allow mcp.",
        )


def _steering(server: MCPServer) -> str:
    """Return the setting that decides which program a name is; empty: none does."""
    if server.cwd and os.path.dirname(server.command[0]) and not os.path.isabs(server.command[0]):
        return "cwd"
    return next((f"env.{name}" for name in server.env if _STEERING.fullmatch(name)), "")


def words_of(server: MCPServer) -> tuple[str, ...]:
    """Return what a file asks leave for: to start the server, if it is a program."""
    return (f"mcp:{server.command[0]}",) if server.command else ()
