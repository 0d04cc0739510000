"""The result of a tool as a model reads it: text, or the parts of a message's content.

Bounded, and plain data.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from axil.plugin import without_secrets
from axil_mcp.config import Offer
from axil_mcp.texts import clean

_SUBTYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")
_LARGEST_IMAGE: Final = 4_000_000
"""Characters of base64."""


def content_of(result: Any, offer: Offer) -> str | list[dict[str, Any]]:
    """Return a result as text; as parts where there are images and they are wanted. ``result``: the
    SDK's.

    Parts are ``{"type": "text", "text"}`` and ``{"type": "image" | "audio", "media_type",
    "data"}``, the data in base64. A secret that the server says back is not shown to the model.
    """
    parts = parts_of(result)
    shown = [
        part
        if part["type"] == "text"
        or (offer.images and _is_of(part["type"], part["media_type"]) and _is_sound(part["data"]))
        else _named(part)
        for part in parts
    ]
    left = offer.max_result_chars
    bounded: list[dict[str, Any]] = []
    for part in shown:
        if part["type"] == "text":
            if left <= 0:
                continue
            part = {"type": "text", "text": clean(without_secrets(part["text"]), left)}
            left -= len(part["text"])
        bounded.append(part)
    if all(part["type"] == "text" for part in bounded):
        return "\n".join(part["text"] for part in bounded)
    return bounded


def parts_of(result: Any) -> list[dict[str, Any]]:
    """Return all of a result as parts.

    What it says twice, as text and as structured content, is there once.
    """
    parts = [_part(block) for block in result.content]
    structured = result.structured_content
    if structured is None:
        return parts
    texts = [part["text"] for part in parts if part["type"] == "text"]
    wrapped = (
        cast("Mapping[str, Any]", structured)
        if isinstance(structured, Mapping)
        else dict[str, Any]()
    )
    if texts and len(wrapped) == 1:  # how servers wrap what is no object
        (value,) = wrapped.values()
        several = (
            [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else [value]
        )
        if several == texts or any(_is(text, value) for text in texts):
            return parts
    for text in texts:
        if _is(text, structured):
            return parts
    rest = [
        part
        for part in parts
        if part["type"] != "text" or not any(_is(part["text"], value) for value in wrapped.values())
    ]
    return [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}, *rest]


def _is(text: str, value: Any) -> bool:
    """Return whether a text states a value: literally, or as JSON."""
    if isinstance(value, str):
        return text == value
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def _part(block: Any) -> dict[str, Any]:
    kind = block.type
    if kind == "text":
        return {"type": "text", "text": block.text}
    if kind in ("image", "audio"):
        return {"type": kind, "media_type": block.mime_type, "data": block.data}
    if kind == "resource":
        found = block.resource
        if getattr(found, "text", None) is not None:
            return {"type": "text", "text": f"[{found.uri}]\n{found.text}"}
        mime = found.mime_type or "application/octet-stream"
        if mime.startswith("image/"):
            return {"type": "image", "media_type": mime, "data": found.blob}
        return {"type": "text", "text": f"[{found.uri}: {mime}, {_bytes(found.blob)} bytes]"}
    if kind == "resource_link":
        message = " ".join(filter(None, (block.name, block.description)))
        return {"type": "text", "text": f"[{block.uri}] {message}".rstrip()}
    return {"type": "text", "text": f"[{kind}]"}


def shown_part(media_type: str, data: str) -> dict[str, Any] | None:
    """Return the base64 content of a resource as a content part; None: models are not shown such
    content, or not so much of it.
    """
    kind = "file" if media_type == "application/pdf" else media_type.partition("/")[0]
    is_shown = kind == "file" or (kind in ("image", "audio") and _is_of(kind, media_type))
    return (
        {"type": kind, "media_type": media_type, "data": data}
        if is_shown and _is_sound(data)
        else None
    )


def _is_of(kind: str, media_type: str) -> bool:
    """Return whether a text is a media type, and one of images or of recordings."""
    return _SUBTYPE.fullmatch(media_type.removeprefix(f"{kind}/")) is not None


def _is_sound(data: str) -> bool:
    """Return whether a text is base64 of an allowed size: content that an adapter could not send
    must not end the run.
    """
    if len(data) > _LARGEST_IMAGE:
        return False
    try:
        return bool(base64.b64decode(data, validate=True))
    except ValueError:
        return False


def _named(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "text",
        "text": f"[{part['type']}: {part['media_type']}, {_bytes(part['data'])} bytes]",
    }


def _bytes(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")
