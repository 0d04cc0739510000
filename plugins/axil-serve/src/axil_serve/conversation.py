"""Conversations as the input of runs, and the words of runs as messages, for protocols."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any, Final, cast

from axil.plugin import EXIT
from axil_journals import input_schema
from axil_serve.access import Caller
from axil_serve.errors import BadRequest
from axil_serve.service import OVER, RunService
from axil_serve.streams import StreamEvent, StreamPermit

PARTS: Final = ("image", "file", "audio")
"""The parts of a message that are no texts, as axil has them."""


_LATEST: Final = 200
"""The latest runs of a workflow, among which one is looked for that asks."""
_AMONG: Final = 10_000
"""The latest runs of all, among which these are."""


def input_of(service: RunService, name: str, body: Mapping[str, Any]) -> Any:
    """Return the input of a run: ``input`` of the body, else the conversation or its end."""
    return body["input"] if "input" in body else input_from(service, name, messages_in(body))


def input_from(service: RunService, name: str, messages: Sequence[Mapping[str, Any]]) -> Any:
    """Return the input of a run: the conversation, or the text of its last message.

    A graph of messages receives the conversation; a typed graph with the field ``messages``
    receives it there.
    """
    if not takes_messages(service, name):
        return content_text(messages[-1].get("content"))
    given = [{"role": m["role"], "content": _content(m.get("content"))} for m in messages]
    return {"messages": given} if _payload(service, name) == "state" else given


def _content(content: Any) -> Any:
    """Return the content of a message for a workflow: a text, or parts that are not texts alone."""
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        if any(
            cast("dict[str, Any]", p).get("type") in PARTS for p in parts if isinstance(p, dict)
        ):
            return parts
    return content_text(content)


def takes_messages(service: RunService, name: str) -> bool:
    """Return whether the input of a workflow is a conversation."""
    payload = _payload(service, name)
    if payload != "state":
        return payload == "messages"
    schema = service.workflows[name].plan.graph.spec.schema
    return schema is not None and "messages" in schema.fields


def _payload(service: RunService, name: str) -> str:
    workflow = service.workflows.get(name)
    return "" if workflow is None else workflow.plan.graph.spec.payload


def workflow_data(service: RunService, name: str) -> dict[str, Any]:
    """Return what a page says of a workflow: what it takes, and whether one can chat with it."""
    spec = service.workflows[name].plan.graph.spec
    inputs = input_schema(spec)
    return {
        "name": name,
        "description": spec.description,
        "payload": spec.payload,
        "inputs": inputs,
        "chat": takes_messages(service, name) or len(inputs["properties"]) == 1,
    }


async def continuing_input(
    service: RunService, caller: Caller, name: str, body: Mapping[str, Any], session: str
) -> Any:
    """Return the input of a run in a session, for a request with the whole conversation.

    The state of a typed graph has the earlier messages, where a run of the session is done: then
    those after the last reply are the input.
    """
    is_kept = takes_messages(service, name) and _payload(service, name) == "state"
    if "input" in body or not session or not is_kept:
        return input_of(service, name, body)
    messages = messages_in(body)
    for before in await service.read(service.thread, caller, session):
        if (await service.read(service.look, caller, before))["status"] == "done":
            replies = [at for at, each in enumerate(messages) if each["role"] == "assistant"]
            return input_from(service, name, messages[replies[-1] + 1 if replies else 0 :])
    return input_from(service, name, messages)


async def earlier_messages(
    service: RunService, caller: Caller, session: str
) -> list[dict[str, Any]]:
    """Return the messages of the last run of a session that is done."""
    for before in reversed(await service.read(service.thread, caller, session)):
        if (await service.read(service.look, caller, before))["status"] == "done":
            return await conversation_of(service, caller, before)
    return []


async def conversation_of(service: RunService, caller: Caller, run_id: str) -> list[dict[str, Any]]:
    """Return the messages that a run received, and its output as the last one.

    Those of a typed graph are in its state, with which the next run of the session begins.
    """
    run = await service.result(caller, run_id)
    if _payload(service, run["workflow"]) == "state":
        return []
    given: Any = run["input"]
    before = cast("list[dict[str, Any]]", given) if isinstance(given, list) else []
    return [*before, {"role": "assistant", "content": output_text(run)}]


def _messages_of(output: Any) -> list[dict[str, Any]] | None:
    """Return the messages in the state of a typed graph; None: it has none."""
    found: Any = cast("dict[str, Any]", output).get("messages") if isinstance(output, dict) else 0
    if not isinstance(found, list) or not found:
        return None
    messages = cast("list[Any]", found)
    if not all(isinstance(m, dict) and "content" in m and "role" in m for m in messages):
        return None
    return [{"role": m["role"], "content": m["content"]} for m in messages]


async def answer_open(
    service: RunService, caller: Caller, run_id: str, answer: Any, *, question: str = ""
) -> str:
    """Answer an open question of a run; return the id of the last step before.

    Args:
        answer: a value; of an approval, a text that says yes or no.
        question: its id; empty: the first open one.
    Raises: BadRequest (AX966): the run has no such question; EngineError (AX542): the workflow of
        the run is not served here.
    """
    run = await service.read(service.look, caller, run_id)
    waiting = [each for each in run["questions"] if question in ("", each["id"])]
    if not waiting:
        message = f'the run "{run_id:.100}" has no open question.'
        raise BadRequest("AX966", message, "Start a new run, without the id of this one.")
    if waiting[0]["kind"] == "approval" and isinstance(answer, str):
        answer = answer.strip().lower() in ("yes", "y", "true", "approve", "approved", "ok")
    after = str((await service.read(service.steps, caller, run_id))[-1]["id"])
    await service.answer(caller, run_id, {waiting[0]["id"]: answer}, is_awaited=True)
    return after


def find_asking(
    service: RunService, caller: Caller, name: str, messages: Sequence[Mapping[str, Any]]
) -> str:
    """Return the run that a conversation answers, of a client that sends nothing but its messages;
    empty: there is none.

    It is the last run of the workflow that received what was said before, asks, and asks what the
    message before the last one says.
    """
    if len(messages) < 3 or messages[-2]["role"] != "assistant":
        return ""
    said = content_text(messages[-2].get("content"))
    given = input_from(service, name, messages[:-2])
    for run in islice(service.list(caller, among=_AMONG, workflow=name), _LATEST):
        if run["status"] in (*OVER, "queued"):
            continue
        found = service.look(caller, run["run_id"])
        is_it = found["questions"] and output_text(found) == said
        if is_it and only_field(found["input"]) == only_field(given):
            return str(run["run_id"])
    return ""


async def until_stopped(
    service: RunService,
    caller: Caller,
    run_id: str,
    *,
    after: str = "",
    permit: StreamPermit | None = None,
) -> AsyncGenerator[Sequence[StreamEvent]]:
    """Yield the events of a run, those together that happened meanwhile, until it has ended, or
    waits for a person.

    A run that is paused because all its bodies sleep has not stopped. ``permit``: as of
    ``RunService.stream``.
    """
    async with aclosing(service.batches(caller, run_id, after=after, permit=permit)) as batches:
        async for batch in batches:
            begin = 0
            for at, event in enumerate(batch, 1):
                if event.kind != "step" or event.data["kind"] != "ended":
                    continue
                yield batch[begin:at]
                begin = at
                if event.data["status"] in OVER:
                    return
                if (await service.read(service.look, caller, run_id))["questions"]:
                    return
            if begin < len(batch):
                yield batch[begin:]


async def stopped(
    service: RunService,
    caller: Caller,
    run_id: str,
    *,
    after: str = "",
    permit: StreamPermit | None = None,
) -> dict[str, Any]:
    """Return a run when it has ended, or waits for a person."""
    events = until_stopped(service, caller, run_id, after=after, permit=permit)
    async with aclosing(events):
        async for _ in events:
            pass
    return await service.result(caller, run_id)


def last_nodes(service: RunService, name: str) -> frozenset[str]:
    """Return the nodes of a workflow whose output is its own."""
    workflow = service.workflows.get(name)
    edges = () if workflow is None else workflow.plan.graph.spec.edges
    return frozenset(edge.source for edge in edges if edge.target == EXIT)


class Words:
    """The words of a run's last node, as far as they are known to be its output.

    A node in a loop, and one whose first words were missed, is not streamed: its output comes
    whole, at the end. So does a structured reply, which may be repaired: meanwhile its ``fields``
    that are there and fit are known.
    """

    def __init__(self, nodes: frozenset[str]) -> None:
        """``nodes``: those whose output is the run's."""
        self._nodes, self._speaker, self._sent = nodes, "", ""
        self._is_broken = False
        self.is_taken_back = False
        """True if words were sent that the node has taken back."""
        self.fields: Mapping[str, Any] | None = None
        """The fields of a structured reply; None: the reply is a text, or does not count."""

    def add(self, event: StreamEvent) -> str:
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
            if data["activation"] == self._speaker:  # what it said is said again, or not known
                self._is_broken = self._is_broken or bool(self._sent or data.get("lost"))
            return ""
        chunk: Mapping[str, Any] = data["chunk"]
        kind = chunk.get("kind", "text")
        if data["activation"] != self._speaker:
            return ""
        if kind in ("reset", "retry", "tool_call"):
            self._is_broken, self.fields = self._is_broken or bool(self._sent), None
            self.is_taken_back = self.is_taken_back or bool(self._sent and kind == "reset")
        elif kind == "output":
            self.fields = cast("Mapping[str, Any]", chunk.get("fields") or {})
        if kind != "text" or self._is_broken or self.fields is not None:
            return ""
        text = str(chunk.get("text", ""))
        self._sent += text
        return text

    def is_superseded(self, output: str) -> bool:
        """Return whether words were sent that the output does not begin with."""
        return not output.startswith(self._sent)

    def rest(self, output: str) -> str:
        """Return what is left to send of the output."""
        if self.is_superseded(output):
            return f"\n\n{output}"  # what was sent cannot be taken back
        return output[len(self._sent) :]


def messages_in(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request. Raises: BadRequest (AX966): there are none."""
    found: Any = body.get("messages")
    if (
        not isinstance(found, list)
        or not found
        or not all(isinstance(m, dict) and "role" in m for m in cast("list[Any]", found))
    ):
        raise BadRequest(
            "AX966",
            "the request has no messages.",
            "Send a list of messages, each with role and content.",
        )
    return cast("list[dict[str, Any]]", found)


def content_text(content: Any) -> str:
    """Return the text of a message's content, a text or parts of text.

    A part that a run has in its folder is left out. Raises: BadRequest (AX966): one is something
    else.

    >>> content_text([{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}])
    'ab'
    """
    if not isinstance(content, list):
        return "" if content is None else str(content)
    texts: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, dict) and "path" in part:
            continue
        text: Any = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
        if not isinstance(text, str):
            message = "a part of the content of a message is not a text."
            hint = "Send texts; upload files with POST /v1/files."
            raise BadRequest("AX966", message, hint)
        texts.append(text)
    return "".join(texts)


def question_text(question: Mapping[str, Any]) -> str:
    r"""Return the text of a question: what a person is asked to do, then what it is about.

    >>> question_text({"text": "Dear Ada", "data": {"description": "May this be sent?"}})
    'May this be sent?\n\nDear Ada'
    """
    text, description = str(question["text"]), str(question["data"].get("description") or "")
    parts = [description, text] if description != text else [text]
    return "\n\n".join(filter(None, parts))


def only_field(value: Any) -> Any:
    """Return the value of the only field of a mapping; what is something else as it is."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return next(iter(fields.values())) if len(fields) == 1 else fields


def output_text(run: Mapping[str, Any]) -> str:
    """Return the output of a run as a text; of one that asks, its first question."""
    if run["questions"]:
        return question_text(run["questions"][0])
    output: Any = run["output"]
    if (messages := _messages_of(output)) is not None:
        content = messages[-1]["content"]
        return _said(content) or content_text(content)
    output = only_field(output)
    if output is None or isinstance(output, str):
        return output or ""
    if (said := _said(output)) is not None:
        return said
    return json.dumps(output, ensure_ascii=False)


def _said(output: Any) -> str | None:
    r"""Return a reply that holds images, files or recordings as a text that names them; None: it
    is no such reply.

    >>> _said([{"type": "text", "text": "Look:"}, {"type": "image", "path": "made/leaf.png"}])
    'Look:\n[image: leaf.png]'
    """
    from axil_models import content_text as text_with_labels, is_content, is_part

    parts = cast("list[Any]", output if isinstance(output, list) else [output])
    return text_with_labels(parts) if is_content(parts) and any(map(is_part, parts)) else None


__all__ = [
    "PARTS",
    "Words",
    "answer_open",
    "content_text",
    "continuing_input",
    "conversation_of",
    "earlier_messages",
    "find_asking",
    "input_from",
    "input_of",
    "last_nodes",
    "messages_in",
    "only_field",
    "output_text",
    "question_text",
    "stopped",
    "takes_messages",
    "until_stopped",
    "workflow_data",
]
