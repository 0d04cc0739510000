"""Messages of OpenAI's APIs with images, files and recordings, as messages of axil.

Nothing is fetched: an address is given to the model as it is. An upload that is named by its id
is attached to the run; a part names it by its path there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil_serve.access import Caller
from axil_serve.errors import BadRequest
from axil_serve.files import ATTACHMENTS
from axil_serve.service import RunService

_TEXTS: Final = ("text", "input_text", "output_text")
_IMAGES: Final = ("image_url", "input_image")
_FILES: Final = ("file", "input_file")


async def given_messages(
    service: RunService, caller: Caller, messages: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return messages of a request as axil has them, and the ids of the uploads that they name.

    Raises: BadRequest (AX966): a part is not served; NotFound (AX965): there is no such upload.
    """
    given: list[dict[str, Any]] = []
    files: dict[str, None] = {}
    for message in messages:
        role: Any = message["role"]
        content: Any = message.get("content")
        if isinstance(content, list):
            parts = [_part(each) for each in cast("list[Any]", content)]
            for part in parts:
                if file_id := part.pop("file_id", ""):
                    upload = await service.find_upload(caller, file_id)
                    part["path"] = f"{ATTACHMENTS}/{upload.name}"
                    part["media_type"] = upload.media_type
                    files[file_id] = None
            content = parts
        given.append({"role": "system" if role == "developer" else role, "content": content})
    return given, list(files)


def _part(given: Any) -> dict[str, Any]:
    """Return a part of a content. Raises: BadRequest (AX966): it is not served.

    >>> _part({"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}})
    {'type': 'image', 'data': 'eA==', 'media_type': 'image/png'}
    >>> _part({"type": "input_file", "file_id": "f"})
    {'type': 'file', 'file_id': 'f'}
    """
    part = cast("dict[str, Any]", given) if isinstance(given, dict) else {"type": "none"}
    kind: Any = part.get("type")
    inner: Any = part.get(kind) if isinstance(kind, str) else None
    body = {**part, **cast("dict[str, Any]", inner)} if isinstance(inner, dict) else part
    if kind in _TEXTS and isinstance(body.get("text"), str):
        return {"type": "text", "text": body["text"]}
    if kind == "input_audio":
        return {
            "type": "audio",
            "data": _text_of(body, "data"),
            "media_type": f"audio/{_text_of(body, 'format')}",
        }
    if kind not in (*_IMAGES, *_FILES):
        message = f'a part of the type "{kind!s:.100}" is not served.'
        hint = "Send texts, images, files and recordings."
        raise BadRequest("AX966", message, hint, "messages")
    made: dict[str, Any] = {"type": "image" if kind in _IMAGES else "file"}
    names = ("url", "image_url", "file_url", "file_data")
    address = next((body[n] for n in names if isinstance(body.get(n), str)), "")
    if isinstance(body.get("file_id"), str):
        made["file_id"] = body["file_id"]
    elif address.startswith("data:"):
        head, _, made["data"] = address.partition(",")
        if not head.endswith(";base64"):
            raise BadRequest("AX966", "the data of a part is not base64.", "Encode it.", "messages")
        made["media_type"] = head.removeprefix("data:").partition(";")[0]
    elif isinstance(body.get("file_data"), str):
        made["data"] = address
    elif address:
        made["url"] = address
    else:
        message = f'a part of the type "{kind}" has neither an address, nor data, nor a file_id.'
        raise BadRequest("AX966", message, "Send one of them.", "messages")
    if isinstance(body.get("filename"), str):
        made["name"] = body["filename"]
    if body.get("detail") in ("low", "high"):
        made["detail"] = body["detail"]
    return made


def _text_of(body: Mapping[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str):
        raise BadRequest(
            "AX966", f"a recording has no {name}.", "Send data and format.", "messages"
        )
    return found


__all__ = ["given_messages"]
