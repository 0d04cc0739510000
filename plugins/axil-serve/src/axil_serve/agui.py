"""The protocol ``ag-ui``: workflows as agents of AG-UI, for front ends that speak it.

A request is a run. The context of a front end comes before its messages, its state is that of a
typed graph; what has no place in the workflow is refused, and so are tools of the front end. A run
that asks a person ends its request with an interrupt for each question; the request that resumes it
names the interrupts, whose ids hold the run's id.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
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
_PERSON: Final = ("user", "system", "developer")
"""The roles of messages that no run makes."""


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
                begun = await _begun(service, caller, name, body)
                agent = _Agent(service, caller, begun, permit)
                return event_stream(agent.frames(name, body), permit, _failed)

        return [Route("/ag-ui/{workflow}", run, methods=["POST"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """The run of a request."""

    run_id: str
    given: Sequence[Mapping[str, Any]]
    """The messages of the front end, without what it has of a stream that broke off."""
    after: str = ""
    """The last step before what is streamed; empty: all is."""
    is_again: bool = False
    """True if the request was sent before, and the front end has a part of its stream."""


async def _begun(service: RunService, caller: Caller, name: str, body: Mapping[str, Any]) -> _Begun:
    """Start a run, or answer one; a request that is sent again is about the same run."""
    _check_names(body)
    messages = _messages(body)
    if resumed := _resumed(body):
        return await _answered(service, caller, body, resumed)
    given = _of_person(messages)
    if (key := _key(body, given)) and (known := await service.begun(caller, name, key)):
        await service.rejoin(caller, known)
        return _Begun(run_id=known, given=given, is_again=True)
    props = fields_in(body, "forwardedProps")
    asked = {**body, "input": props.pop("input")} if "input" in props else {**body}
    input = _with_state(service, name, _with_context(service, name, asked))
    kept = {each: body[each] for each in ("threadId", "runId", "parentRunId") if body.get(each)}
    if props:
        kept["forwardedProps"] = props
    run_id = await service.start(caller, name, input, metadata={"ag-ui": kept}, key=key)
    return _Begun(run_id=run_id, given=messages)


async def _answered(
    service: RunService,
    caller: Caller,
    body: Mapping[str, Any],
    resumed: Sequence[Mapping[str, Any]],
) -> _Begun:
    """Answer the interrupts of a run, if they are not answered so already."""
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
    messages = _messages(body)
    steps = await service.read(service.steps, caller, run_id)
    stored = [(at, step["output"]) for at, step in enumerate(steps) if step["kind"] == "answer"]
    known = {question: value for _, given in stored for question, value in given.items()}
    if answers.items() <= known.items():
        await service.rejoin(caller, run_id, "answer")
        first = min(at for at, given in stored if given.keys() & answers.keys())
        given = [each for each in messages if each.get("id") != run_id]
        after = str(steps[first - 1]["id"])
        return _Begun(run_id=run_id, given=given, after=after, is_again=True)
    await service.answer(caller, run_id, answers, is_awaited=True)
    return _Begun(run_id=run_id, given=messages, after=str(steps[-1]["id"]))


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request; one that has none starts no run of messages."""
    found: Any = body.get("messages")
    every = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("dict[str, Any]", each) for each in every if isinstance(each, dict)]


def _of_person(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return messages up to the last one that no run makes: a front end may have some behind it, of
    a stream that broke off.
    """
    said = [at for at, each in enumerate(messages, 1) if each.get("role") in _PERSON]
    return messages[: said[-1]] if said else messages


def _key(body: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> str:
    """Return the key of the run that a request begins; empty: the front end gave it no name."""
    ids = [body.get("threadId"), body.get("runId")]
    asked = [body.get(name) or None for name in ("context", "state", "forwardedProps")]
    text = json.dumps(["ag-ui", ids, list(given), asked], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest() if all(ids) else ""


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


@dataclass(frozen=True, slots=True)
class _Acted:
    """A message of a call of a tool."""

    who: Mapping[str, Any]
    """The place of its firing, as events have it."""
    number: int
    """The number of its chunk among those of the firing that count."""
    message: dict[str, Any]


class _Agent:
    """The events of one request."""

    def __init__(
        self, service: RunService, caller: Caller, begun: _Begun, permit: StreamPermit
    ) -> None:
        self._service, self._caller, self._begun = service, caller, begun
        self._run_id = begun.run_id
        self._permit = permit
        self._words = Words(frozenset())
        self._open: dict[str, None] = {}  # steps that have started
        self._acted: list[_Acted] = []
        self._shown, self._known = Counter[str](), set[str]()  # chunks by firing; ids of messages
        self._is_saying = self._has_state = self._is_taken_back = False
        if begun.is_again:
            self._known.update(_ids_of(begun.given))

    async def frames(self, name: str, body: Mapping[str, Any]) -> AsyncGenerator[bytes]:
        """Yield the events of AG-UI, as server-sent events."""
        self._words = Words(last_nodes(self._service, name))
        workflow = self._service.workflows.get(name)
        self._has_state = workflow is not None and workflow.plan.graph.spec.payload == "state"
        ids = {name: str(body.get(name) or self._run_id) for name in ("threadId", "runId")}
        yield _event("RUN_STARTED", **ids)
        if self._begun.is_again:
            yield _event("MESSAGES_SNAPSHOT", messages=self._begun.given)
        events = until_stopped(
            self._service,
            self._caller,
            self._run_id,
            after=self._begun.after,
            permit=self._permit,
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
        is_replaced = is_superseded or self._is_taken_back or self._words.is_taken_back
        if output and not is_superseded:
            for each in self._text_frames(self._words.rest(output)):
                yield each
        if self._has_state and not run["questions"] and isinstance(run["output"], dict):
            yield _event("STATE_SNAPSHOT", snapshot=run["output"])
        if self._is_saying:
            yield _event("TEXT_MESSAGE_END", messageId=self._run_id)
        if is_replaced:  # what was shown does not count: these stand for all messages
            message = {"id": self._run_id, "role": "assistant", "content": output}
            given = self._begun.given
            acted = [each.message for each in self._acted]
            known = {*_ids_of(given)} if self._begun.is_again else set[str]()
            new = [each for each in acted if each["id"] not in known]
            said = [message] if output else []
            yield _event("MESSAGES_SNAPSHOT", messages=[*given, *new, *said])
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
            self._take_back(data, self._shown[data["activation"]])
            if data["activation"] not in self._open:  # else what it shows comes again
                self._open[data["activation"]] = None
                yield _event("STEP_STARTED", stepName=data["activation"])
        elif event.kind == "step" and data["kind"] == "done" and data["activation"] in self._open:
            del self._open[data["activation"]]
            yield _event("STEP_FINISHED", stepName=data["activation"])
        elif event.kind == "chunk":
            yield from self._tool(data, data["chunk"])
        known, words = self._words.fields, self._words.add(event)
        if self._words.fields not in (None, known):
            yield _event("CUSTOM", name="output", value={"fields": self._words.fields})
        yield from self._text_frames(words)

    def _tool(self, who: Mapping[str, Any], chunk: Mapping[str, Any]) -> Iterable[bytes]:
        kind, id = chunk.get("kind"), str(chunk.get("id", ""))
        if kind == "reset":
            self._take_back(who, int(chunk.get("chunks") or 0), inside=bool(chunk.get("inside")))
        elif kind != "retry":
            self._shown[who["activation"]] += 1
        if kind == "tool_call":
            arguments, name = chunk.get("arguments"), str(chunk.get("name", ""))
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            call = {"name": name, "arguments": text}
            calls = [{"id": id, "type": "function", "function": call}]
            message = {"id": f"{id}:call", "role": "assistant", "toolCalls": calls}
            if self._is_new(who, message):
                yield _event("TOOL_CALL_START", toolCallId=id, toolCallName=name)
                yield _event("TOOL_CALL_ARGS", toolCallId=id, delta=text)
                yield _event("TOOL_CALL_END", toolCallId=id)
        elif kind == "tool_result":
            content = chunk.get("content", "")
            text = content if isinstance(content, str) else json.dumps(content)
            message_id = f"{self._run_id}:{id}"
            result = {"toolCallId": id, "content": text}
            if self._is_new(who, {"id": message_id, "role": "tool", **result}):
                yield _event("TOOL_CALL_RESULT", messageId=message_id, **result)

    def _is_new(self, who: Mapping[str, Any], message: dict[str, Any]) -> bool:
        """Keep a message; return whether none of its id was sent."""
        self._acted.append(_Acted(who, self._shown[who["activation"]], message))
        is_new = message["id"] not in self._known
        self._known.add(message["id"])
        return is_new

    def _take_back(self, who: Mapping[str, Any], chunks: int, *, inside: bool = False) -> None:
        """Drop the messages among the last chunks of a firing, or also of those inside of it."""
        self._shown[who["activation"]] = left = max(0, self._shown[who["activation"]] - chunks)
        around = [*who["frame"], who["node"]]
        kept = [
            each
            for each in self._acted
            if (each.who["activation"] != who["activation"] or each.number <= left)
            and not (inside and each.who["frame"][: len(around)] == around)
        ]
        self._is_taken_back = self._is_taken_back or len(kept) < len(self._acted)
        self._acted = kept

    def _text_frames(self, text: str) -> Iterable[bytes]:
        if not text:
            return
        if not self._is_saying:
            self._is_saying = True
            yield _event("TEXT_MESSAGE_START", messageId=self._run_id, role="assistant")
        yield _event("TEXT_MESSAGE_CONTENT", messageId=self._run_id, delta=text)


def _ids_of(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ids that messages of calls of tools, and of their results, are sent under."""
    for each in messages:
        if each.get("role") == "tool":
            yield str(each.get("id"))
        calls: Any = each.get("toolCalls")
        for call in cast("list[Any]", calls) if isinstance(calls, list) else ():
            if isinstance(call, dict):
                yield f"{cast('dict[str, Any]', call).get('id')}:call"


def _failed(data: Mapping[str, Any]) -> bytes:
    """Return the last event of a stream that fails."""
    return _event("RUN_ERROR", message=data["error"]["message"], code=data["error"]["id"])


def _event(type: str, **data: Any) -> bytes:
    return frame("", {"type": type, **data})


__all__ = ["AgUi"]
