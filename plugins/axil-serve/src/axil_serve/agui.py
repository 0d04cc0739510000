"""The protocol ``ag-ui``: workflows as agents of AG-UI, for front ends that speak it.

A request is a run. The context of a front end comes before its messages, its state is that of a
typed graph; what has no place in the workflow is refused, and so are tools of the front end. A run
that asks a person ends its request with an interrupt for each question; the request that resumes it
names the interrupts, whose ids hold the run's id.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from axil_serve.access import Caller
from axil_serve.conversation import (
    Words,
    input_of,
    last_nodes,
    messages_in,
    output_text,
    question_text,
    takes_messages,
    until_stopped,
)
from axil_serve.errors import BadRequest
from axil_serve.events import event_stream, frame, frames_of
from axil_serve.request import body_of, caller_of, fields_in, text_in
from axil_serve.service import OVER, RunService
from axil_serve.streams import StreamEvent, StreamPermit

_FIELDS: Final = frozenset(
    (
        "context",
        "forwardedProps",
        "messages",
        "parentRunId",
        "protocolVersion",
        "resume",
        "runId",
        "state",
        "threadId",
        "tools",
    )
)
"""The fields of a ``RunAgentInput``."""


class AgUi:
    """Workflows as agents of AG-UI."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the route ``/ag-ui/{workflow}``."""

        async def run(request: Request) -> Response:
            caller, body = caller_of(request), await body_of(request)
            caller.check("look")
            name = str(request.path_params["workflow"])
            for each in ("threadId", "runId"):
                text_in(body, each)
            with service.permit(caller) as permit:
                run_id, after = await _begun(service, caller, name, body)
                agent = _Agent(service, caller, run_id, permit)
                return event_stream(agent.frames(name, after, body), permit, _failed)

        return [Route("/ag-ui/{workflow}", run, methods=["POST"])]


async def _begun(
    service: RunService, caller: Caller, name: str, body: Mapping[str, Any]
) -> tuple[str, str]:
    """Start a run, or answer one; return its id and that of its last known step."""
    _check_names(body)
    resumed = _resumed(body)
    if not resumed:
        props = fields_in(body, "forwardedProps")
        given = {**body, "input": props.pop("input")} if "input" in props else {**body}
        given = _with_state(service, name, _with_context(service, name, given))
        kept = {each: body[each] for each in ("threadId", "runId", "parentRunId") if body.get(each)}
        if props:
            kept["forwardedProps"] = props
        return await service.start(caller, name, given, metadata={"ag-ui": kept}), ""
    if body.get("context"):
        raise _unserved("context", "an answer is given to the run as it is.")
    answers: dict[str, Any] = {}
    runs: set[str] = set()
    for each in resumed:
        run_id, _, question = text_in(each, "interruptId").partition(":")
        runs.add(run_id)
        answers[question] = each.get("payload")
    if len(runs) != 1 or any(each.get("status") != "resolved" for each in resumed):
        message = "expected resolved interrupts of one run."
        raise BadRequest("AX966", message, "Cancel the run with POST /v1/runs/RUN_ID/cancel.")
    run_id = runs.pop()
    after = str((await service.read(service.steps, caller, run_id))[-1]["id"])
    await service.answer(caller, run_id, answers, is_awaited=True)
    return run_id, after


def _check_names(body: Mapping[str, Any]) -> None:
    """Raises: BadRequest (AX966): the request has what is not served, or not known."""
    if body.get("tools"):
        raise _unserved("tools", "a workflow calls the tools of its own agents alone.")
    version = text_in(body, "protocolVersion")
    if version and version.partition(".")[0] != "1":
        raise _unserved("protocolVersion", "version 1 of the protocol is.")
    if strange := sorted(name for name in body.keys() - _FIELDS if body[name] is not None):
        raise _unserved(strange[0], "it is no field that is known.")


def _unserved(name: str, why: str) -> BadRequest:
    return BadRequest("AX966", f"it is not served: {why}", "Leave it out.", f"{name:.100}")


def _with_context(service: RunService, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return a request whose messages begin with the context. Raises: BadRequest (AX966)."""
    found: Any = body.get("context")
    if not found:
        return body
    items: list[Any] = cast("list[Any]", found) if isinstance(found, list) else [None]
    is_list = all(
        isinstance(each, dict) and {"description", "value"} <= cast("dict[str, Any]", each).keys()
        for each in items
    )
    if not is_list:
        hint = 'Send [{"description": "…", "value": "…"}].'
        raise BadRequest("AX966", "context is not a list of descriptions.", hint, "context")
    if "input" in body or not takes_messages(service, name):
        raise _unserved("context", "the workflow takes no messages, before which it would come.")
    text = "\n\n".join(f"{each['description']}: {each['value']}" for each in items)
    return {**body, "messages": [{"role": "system", "content": text}, *messages_in(body)]}


def _with_state(service: RunService, name: str, body: dict[str, Any]) -> Any:
    """Return the input of a request, with the state of the front end.

    Raises: BadRequest (AX966): the workflow has no such state.
    """
    state = fields_in(body, "state")
    workflow = service.workflows.get(name)
    if not state or workflow is None:
        return input_of(service, name, body)
    spec = workflow.plan.graph.spec
    known = spec.schema.fields.keys() if spec.schema is not None else ()
    if spec.payload != "state" or not state.keys() <= set(known):
        raise _unserved("state", "the workflow is no typed graph with these fields.")
    if "input" not in body and not body.get("messages"):
        return state
    given = input_of(service, name, body)
    return {**state, **cast("dict[str, Any]", given)} if isinstance(given, dict) else given


def _resumed(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: Any = body.get("resume") or []
    if isinstance(found, list) and all(isinstance(e, dict) for e in cast("list[Any]", found)):
        return cast("list[Mapping[str, Any]]", found)
    hint = 'Send [{"interruptId": "…", "status": "resolved", "payload": …}].'
    raise BadRequest("AX966", "resume is not a list of interrupts.", hint)


class _Agent:
    """The events of one request."""

    def __init__(
        self, service: RunService, caller: Caller, run_id: str, permit: StreamPermit
    ) -> None:
        self._service, self._caller, self._run_id = service, caller, run_id
        self._permit = permit
        self._words = Words(frozenset())
        self._open: dict[str, None] = {}  # steps that have started
        self._acted: list[dict[str, Any]] = []  # messages of the calls of tools
        self._is_saying = self._has_state = False

    async def frames(self, name: str, after: str, body: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        """Yield the events of AG-UI behind a step, as server-sent events."""
        self._words = Words(last_nodes(self._service, name))
        workflow = self._service.workflows.get(name)
        self._has_state = workflow is not None and workflow.plan.graph.spec.payload == "state"
        ids = {name: str(body.get(name) or self._run_id) for name in ("threadId", "runId")}
        yield _event("RUN_STARTED", **ids)
        events = until_stopped(
            self._service, self._caller, self._run_id, after=after, permit=self._permit
        )
        async with aclosing(frames_of(events, self._frames_of)) as frames:
            async for each in frames:
                yield each
        run = await self._service.result(self._caller, self._run_id)
        for name in self._open:
            yield _event("STEP_FINISHED", stepName=name)
        if run["status"] in OVER - {"done"}:
            yield _event("RUN_ERROR", message=run["error"] or run["status"], code="AX968")
            return
        output = "" if run["questions"] else output_text(run)
        is_superseded = bool(output) and self._words.is_superseded(output)
        if output and not is_superseded:
            for each in self._text_frames(self._words.rest(output)):
                yield each
        if self._has_state and not run["questions"] and isinstance(run["output"], dict):
            yield _event("STATE_SNAPSHOT", snapshot=run["output"])
        if self._is_saying:
            yield _event("TEXT_MESSAGE_END", messageId=self._run_id)
        if is_superseded:  # what was said does not count: this stands for all messages
            message = {"id": self._run_id, "role": "assistant", "content": output}
            given = cast("list[Any]", body.get("messages") or [])
            yield _event("MESSAGES_SNAPSHOT", messages=[*given, *self._acted, message])
        interrupts = [
            {
                "id": f"{self._run_id}:{question['id']}",
                "reason": question["kind"],
                "message": question_text(question),
                "metadata": {"options": question["options"]},
            }
            for question in run["questions"]
        ]
        if interrupts:
            outcome: dict[str, Any] = {"type": "interrupt", "interrupts": interrupts}
            yield _event("RUN_FINISHED", **ids, outcome=outcome)
        else:
            yield _event("RUN_FINISHED", **ids, result=run["output"], outcome={"type": "success"})

    def _frames_of(self, event: StreamEvent) -> Iterable[bytes]:
        data: Mapping[str, Any] = event.data or {}
        if event.kind == "started" and data["what"] == "node":
            self._open[data["activation"]] = None
            yield _event("STEP_STARTED", stepName=data["activation"])
        elif event.kind == "step" and data["kind"] == "done" and data["activation"] in self._open:
            del self._open[data["activation"]]
            yield _event("STEP_FINISHED", stepName=data["activation"])
        elif event.kind == "chunk":
            yield from self._tool(data["chunk"])
        known, words = self._words.fields, self._words.add(event)
        if self._words.fields not in (None, known):
            yield _event("CUSTOM", name="output", value={"fields": self._words.fields})
        yield from self._text_frames(words)

    def _tool(self, chunk: Mapping[str, Any]) -> Iterable[bytes]:
        id = str(chunk.get("id", ""))
        if chunk.get("kind") == "tool_call":
            arguments = chunk.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call = {"name": str(chunk.get("name", "")), "arguments": text}
            calls = [{"id": id, "type": "function", "function": call}]
            self._acted.append({"id": f"{id}:call", "role": "assistant", "toolCalls": calls})
            yield _event("TOOL_CALL_START", toolCallId=id, toolCallName=str(chunk.get("name", "")))
            yield _event("TOOL_CALL_ARGS", toolCallId=id, delta=text)
            yield _event("TOOL_CALL_END", toolCallId=id)
        elif chunk.get("kind") == "tool_result":
            content = chunk.get("content", "")
            text = content if isinstance(content, str) else json.dumps(content)
            result = {"toolCallId": id, "content": text}
            message_id = f"{self._run_id}:{id}"
            self._acted.append({"id": message_id, "role": "tool", **result})
            yield _event("TOOL_CALL_RESULT", messageId=message_id, **result)

    def _text_frames(self, text: str) -> Iterable[bytes]:
        if not text:
            return
        if not self._is_saying:
            self._is_saying = True
            yield _event("TEXT_MESSAGE_START", messageId=self._run_id, role="assistant")
        yield _event("TEXT_MESSAGE_CONTENT", messageId=self._run_id, delta=text)


def _failed(data: Mapping[str, Any]) -> bytes:
    """Return the last event of a stream that fails."""
    return _event("RUN_ERROR", message=data["error"]["message"], code=data["error"]["id"])


def _event(type: str, **data: Any) -> bytes:
    return frame("", {"type": type, **data})


__all__ = ["AgUi"]
