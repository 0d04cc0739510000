"""A reply of the Messages API, made from the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from axil_anthropic.provided import used_by
from axil_anthropic.sending import EXTRA
from axil_models import (
    BrokenOff,
    Prices,
    Reply,
    Showing,
    ToolCall,
    Usage,
    citation,
    distinct,
    read_arguments,
    reasoning_parts,
    refusal_parts,
)

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


class StreamedReply:
    """The blocks that have arrived."""

    def __init__(self, show: Showing, origin: str) -> None:
        self._show, self._origin = show, origin
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._model = self._finish = ""
        self.container = ""
        """The id of the container of the service's tools; empty: there is none."""
        self._counts: dict[str, int] = {}

    def take(self, event: Any) -> None:
        """Take in an event of the stream."""
        kind = event.type
        if kind == "message_start":
            self._model = str(event.message.model or "")
            self._count(event.message.usage)
        elif kind == "content_block_start":
            self._begin(event.index, event.content_block)
        elif kind == "content_block_delta":
            self._delta(event.index, event.delta)
        elif kind == "message_delta":
            self._finish = str(event.delta.stop_reason or self._finish)
            container = getattr(event.delta, "container", None)
            self.container = str(container.id) if container is not None else self.container
            self._count(event.usage)

    def take_whole(self, body: Mapping[str, Any]) -> None:
        """Take in a reply that came in one piece."""
        from anthropic.types import Message

        message: Any = Message.construct(**body)
        self._model, self._finish = str(message.model or ""), str(message.stop_reason or "")
        container = getattr(message, "container", None)
        self.container = str(container.id) if container is not None else self.container
        self._count(message.usage)
        for at, block in enumerate(message.content):
            self._begin(at, block)
            if block.type == "tool_use":
                self._arguments[at] = json.dumps(block.input)
                self._called(at, self._arguments[at])
            elif block.type in ("text", "thinking"):
                kind = "reasoning" if block.type == "thinking" else "text"
                self._show({"kind": kind, "text": getattr(block, block.type)})

    def _begin(self, at: int, block: Any) -> None:
        self._blocks[at] = block.model_dump(mode="json", exclude_none=True)
        if block.type == "tool_use":
            self._numbers[at], self._arguments[at] = len(self._numbers), ""
            self._called(at, "")

    def _delta(self, at: int, delta: Any) -> None:
        if delta.type == "citations_delta" and at in self._blocks:
            block = self._blocks[at]
            said = delta.citation.model_dump(mode="json", exclude_none=True)
            block["citations"] = [*(block.get("citations") or ()), said]
            self._show({"kind": "part", "part": _cited(said)})
        name = _DELTAS.get(delta.type)
        if name is None:
            return
        if at not in self._blocks:  # its beginning was lost
            raise BrokenOff
        added, block = str(getattr(delta, name)), self._blocks[at]
        if name == "partial_json":
            self._arguments[at] = self._arguments.get(at, "") + added
            if at in self._numbers:
                self._called(at, added)
            return
        block[name] = str(block.get(name) or "") + added
        if name in ("text", "thinking") and added:
            self._show({"kind": "reasoning" if name == "thinking" else "text", "text": added})

    def _called(self, at: int, added: str) -> None:
        block = self._blocks[at]
        self._show(
            {
                "kind": "tool_call_delta",
                "index": self._numbers[at],
                "id": block["id"],
                "name": block["name"],
                "arguments": added,
            }
        )

    def _count(self, usage: Any) -> None:
        for name in (
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
        ):
            count = getattr(usage, name, None)
            if count is not None:
                self._counts[name] = count
        details = getattr(usage, "output_tokens_details", None)
        if details is not None:
            self._counts["thinking_tokens"] = getattr(details, "thinking_tokens", None) or 0

    def reply(self, prices: Prices | None) -> Reply:
        """Return the whole reply. Raises: BrokenOff: there is no end."""
        if not self._finish:
            raise BrokenOff
        calls: list[ToolCall] = []
        for at, words in self._arguments.items():
            block = self._blocks[at]
            # some services give the input whole, at the beginning
            whole = None if words else block.get("input")
            arguments, fault = read_arguments(json.dumps(whole) if whole else words)
            block["input"] = arguments
            if at in self._numbers:
                call = ToolCall(
                    id=block["id"], name=block["name"], arguments=arguments, fault=fault
                )
                calls.append(call)
        blocks = [self._blocks[at] for at in sorted(self._blocks)]
        has_more = any(block["type"] not in ("text", "tool_use") for block in blocks)
        kept = [block for block in blocks if block["type"] != "text" or block.get("text")]
        usage = self._usage()
        text = "".join(block.get("text", "") for block in blocks if block["type"] == "text")
        finish = _FINISH.get(self._finish, self._finish)
        notes = [note for block in blocks for note in block.get("citations") or ()]
        has_more = has_more or finish == "pause_turn"
        used = used_by(blocks)
        for part in used:
            self._show({"kind": "part", "part": part})
        return Reply(
            text=text,
            tool_calls=tuple(calls),
            usage=usage if prices is None else prices.priced(usage),
            finish=finish,
            model=self._model,
            extra={EXTRA: {"origin": self._origin, "content": kept}} if has_more else {},
            parts=distinct(
                [
                    *reasoning_parts(block.get("thinking", "") for block in blocks),
                    *used,
                    *map(_cited, notes),
                    *refusal_parts([text] if finish == "refusal" else ()),
                ]
            ),
        )

    def _usage(self) -> Usage:
        counts = self._counts
        cached = counts.get("cache_read_input_tokens", 0)
        return Usage(
            input_tokens=counts.get("input_tokens", 0)
            + cached
            + counts.get("cache_creation_input_tokens", 0),
            output_tokens=counts.get("output_tokens", 0),
            cached_tokens=cached,
            reasoning_tokens=counts.get("thinking_tokens", 0),
            cache_write_tokens=counts.get("cache_creation_input_tokens", 0),
        )


def _cited(said: Mapping[str, Any]) -> dict[str, Any]:
    title = said.get("title") or said.get("document_title")
    url = said.get("url") or said.get("source")
    return citation(url=url, title=title, text=said.get("cited_text"))


def joined(one: Reply, other: Reply) -> Reply:
    """Return a reply that was continued, and what continues it, as one."""
    counts = {name: getattr(one.usage, name) + getattr(other.usage, name) for name in _COUNTS}
    kept = [*_content(one), *(_content(other) or _plain(other))]
    return replace(
        other,
        text=one.text + other.text,
        usage=Usage(**counts),
        extra={EXTRA: {**one.extra[EXTRA], "content": kept}},
        parts=distinct((*one.parts, *other.parts)),
    )


_COUNTS = Usage.__slots__


def _content(reply: Reply) -> list[Any]:
    extra: Any = reply.extra.get(EXTRA) or {}
    return list(extra.get("content") or ())


def _plain(reply: Reply) -> list[Any]:
    texts = [{"type": "text", "text": reply.text}] if reply.text else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in reply.tool_calls
    ]
    return [*texts, *calls]
