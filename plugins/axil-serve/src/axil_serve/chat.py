"""The protocol ``openai``: workflows as models of OpenAI's Chat Completions.

A model is a workflow, a completion is a run, and its id is that of the run. A run that asks a
person ends its completion with the question; the request that answers has ``metadata.run_id``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil_serve.access import Caller
from axil_serve.conversation import (
    Words,
    answer_open,
    content_text,
    continuing_input,
    find_asking,
    last_nodes,
    messages_in,
    stopped,
    until_stopped,
)
from axil_serve.errors import NotFound, error_data
from axil_serve.events import event_stream, frame, frames_of
from axil_serve.parameters import CHAT, check_parameters, kept_of
from axil_serve.parts import given_messages
from axil_serve.replies import ReplyFormat, reply_format
from axil_serve.request import body_of, caller_of, fields_in, text_in
from axil_serve.service import OVER, RunService
from axil_serve.streams import StreamEvent, StreamPermit


class ChatCompletions:
    """Workflows as models of OpenAI's Chat Completions."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes ``/v1/models`` and ``/v1/chat/completions``."""
        chat = _Chat(service)
        return [
            Route("/v1/models", chat.models, methods=["GET"]),
            Route("/v1/models/{model:path}", chat.model, methods=["GET"]),
            Route("/v1/chat/completions", chat.complete, methods=["POST"]),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The run that a request asks for, the place where its events begin, and the reply's form."""

    caller: Caller
    name: str
    run_id: str
    after: str
    form: ReplyFormat
    permit: StreamPermit


class _Chat:
    def __init__(self, service: RunService) -> None:
        self._service = service

    async def models(self, request: Request) -> Response:
        caller_of(request).check("look")
        models = [_model(name) for name in self._service.workflows]
        return JSONResponse({"object": "list", "data": models})

    async def model(self, request: Request) -> Response:
        caller_of(request).check("look")
        name = str(request.path_params["model"])
        if name not in self._service.workflows:
            message = f'there is no workflow "{name:.100}".'
            raise NotFound("AX965", message, "List the models with GET /v1/models.", "model")
        return JSONResponse(_model(name))

    async def complete(self, request: Request) -> Response:
        caller, body = caller_of(request), await body_of(request)
        caller.check("look")
        check_parameters(body, CHAT)
        where = "response_format"
        form = await asyncio.to_thread(reply_format, body.get(where), where)
        with self._service.permit(caller) as permit:
            asked = await self._asked(caller, body, form, permit)
            if body.get("stream"):
                frames = self._streamed(asked, fields_in(body, "stream_options"))
                return event_stream(frames, permit, partial(frame, ""))
            return await self._whole(asked)

    async def _asked(
        self, caller: Caller, body: dict[str, Any], form: ReplyFormat, permit: StreamPermit
    ) -> _Asked:
        """Start a run, or answer the one that ``metadata`` names."""
        service, name = self._service, text_in(body, "model")
        metadata = fields_in(body, "metadata")
        run_id, after, files = text_in(metadata, "run_id"), "", list[str]()
        if "input" not in body or run_id:
            messages, files = await given_messages(service, caller, messages_in(body))
            body = {**body, "messages": messages}
            if not run_id and name in service.workflows:
                run_id = await service.read(find_asking, service, caller, name, messages)
        if run_id:
            answer = content_text(body["messages"][-1]["content"])
            after = await answer_open(service, caller, run_id, answer)
        else:
            session = text_in(metadata, "session")
            given = await continuing_input(service, caller, name, body, session)
            kept = {**({"chat": metadata} if metadata else {}), **kept_of(body)}
            own: dict[str, Any] = {"session": session, "metadata": kept, "files": files}
            run_id = await service.start(caller, name, given, **own)
        return _Asked(
            caller=caller, name=name, run_id=run_id, after=after, form=form, permit=permit
        )

    async def _whole(self, asked: _Asked) -> Response:
        run_id, caller = asked.run_id, asked.caller
        run = await stopped(self._service, caller, run_id, after=asked.after, permit=asked.permit)
        text, fault = await asked.form.reply(run)
        if fault := fault or _ended_badly(run):
            # a client that repeats the request would begin another run
            headers = {"x-should-retry": "false"}
            data = error_data("AX968", fault, type="server_error")
            return JSONResponse(data, 500, headers=headers)
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return JSONResponse(
            {
                "id": run_id,
                "object": "chat.completion",
                "created": int(run["begun"]),
                "model": asked.name,
                "choices": [choice],
                "usage": _usage(run),
                "axil": run_summary(run),
            }
        )

    async def _streamed(self, asked: _Asked, options: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        caller, name, run_id = asked.caller, asked.name, asked.run_id
        created = int(time.time())

        def part(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return frame(
                "",
                {
                    "id": run_id,
                    "object": "chat.completion.chunk",
                    "created": created,
                    "model": name,
                    "choices": [choice],
                    **more,
                },
            )

        yield part({"role": "assistant", "content": ""})
        nodes = frozenset[str]() if asked.form.is_json else last_nodes(self._service, name)
        words = Words(nodes)

        def shown(event: StreamEvent) -> Iterable[bytes]:
            known, text = words.fields, words.add(event)
            if text:
                yield part({"content": text})
            if words.fields not in (None, known):
                yield part({}, axil={"run_id": run_id, "fields": words.fields})

        stream = until_stopped(
            self._service, caller, run_id, after=asked.after, permit=asked.permit
        )
        async with aclosing(frames_of(stream, shown)) as frames:
            async for each in frames:
                yield each
        run = await self._service.result(caller, run_id)
        text, fault = await asked.form.reply(run)
        if fault := fault or _ended_badly(run):
            yield frame("", error_data("AX968", fault, type="server_error"))
            return
        if rest := words.rest(text):
            yield part({"content": rest})
        yield part({}, "stop", axil=run_summary(run))
        if options.get("include_usage"):
            data = {"id": run_id, "object": "chat.completion.chunk", "created": created}
            yield frame("", {**data, "model": name, "choices": [], "usage": _usage(run)})
        yield b"data: [DONE]\n\n"


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "axil"}


def _ended_badly(run: Mapping[str, Any]) -> str:
    """Return why a run has no output; empty: it is done, or asks."""
    return str(run["error"] or run["status"]) if run["status"] in OVER - {"done"} else ""


def run_summary(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("run_id", "status", "questions")}


def _usage(run: Mapping[str, Any]) -> dict[str, int]:
    tokens: Mapping[str, Any] = run["used"].get("tokens", {})
    given, made = int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0))
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


__all__ = ["ChatCompletions", "run_summary"]
