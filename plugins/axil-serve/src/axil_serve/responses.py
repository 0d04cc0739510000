"""The protocol ``responses``: workflows as models of OpenAI's Responses.

A response is a run, and its id is that of the run. ``previous_response_id`` names the run that the
new one continues: both are in one session. Where that run waits for a person, the input is the
answer, and the response is that of the same run.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil import AxilError
from axil_serve.access import Caller
from axil_serve.app import (
    IDLE_EVENTS,
    SILENCE,
    body_of,
    caller_of,
    event_stream,
    fields_in,
    frame,
    text_in,
)
from axil_serve.chat import refused, run_summary
from axil_serve.conversation import (
    Words,
    answer_open,
    content_text,
    conversation_of,
    input_from,
    last_nodes,
    messages_in,
    output_text,
    stopped,
    takes_messages,
    until_stopped,
)
from axil_serve.errors import BadRequest
from axil_serve.service import OVER, RunService

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
    """Workflows as models of OpenAI's Responses."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes below ``/v1/responses``."""
        responses = _Responses(service)
        one = "/v1/responses/{run_id}"
        return [
            Route("/v1/responses", responses.create, methods=["POST"]),
            Route(one, responses.retrieve, methods=["GET"]),
            Route(f"{one}/cancel", responses.cancel, methods=["POST"]),
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
        try:
            caller, body = caller_of(request), await body_of(request)
            caller.check("look")
            self._service.check_streams(caller)
            asked = await self._asked(caller, body)
            if body.get("stream"):
                return event_stream(self._streamed(caller, asked))
            if body.get("background"):
                run = await self._look(caller, asked.run_id)
            else:
                run = await stopped(self._service, caller, asked.run_id, after=asked.after)
            return JSONResponse(_response(run))
        except AxilError as error:
            return refused(error)

    async def retrieve(self, request: Request) -> Response:
        try:
            if request.query_params.get("stream", "false") != "false":
                message = "the stream of a response that was created before is not repeated."
                raise BadRequest("AX966", message, "Follow GET /v1/runs/RUN_ID/events.")
            caller = caller_of(request)
            run = await self._look(caller, str(request.path_params["run_id"]))
            return JSONResponse(_response(run))
        except AxilError as error:
            return refused(error)

    async def cancel(self, request: Request) -> Response:
        try:
            caller, run_id = caller_of(request), str(request.path_params["run_id"])
            await self._service.cancel(caller, run_id)
            return JSONResponse(_response(await self._look(caller, run_id)))
        except AxilError as error:
            return refused(error)

    async def _look(self, caller: Caller, run_id: str) -> dict[str, Any]:
        return await self._service.result(caller, run_id)

    async def _asked(self, caller: Caller, body: Mapping[str, Any]) -> _Asked:
        """Start a run, or answer the one before."""
        service, name = self._service, text_in(body, "model")
        previous, session = text_in(body, "previous_response_id"), _session(body)
        given: Any = body.get("input")
        messages = list[dict[str, Any]]() if isinstance(given, dict) else _messages(given)
        if previous:
            run = await self._look(caller, previous)
            if run["questions"]:
                if messages:
                    given = content_text(messages[-1].get("content"))
                after = await answer_open(service, caller, previous, given)
                return _Asked(run_id=previous, after=after)
            session = await self._continued(caller, run)
        if messages:
            if takes_messages(service, name):
                earlier = await conversation_of(service, caller, previous) if previous else []
                prompt = text_in(body, "instructions")
                head = [{"role": "system", "content": prompt}] if prompt else []
                messages = [*head, *earlier, *messages]
            given = input_from(service, name, messages)
        run_id = await service.start(
            caller,
            name,
            given,
            session=session or f"responses-{secrets.token_hex(8)}",
            metadata={
                "response": fields_in(body, "metadata"),
                **({"previous_response_id": previous} if previous else {}),
            },
        )
        return _Asked(run_id=run_id)

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

    async def _streamed(self, caller: Caller, asked: _Asked) -> AsyncGenerator[bytes]:
        number, service, run_id = -1, self._service, asked.run_id

        def event(type: str, **data: Any) -> bytes:
            nonlocal number
            number += 1
            type = f"response.{type}"
            return frame(type, {"type": type, "sequence_number": number, **data})

        run = await self._look(caller, run_id)
        begun = _response(run, is_begun=True)
        yield event("created", response=begun)
        yield event("in_progress", response=begun)
        words, whole, silent = Words(last_nodes(service, run["workflow"])), "", 0
        part = {"item_id": f"msg_{run_id}", "output_index": 0, "content_index": 0}

        def opened() -> Iterable[bytes]:
            item = {**_message(run_id, ""), "status": "in_progress", "content": list[Any]()}
            yield event("output_item.added", output_index=0, item=item)
            yield event("content_part.added", **part, part=_text(""))

        def delta(text: str) -> bytes:
            return event("output_text.delta", **part, delta=text, logprobs=[])

        async with aclosing(until_stopped(service, caller, run_id, after=asked.after)) as events:
            async for each in events:
                if not each.kind and (silent := silent + 1) % IDLE_EVENTS == 0:
                    yield SILENCE
                if text := words.add(each):
                    if not whole:
                        for one in opened():
                            yield one
                    whole += text
                    yield delta(text)
        run = await self._look(caller, run_id)
        response = _response(run)
        if response["status"] != "completed":  # failed, or cancelled, which has no event
            is_over = run["status"] in OVER
            error = _error(run) if is_over else None  # clients read it with the event
            status = "failed" if is_over else "incomplete"
            yield event(status, response={**response, "error": error})
            return
        if not whole:
            for one in opened():
                yield one
        if rest := words.rest(output_text(run)):
            whole += rest
            yield delta(rest)
        item = _message(run_id, whole)
        yield event("output_text.done", **part, text=whole, logprobs=[])
        yield event("content_part.done", **part, part=_text(whole))
        yield event("output_item.done", output_index=0, item=item)
        yield event("completed", response={**response, "output": [item]})


def _response(run: Mapping[str, Any], *, is_begun: bool = False) -> dict[str, Any]:
    """Return a run as a response. ``is_begun``: as it is when its stream begins."""
    status = "in_progress" if is_begun else _STATUSES.get(run["status"], "in_progress")
    if run["questions"] and not is_begun:
        status = "completed"  # of this response; the next one answers
    kept: Mapping[str, Any] = run["metadata"]
    return {
        "id": run["run_id"],
        "object": "response",
        "created_at": run["begun"],
        "status": status,
        "error": _error(run) if status == "failed" else None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": kept.get("response", {}),
        "model": run["workflow"],
        "output": [_message(run["run_id"], output_text(run))] if status == "completed" else [],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "conversation": {"id": run["session"]} if run["session"] else None,
        "previous_response_id": kept.get("previous_response_id"),
        "usage": _usage(run) if status == "completed" else None,
        "axil": run_summary(run),
    }


def _error(run: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": "server_error", "message": run["error"] or run["status"]}


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
    messages = messages_in({"messages": given})
    roles = {"developer": "system"}
    return [{**each, "role": roles.get(each["role"], each["role"])} for each in messages]


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
