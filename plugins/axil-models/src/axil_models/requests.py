"""Requests to models, their replies, and the interface of a model.

A message is a dict as everywhere in axil: ``role`` and ``content``, which is a text or a list of
parts (``axil_models.parts``). An assistant's message may have ``tool_calls``, each with ``id``,
``name`` and ``arguments`` (a dict); a tool's has ``name`` and ``tool_call_id``. Adapters translate
to their wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, runtime_checkable

from axil.plugin import Message

if TYPE_CHECKING:
    from axil.plugin import MeterReservation

Emit = Callable[[object], None]
"""The function by which a model shows partial replies: ``emit({"kind": "text", "text": "…"})``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """A JSON Schema of the arguments."""
    kind: str = ""
    """The kind of a tool that the provider has (``ProviderTool``); empty: a function."""
    options: Any = None
    """The settings of such a tool."""

    def plain(self) -> dict[str, object]:
        """Return it as plain data: for recordings. Secrets are left out."""
        shown: dict[str, object] = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        if not self.kind:
            return shown
        options = self.options.model_dump(mode="json", exclude={"token", "act"}, exclude_unset=True)
        return {"name": self.name, "kind": self.kind, "options": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The form that a reply has to have, for models that can be held to one."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request to a model."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """``temperature``, ``max_tokens`` and whatever else the adapter understands."""
    output: Structure | None = None
    """None: free text."""

    def plain(self) -> dict[str, object]:
        """Return the request as plain data: for recordings."""
        return {
            "messages": [dict(m) for m in self.messages],
            "tools": [tool.plain() for tool in self.tools],
            "settings": dict(self.settings),
            "output": None if self.output is None else asdict(self.output),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool that a model wants called."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fault: str = ""
    """The reason why the arguments could not be read: sent to the model instead of a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of one call."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those read from a cache; not counted again by limits."""
    reasoning_tokens: int = 0
    """Of the output tokens; not counted again by limits."""
    cost: float = 0.0
    """Money, as the service reports it; 0: as the prices say."""
    cache_write_tokens: int = 0
    """Of the input tokens, those written to a cache; not counted again by limits."""
    discount: float = 0.0
    """The share of the price that is not asked for: a half by APIs for batches."""
    audio_input_tokens: int = 0
    """Of the input tokens, those of audio; not counted again by limits."""
    audio_output_tokens: int = 0
    """Of the output tokens, those of audio; not counted again by limits."""
    audio_cached_tokens: int = 0
    """Of the cached tokens, those of audio; not counted again by limits."""
    audio_seconds: float = 0.0
    """Of audio that was heard, where the service counts it so."""

    def settle(self, reservation: MeterReservation, model: str) -> None:
        """Replace what was reserved for a call of a model by this."""
        reservation.settle(
            model=model,
            cost=self.cost,
            cached_tokens=self.cached_tokens,
            cache_write_tokens=self.cache_write_tokens,
            audio_tokens=(
                self.audio_input_tokens,
                self.audio_output_tokens,
                self.audio_cached_tokens,
            ),
            audio_seconds=self.audio_seconds,
            discount=self.discount,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )


Finish = Literal["stop", "tools", "length", "filter", "refusal", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a model: text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: str = ""
    """``stop``, ``tools``, ``length``, ``filter``, ``refusal``; empty: not said."""
    model: str = ""
    """The model, as the provider names it."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Plain data that goes back to the model with this reply, as ``extra`` of its message."""
    parts: tuple[Mapping[str, Any], ...] = ()
    """The parts that it holds beside its text: ``{"type": "reasoning", "text": …}``, refusals,
    citations (``axil_models.outputs``), images.
    """

    def message(self) -> Message:
        """Return the reply as a message of the conversation."""
        message: Message = {"role": "assistant", "content": self.text}
        calls = self.tool_calls
        if calls:
            message["tool_calls"] = [
                {"id": c.id, "name": c.name, "arguments": dict(c.arguments)} for c in calls
            ]
        if self.extra:
            message["extra"] = dict(self.extra)
        return message

    def settle(self, reservation: MeterReservation) -> None:
        """Replace what was reserved for the call by what it used."""
        self.usage.settle(reservation, self.model)

    def plain(self) -> dict[str, object]:
        """Return the reply as plain data: for journals and recordings."""
        calls = [
            {"id": c.id, "name": c.name, "arguments": dict(c.arguments), "fault": c.fault}
            for c in self.tool_calls
        ]
        return {
            "text": self.text,
            "tool_calls": calls,
            "usage": {name: getattr(self.usage, name) for name in Usage.__slots__},
            "finish": self.finish,
            "model": self.model,
            "extra": dict(self.extra),
            **({"parts": [dict(part) for part in self.parts]} if self.parts else {}),
        }

    @staticmethod
    def read(data: Mapping[str, Any]) -> Reply:
        """Return the reply that ``plain`` made data of."""
        calls = tuple(ToolCall(**call) for call in data.get("tool_calls", ()))
        usage = Usage(**data.get("usage", {}))
        parts = tuple(data.get("parts", ()))
        given: dict[str, Any] = {**data, "tool_calls": calls, "usage": usage, "parts": parts}
        return Reply(**given)


@runtime_checkable
class Model(Protocol):
    """Answers requests.

    Making one has no effects; connections are opened by the first call, per event loop, and closed
    by ``close``. Of an async context manager they are kept until the last ``async with`` is left;
    agents enter it for their run. ``modalities``, if there, is what it takes beside text:
    ``image``, ``file``, ``audio``.
    """

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer; ``emit`` shows parts of it as they come. Raises: ModelError."""
        ...


def read_arguments(given: object) -> tuple[dict[str, Any], str]:
    """Return a tool call's arguments, sent as an object or as JSON, and what is wrong with them.

    >>> read_arguments('{"a": 1}'), read_arguments(""), read_arguments('{"a"')[1][:18]
    (({'a': 1}, ''), ({}, ''), 'the arguments are ')
    """
    if given is None or given == "":
        return {}, ""
    if isinstance(given, str):
        try:
            given = json.loads(given, strict=False)
        except (ValueError, RecursionError) as error:
            return {}, f"the arguments are not valid JSON: {error}"
    if not isinstance(given, Mapping):
        return {}, f"the arguments are not a JSON object: {given!r:.80}"
    return dict(cast("Mapping[str, Any]", given)), ""
