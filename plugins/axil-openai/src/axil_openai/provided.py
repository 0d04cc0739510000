"""Tools of OpenAI's own in the Responses API: as they are asked for, called, answered and shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from axil_models import (
    ALLOWED,
    ToolCall,
    content_text,
    is_content,
    made_image,
    read_arguments,
    token_of,
    used_tool,
)
from axil_openai.wire import data_url


def _search(options: Any) -> Mapping[str, Any]:
    filters = {
        name: list(getattr(options, name))
        for name in ("allowed_domains", "blocked_domains")
        if getattr(options, name)
    }
    return {"type": "web_search", **({"filters": filters} if filters else {})}


def _server(options: Any) -> Mapping[str, Any]:
    token = token_of(options)
    return {
        "type": "mcp",
        "server_label": options.name,
        "server_url": options.url,
        "require_approval": options.approve,
        **({"allowed_tools": list(options.allow)} if options.allow else {}),
        **({"authorization": token} if token else {}),
    }


PROVIDED: Final[Mapping[str, Callable[[Any], Mapping[str, Any]]]] = {
    "web_search": _search,
    "code_interpreter": lambda options: {
        "type": "code_interpreter",
        "container": {"type": "auto"},
    },
    "file_search": lambda options: {
        "type": "file_search",
        "vector_store_ids": list(options.stores),
    },
    "image_generation": lambda options: {"type": "image_generation"},
    "computer": lambda options: {"type": "computer"},
    "mcp": _server,
}
"""Descriptions of tools, by kind."""
SHOWN: Final = {
    "web_search": "web_search_call.action.sources",
    "code_interpreter": "code_interpreter_call.outputs",
    "file_search": "file_search_call.results",
}
"""Details that the service gives only where it is asked for them."""
_NO_PICTURE: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel, where an action gave none: the service insists on one."""


def provider_call(item: Any) -> ToolCall | None:
    """Return an item that has to be answered here as a call; None: it is none."""
    if item.type == "computer_call":
        data = item.model_dump(mode="json", exclude_none=True)
        actions = data.get("actions") or [data["action"]]
        checks = [
            str(each.get("message") or "") for each in data.get("pending_safety_checks") or ()
        ]
        about = {"warnings": checks} if checks else {}
        return ToolCall(id=item.call_id, name="computer", arguments={"actions": actions, **about})
    if item.type == "mcp_approval_request":
        given, fault = read_arguments(item.arguments)
        arguments = {"tool": item.name, "arguments": given}
        return ToolCall(id=item.id, name=item.server_label, arguments=arguments, fault=fault)
    return None


def provider_calls(kept: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return the items of a reply that are answered in a form of their own, by the call's id."""
    return {
        str(item["call_id" if item["type"] == "computer_call" else "id"]): item
        for item in kept
        if item.get("type") in ("computer_call", "mcp_approval_request")
    }


def answered(item: Mapping[str, Any], content: Any) -> list[dict[str, Any]]:
    """Return the answer to such an item, of the result of its call."""
    if item["type"] == "mcp_approval_request":
        reply = {"approval_request_id": item["id"], "approve": content == ALLOWED}
        return [{"type": "mcp_approval_response", **reply}]
    parts = cast("Sequence[Mapping[str, Any]]", content if is_content(content) else ())
    pictures = [part for part in parts if part["type"] == "image"]
    shown = pictures[-1].get("url") or data_url(pictures[-1]) if pictures else _NO_PICTURE
    output: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": item["call_id"],
        "output": {"type": "computer_screenshot", "image_url": shown},
    }
    if checks := item.get("pending_safety_checks"):
        output["acknowledged_safety_checks"] = checks
    texts = [content] if isinstance(content, str) else [p["text"] for p in parts if "text" in p]
    said = [{"role": "user", "content": text} for text in texts if not pictures and text]
    return [output, *said]


def used_by(item: Any) -> Iterator[dict[str, Any]]:
    """Yield what shows the use of a provider's tool, and pictures that code made."""
    if item.type == "web_search_call":
        action = item.action.model_dump(mode="json", exclude_none=True) if item.action else None
        yield used_tool("web_search", id=item.id, status=item.status, given=action)
    elif item.type == "file_search_call":
        found = [
            {"file": each.filename, "score": each.score, "text": each.text}
            for each in item.results or ()
        ]
        given = {"queries": list(item.queries or ())}
        yield used_tool("file_search", id=item.id, status=item.status, given=given, found=found)
    elif item.type == "code_interpreter_call":
        outputs = [each.model_dump(mode="json", exclude_none=True) for each in item.outputs or ()]
        logs = [each["logs"] for each in outputs if each.get("type") == "logs"]
        given, found = {"code": item.code}, "\n".join(logs)
        yield used_tool(
            "code_interpreter", id=item.id, status=item.status, given=given, found=found
        )
        for each in outputs:
            if each.get("type") == "image":
                yield made_image(each["url"], "image/png")
    elif item.type == "mcp_call":
        arguments, _ = read_arguments(item.arguments)
        given = {"server": item.server_label, "tool": item.name, "arguments": arguments}
        error = content_text(item.error) if item.error else ""
        found = f"Error: {error}" if error else item.output
        yield used_tool("mcp", id=item.id, given=given, found=found)
    elif item.type == "mcp_list_tools" and item.error:
        given = {"server": item.server_label}
        yield used_tool("mcp", id=item.id, given=given, found=f"Error: {item.error}")
