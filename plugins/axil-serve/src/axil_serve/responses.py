"""The protocol ``responses``: workflows as models of OpenAI's Responses.

A response is a run, and its id is that of the run. ``previous_response_id`` names the run that the
new one continues: both are in one session. Where that run waits for a person, the input is the
answer, and the response is that of the same run. A conversation is a session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil_serve.access import Caller
from axil_serve.chat import run_summary
from axil_serve.conversation import (
    Words,
    answer_open,
    content_text,
    conversation_of,
    earlier_messages,
    input_from,
    last_nodes,
    messages_in,
    stopped,
    takes_messages,
    until_stopped,
)
from axil_serve.conversations import Conversations, items_of, received
from axil_serve.errors import BadRequest
from axil_serve.events import event_stream, frame, frames_of
from axil_serve.parameters import RESPONSES, TEXT, check_parameters, kept_of
from axil_serve.parts import given_messages
from axil_serve.replies import ReplyFormat, reply_format
from axil_serve.request import body_of, caller_of, fields_in, page_of, text_in
from axil_serve.service import OVER, RunService
from axil_serve.streams import StreamEvent, StreamPermit

_STATUSES: Final = {
    "queued": "queued",
    "done": "completed",
    "failed": "failed",
    "limited": "failed",
    "parked": "failed",
    "cancelled": "cancelled",
}
"""From the status of a run to that of its response; of all others ``in_progress``."""


class Responses:
    """Workflows as models of OpenAI's Responses, and sessions as its conversations."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes below ``/v1/responses`` and ``/v1/conversations``."""
        responses = _Responses(service)
        one = "/v1/responses/{run_id}"
        return [
            Route("/v1/responses", responses.create, methods=["POST"]),
            Route(one, responses.one, methods=["GET", "DELETE"]),
            Route(f"{one}/cancel", responses.cancel, methods=["POST"]),
            Route(f"{one}/input_items", responses.input_items, methods=["GET"]),
            *Conversations(service).routes(),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The run that a request asks for, and the place where its events begin."""

    run_id: str
    after: str = ""


class _Responses:
    def __init__(self, service: RunService) -> None:
        self._service = service

    async def create(self, request: Request) -> Response:
        caller, body = caller_of(request), await body_of(request)
        caller.check("look")
        check_parameters(body, RESPONSES)
        check_parameters(fields_in(body, "text"), TEXT, "text.")
        await asyncio.to_thread(_format_of, fields_in(body, "text"))
        with self._service.permit(caller) as permit:
            asked = await self._asked(caller, body)
            if body.get("stream"):
                return event_stream(self._streamed(caller, asked, permit), permit, _failed)
            if not body.get("background"):
                given: dict[str, Any] = {"after": asked.after, "permit": permit}
                await stopped(self._service, caller, asked.run_id, **given)
        return await self._answered(caller, asked.run_id)

    async def one(self, request: Request) -> Response:
        return await (self.delete if request.method == "DELETE" else self.retrieve)(request)

    async def retrieve(self, request: Request) -> Response:
        if request.query_params.get("stream", "false") != "false":
            message = "the stream of a response that was created before is not repeated."
            raise BadRequest("AX966", message, "Follow GET /v1/runs/RUN_ID/events.", "stream")
        _check_includes(request)
        return await self._answered(caller_of(request), _run(request))

    async def cancel(self, request: Request) -> Response:
        caller, run_id = caller_of(request), _run(request)
        await self._service.cancel(caller, run_id)
        return await self._answered(caller, run_id)

    async def delete(self, request: Request) -> Response:
        run_id = _run(request)
        await self._service.remove(caller_of(request), run_id)
        return JSONResponse({"id": run_id, "object": "response", "deleted": True})

    async def input_items(self, request: Request) -> Response:
        """Answer with the messages that the run of a response received."""
        _check_includes(request)
        run = await self._look(caller_of(request), _run(request))
        items = items_of(run["run_id"], received(run["input"]))
        return JSONResponse(page_of(items, request.query_params))

    async def _answered(self, caller: Caller, run_id: str) -> Response:
        run = await self._look(caller, run_id)
        return JSONResponse(_response(run, *await self._reply(run)))

    async def _reply(self, run: Mapping[str, Any]) -> tuple[str, str]:
        """Return the text of a response, and what is wrong with it, by its kept format."""
        form = await asyncio.to_thread(_format_of, run["metadata"].get("text", {}))
        return await form.reply(run)

    async def _look(self, caller: Caller, run_id: str) -> dict[str, Any]:
        return await self._service.result(caller, run_id)

    async def _asked(self, caller: Caller, body: Mapping[str, Any]) -> _Asked:
        """Start a run, or answer the one before."""
        service, name = self._service, text_in(body, "model")
        previous, session = text_in(body, "previous_response_id"), _session(body)
        given: Any = body.get("input")
        messages, files = list[dict[str, Any]](), list[str]()
        if not isinstance(given, dict):
            messages, files = await given_messages(service, caller, _messages(given))
        if previous:
            run = await self._look(caller, previous)
            if run["questions"]:
                return await self._answer(caller, previous, messages, given)
            session = await self._continued(caller, run)
        if session and not previous and (asking := await self._asking(caller, session)):
            return await self._answer(caller, asking, messages, given)
        prompt = text_in(body, "instructions")
        if prompt and not (messages and takes_messages(service, name)):
            message = "the workflow takes no messages, and so no instructions."
            raise BadRequest("AX966", message, "Leave them out.", "instructions")
        if messages:
            if takes_messages(service, name):
                earlier = list[dict[str, Any]]()
                if previous:
                    earlier = await conversation_of(service, caller, previous)
                elif session:
                    earlier = await earlier_messages(service, caller, session)
                head = [{"role": "system", "content": prompt}] if prompt else []
                messages = [*head, *earlier, *messages]
            given = input_from(service, name, messages)
        own: dict[str, Any] = {
            "session": session or f"responses-{secrets.token_hex(8)}",
            "files": files,
            "metadata": {
                "response": fields_in(body, "metadata"),
                **({"previous_response_id": previous} if previous else {}),
                **({"text": body["text"]} if body.get("text") else {}),
                **kept_of(body),
            },
        }
        return _Asked(run_id=await service.start(caller, name, given, **own))

    async def _answer(
        self, caller: Caller, run_id: str, messages: Sequence[Mapping[str, Any]], given: Any
    ) -> _Asked:
        """Answer the run with the last message, or with data."""
        answer: Any = content_text(messages[-1].get("content")) if messages else given
        after = await answer_open(self._service, caller, run_id, answer)
        return _Asked(run_id=run_id, after=after)

    async def _asking(self, caller: Caller, session: str) -> str:
        """Return the run of a session that waits for a person; empty: none does."""
        thread = await self._service.read(self._service.thread, caller, session)
        for run_id in reversed(thread):
            return run_id if (await self._look(caller, run_id))["questions"] else ""
        return ""

    async def _continued(self, caller: Caller, run: Mapping[str, Any]) -> str:
        """Return the session of a run. Raises: BadRequest (AX966): it cannot be continued there."""
        thread = await self._service.read(self._service.thread, caller, run["session"])
        if run["run_id"] not in thread:
            message = f'the run "{run["run_id"]}" is in no session of this caller.'
            raise BadRequest("AX966", message, "Start a conversation without it.")
        for later in thread[thread.index(run["run_id"]) + 1 :]:
            if (await self._look(caller, later))["status"] == "done":
                message = f'the conversation continued with "{later}".'
                hint = "Continue from the last response; or fork a run to branch off."
                raise BadRequest("AX966", message, hint)
        return str(run["session"])

    async def _streamed(
        self, caller: Caller, asked: _Asked, permit: StreamPermit
    ) -> AsyncGenerator[bytes]:
        number, service, run_id = -1, self._service, asked.run_id

        def event(type: str, **data: Any) -> bytes:
            nonlocal number
            number += 1
            type = f"response.{type}"
            return frame(type, {"type": type, "sequence_number": number, **data})

        run = await self._look(caller, run_id)
        begun = _response(run, "", is_begun=True)
        yield event("created", response=begun)
        yield event("in_progress", response=begun)
        form = _format_of(run["metadata"].get("text", {}))
        nodes = frozenset[str]() if form.is_json else last_nodes(service, run["workflow"])
        words, whole = Words(nodes), ""
        part = {"item_id": f"msg_{run_id}", "output_index": 0, "content_index": 0}

        def item(status: str, *content: dict[str, Any]) -> dict[str, Any]:
            own = {"id": part["item_id"], "status": status, "content": list(content)}
            return {**_message(run_id, ""), **own}

        def opened() -> Iterable[bytes]:
            added = item("in_progress")
            yield event("output_item.added", output_index=part["output_index"], item=added)
            yield event("content_part.added", **part, part=_text(""))

        def closed(status: str) -> Iterable[bytes]:
            yield event("output_text.done", **part, text=whole, logprobs=[])
            yield event("content_part.done", **part, part=_text(whole))
            done = item(status, _text(whole))
            yield event("output_item.done", output_index=part["output_index"], item=done)

        def delta(text: str) -> bytes:
            return event("output_text.delta", **part, delta=text, logprobs=[])

        def shown(happened: StreamEvent) -> Iterable[bytes]:
            nonlocal whole
            if text := words.add(happened):
                if not whole:
                    yield from opened()
                whole += text
                yield delta(text)

        stream = until_stopped(service, caller, run_id, after=asked.after, permit=permit)
        async with aclosing(frames_of(stream, shown)) as frames:
            async for each in frames:
                yield each
        run = await self._look(caller, run_id)
        text, fault = await self._reply(run)
        response = _response(run, text, fault)
        if response["status"] != "completed":  # failed, or cancelled, which has no event
            is_over = run["status"] in OVER
            error = _error(run, fault) if is_over else None  # clients read it with the event
            status = "failed" if is_over else "incomplete"
            yield event(status, response={**response, "error": error})
            return
        rest = words.rest(text)
        if is_again := words.is_superseded(text):  # these are no part of what is said
            for one in closed("incomplete"):
                yield one
            part |= {"item_id": f"msg_{run_id}_2", "output_index": 1}
            whole, rest = "", text
        if is_again or not whole:
            for one in opened():
                yield one
        if rest:
            whole += rest
            yield delta(rest)
        for one in closed("completed"):
            yield one
        output = [item("completed", _text(whole))]
        yield event("completed", response={**response, "output": output})


def _response(
    run: Mapping[str, Any], text: str, fault: str = "", *, is_begun: bool = False
) -> dict[str, Any]:
    """Return a run as a response.

    Args:
        text, fault: its output, and what is wrong with that.
        is_begun: as it is when its stream begins.
    """
    status = "in_progress" if is_begun else _STATUSES.get(run["status"], "in_progress")
    if run["questions"] and not is_begun:
        status = "completed"  # of this response; the next one answers
    status = "failed" if fault else status
    kept: Mapping[str, Any] = run["metadata"]
    return {
        "id": run["run_id"],
        "object": "response",
        "created_at": run["begun"],
        "status": status,
        "error": _error(run, fault) if status == "failed" else None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": kept.get("response", {}),
        "model": run["workflow"],
        "output": [_message(run["run_id"], text)] if status == "completed" else [],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "text": kept.get("text") or {"format": {"type": "text"}},
        "top_p": None,
        "conversation": {"id": run["session"]} if run["session"] else None,
        "previous_response_id": kept.get("previous_response_id"),
        "usage": _usage(run) if status == "completed" else None,
        "axil": run_summary(run),
    }


def _failed(data: Mapping[str, Any]) -> bytes:
    """Return the last event of a stream that fails."""
    error = data["error"]
    shown = {"code": error["code"], "message": error["message"], "param": None}
    return frame("error", {"type": "error", "sequence_number": 0, **shown})


def _error(run: Mapping[str, Any], fault: str = "") -> dict[str, Any]:
    return {"code": "server_error", "message": fault or run["error"] or run["status"]}


def _format_of(text: Mapping[str, Any]) -> ReplyFormat:
    return reply_format(text.get("format"), "text.format")


def _run(request: Request) -> str:
    return str(request.path_params["run_id"])


def _check_includes(request: Request) -> None:
    """Raises: BadRequest (AX966): the query wants further data of items."""
    if any(name in request.query_params for name in ("include", "include[]")):
        raise BadRequest("AX966", "nothing further is included.", "Leave it out.", "include")


def _session(body: Mapping[str, Any]) -> str:
    """Return the session that a request names: its conversation."""
    found: Any = body.get("conversation")
    if isinstance(found, dict):
        found = cast("dict[str, Any]", found).get("id")
    if not isinstance(found, (str, type(None))):
        raise BadRequest("AX966", "conversation is not an id.", 'Send {"id": "…"}, or a text.')
    if found and body.get("previous_response_id"):
        message = "a request names a conversation and a previous response."
        raise BadRequest("AX966", message, "Send one of the two.")
    return found or ""


def _messages(given: Any) -> list[dict[str, Any]]:
    """Return the messages of an input. Raises: BadRequest (AX966)."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return messages_in({"messages": given})


def _message(run_id: str, text: str) -> dict[str, Any]:
    return {
        "id": f"msg_{run_id}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [_text(text)],
    }


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(run: Mapping[str, Any]) -> dict[str, Any]:
    tokens: Mapping[str, Any] = run["used"].get("tokens", {})
    given, made = int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0))
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


__all__ = ["Responses"]
