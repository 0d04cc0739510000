"""A reply of generateContent, made from the chunks of a stream."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from axil_gemini.provided import acted, used_by
from axil_gemini.sending import EXTRA, OURS
from axil_models import (
    BrokenOff,
    ModelError,
    Prices,
    Reply,
    Request,
    Showing,
    ToolCall,
    Usage,
    citation,
    distinct,
    made_audio,
    made_image,
    reasoning_parts,
)

_FINISH: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED: Final = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)


class StreamedReply:
    """The parts of one candidate that have arrived."""

    def __init__(self, show: Showing, request: Request, origin: str) -> None:
        self._show, self._origin = show, origin
        self._thoughts: list[str] = []
        self._parts: list[dict[str, Any]] = []
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._functions = {each.name for each in request.tools if not each.kind}
        computers = [each.options for each in request.tools if each.kind == "computer"]
        self._computer = computers[0] if computers else None
        self._before = sum(len(m.get("tool_calls") or ()) for m in request.messages)
        self._made: list[dict[str, Any]] = []
        self._partial: Any = None
        self._signature: Any = None
        self._arguments: dict[str, Any] = {}
        self._model = self._finish = ""
        self._usage = Usage()
        self._is_kept = False
        """The parts go back as they came, also without signatures."""

    def take(self, chunk: Any) -> None:
        """Take in a chunk of the stream."""
        self._model = str(chunk.model_version or self._model)
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        blocked = getattr(chunk.prompt_feedback, "block_reason", None)
        if blocked is not None:
            self._finish = "SAFETY"
        for candidate in (chunk.candidates or ())[:1]:
            if candidate.finish_reason is not None:
                self._finish = str(
                    getattr(candidate.finish_reason, "value", candidate.finish_reason)
                )
            grounding = candidate.grounding_metadata
            for each in (grounding.grounding_chunks if grounding is not None else None) or ():
                source = each.web or each.retrieved_context
                if source is not None:
                    self._put(citation(url=source.uri, title=source.title))
            for part in (candidate.content.parts if candidate.content is not None else None) or ():
                self._part(part)

    def _part(self, part: Any) -> None:
        if part.thought:
            if part.text:
                self._thoughts.append(part.text)
                self._show({"kind": "reasoning", "text": part.text})
            if not part.thought_signature:
                return
        elif part.text:
            self._text.append(part.text)
            self._show({"kind": "text", "text": part.text})
        elif part.function_call is not None:
            self._signature = part.thought_signature or self._signature
            call = self._whole(part.function_call)
            if call is None:
                return
            part.function_call = call
            part.thought_signature, self._signature = self._signature, None
            number = len(self._calls)
            id = call.id or f"{OURS}{self._before + number}"
            name, args = call.name or "", dict(call.args or {})
            if self._computer is not None and name not in self._functions:
                name, args = "computer", acted(name, args, self._computer)
                self._is_kept = True
            self._calls.append(ToolCall(id=id, name=name, arguments=args))
            arguments = json.dumps(args, ensure_ascii=False)
            self._show(
                {
                    "kind": "tool_call_delta",
                    "index": number,
                    "id": id,
                    "name": name,
                    "arguments": arguments,
                }
            )
        elif part.inline_data is not None and part.inline_data.data:
            blob = part.inline_data
            media, data = str(blob.mime_type or ""), base64.b64encode(blob.data).decode()
            if media.startswith("image/"):
                self._put(made_image(data, media))
            elif media.startswith("audio/"):
                self._put(made_audio(data, media))
        kept = part.model_dump(mode="json", exclude_none=True)
        last = self._parts[-1] if self._parts else {}
        if set(kept) == set(last) == {"text"}:
            last["text"] += kept["text"]
        else:
            self._parts.append(kept)

    def _put(self, part: dict[str, Any]) -> None:
        self._made.append(part)
        self._show({"kind": "part", "part": part})

    def _whole(self, call: Any) -> Any:
        """Return a call, or None while its arguments still come in pieces."""
        for piece in call.partial_args or ():
            path = "$" if piece.json_path is None else piece.json_path
            _put(self._arguments, path, _value_of(piece))
        if call.partial_args and self._partial is None:
            self._partial = call
        begun = self._partial or call
        if call.will_continue:
            self._partial = begun
            return None
        arguments, self._arguments, self._partial = self._arguments, {}, None
        args: dict[str, Any] = {**(begun.args or {}), **(call.args or {}), **arguments}
        update: dict[str, Any] = {"args": args, "partial_args": None, "will_continue": None}
        return begun.model_copy(update=update)

    def reply(self, prices: Prices | None) -> Reply:
        """Return the whole reply.

        Raises: BrokenOff: there is no end; ModelError: the model made a call that it cannot make.
        """
        if not self._finish:
            raise BrokenOff
        if self._finish in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"):
            raise ModelError(
                f"the model made a call that it cannot make ({self._finish}).", transient=True
            )
        finish = _FINISH.get(self._finish, self._finish.lower())
        if self._finish in _FILTERED:
            finish = "filter"
        kept = [part for part in self._parts if part.get("text") != "" or len(part) > 1]
        wanted = {"thought_signature", "executable_code", "tool_call"}
        signed = self._is_kept or any(wanted & part.keys() for part in self._parts)
        used = used_by(self._parts)
        for part in used:
            self._show({"kind": "part", "part": part})
        return Reply(
            text="".join(self._text),
            tool_calls=tuple(self._calls),
            usage=self._usage if prices is None else prices.priced(self._usage),
            finish="tools" if self._calls and finish == "stop" else finish,
            model=self._model,
            extra={EXTRA: {"origin": self._origin, "parts": kept}} if signed else {},
            parts=distinct([*reasoning_parts(self._thoughts), *used, *self._made]),
        )


def _value_of(piece: Any) -> Any:
    for name in ("string_value", "number_value", "bool_value"):
        value = getattr(piece, name)
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return None


_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def _put(arguments: dict[str, Any], path: str, value: Any) -> None:
    """Put a value, or a further piece of a text, where its JSON path leads.

    >>> made = {}
    >>> for path, piece in (("$.a[0].b", "x"), ("$.a[0].b", "y"), ("$.n", 3)):
    ...     _put(made, path, piece)
    >>> made
    {'a': [{'b': 'xy'}], 'n': 3}

    Raises: ValueError: it is no such path.
    """
    steps = [int(m[2]) if m[2] else m[1] or m[3] or m[4] for m in _STEP.finditer(path)]
    if not steps or _STEP.sub("", path) != "$":
        raise ValueError(f"no path to an argument: {path!r}")
    place: Any = arguments
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            if step > len(place):
                raise ValueError(f"an item is left out: {path!r}")
            if step == len(place):
                place.append(None)
        old = place[step] if isinstance(step, int) else place.get(step)
        if following is None:
            is_more = isinstance(old, str) and isinstance(value, str)
            place[step] = old + value if is_more else value
        else:
            place[step] = ([] if isinstance(following, int) else {}) if old is None else old
            place = place[step]


def _usage(given: Any) -> Usage:
    thought = given.thoughts_token_count or 0
    return Usage(
        input_tokens=(given.prompt_token_count or 0) + (given.tool_use_prompt_token_count or 0),
        output_tokens=(given.candidates_token_count or 0) + thought,
        cached_tokens=given.cached_content_token_count or 0,
        reasoning_tokens=thought,
    )
