"""Conversations of OpenAI's Responses: the sessions of a caller, as lists of messages.

A conversation is there as soon as it is named, and has what its runs received and gave. Nothing
else is kept of it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil_serve.access import Caller
from axil_serve.conversation import only_field, output_text
from axil_serve.errors import BadRequest, NotFound
from axil_serve.request import body_of, caller_of, page_of
from axil_serve.service import OVER, RunService


class Conversations:
    """The routes below ``/v1/conversations``."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    def routes(self) -> Iterable[BaseRoute]:
        """Return the routes."""
        one = "/v1/conversations/{id}"
        return [
            Route("/v1/conversations", self.create, methods=["POST"]),
            Route(one, self.one, methods=["GET", "DELETE"]),
            Route(f"{one}/items", self.items, methods=["GET"]),
            Route(f"{one}/items/{{item_id}}", self.item, methods=["GET"]),
        ]

    async def create(self, request: Request) -> Response:
        caller_of(request).check("run")
        body = await body_of(request, {"items", "metadata"})
        for name in ("items", "metadata"):
            if body.get(name):
                message = f"a conversation begins without {name}: it has what its runs receive."
                hint = "Send the first messages as the input of a response, with its metadata."
                raise BadRequest("AX966", message, hint, name)
        return JSONResponse(_conversation(f"conv_{secrets.token_hex(16)}", int(time.time())))

    async def one(self, request: Request) -> Response:
        return await (self.delete if request.method == "DELETE" else self.retrieve)(request)

    async def retrieve(self, request: Request) -> Response:
        runs = await self._runs(caller_of(request), _id(request))
        return JSONResponse(_conversation(_id(request), int(runs[0]["begun"]) if runs else 0))

    async def delete(self, request: Request) -> Response:
        """Remove the runs of a conversation; if one has not ended, none."""
        caller, id = caller_of(request), _id(request)
        caller.check("run")
        runs = await self._runs(caller, id)
        # one that has not ended is refused, and those before it are left
        for run in sorted(runs, key=lambda run: run["status"] in OVER):
            await self._service.remove(caller, run["run_id"])
        return JSONResponse({"id": id, "object": "conversation.deleted", "deleted": True})

    async def items(self, request: Request) -> Response:
        found = await self._items(caller_of(request), _id(request))
        return JSONResponse(page_of(found, request.query_params))

    async def item(self, request: Request) -> Response:
        wanted = request.path_params["item_id"]
        for each in await self._items(caller_of(request), _id(request)):
            if each["id"] == wanted:
                return JSONResponse(each)
        message = f'the conversation has no item "{wanted:.100}".'
        raise NotFound("AX965", message, "List its items with GET …/items.")

    async def _runs(self, caller: Caller, session: str) -> list[dict[str, Any]]:
        caller.check("look")
        thread = await self._service.read(self._service.thread, caller, session)
        return [await self._service.result(caller, run_id) for run_id in thread]

    async def _items(self, caller: Caller, session: str) -> list[dict[str, Any]]:
        said, items = list[dict[str, Any]](), list[dict[str, Any]]()
        for run in await self._runs(caller, session):
            given, run_id = received(run["input"]), run["run_id"]
            if given[: len(said)] == said:  # it received the messages before, too
                given = given[len(said) :]
            if run["questions"] or run["status"] == "done":
                given.append({"role": "assistant", "content": output_text(run)})
            said += given
            items += items_of(run_id, given)
        return items


def received(given: Any) -> list[dict[str, Any]]:
    """Return the input of a run as messages.

    >>> received({"messages": [{"role": "user", "content": "a"}]})
    [{'role': 'user', 'content': 'a'}]
    >>> received("a"), received({"n": 1})
    ([{'role': 'user', 'content': 'a'}], [{'role': 'user', 'content': '1'}])
    """
    if given is None:
        return []
    found: Any = given
    if isinstance(given, dict):
        found = cast("dict[str, Any]", given).get("messages")
    if isinstance(found, list):
        listed = cast("list[Any]", found)
        if all(isinstance(each, dict) and "role" in each for each in listed):
            return [
                {"role": str(each["role"]), "content": each.get("content") or ""} for each in listed
            ]
    given = only_field(given)
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return [{"role": "user", "content": text}]


def items_of(run_id: str, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages of a run as items of Responses."""
    return [
        {
            "id": f"msg_{run_id}_{number}",
            "type": "message",
            "role": message["role"],
            "status": "completed",
            "content": _parts(message),
        }
        for number, message in enumerate(messages)
    ]


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content: Any = message["content"]
    listed = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [_part(message["role"], each) for each in listed]


def _part(role: str, part: Any) -> dict[str, Any]:
    body = cast("dict[str, Any]", part) if isinstance(part, dict) else {"text": part}
    kind, named = body.get("type"), {"file_url": body.get("url"), "filename": body.get("name")}
    data, media_type = body.get("data"), body.get("media_type", "application/octet-stream")
    address = f"data:{media_type};base64,{data}" if data else None
    if kind == "image":
        shown = body.get("url") or address
        return {"type": "input_image", "image_url": shown, "detail": body.get("detail", "auto")}
    if kind in ("file", "audio"):
        return {"type": "input_file", "file_data": address, **named}
    found: Any = body.get("text")
    text = found if isinstance(found, str) else json.dumps(part, ensure_ascii=False)
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


def _conversation(id: str, created: int) -> dict[str, Any]:
    return {"id": id, "object": "conversation", "created_at": created, "metadata": {}}


def _id(request: Request) -> str:
    return str(request.path_params["id"])


__all__ = ["Conversations", "items_of", "received"]
