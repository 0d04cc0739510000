"""Tools of Google's own: as they are asked for, and as their use is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from axil_models import Part, ToolError, ToolSpec, sent_as, token_of, used_tool

KINDS: Final = frozenset(
    {"web_search", "code_interpreter", "file_search", "image_generation", "computer", "mcp"}
)


def _search(options: Any) -> Mapping[str, Any]:
    if options.allowed_domains or options.blocked_domains or options.max_uses:
        message = "the service's web search has no domains to choose, and no max_uses."
        raise ToolError("AX984", message, "Leave them out, or search with another tool.")
    return {"google_search": {}}


def _server(options: Any) -> Mapping[str, Any]:
    if options.approve != "never" or options.allow:
        message = f'the service asks nobody before it calls "{options.name}", and calls any tool.'
        raise ToolError("AX984", message, "Set approve: never without allow, or use axil-mcp.")
    transport: dict[str, Any] = {"url": options.url}
    if token := token_of(options):
        transport["headers"] = {"Authorization": f"Bearer {token}"}
    return {"mcp_servers": [{"name": options.name, "streamable_http_transport": transport}]}


_TABLE: Final[Mapping[str, Callable[[Any], Mapping[str, Any]]]] = {
    "web_search": _search,
    "code_interpreter": lambda options: {"code_execution": {}},
    "file_search": lambda options: {
        "file_search": {"file_search_store_names": list(options.stores)}
    },
    "computer": lambda options: {"computer_use": {"environment": "ENVIRONMENT_BROWSER"}},
    "mcp": _server,
}
_GRID: Final = 1000
"""The service says where on a screen by numbers below it, whatever the size."""
_ACROSS: Final = ("x", "destination_x")
_DOWN: Final = ("y", "destination_y")


def acted(name: str, given: Mapping[str, Any], options: Any) -> dict[str, Any]:
    """Return an action on a computer as the arguments of the tool: with pixels, and ``warnings``
    where the service wants a person to look.
    """
    arguments = dict(given)
    safety: Any = arguments.pop("safety_decision", None)
    for places, size in ((_ACROSS, options.width), (_DOWN, options.height)):
        for place in places:
            if isinstance(arguments.get(place), (int, float)):
                arguments[place] = round(arguments[place] * size / _GRID)
    if isinstance(safety, Mapping):
        why = cast("Mapping[str, Any]", safety).get("explanation")
        arguments["warnings"] = [str(why or "The service asks for a confirmation.")]
    return {"action": name, **arguments}


def seen(arguments: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """Return what came of an action: the text, which is the page's address, and the picture."""
    text = "\n".join(str(part["text"]) for part in parts if part["type"] == "text")
    response: dict[str, Any] = {"url": text}
    if "warnings" in arguments:
        response["safety_acknowledgement"] = "true"
    pictures = [
        {"inline_data": {"mime_type": part.get("media_type"), "data": part["data"]}}
        for part in parts
        if part["type"] == "image" and part.get("data")
    ]
    if not pictures:  # it was refused, or failed
        response = {"url": "", "error": text}
    named = {"name": arguments["action"], "response": response}
    return {**named, "parts": pictures} if pictures else named


def provided(specs: Sequence[ToolSpec]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the tools of the service, and settings that take the place of one: the service makes
    images as a modality of its reply.

    Raises: ToolError (AX984): the service cannot do what a tool's settings say.
    """
    more: dict[str, Any] = {}
    tools: list[dict[str, Any]] = []
    for spec in specs:
        if spec.kind == "image_generation":
            more = {"response_modalities": ["TEXT", "IMAGE"], **spec.options.settings}
        else:
            tools.append(sent_as(spec, _TABLE))
    return tools, more


def used_by(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts that show which code the service ran, with what it gave."""
    found: list[dict[str, Any]] = []
    for part in parts:
        code, result = part.get("executable_code"), part.get("code_execution_result")
        if code is not None:
            found.append(used_tool("code_interpreter", given={"code": code.get("code")}))
        elif result is not None:
            about = {"status": result.get("outcome"), "found": result.get("output")}
            found.append(used_tool("code_interpreter", **about))
    return found
