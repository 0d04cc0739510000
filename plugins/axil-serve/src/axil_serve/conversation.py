"""Conversations as the input of runs, and the words of runs as messages, for protocols."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from axil.plugin import EXIT
from axil_serve.errors import BadRequest
from axil_serve.service import OVER, RunService, StreamEvent


def input_of(service: RunService, name: str, body: Mapping[str, Any]) -> Any:
    """Return the input of a run: ``input`` of the body, else the conversation or its end."""
    if "input" in body:
        return body["input"]
    workflow = service.workflows.get(name)
    messages = messages_in(body)
    payload = "" if workflow is None else workflow.plan.graph.spec.payload
    if payload == "messages" and all(isinstance(m.get("content"), str) for m in messages):
        return [{"role": m["role"], "content": m["content"]} for m in messages]
    return content_text(messages[-1].get("content"))


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
        self._nodes, self._speaker, self._said = nodes, "", ""
        self._is_broken = False
        self.fields: Mapping[str, Any] | None = None
        """The fields of a structured reply; None: the reply is a text, or does not count."""

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
        kind = chunk.get("kind", "text")
        if data["activation"] != self._speaker:
            return ""
        if kind in ("reset", "retry", "tool_call"):
            self._is_broken, self.fields = self._is_broken or bool(self._said), None
        elif kind == "output":
            self.fields = cast("Mapping[str, Any]", chunk.get("fields") or {})
        if kind != "text" or self._is_broken or self.fields is not None:
            return ""
        text = str(chunk.get("text", ""))
        self._said += text
        return text

    def is_superseded(self, output: str) -> bool:
        """Return whether words were sent that the output does not begin with."""
        return not output.startswith(self._said)

    def rest(self, output: str) -> str:
        """Return what is left to send of the output."""
        if self.is_superseded(output):
            return f"\n\n{output}"  # what was sent cannot be taken back
        return output[len(self._said) :]


def has_stopped(event: StreamEvent) -> bool:
    """Return whether the run has ended, or waits for a person."""
    if event.kind != "step" or event.data["kind"] != "ended":
        return False
    return event.data["status"] in OVER or event.data["status"] == "paused"


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
    """Return the text of a message's content, a text or parts."""
    if isinstance(content, list):
        parts = cast("list[Any]", content)
        return "".join(
            str(cast("dict[str, Any]", part).get("text", ""))
            for part in parts
            if isinstance(part, dict)
        )
    return "" if content is None else str(content)


def said(run: Mapping[str, Any]) -> str:
    """Return the output of a run as a text; of one that asks, its first question."""
    if run["questions"]:
        return str(run["questions"][0]["text"])
    output: Any = run["output"]
    if isinstance(output, dict) and len(cast("dict[str, Any]", output)) == 1:
        [output] = cast("dict[str, Any]", output).values()
    if output is None or isinstance(output, str):
        return output or ""
    return json.dumps(output, ensure_ascii=False)


__all__ = ["Words", "content_text", "has_stopped", "input_of", "last_nodes", "messages_in", "said"]
