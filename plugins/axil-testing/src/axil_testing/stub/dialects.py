"""The dialects of services: an act as the pieces of a stream, and as an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from axil_testing.stub.act import Act, event, pieces

MODEL: Final = "stub-1"
TITLE: Final = "A page"
"""The title of what is cited."""


class Dialect(Protocol):
    """One API."""

    base: str
    """The end of a client's base URL."""

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the pieces of an answer."""
        ...

    def whole(self, act: Act, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an answer in one piece."""
        ...

    def error(self, act: Act) -> Mapping[str, Any]:
        """Return the body of an error."""
        ...

    def failed(self, act: Act) -> bytes:
        """Return the piece of a stream that says that it failed, and that it may be asked again."""
        ...


class Chat:
    """Chat Completions."""

    base = "/v1"

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the role, the text, the reason of its end, usage, and the mark of the end."""
        yield self._chunk({"role": "assistant", "content": ""})
        for thought in pieces(act.thought, 2):
            yield self._chunk({"reasoning_content": thought})
        for word in act.words:
            yield self._chunk({"audio": {"transcript": word}} if act.audio else {"content": word})
        for piece in pieces(act.audio, 1):
            yield self._chunk({"audio": {"id": "audio_1", "data": piece}})
        for word in pieces(act.refusal, 2):
            yield self._chunk({"refusal": word})
        if act.cited:
            note = {"type": "url_citation", "url_citation": {"url": act.cited, "title": TITLE}}
            yield self._chunk({"annotations": [note]})
        if act.image:
            url = f"data:image/png;base64,{act.image}"
            yield self._chunk({"images": [{"type": "image_url", "image_url": {"url": url}}]})
        for number, call in enumerate(act.calls):
            first = {
                "index": number,
                "id": call.id or f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": ""},
            }
            yield self._chunk({"tool_calls": [first]})
            sent: list[Any] = [call.arguments] if call.sent == "object" else pieces(call.text, 3)
            for part in sent:
                yield self._chunk(
                    {"tool_calls": [{"index": number, "function": {"arguments": part}}]}
                )
        usual = "tool_calls" if act.calls else "stop"
        yield self._chunk(
            {}, {"length": "length", "filter": "content_filter"}.get(act.finish, usual)
        )
        if "include_usage" in (asked.get("stream_options") or ()):
            yield self._chunk(None, usage=act.usage)
        yield event("[DONE]")

    def _chunk(
        self, delta: Any, finish: str | None = None, usage: Mapping[str, float] | None = None
    ) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        chunk: dict[str, Any] = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": MODEL,
            "choices": choices,
        }
        if usage is not None:
            chunk["usage"] = {
                "prompt_tokens": usage["input"],
                "completion_tokens": usage["output"],
                "total_tokens": usage["input"] + usage["output"],
                "prompt_tokens_details": {
                    "cached_tokens": usage["cached"],
                    "cache_write_tokens": usage.get("written", 0),
                },
                "completion_tokens_details": {"reasoning_tokens": usage["reasoning"]},
                **({"cost": usage["cost"]} if "cost" in usage else {}),
            }
        return event(chunk)

    def whole(self, act: Act, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """As OpenAI says it."""
        calls = [
            {
                "id": call.id or f"call_{number}",
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.arguments if call.sent == "object" else call.text,
                },
            }
            for number, call in enumerate(act.calls)
        ]
        message = {"role": "assistant", "content": act.text, "tool_calls": calls or None}
        if act.thought:
            message["reasoning_content"] = act.thought
        data = json.loads(self._chunk(None, usage=act.usage).partition(b"data: ")[2])
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        return {**data, "object": "chat.completion", "choices": [choice]}

    def error(self, act: Act) -> Mapping[str, Any]:
        """As OpenAI says it."""
        return {
            "error": {
                "message": act.message,
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        }

    def failed(self, act: Act) -> bytes:
        """As OpenAI says it."""
        error = {**self.error(act)["error"], "type": "server_error"}
        return event({"error": error} if act.body is None else act.body)


class Responses:
    """Responses."""

    base = "/v1"

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield items, each added, filled and done, between the response's beginning and its
        end.
        """
        output: list[dict[str, Any]] = []
        yield self._event("response.created", response=self._response([], "in_progress"))
        if act.thought or act.sealed:
            item = {
                "id": "rs_1",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": act.thought}],
                "encrypted_content": act.sealed,
            }
            yield self._event(
                "response.output_item.added",
                output_index=0,
                item={"id": "rs_1", "type": "reasoning", "summary": []},
            )
            for part in pieces(act.thought, 2):
                yield self._event(
                    "response.reasoning_summary_text.delta",
                    item_id="rs_1",
                    output_index=0,
                    summary_index=0,
                    delta=part,
                )
            output.append(item)
            yield self._event("response.output_item.done", output_index=0, item=item)
        for item in act.own:
            output.append(dict(item))
            yield self._event("response.output_item.done", output_index=len(output) - 1, item=item)
        if act.text or act.refusal:
            yield from self._message(act, output)
        if act.image:
            made = {"id": "ig_1", "type": "image_generation_call", "status": "completed"}
            output.append({**made, "result": act.image, "output_format": "png"})
            yield self._event(
                "response.output_item.done", output_index=len(output) - 1, item=output[-1]
            )
        for number, call in enumerate(act.calls):
            yield from self._called(call.id or f"call_{number}", call.name, call.text, output)
        status = "incomplete" if act.finish else "completed"
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(act.finish)
        yield self._event(
            f"response.{status}", response=self._response(output, status, act.usage, reason)
        )

    def _message(self, act: Act, output: list[dict[str, Any]]) -> Iterator[bytes]:
        at, id = len(output), f"msg_{len(output)}"
        yield self._event(
            "response.output_item.added",
            output_index=at,
            item={"id": id, "type": "message", "role": "assistant", "content": []},
        )
        for word in act.words:
            yield self._event(
                "response.output_text.delta",
                item_id=id,
                output_index=at,
                content_index=0,
                delta=word,
                logprobs=[],
            )
        for word in pieces(act.refusal, 2):
            yield self._event(
                "response.refusal.delta", item_id=id, output_index=at, content_index=0, delta=word
            )
        note = {"type": "url_citation", "url": act.cited, "title": TITLE}
        notes = [{**note, "start_index": 0, "end_index": len(act.text)}] if act.cited else []
        text: dict[str, Any] = {"type": "output_text", "text": act.text, "annotations": notes}
        content: list[dict[str, Any]] = (
            [text] if act.text else [{"type": "refusal", "refusal": act.refusal}]
        )
        output.append(
            {
                "id": id,
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
        yield self._event("response.output_item.done", output_index=at, item=output[-1])

    def _called(
        self, call_id: str, name: str, arguments: str, output: list[dict[str, Any]]
    ) -> Iterator[bytes]:
        at = len(output)
        item = {
            "id": f"fc_{at}",
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": "",
            "status": "in_progress",
        }
        yield self._event("response.output_item.added", output_index=at, item=item)
        for part in pieces(arguments, 3):
            yield self._event(
                "response.function_call_arguments.delta",
                item_id=item["id"],
                output_index=at,
                delta=part,
            )
        output.append({**item, "arguments": arguments, "status": "completed"})
        yield self._event("response.output_item.done", output_index=at, item=output[-1])

    def _response(
        self,
        output: Any,
        status: str,
        usage: Mapping[str, float] | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        counted = usage and {
            "input_tokens": usage["input"],
            "output_tokens": usage["output"],
            "total_tokens": usage["input"] + usage["output"],
            "input_tokens_details": {"cached_tokens": usage["cached"]},
            "output_tokens_details": {"reasoning_tokens": usage["reasoning"]},
        }
        response = {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": MODEL,
            "status": status,
            "output": output,
            "usage": counted,
        }
        more: dict[str, Any] = {
            "incomplete_details": {"reason": reason} if reason else None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        return {**response, **more}

    def _event(self, kind: str, **data: Any) -> bytes:
        return event({"type": kind, "sequence_number": 0, **data}, kind)

    def whole(self, act: Act, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """As OpenAI says it: what the last event holds."""
        return _data(list(self.stream(act, asked))[-1])["response"]

    def error(self, act: Act) -> Mapping[str, Any]:
        """As OpenAI says it."""
        return Chat().error(act)

    def failed(self, act: Act) -> bytes:
        """As OpenAI says it."""
        return self._event("error", message=act.message, code="server_error", param=None)


class Messages:
    """Anthropic's Messages."""

    base = ""

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield blocks, each begun, filled and ended, between the message's beginning and its
        end.
        """
        at = 0
        usage = {
            "input_tokens": act.usage["input"] - act.usage["cached"],
            "cache_creation_input_tokens": act.usage.get("written", 0),
            "cache_read_input_tokens": act.usage["cached"],
            "output_tokens": 1,
        }
        message: dict[str, Any] = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "usage": usage,
        }
        yield self._event("message_start", message=message)
        if act.thought or act.sealed:
            thoughts = [
                {"type": "thinking_delta", "thinking": part} for part in pieces(act.thought, 2)
            ]
            yield from self._block(
                at,
                {"type": "thinking", "thinking": "", "signature": ""},
                [*thoughts, {"type": "signature_delta", "signature": act.sealed}],
            )
            at += 1
        for block in act.own:
            yield from self._block(at, block, [])
            at += 1
        if act.finish == "pause":
            searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
            yield from self._block(at, {**searched, "input": {}}, [])
            at += 1
        stated = act.text or act.refusal
        if stated:
            deltas: list[dict[str, Any]] = [
                {"type": "text_delta", "text": part} for part in pieces(stated, 8)
            ]
            if act.cited:
                place = {"type": "web_search_result_location", "url": act.cited, "title": TITLE}
                place |= {"cited_text": act.text, "encrypted_index": "e"}
                deltas.append({"type": "citations_delta", "citation": place})
            yield from self._block(at, {"type": "text", "text": ""}, deltas)
            at += 1
        for number, call in enumerate(act.calls):
            begun: dict[str, Any] = {
                "type": "tool_use",
                "id": call.id or f"call_{number}",
                "name": call.name,
                "input": call.arguments if call.sent == "object" else {},
            }
            sent = [] if call.sent == "object" else pieces(call.text, 3)
            yield from self._block(
                at, begun, [{"type": "input_json_delta", "partial_json": part} for part in sent]
            )
            at += 1
        usual = "refusal" if act.refusal else "tool_use" if act.calls else "end_turn"
        delta: dict[str, Any] = {
            "stop_reason": {
                "length": "max_tokens",
                "filter": "refusal",
                "pause": "pause_turn",
            }.get(act.finish, usual),
            "stop_sequence": None,
        }
        if act.finish == "pause":
            delta["container"] = {"id": "container_1", "expires_at": "2099-01-01T00:00:00Z"}
        thought = {"output_tokens_details": {"thinking_tokens": act.usage["reasoning"]}}
        yield self._event(
            "message_delta", delta=delta, usage={"output_tokens": act.usage["output"], **thought}
        )
        yield self._event("message_stop")

    def _block(
        self, at: int, begun: Mapping[str, Any], deltas: list[dict[str, Any]]
    ) -> Iterator[bytes]:
        yield self._event("content_block_start", index=at, content_block=begun)
        for delta in deltas:
            yield self._event("content_block_delta", index=at, delta=delta)
        yield self._event("content_block_stop", index=at)

    def _event(self, kind: str, **data: Any) -> bytes:
        return event({"type": kind, **data}, kind)

    def whole(self, act: Act, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """As Anthropic says it."""
        events = [_data(each) for each in self.stream(act, asked)]
        content: list[dict[str, Any]] = []
        for each in events:
            if each["type"] == "content_block_start":
                content.append({**each["content_block"]})
            elif each["type"] == "content_block_delta":
                delta = each["delta"]
                name = next(
                    name
                    for name in ("text", "thinking", "signature", "partial_json")
                    if name in delta
                )
                content[-1][name] = content[-1].get(name, "") + delta[name]
        for block in content:
            if "partial_json" in block:
                block["input"] = json.loads(block.pop("partial_json"))
        begun, ended = events[0]["message"], events[-2]
        usage = {**begun["usage"], **ended["usage"]}
        return {**begun, **ended["delta"], "content": content, "usage": usage}

    def error(self, act: Act) -> Mapping[str, Any]:
        """As Anthropic says it."""
        kind = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
        told = {"type": kind.get(act.status, "invalid_request_error"), "message": act.message}
        return {"type": "error", "error": told}

    def failed(self, act: Act) -> bytes:
        """As Anthropic says it."""
        return event(self.error(replace(act, status=529)), "error")


class Generate:
    """Gemini's generateContent."""

    base = ""

    def stream(self, act: Act, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield parts of one candidate; the last piece says why it ends."""
        for part in pieces(act.thought, 2):
            yield self._chunk([{"text": part, "thought": True}])
        for part in act.own:
            yield self._chunk([dict(part)])
        for word in act.words:
            yield self._chunk([{"text": word}])
        if act.audio:
            yield self._chunk([{"inlineData": {"mimeType": "audio/wav", "data": act.audio}}])
        if act.image:
            yield self._chunk([{"inlineData": {"mimeType": "image/png", "data": act.image}}])
        sealed = {"thoughtSignature": act.sealed} if act.sealed else {}
        for call in act.calls:
            arguments = json.loads(call.text)
            if call.sent == "pieces":
                yield from self._in_pieces(call.name, arguments, sealed)
                sealed = {}
                continue
            yield self._chunk(
                [
                    {
                        "functionCall": {
                            "id": call.id or None,
                            "name": call.name,
                            "args": arguments,
                        },
                        **sealed,
                    }
                ]
            )
            sealed = {}
        finish = {"length": "MAX_TOKENS", "filter": "SAFETY"}.get(act.finish, "STOP")
        last = [{"text": "", **sealed}] if sealed else []
        yield self._chunk(last, finish, act.usage, act.cited)

    def _chunk(
        self,
        parts: list[dict[str, Any]],
        finish: str | None = None,
        usage: Mapping[str, float] | None = None,
        cited: str = "",
    ) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if cited:
            web = {"uri": cited, "title": TITLE}
            candidate["groundingMetadata"] = {"groundingChunks": [{"web": web}]}
        chunk: dict[str, Any] = {
            "candidates": [{**candidate, "finishReason": finish} if finish else candidate],
            "modelVersion": MODEL,
        }
        if usage is not None:
            chunk["usageMetadata"] = {
                "promptTokenCount": usage["input"],
                "candidatesTokenCount": usage["output"] - usage["reasoning"],
                "cachedContentTokenCount": usage["cached"],
                "thoughtsTokenCount": usage["reasoning"],
            }
        return event(chunk)

    def _in_pieces(
        self, name: str, arguments: Mapping[str, Any], sealed: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """Yield a call whose arguments come one by one, texts in pieces."""
        yield self._chunk([{"functionCall": {"name": name, "willContinue": True}, **sealed}])
        for key, value in arguments.items():
            is_number = isinstance(value, (int, float))
            name_of = "numberValue" if is_number else "stringValue"
            name_of = "boolValue" if isinstance(value, bool) else name_of
            for part in pieces(value, 2) if isinstance(value, str) else [value]:
                told = {"jsonPath": f"$.{key}", name_of: part}
                yield self._chunk([{"functionCall": {"partialArgs": [told], "willContinue": True}}])
        yield self._chunk([{"functionCall": {}}])

    def whole(self, act: Act, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """As Google says it."""
        chunks = [_data(each) for each in self.stream(act, asked)]
        parts = [part for each in chunks for part in each["candidates"][0]["content"]["parts"]]
        last = chunks[-1]["candidates"][0]
        candidate = {**last, "content": {"role": "model", "parts": parts}}
        return {**chunks[-1], "candidates": [candidate]}

    def error(self, act: Act) -> Mapping[str, Any]:
        """As Google says it."""
        told: dict[str, Any] = {"code": act.status, "message": act.message, "status": "FAILED"}
        if act.wait:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            told["details"] = [{"@type": kind, "retryDelay": act.wait}]
        return {"error": told}

    def failed(self, act: Act) -> bytes:
        """As Google says it."""
        return event(self.error(replace(act, status=503)))


def _data(piece: bytes) -> Any:
    return json.loads(piece.partition(b"data: ")[2])


DIALECTS: Final[Mapping[str, Dialect]] = {
    "chat": Chat(),
    "responses": Responses(),
    "messages": Messages(),
    "generate": Generate(),
}
