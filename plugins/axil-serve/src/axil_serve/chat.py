"""The protocol ``openai``: workflows as models of OpenAI's Chat Completions.

A model is a workflow, a completion is a run, and its id is that of the run. A run that asks a
person ends its completion with the question; the request that answers has ``metadata.run_id``.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from axil import AxilError
from axil.plugin import EXIT
from axil_serve.access import Caller
from axil_serve.app import body_of, caller_of, fields_in, frame, status_of, text_in
from axil_serve.errors import BadRequest
from axil_serve.service import OVER, RunService, StreamEvent

_IDLE_EVENTS: Final = 15


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
            status = status_of(error)
            message = str(error) if status < 500 else "the server could not do this."
            told = {"message": message, "type": "invalid_request_error", "code": error.id}
            return JSONResponse({"error": {**told, "param": None}}, status)

    async def _complete(self, caller: Caller, body: dict[str, Any]) -> Response:
        service, name = self._service, text_in(body, "model")
        metadata = fields_in(body, "metadata")
        caller.check("look")
        run_id, after = text_in(metadata, "run_id"), ""
        if run_id:
            after = await self._answered(caller, run_id, body)
        else:
            run_id = await service.start(
                caller, name, self._input(name, body), session=text_in(metadata, "session")
            )
        events = service.stream(caller, run_id, after=after)
        if body.get("stream"):
            options = fields_in(body, "stream_options")
            frames = self._streamed(caller, name, run_id, events, options)
            headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
            return StreamingResponse(frames, media_type="text/event-stream", headers=headers)
        async for event in events:
            if _has_stopped(event):
                break
        run = service.look(caller, run_id)
        if run["status"] in OVER - {"done"}:
            error = {"message": run["error"] or run["status"], "type": "server_error"}
            return JSONResponse({"error": {**error, "code": "AX968", "param": None}}, 500)
        message = {"role": "assistant", "content": _said(run), "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return JSONResponse(
            {
                "id": run_id,
                "object": "chat.completion",
                "created": int(run["begun"]),
                "model": name,
                "choices": [choice],
                "usage": _usage(run),
                "axil": _told(run),
            }
        )

    def _input(self, name: str, body: Mapping[str, Any]) -> Any:
        """Return the input of a run: ``input`` of the body, else the conversation or its end."""
        if "input" in body:
            return body["input"]
        workflow = self._service.workflows.get(name)
        messages = _messages(body)
        payload = "" if workflow is None else workflow.plan.graph.spec.payload
        if payload == "messages" and all(isinstance(m.get("content"), str) for m in messages):
            return [{"role": m["role"], "content": m["content"]} for m in messages]
        return _text(messages[-1].get("content"))

    async def _answered(self, caller: Caller, run_id: str, body: Mapping[str, Any]) -> str:
        """Answer the first open question with the last message; return the id of the last step
        before.
        """
        questions: Sequence[Mapping[str, Any]] = self._service.look(caller, run_id)["questions"]
        if not questions:
            message = f'the run "{run_id}" asks nothing.'
            raise BadRequest("AX966", message, "Leave metadata.run_id out to start a run.")
        answer: Any = _text(_messages(body)[-1].get("content"))
        if questions[0]["kind"] == "approval":
            answer = answer.strip().lower() in ("yes", "y", "true", "approve", "approved", "ok")
        after = str(self._service.steps(caller, run_id)[-1]["id"])
        await self._service.answer(caller, run_id, {questions[0]["id"]: answer})
        return after

    async def _streamed(
        self,
        caller: Caller,
        name: str,
        run_id: str,
        events: AsyncIterator[StreamEvent],
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
        words, silent = _Words(self._last_nodes(name)), 0
        async for event in events:
            if not event.kind and (silent := silent + 1) % _IDLE_EVENTS == 0:
                yield b": nothing happens\n\n"
            if text := words.hear(event):
                yield part({"content": text})
            if _has_stopped(event):
                break
        run = self._service.look(caller, run_id)
        if run["status"] in OVER - {"done"}:
            error = {"message": run["error"] or run["status"], "type": "server_error"}
            yield frame("", {"error": {**error, "code": "AX968", "param": None}})
            return
        if rest := words.rest(_said(run)):
            yield part({"content": rest})
        yield part({}, "stop", axil=_told(run))
        if options.get("include_usage"):
            told = {"id": run_id, "object": "chat.completion.chunk", "created": created}
            yield frame("", {**told, "model": name, "choices": [], "usage": _usage(run)})
        yield b"data: [DONE]\n\n"

    def _last_nodes(self, name: str) -> frozenset[str]:
        workflow = self._service.workflows.get(name)
        edges = () if workflow is None else workflow.plan.graph.spec.edges
        return frozenset(edge.source for edge in edges if edge.target == EXIT)


class _Words:
    """The words of a run's last node, as far as they are known to be its output.

    A node in a loop, and one whose first words were missed, is not streamed: its output comes
    whole, at the end.
    """

    def __init__(self, nodes: frozenset[str]) -> None:
        self._nodes, self._speaker, self._said = nodes, "", ""
        self._is_broken = False

    def hear(self, event: StreamEvent) -> str:
        """Return the text that an event adds."""
        data: Mapping[str, Any] = event.data or {}
        if (
            event.kind not in ("started", "chunk")
            or data["frame"]
            or data["node"] not in (self._nodes)
        ):
            return ""
        if event.kind == "started":
            self._speaker = self._speaker or str(data["activation"])
            return ""
        chunk: Mapping[str, Any] = data["chunk"]
        if chunk.get("kind", "text") in ("reset", "retry", "tool_call"):
            self._is_broken = self._is_broken or bool(self._said)
        if (
            chunk.get("kind", "text") != "text"
            or self._is_broken
            or data["activation"] != self._speaker
        ):
            return ""
        text = str(chunk.get("text", ""))
        self._said += text
        return text

    def rest(self, output: str) -> str:
        """Return what is left to send of the output."""
        if output.startswith(self._said):
            return output[len(self._said) :]
        return f"\n\n{output}"  # what was sent cannot be taken back


def _has_stopped(event: StreamEvent) -> bool:
    """Return whether the run has ended, or waits for a person."""
    if event.kind != "step" or event.data["kind"] != "ended":
        return False
    return event.data["status"] in OVER or event.data["status"] == "paused"


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: Any = body.get("messages")
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(m, dict) and "role" in m for m in cast("list[Any]", found))
    ):
        raise BadRequest("AX966", "there are no messages.", "Send messages with role and content.")
    return cast("list[dict[str, Any]]", found)


def _text(content: Any) -> str:
    """Return the text of a message's content, a text or parts."""
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return "".join(
            str(cast("dict[str, Any]", part).get("text", ""))
            for part in parts
            if isinstance(part, dict)
        )
    return "" if content is None else str(content)


def _said(run: Mapping[str, Any]) -> str:
    """Return the output of a run as a text; of one that asks, its first question."""
    if run["questions"]:
        return str(run["questions"][0]["text"])
    output: Any = run["output"]
    if isinstance(output, dict) and len(cast("dict[str, Any]", output)) == 1:
        [output] = cast("dict[str, Any]", output).values()
    if output is None or isinstance(output, str):
        return output or ""
    return json.dumps(output, ensure_ascii=False)


def _told(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("run_id", "status", "questions")}


def _usage(run: Mapping[str, Any]) -> dict[str, int]:
    tokens: Mapping[str, Any] = run["used"].get("tokens", {})
    given, made = int(tokens.get("input_tokens", 0)), int(tokens.get("output_tokens", 0))
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


__all__ = ["ChatCompletions"]
