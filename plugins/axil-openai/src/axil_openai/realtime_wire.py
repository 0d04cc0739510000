"""Sessions and items of the Realtime API, made of what axil has."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from axil.plugin import Message
from axil_models import (
    SAMPLE_RATE,
    Part,
    PartError,
    Request,
    ToolCall,
    Usage,
    content_text,
    part_bytes,
    part_label,
    parts_of,
    read_arguments,
    structure_prompt,
    unsendable,
    valid_text,
    with_instruction,
)
from axil_openai.requests import chosen_tool
from axil_openai.wire import data_url

Event = Mapping[str, Any]

FORMAT: Final = {"type": "audio/pcm", "rate": SAMPLE_RATE}
REFUSED: Final = dict.fromkeys(
    ("messages", "input", "instructions", "tools", "audio", "type", "model"), ""
) | {
    "stop": "The Realtime API has no stop; use max_tokens.",
    "n": "A model gives one reply.",
}
_UNKNOWN: Final = ("temperature", "top_p", "seed", "timeout_seconds")
"""Settings of other APIs that this one has no more: they are left out."""


def session_of(request: Request, settings: dict[str, Any], audio: Event) -> dict[str, Any]:
    """Return the session for a conversation; ``audio``: its ``audio`` entry."""
    messages = list(request.messages)
    if request.output is not None:
        messages = with_instruction(messages, structure_prompt(request.output))
    session: dict[str, Any] = {"type": "realtime", "audio": audio}
    if messages and messages[0].get("role") == "system":
        session["instructions"] = valid_text(content_text(messages[0].get("content")))
    if request.tools:
        session["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in request.tools
        ]
    for ours in ("max_tokens", "max_completion_tokens"):
        if ours in settings:
            settings.setdefault("max_output_tokens", settings.pop(ours))
    choice = chosen_tool(settings.get("tool_choice"))
    if choice is not None:
        settings["tool_choice"] = {"type": "function", "name": choice}
    effort = settings.pop("reasoning_effort", None)
    if effort is not None:
        settings["reasoning"] = {"effort": effort}
    given = {name: value for name, value in settings.items() if name not in _UNKNOWN}
    return {**session, **given}


def items_of(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as items of a conversation. Raises: PartError: one cannot be sent."""
    return [item for each in messages for item in _items(each)]


def _items(given: Message) -> list[dict[str, Any]]:
    role, content = str(given.get("role") or "user"), given.get("content")
    if role == "tool":
        output = valid_text(content_text(content))
        return [answer_of(str(given.get("tool_call_id") or ""), output)]
    items: list[dict[str, Any]] = []
    if role == "user":
        items.append(message_of("user", [_part(part) for part in parts_of(content)]))
    elif content:
        kind = "output_text" if role == "assistant" else "input_text"
        text = valid_text(content_text(content))
        items.append(message_of(role, [{"type": kind, "text": text}]))
    for call in cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ()):
        arguments = json.dumps(call.get("arguments") or {})
        named = {"call_id": call["id"], "name": call["name"], "arguments": arguments}
        items.append({"type": "function_call", **named})
    return items


def message_of(role: str, content: Sequence[Event]) -> dict[str, Any]:
    """Return a message as an item."""
    return {"type": "message", "role": role, "content": list(content)}


def answer_of(call_id: str, output: str) -> dict[str, Any]:
    """Return the result of a tool as an item."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def audio_content(pcm: bytes) -> dict[str, Any]:
    """Return what a person said as content of a message."""
    return {"type": "input_audio", "audio": base64.b64encode(pcm).decode()}


def _part(part: Part) -> dict[str, Any]:
    kind = part["type"]
    if kind == "text":
        return {"type": "input_text", "text": valid_text(part["text"])}
    if kind == "image" and part.get("data"):
        detail = part.get("detail") or "auto"
        return {"type": "input_image", "image_url": data_url(part), "detail": detail}
    if kind == "audio" and part.get("data"):
        return audio_content(pcm_of(part))
    raise unsendable(part, "the Realtime API")


def pcm_of(part: Mapping[str, Any]) -> bytes:
    """Return the samples of a recording. Raises: PartError (AX801): it has another form."""
    content = part_bytes(part)
    found = "no WAV"
    try:
        with wave.open(io.BytesIO(content)) as recording:
            form = (
                recording.getnchannels(),
                recording.getsampwidth(),
                recording.getframerate(),
            )
            if form == (1, 2, SAMPLE_RATE):
                return recording.readframes(recording.getnframes())
            found = f"{form[0]} channels of {form[1] * 8} bits at {form[2]} Hz"
    except (wave.Error, EOFError):
        pass
    raise PartError(
        "AX801",
        f"the Realtime API cannot be sent {part_label(part)}: it is {found}.",
        f"Give a WAV of one channel of 16 bits at {SAMPLE_RATE} Hz; ffmpeg makes one: -ac 1 -ar "
        f"{SAMPLE_RATE} -c:a pcm_s16le.",
    )


def wav_of(pcm: bytes) -> bytes:
    """Return samples as a WAV."""
    written = io.BytesIO()
    with wave.open(written, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(SAMPLE_RATE)
        recording.writeframes(pcm)
    return written.getvalue()


def calls_of(response: Event) -> tuple[ToolCall, ...]:
    """Return the tools that a response asks for; of one that was broken off, none."""
    if response.get("status") != "completed":
        return ()
    calls: list[ToolCall] = []
    for item in response.get("output") or ():
        if item["type"] == "function_call":
            arguments, fault = read_arguments(item.get("arguments"))
            id = str(item.get("call_id") or item.get("id") or "")
            calls.append(ToolCall(id=id, name=item["name"], arguments=arguments, fault=fault))
    return tuple(calls)


def usage_of(response: Event) -> Usage:
    """Return the usage of a response."""
    used: Event = response.get("usage") or {}
    given: Event = used.get("input_token_details") or {}
    made: Event = used.get("output_token_details") or {}
    cached: Event = given.get("cached_tokens_details") or {}
    return Usage(
        input_tokens=used.get("input_tokens") or 0,
        output_tokens=used.get("output_tokens") or 0,
        cached_tokens=given.get("cached_tokens") or 0,
        audio_input_tokens=given.get("audio_tokens") or 0,
        audio_output_tokens=made.get("audio_tokens") or 0,
        audio_cached_tokens=cached.get("audio_tokens") or 0,
    )


def transcript_usage(used: Event | None) -> Usage | None:
    """Return the usage of a transcription: tokens, or the time that was heard; None: not said.

    >>> transcript_usage({"type": "duration", "seconds": 3}).audio_seconds
    3
    """
    if not used:
        return None
    given: Event = used.get("input_token_details") or {}
    return Usage(
        input_tokens=used.get("input_tokens") or 0,
        output_tokens=used.get("output_tokens") or 0,
        audio_input_tokens=given.get("audio_tokens") or 0,
        audio_seconds=used.get("seconds") or 0,
    )


def finish_of(response: Event, has_calls: bool) -> str:
    """Return why a response ended."""
    status = response.get("status")
    about: Event = response.get("status_details") or {}
    if status == "cancelled":
        return "interrupted"
    if status == "incomplete":
        reason = str(about.get("reason") or "length")
        return {"max_output_tokens": "length", "content_filter": "filter"}.get(reason, reason)
    return "tools" if has_calls else "stop"


def said_until(text: str, share: float) -> str:
    """Return the words of a text that were said when a share of its sound was played.

    >>> said_until("An axil is an angle.", 0.5), said_until("An axil.", 0.0)
    ('An axil is…', '')
    """
    if share >= 1:
        return text
    words = text[: int(len(text) * share) + 1].rpartition(" ")[0]
    return f"{words}…" if words else ""
