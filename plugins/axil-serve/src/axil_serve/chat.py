"""The protocol ``openai``: workflows as models of OpenAI's Chat Completions.

A model is a workflow, a completion is a run, and its id is that of the run. A run that asks a
person ends its completion with the question; the request that answers has ``metadata.run_id``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

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
    public_message,
    status_of,
    text_in,
)
from axil_serve.conversation import (
    Words,
    answer_open,
    content_text,
    continuing_input,
    last_nodes,
    messages_in,
    output_text,
    stopped,
    until_stopped,
)
from axil_serve.service import OVER, RunService


class ChatCompletions:
    """Workflows as models of OpenAI's Chat Completions."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes ``/v1/models`` and ``/v1/chat/completions``."""
        chat = _Chat(service)
        return [
            Route("/v1/models", chat.models, methods=["GET"]),
            Route("/v1/chat/completions", chat.complete, methods=["POST"]),
        ]


class _Chat:
    def __init__(self, service: RunService) -> None:
        self._service = service

    async def models(self, request: Request) -> Response:
        caller_of(request).check("look")
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "axil"}
            for name in self._service.workflows
        ]
        return JSONResponse({"object": "list", "data": models})

    async def complete(self, request: Request) -> Response:
        try:
            return await self._complete(caller_of(request), await body_of(request))
        except AxilError as error:
            return refused(error)

    async def _complete(self, caller: Caller, body: dict[str, Any]) -> Response:
        service, name = self._service, text_in(body, "model")
        metadata = fields_in(body, "metadata")
        caller.check("look")
        service.check_streams(caller)
        run_id, after = text_in(metadata, "run_id"), ""
        if run_id:
            answer = content_text(messages_in(body)[-1].get("content"))
            after = await answer_open(service, caller, run_id, answer)
        else:
            session = text_in(metadata, "session")
            given = await continuing_input(service, caller, name, body, session)
            run_id = await service.start(caller, name, given, session=session)
        if body.get("stream"):
            options = fields_in(body, "stream_options")
            frames = self._streamed(caller, name, run_id, after, options)
            return event_stream(frames)
        run = await stopped(service, caller, run_id, after=after)
        if run["status"] in OVER - {"done"}:
            error = {"message": run["error"] or run["status"], "type": "server_error"}
            return JSONResponse({"error": {**error, "code": "AX968", "param": None}}, 500)
        message = {"role": "assistant", "content": output_text(run), "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return JSONResponse(
            {
                "id": run_id,
                "object": "chat.completion",
                "created": int(run["begun"]),
                "model": name,
                "choices": [choice],
                "usage": _usage(run),
                "axil": run_summary(run),
            }
        )

    async def _streamed(
        self,
        caller: Caller,
        name: str,
        run_id: str,
        after: str,
        options: Mapping[str, Any],
    ) -> AsyncGenerator[bytes]:
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
        words, silent = Words(last_nodes(self._service, name)), 0
        async with aclosing(until_stopped(self._service, caller, run_id, after=after)) as events:
            async for event in events:
                if not event.kind and (silent := silent + 1) % IDLE_EVENTS == 0:
                    yield SILENCE
                known, text = words.fields, words.add(event)
                if text:
                    yield part({"content": text})
                if words.fields not in (None, known):
                    yield part({}, axil={"run_id": run_id, "fields": words.fields})
        run = await self._service.result(caller, run_id)
        if run["status"] in OVER - {"done"}:
            error = {"message": run["error"] or run["status"], "type": "server_error"}
            yield frame("", {"error": {**error, "code": "AX968", "param": None}})
            return
        if rest := words.rest(output_text(run)):
            yield part({"content": rest})
        yield part({}, "stop", axil=run_summary(run))
        if options.get("include_usage"):
            data = {"id": run_id, "object": "chat.completion.chunk", "created": created}
            yield frame("", {**data, "model": name, "choices": [], "usage": _usage(run)})
        yield b"data: [DONE]\n\n"


def refused(error: AxilError) -> Response:
    """Return an error as OpenAI's clients read it."""
    data = {"message": public_message(error), "type": "invalid_request_error", "code": error.id}
    return JSONResponse({"error": {**data, "param": None}}, status_of(error))


def run_summary(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("run_id", "status", "questions")}


def _usage(run: Mapping[str, Any]) -> dict[str, int]:
    tokens: Mapping[str, Any] = run["used"].get("tokens", {})
    given, made = int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0))
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


__all__ = ["ChatCompletions", "refused", "run_summary"]
