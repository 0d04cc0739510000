"""``openai``: the Chat Completions API, of OpenAI and of every server that speaks as it does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from axil.plugin import Message
from axil_models import (
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
    made_audio,
    made_image,
    parameters_of_sdk,
    parts_of,
    read_arguments,
    reading_reply,
    refusal_parts,
    sdk_arguments,
    unsendable,
    valid_text,
    with_instruction,
)
from axil_openai.profiles import Form
from axil_openai.requests import chosen_tool, held, tool_schema
from axil_openai.streamed import StreamedModel
from axil_openai.thoughts import EXTRA as _EXTRA, Thoughts, more_of, sent_back, with_stand_ins
from axil_openai.wire import data_url, file_name, joined_base64

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_REFUSED = dict.fromkeys(
    ("messages", "tools", "stream", "response_format", "functions", "function_call"), ""
) | {"n": "A model gives one reply."}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FINISH = {"tool_calls": "tools", "function_call": "tools", "content_filter": "filter"}


class OpenAIModel(StreamedModel):
    """``openai``: a model behind the Chat Completions API.

    >>> OpenAIModel("small", base_url="http://localhost:8080/v1")
    OpenAIModel('small', host='localhost')
    """

    capabilities = ("speaks_chat",)
    carried = ("text", "image", "file", "audio")
    batch_path = "/v1/chat/completions"

    def _asked(self, request: Request, form: Form = "prompt") -> dict[str, Any]:
        """Return the request as the API takes it."""
        config, settings = self.config, self.config.settings_for(request, _REFUSED)
        messages = list(request.messages)
        asked: dict[str, Any] = {"model": settings.pop("model", None) or config.name}
        if request.output is not None:
            bound, report = held(request.output, form)
            messages = with_instruction(messages, report)
            if bound is not None:
                schema = {"type": "json_schema", "json_schema": bound}
                asked["response_format"] = schema if bound else {"type": "json_object"}
        origin = f"{self.service.address} {asked['model']}"
        profile = self.service.profile
        asked["messages"] = [_message(each, origin) for each in messages]
        if profile.wants_thoughts:
            known, thinking = asked["messages"], profile.thinking
            asked["messages"] = with_stand_ins(known, thinking, str(asked["model"]))
        if request.tools:
            asked["tools"] = [_tool(each, config.strict_tools) for each in request.tools]
        choice = chosen_tool(settings.get("tool_choice"))
        if choice is not None:
            settings["tool_choice"] = {"type": "function", "function": {"name": choice}}
        for ours in profile.renamed.keys() & settings.keys():
            settings.setdefault(profile.renamed[ours], settings.pop(ours))
        if "stream_options" not in profile.refused:
            settings.setdefault("stream_options", {"include_usage": True})
        asked["timeout"] = settings.pop("timeout_seconds", None)
        return {**asked, **settings}

    async def _attempt(self, client: AsyncOpenAI, asked: Mapping[str, Any], show: Showing) -> Reply:
        create: Any = client.chat.completions.create
        if not self._known:
            self._known = parameters_of_sdk(create)
        partial = self._partial(asked, show)
        async with await create(stream=True, **sdk_arguments(asked, self._known)) as stream:
            whole = await self.service.whole_of(stream.response)
            with reading_reply():
                if whole is not None:
                    partial.add(_as_chunk(whole))
                else:
                    async for chunk in stream:
                        if chunk.object == "error":  # of vLLM
                            raise self.service.failed(chunk.model_dump())
                        partial.add(chunk)
                return partial.reply(self.config.prices)

    def _read_whole(
        self, whole: Mapping[str, Any], asked: Mapping[str, Any], show: Showing
    ) -> Reply:
        """Return the reply that came in one piece."""
        partial = self._partial(asked, show)
        partial.add(_as_chunk(whole))
        return partial.reply(self.config.prices)

    def _partial(self, asked: Mapping[str, Any], show: Showing) -> _PartialReply:
        about: Mapping[str, Any] = asked.get("audio") or {}
        form = str(about.get("format") or "wav")
        media = {"mp3": "audio/mpeg", "pcm16": "audio/pcm"}.get(form, f"audio/{form}")
        return _PartialReply(show, f"{self.service.address} {asked['model']}", media)


def _tool(spec: ToolSpec, is_strict: bool) -> dict[str, Any]:
    parameters, is_strict = tool_schema(spec.parameters, is_strict)
    function: dict[str, Any] = {"name": spec.name, "description": spec.description}
    function["parameters"] = parameters
    if is_strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _message(given: Message, origin: str) -> dict[str, Any]:
    role = str(given.get("role") or "user")
    content = given.get("content")
    if role == "tool":
        return {
            "role": "tool",
            "tool_call_id": str(given.get("tool_call_id") or ""),
            "content": valid_text(content_text(content)),
        }
    message: dict[str, Any] = {"role": role}
    if role == "user" and not isinstance(content, str):
        message["content"] = [_part(part) for part in parts_of(content)]
    else:
        message["content"] = valid_text(content_text(content))
    calls = cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ())
    kept = kept_for(given, _EXTRA, origin) or {}
    if calls:
        signed: Mapping[str, Any] = kept.get("calls") or {}
        message["tool_calls"] = [_call(call, signed.get(str(call["id"]))) for call in calls]
        message["content"] = message["content"] or None
    message |= sent_back(kept.get("message") or {}, message["content"])
    name = given.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name):
        message["name"] = name
    return message


def _call(call: Mapping[str, Any], signed: Mapping[str, Any] | None) -> dict[str, Any]:
    arguments = json.dumps(call.get("arguments") or {}, ensure_ascii=True)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": call["id"], "type": "function", "function": function, **(signed or {})}


def _part(part: Part) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "text": valid_text(part["text"])}
    if kind == "image" and ("url" in part or "data" in part):
        image = {"url": part.get("url") or data_url(part)}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "audio" and "data" in part:
        name = part["media_type"].removeprefix("audio/").replace("mpeg", "mp3")
        return {"type": "input_audio", "input_audio": {"data": part["data"], "format": name}}
    if kind == "file" and "file_id" in part:
        return {"type": "file", "file": {"file_id": part["file_id"]}}
    if kind == "file" and "data" in part:
        return {"type": "file", "file": {"filename": file_name(part), "file_data": data_url(part)}}
    raise unsendable(part, "the Chat Completions API")


def _as_chunk(whole: Mapping[str, Any]) -> Any:
    """Return a reply in one piece as the only chunk of a stream."""
    from openai.types.chat import ChatCompletionChunk

    choices: list[dict[str, Any]] = []
    for choice in whole["choices"]:
        message = dict(choice["message"])
        calls = message.get("tool_calls") or ()
        message["tool_calls"] = [{**call, "index": at} for at, call in enumerate(calls)]
        choices.append({**choice, "delta": message})
    chunk: dict[str, Any] = {**whole, "choices": choices}
    return ChatCompletionChunk.construct(None, **chunk)


class _Call:
    """A tool call that comes in pieces."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = self.name = self.arguments = ""
        self.signed: dict[str, Any] = {}

    @property
    def known_id(self) -> str:
        """Its id, ours where it has none."""
        return self.id or f"call_{self.number}"

    def made(self) -> ToolCall:
        arguments, fault = read_arguments(self.arguments)
        return ToolCall(id=self.known_id, name=self.name, arguments=arguments, fault=fault)


class _PartialReply:
    """A reply that comes in chunks."""

    def __init__(self, show: Showing, origin: str, media: str) -> None:
        self._show, self._media = show, media
        self._audio: list[str] = []
        self._thoughts = Thoughts(show, origin)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._made: list[dict[str, Any]] = []
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._finish = self._model = ""
        self._usage = Usage()

    def add(self, chunk: Any) -> None:
        """Add a chunk of the stream."""
        self._model = chunk.model or self._model
        if getattr(chunk, "usage", None):
            self._usage = _usage(chunk.usage)
        for choice in (chunk.choices or ())[:1]:
            self._finish = choice.finish_reason or self._finish
            if choice.delta is not None:
                self._delta(choice.delta)

    def _delta(self, delta: Any) -> None:
        text = self._thoughts.taken_from(delta)
        if text:
            self._text.append(text)
            self._show({"kind": "text", "text": text})
        if getattr(delta, "refusal", None):
            self._refusal.append(delta.refusal)
            self._show({"kind": "refusal", "text": delta.refusal})
        # of OpenRouter, LiteLLM, OpenAI's search; audio where it was asked for
        more = more_of(delta, ("annotations", "images"))
        heard: Any = getattr(delta, "audio", None)
        if heard is not None:
            self._hear(cast("Any", heard if isinstance(heard, dict) else heard.model_dump()))
        for note in more.get("annotations") or ():
            if note.get("type") == "url_citation":
                said = note.get("url_citation") or note
                self._put(citation(**{key: said.get(key) for key in ("url", "title")}))
        for each in more.get("images") or ():
            self._put(made_image(each["image_url"]["url"]))
        for piece in delta.tool_calls or ():
            self._piece(piece)

    def _hear(self, piece: Mapping[str, Any]) -> None:
        """Take a piece of a recording, and of its text."""
        self._audio.append(str(piece.get("data") or ""))
        if said := piece.get("transcript"):
            self._text.append(str(said))
            self._show({"kind": "text", "text": str(said)})

    def _put(self, part: dict[str, Any]) -> None:
        self._made.append(part)
        self._show({"kind": "part", "part": part})

    def _piece(self, piece: Any) -> None:
        index = piece.index if isinstance(piece.index, int) else len(self._calls)
        known = self._at.get(index)
        function = piece.function
        is_other = known is not None and piece.id and known.id and piece.id != known.id
        if known is None or (is_other and function is not None and function.name):
            # some servers give every call the index 0
            known = self._at[index] = _Call(len(self._calls))
            self._calls.append(known)
        known.id = piece.id or known.id
        added = ""
        known.signed |= more_of(piece, ("extra_content",))
        if function is not None:
            known.name = known.name or function.name or ""
            given: Any = function.arguments or ""
            added = given if isinstance(given, str) else json.dumps(given)  # some send an object
            known.arguments += added
        self._show(
            {
                "kind": "tool_call_delta",
                "index": known.number,
                "id": known.id,
                "name": known.name,
                "arguments": added,
            }
        )

    def reply(self, prices: Prices | None) -> Reply:
        """Return all of it. Raises: BrokenOff: there is no end."""
        if not self._finish:
            raise BrokenOff
        if heard := joined_base64(self._audio):
            self._put(made_audio(heard, self._media))
        calls = tuple(call.made() for call in self._calls)
        finish = _FINISH.get(self._finish, self._finish)
        if self._refusal:
            finish = "refusal"
        elif calls and finish == "stop":
            finish = "tools"
        usage = self._usage if prices is None else prices.priced(self._usage)
        return Reply(
            text="".join(self._text or self._refusal),
            tool_calls=calls,
            usage=usage,
            finish=finish,
            model=self._model,
            extra=self._thoughts.kept({c.known_id: c.signed for c in self._calls if c.signed}),
            parts=distinct([*self._thoughts.parts, *self._made, *refusal_parts(self._refusal)]),
        )


def _usage(given: Any) -> Usage:
    inputs = getattr(given, "prompt_tokens_details", None)
    outputs = getattr(given, "completion_tokens_details", None)
    return Usage(
        input_tokens=given.prompt_tokens or 0,
        output_tokens=given.completion_tokens or 0,
        cached_tokens=getattr(inputs, "cached_tokens", None) or 0,
        reasoning_tokens=getattr(outputs, "reasoning_tokens", None) or 0,
        cost=float(getattr(given, "cost", None) or 0),  # of OpenRouter
        cache_write_tokens=getattr(inputs, "cache_write_tokens", None) or 0,
    )
