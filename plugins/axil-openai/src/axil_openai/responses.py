"""``openai_responses``: the Responses API.

Nothing is stored at the service unless asked for: the conversation is sent whole, each time. All
items of a reply are kept in ``Reply.extra`` and go back with its message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from axil.plugin import Message
from axil_models import (
    PROVIDER_TOOLS,
    BrokenOff,
    Part,
    Prices,
    Reply,
    Request,
    Showing,
    ToolCall,
    ToolSpec,
    Usage,
    citation,
    content_text,
    distinct,
    kept_for,
    made_image,
    parameters_of_sdk,
    parts_of,
    read_arguments,
    reading_reply,
    reasoning_parts,
    refusal_parts,
    sdk_arguments,
    sent_as,
    unsendable,
    valid_text,
    with_instruction,
)
from axil_openai.connection import Connection
from axil_openai.profiles import Form
from axil_openai.provided import (
    PROVIDED,
    SHOWN,
    answered,
    provider_call,
    provider_calls,
    used_by,
)
from axil_openai.requests import chosen_tool, held, tool_schema
from axil_openai.streamed import StreamedModel
from axil_openai.wire import data_url, file_name

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_REFUSED = dict.fromkeys(("messages", "input", "instructions", "tools", "stream"), "") | {
    "stop": "The Responses API has no stop; use the Chat Completions API, or max_tokens.",
    "n": "A model gives one reply.",
}
_EXTRA = "openai_responses"
_REASONS = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)(?!\S*-chat)")
"""OpenAI's models that reason; others refuse to be asked for what they reasoned."""


class OpenAIResponsesModel(StreamedModel):
    """``openai_responses``: a model behind the Responses API.

    >>> OpenAIResponsesModel("small").modalities == {"text", "image", "file"}
    True
    """

    capabilities = ("speaks_responses", "seals")
    carried = ("text", "image", "file")
    batch_path = "/v1/responses"
    provider_tools = PROVIDER_TOOLS

    def _asked(self, request: Request, form: Form = "prompt") -> dict[str, Any]:
        """Return the request as the API takes it."""
        config, settings = self.config, self.config.settings_for(request, _REFUSED)
        messages = list(request.messages)
        asked: dict[str, Any] = {"model": settings.pop("model", None) or config.name}
        text: dict[str, Any] = dict(settings.pop("text", None) or {})
        if request.output is not None:
            bound, report = held(request.output, form)
            messages = with_instruction(messages, report)
            if bound is not None:
                text["format"] = {"type": "json_schema" if bound else "json_object", **bound}
        if "verbosity" in settings:
            text["verbosity"] = settings.pop("verbosity")
        if text:
            asked["text"] = text
        settings.setdefault("store", False)
        origin = f"{self.service.address} {asked['model']}"
        asked["input"] = _input(messages, bool(settings["store"]), origin)
        is_own = self.service.profile.is_own
        if is_own and not settings["store"] and _REASONS.match(asked["model"]):
            settings.setdefault("include", ["reasoning.encrypted_content"])
        if request.tools:
            asked["tools"] = [
                sent_as(each, PROVIDED) if each.kind else _tool(each, config.strict_tools)
                for each in request.tools
            ]
            kinds = {each.kind for each in request.tools}
            if shown := [SHOWN[kind] for kind in sorted(SHOWN.keys() & kinds)]:
                settings["include"] = [*(settings.get("include") or ()), *shown]
        choice = chosen_tool(settings.get("tool_choice"))
        if choice is not None:
            settings["tool_choice"] = {"type": "function", "name": choice}
        for ours in ("max_tokens", "max_completion_tokens"):
            if ours in settings:
                settings.setdefault("max_output_tokens", settings.pop(ours))
        effort = settings.pop("reasoning_effort", None)
        if effort is not None:
            settings["reasoning"] = {**(settings.get("reasoning") or {}), "effort": effort}
        asked["timeout"] = settings.pop("timeout_seconds", None)
        return {**asked, **settings}

    async def _attempt(self, client: AsyncOpenAI, asked: Mapping[str, Any], show: Showing) -> Reply:
        create: Any = client.responses.create
        if not self._known:
            self._known = parameters_of_sdk(create)
        partial = self._partial(asked, show)
        async with await create(stream=True, **sdk_arguments(asked, self._known)) as stream:
            whole = await self.service.whole_of(stream.response)
            with reading_reply():
                if whole is not None:
                    partial.add_whole(whole)
                else:
                    async for event in stream:
                        partial.add(event)
                return partial.reply(self.config.prices)

    def _read_whole(
        self, whole: Mapping[str, Any], asked: Mapping[str, Any], show: Showing
    ) -> Reply:
        """Return the reply that came in one piece."""
        partial = self._partial(asked, show)
        partial.add_whole(whole)
        return partial.reply(self.config.prices)

    def _partial(self, asked: Mapping[str, Any], show: Showing) -> _PartialReply:
        origin = f"{self.service.address} {asked['model']}"
        return _PartialReply(show, self.service, origin)


def _tool(spec: ToolSpec, is_strict: bool) -> dict[str, Any]:
    parameters, is_strict = tool_schema(spec.parameters, is_strict)
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters,
        "strict": is_strict,
    }


def _input(messages: Sequence[Message], is_stored: bool, origin: str) -> list[dict[str, Any]]:
    """Return the conversation as items: those of this service's replies as they came."""
    items: list[dict[str, Any]] = []
    called: dict[str, Mapping[str, Any]] = {}
    for each in messages:
        kept = kept_for(each, _EXTRA, origin) or {}
        if "output" in kept:
            items += _returned(kept["output"], is_stored)
            called |= provider_calls(kept["output"])
        elif each.get("role") == "tool" and each.get("tool_call_id") in called:
            items += answered(called[str(each["tool_call_id"])], each.get("content"))
        else:
            items += _items(each)
    return items


def _returned(kept: Sequence[Mapping[str, Any]], is_stored: bool) -> list[dict[str, Any]]:
    """Return items as they go back: without reasoning that is neither stored nor sealed, and then
    without the ids that tie the others to it.
    """
    items = [dict(item) for item in kept]
    sent = [
        item
        for item in items
        if is_stored or item.get("type") != "reasoning" or item.get("encrypted_content")
    ]
    if len(sent) < len(items):
        for item in sent:
            item.pop("id", None)
    return sent


def _items(given: Message) -> list[dict[str, Any]]:
    role, content = str(given.get("role") or "user"), given.get("content")
    if role == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": str(given.get("tool_call_id") or ""),
                "output": valid_text(content_text(content)),
            }
        ]
    items: list[dict[str, Any]] = []
    if role == "user" and not isinstance(content, str):
        items.append({"role": "user", "content": [_part(part) for part in parts_of(content)]})
    elif content:
        items.append({"role": role, "content": valid_text(content_text(content))})
    for call in cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ()):
        arguments = json.dumps(call.get("arguments") or {}, ensure_ascii=True)
        named = {"call_id": call["id"], "name": call["name"], "arguments": arguments}
        items.append({"type": "function_call", **named})
    return items


def _part(part: Part) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {"type": "input_text", "text": valid_text(part["text"])}
    if kind not in ("image", "file") or part.get("path"):
        raise unsendable(part, "the Responses API")
    sent: dict[str, Any] = {"type": f"input_{kind}"}
    if kind == "image":
        sent["detail"] = part.get("detail") or "auto"
    if part.get("file_id"):
        sent["file_id"] = part["file_id"]
    elif kind == "image":
        sent["image_url"] = part.get("url") or data_url(part)
    elif part.get("data"):
        sent |= {"filename": file_name(part), "file_data": data_url(part)}
    else:
        sent["file_url"] = part["url"]
    return sent


_TEXTS = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


class _PartialReply:
    """A reply that comes in events."""

    def __init__(self, show: Showing, connection: Connection, origin: str) -> None:
        self._show, self._connection, self._origin = show, connection, origin
        self._thoughts: list[str] = []
        self._calls: dict[int, tuple[int, str, str]] = {}
        self._items: dict[int, Any] = {}
        self._response: Any = None

    def add(self, event: Any) -> None:
        """Add an event of the stream. Raises: ModelError: the service says that it failed."""
        kind = event.type
        if kind in _TEXTS:
            if event.delta:
                self._show({"kind": _TEXTS[kind], "text": event.delta})
                self._thoughts += [event.delta] if _TEXTS[kind] == "reasoning" else []
        elif kind == "response.output_item.added" and event.item.type == "function_call":
            item, number = event.item, len(self._calls)
            self._calls[event.output_index] = (number, item.call_id, item.name)
            self._called(event.output_index, item.arguments or "")
        elif kind == "response.function_call_arguments.delta":
            self._called(event.output_index, event.delta or "")
        elif kind == "response.output_item.done":
            self._items[event.output_index] = event.item
        elif kind in ("response.completed", "response.incomplete"):
            self._response = event.response
        elif kind == "response.failed":
            error = event.response.error
            message, code = getattr(error, "message", ""), getattr(error, "code", None)
            raise self._connection.failed({"message": message, "code": code})
        elif kind == "error":
            raise self._connection.failed({"message": event.message, "code": event.code})

    def add_whole(self, whole: Mapping[str, Any]) -> None:
        """Add a reply that came in one piece."""
        from openai.types.responses import Response

        self._response = Response.construct(**whole)
        for item in self._response.output:
            for part in (item.content if item.type == "message" else None) or ():
                if part.type == "output_text" and part.text:
                    self._show({"kind": "text", "text": part.text})

    def _called(self, at: int, added: str) -> None:
        number, id, name = self._calls.get(at, (at, "", ""))
        self._show(
            {"kind": "tool_call_delta", "index": number, "id": id, "name": name, "arguments": added}
        )

    def reply(self, prices: Prices | None) -> Reply:
        """Return all of it. Raises: BrokenOff: there is no end."""
        response = self._response
        if response is None:
            raise BrokenOff
        items: list[Any] = list(response.output or ())
        items = items or [self._items[at] for at in sorted(self._items)]
        items = [self._items.get(at, item) for at, item in enumerate(items)]
        texts = [part for item in items if item.type == "message" for part in item.content or ()]
        refused = [part.refusal for part in texts if part.type == "refusal"]
        said = [part.text for part in texts if part.type == "output_text"]
        calls = tuple(call for item in items if (call := _call(item)) is not None)
        usage = _usage(response.usage) if response.usage is not None else Usage()
        kept = [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]
        made = [
            _part_of(item) for item in items if item.type == "image_generation_call" and item.result
        ]
        notes = [note for part in texts for note in getattr(part, "annotations", None) or ()]
        cited = [_cited(note) for note in notes if note.type.endswith("citation")]
        used = [part for item in items for part in used_by(item)]
        for part in (*used, *cited, *made):
            self._show({"kind": "part", "part": part})
        return Reply(
            text="".join(said or refused),
            tool_calls=calls,
            usage=usage if prices is None else prices.priced(usage),
            finish="refusal" if refused else _finish(response, bool(calls)),
            model=str(response.model or ""),
            extra={_EXTRA: {"origin": self._origin, "output": kept}},
            parts=distinct(
                [*reasoning_parts(self._thoughts), *used, *cited, *made, *refusal_parts(refused)]
            ),
        )


def _cited(note: Any) -> dict[str, Any]:
    title = getattr(note, "title", None) or getattr(note, "filename", None)
    return citation(url=getattr(note, "url", None), title=title)


def _part_of(item: Any) -> dict[str, Any]:
    form = getattr(item, "output_format", None) or "png"
    return made_image(item.result, f"image/{form}")


def _call(item: Any) -> ToolCall | None:
    if item.type != "function_call":
        return provider_call(item)
    arguments, fault = read_arguments(item.arguments)
    id = item.call_id or item.id or ""
    return ToolCall(id=id, name=item.name, arguments=arguments, fault=fault)


def _finish(response: Any, has_calls: bool) -> str:
    if response.status == "incomplete":
        reason = str(getattr(response.incomplete_details, "reason", None) or "length")
        return {"max_output_tokens": "length", "content_filter": "filter"}.get(reason, reason)
    return "tools" if has_calls else "stop"


def _usage(given: Any) -> Usage:
    inputs = getattr(given, "input_tokens_details", None)
    outputs = getattr(given, "output_tokens_details", None)
    return Usage(
        input_tokens=given.input_tokens or 0,
        output_tokens=given.output_tokens or 0,
        cached_tokens=getattr(inputs, "cached_tokens", None) or 0,
        reasoning_tokens=getattr(outputs, "reasoning_tokens", None) or 0,
        cost=float(getattr(given, "cost", None) or 0),  # of OpenRouter
        cache_write_tokens=getattr(inputs, "cache_write_tokens", None) or 0,
    )
