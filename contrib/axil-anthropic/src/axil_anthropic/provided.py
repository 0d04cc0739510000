"""Tools of Anthropic's own: as they are asked for, and as their use is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from axil_models import ToolError, ToolSpec, sent_as, token_of, used_tool

KINDS: Final = frozenset({"web_search", "code_interpreter", "computer", "mcp"})
_BETAS: Final = {"computer": "computer-use-2025-11-24", "mcp": "mcp-client-2025-11-20"}
_NAMES: Final = {"code_execution": "code_interpreter", "bash_code_execution": "code_interpreter"}


def _search(options: Any) -> Mapping[str, Any]:
    given = {
        "allowed_domains": list(options.allowed_domains),
        "blocked_domains": list(options.blocked_domains),
        "max_uses": options.max_uses,
    }
    named = {name: value for name, value in given.items() if value}
    return {"type": "web_search_20250305", "name": "web_search", **named}


def _servers_tools(options: Any) -> Mapping[str, Any]:
    chosen: dict[str, Any] = {}
    if options.allow:
        chosen["default_config"] = {"enabled": False}
        chosen["configs"] = {name: {"enabled": True} for name in options.allow}
    return {"type": "mcp_toolset", "mcp_server_name": options.name, **chosen}


_TABLE: Final[Mapping[str, Callable[[Any], Mapping[str, Any]]]] = {
    "web_search": _search,
    "code_interpreter": lambda options: {
        "type": "code_execution_20250825",
        "name": "code_execution",
    },
    "computer": lambda options: {
        "type": "computer_20251124",
        "name": "computer",
        "display_width_px": options.width,
        "display_height_px": options.height,
    },
    "mcp": _servers_tools,
}


def provided(specs: Sequence[ToolSpec]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the tools of the service, and what else a request with them has.

    Raises: ToolError (AX984): the service has no approval of calls of MCP servers.
    """
    tools: list[dict[str, Any]] = []
    servers: list[dict[str, Any]] = []
    for spec in specs:
        tools.append(sent_as(spec, _TABLE))
        if spec.kind == "mcp":
            if spec.options.approve != "never":
                message = f'the service asks nobody before it calls the MCP server "{spec.name}".'
                raise ToolError("AX984", message, "Set approve: never, or use axil-mcp.")
            server = {"type": "url", "url": spec.options.url, "name": spec.name}
            token = token_of(spec.options)
            servers.append({**server, **({"authorization_token": token} if token else {})})
    more: dict[str, Any] = {"mcp_servers": servers} if servers else {}
    betas = [beta for kind, beta in _BETAS.items() if any(spec.kind == kind for spec in specs)]
    if betas:
        more["extra_headers"] = {"anthropic-beta": ",".join(betas)}
    return tools, more


def used_by(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts that show which tools the service used, with what they gave."""
    results = {each["tool_use_id"]: each.get("content") for each in blocks if "tool_use_id" in each}
    parts: list[dict[str, Any]] = []
    for each in blocks:
        if each["type"] in ("server_tool_use", "mcp_tool_use"):
            name, given = str(each.get("name") or ""), each.get("input")
            if each["type"] == "mcp_tool_use":
                given = {"server": each.get("server_name"), "tool": name, "arguments": given}
                name = "mcp"
            id, found = each.get("id"), results.get(each.get("id"))
            parts.append(used_tool(_NAMES.get(name, name), id=id, given=given, found=_plain(found)))
    return parts


def _plain(found: Any) -> Any:
    """Return a result without what only the service can read."""
    if isinstance(found, list):
        return [_plain(each) for each in cast("list[Any]", found)]
    if isinstance(found, Mapping):
        items = cast("Mapping[str, Any]", found).items()
        return {name: _plain(value) for name, value in items if not name.startswith("encrypted_")}
    return found
