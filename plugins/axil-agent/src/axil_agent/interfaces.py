"""What agents, models, formatters, tools and context providers are to each other.

Plain data and protocols; nothing to inherit.

A message is a dict as everywhere in axil: ``role`` and ``content``, which is a text or a list of
parts (``axil_agent.parts``). An assistant's message may have ``tool_calls``, each with ``id``,
``name`` and ``arguments`` (a dict); a tool's has ``name`` and ``tool_call_id``. Adapters translate
to their wire.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeVar, cast, runtime_checkable

from axil.plugin import Message

__all__ = [
    "Ask",
    "ChatMemory",
    "ContextBlock",
    "ContextProvider",
    "ContextQuery",
    "Embedder",
    "Emit",
    "Formatter",
    "Index",
    "Memory",
    "Message",
    "Model",
    "Reply",
    "Request",
    "SharedMemory",
    "Structure",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "TurnMemory",
    "Usage",
]

Emit = Callable[[Any], None]
"""How a model shows what it has so far: ``emit({"kind": "text", "text": "…"})``."""


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """A JSON Schema of the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The form that a reply has to have, for models that can be held to one."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a model is asked."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """``temperature``, ``max_tokens`` and whatever else the adapter understands."""
    output: Structure | None = None
    """None: free text."""

    def plain(self) -> dict[str, Any]:
        """The request as plain data: for recordings."""
        return {
            "messages": [dict(m) for m in self.messages],
            "tools": [
                {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
                for t in self.tools
            ],
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
    """Why the arguments could not be read; the model is told instead of the tool being called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one call used."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those that were read from a cache; not counted again by limits."""
    reasoning_tokens: int = 0
    """Of the output tokens, those that the model thought with; not counted again by limits."""
    cost: float = 0.0


Finish = Literal["stop", "tools", "length", "filter", "refusal", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answers: text, or tools to be called, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: str = ""
    """``stop``, ``tools``, ``length``, ``filter``, ``refusal``; empty: not said."""
    model: str = ""
    """Which model it was, as the provider names it."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Plain data that goes back to the model with this reply: put into its message under ``extra``.
    """

    def message(self) -> Message:
        """The reply as a message of the conversation."""
        message: Message = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": c.id, "name": c.name, "arguments": dict(c.arguments)}
                for c in self.tool_calls
            ]
        if self.extra:
            message["extra"] = dict(self.extra)
        return message

    def plain(self) -> dict[str, Any]:
        """The reply as plain data: for journals and recordings."""
        calls = [
            {"id": c.id, "name": c.name, "arguments": dict(c.arguments), "fault": c.fault}
            for c in self.tool_calls
        ]
        used = {name: getattr(self.usage, name) for name in Usage.__slots__}
        told = {
            "text": self.text,
            "tool_calls": calls,
            "usage": used,
            "finish": self.finish,
            "model": self.model,
        }
        return {**told, "extra": dict(self.extra)}

    @staticmethod
    def read(data: Mapping[str, Any]) -> Reply:
        """The reply that ``plain`` made data of."""
        calls = tuple(ToolCall(**call) for call in data.get("tool_calls", ()))
        given: dict[str, Any] = {
            **data,
            "tool_calls": calls,
            "usage": Usage(**data.get("usage", {})),
        }
        return Reply(**given)


@runtime_checkable
class Model(Protocol):
    """Answers requests.

    Making one has no effects; connections are opened by the first call, per event loop, and closed
    by ``close``.

    It may be an async context manager: then connections are kept for as long as somebody is inside,
    as the agents of a run are. ``modalities``, where a model has it, says what it takes beside
    text: ``image``, ``file``, ``audio``.
    """

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """The answer; ``emit`` shows parts of it as they come. Raises: ModelError."""
        ...


# --------------------------------------------------------------------------------------------------


@runtime_checkable
class Embedder(Protocol):
    """Gives vectors for texts. ``axil.embedders``. Lifecycle as a ``Model``'s."""

    @property
    def name(self) -> str:
        """Which vectors these are: those of two embedders with one name can be compared.

        Stores keep it beside the vectors.
        """
        ...

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None: not known before the first are there."""
        ...

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """A vector for each text, in their order. Raises: ModelError."""
        ...


# --------------------------------------------------------------------------------------------------


class Formatter(Protocol):
    """Fields to text, and text to fields. ``axil.formatters``."""

    @property
    def introduction(self) -> str:
        """Tells a model how to answer; empty: nothing has to be said."""
        ...

    def dump(self, fields: Mapping[str, Any], /) -> str:
        """Fields as text, in the order given."""
        ...

    def parse(self, text: str, fields: Sequence[str] = (), /) -> dict[str, Any]:
        """Text as fields; ``fields`` are the names asked for.

        Raises: ValueError: in words for whoever wrote the text.
        """
        ...


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A piece of context: what a memory remembers, what a retriever found."""

    text: str
    uri: str | None = None
    chunk_id: str | None = None
    score: float | None = None
    """Higher is better; None: not scored."""
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dedupe_key: str | None = None
    """Blocks with the same key are the same; None: by ``uri`` and ``chunk_id``, else by what they
    hold.
    """
    part: Mapping[str, Any] | None = None
    """An image, a file or a recording that the model is shown, as ``axil_agent.parts`` makes them;
    ``text`` may say what it is.
    """


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """What context is asked for."""

    query_text: str
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    node_name: str = ""
    node_path: str = ""
    run_id: str | None = None
    session_id: str | None = None
    messages: Sequence[Message] = ()
    filters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metadata that a block has to have: each name with this very value.

    Providers that keep metadata hold to it.
    """


class ContextProvider(Protocol):
    """Gives context. ``axil.context``. All but ``get_blocks`` may be missing; it may be async.

    ``context_label``: what it is called, else its class's name. ``passive`` (true): its blocks are
    put into the prompt. ``active`` (false): the model may ask it. One with ``async tools()`` brings
    tools of its own.
    """

    def get_blocks(
        self, query: ContextQuery, top_k: int = 8
    ) -> Sequence[ContextBlock] | Awaitable[Sequence[ContextBlock]]:
        """The best blocks, best first.

        With a parameter ``ctx`` it is given the context of the firing, which may be None.
        """
        ...


class Memory(ContextProvider, Protocol):
    """A provider that is told about each step."""

    def insert(self, key: str, value: str) -> Any:
        """``key``: JSON with ``input``, ``role_name`` and ``turn``; ``value``: the reply's text.

        May be async.
        """
        ...


Ask = Callable[[Request], Awaitable[Reply]]
"""A model call that is recorded and counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of an agent, as memories are told of it."""

    query: ContextQuery
    """What context was asked for in this turn: the inputs, the node, the run."""
    reply: str
    """What the model said in the end."""
    role_name: str = ""
    number: int = 1
    """Which turn of the node in this run it is, from 1."""
    ask: Ask | None = None
    """The agent's model, for memories that think; None: there is none at hand."""

    @property
    def key(self) -> str:
        """The turn as the JSON that ``Memory.insert`` is given."""
        told = {"input": self.query.inputs, "role_name": self.role_name, "turn": self.number}
        return json.dumps(told, ensure_ascii=False, default=str)


class TurnMemory(ContextProvider, Protocol):
    """A provider that is told about each turn with all that belongs to it: the run, the node, a
    model to ask.
    """

    async def learn(self, turn: Turn, /) -> Any:
        """Take from ``turn`` what is worth keeping.

        A body that is run again may tell the same turn again.

        Plain data that it returns, such as what it decided, is journaled.
        """
        ...


class SharedMemory(ContextProvider, Protocol):
    """A memory that agents of one run share.

    What it holds is an attribute of the state: read from the query's attributes.
    """

    share: str
    """The attribute: a list of notes."""

    def notes(self, turn: Turn, /) -> list[dict[str, Any]]:
        """What ``turn`` adds; plain data."""
        ...

    def keep(self, notes: Sequence[Mapping[str, Any]], /) -> list[dict[str, Any]]:
        """Those of all ``notes`` that are kept, where the attribute is overwritten rather than
        appended to.
        """
        ...


class Index(ContextProvider, Protocol):
    """A provider whose blocks can be put and deleted one by one; a block is known by its ``uri``
    and ``chunk_id``.
    """

    def put(self, blocks: Sequence[ContextBlock], /) -> Any:
        """Add blocks; one that is known already is replaced. May be async."""
        ...

    def delete(self, blocks: Sequence[ContextBlock], /) -> Any:
        """Forget blocks, known by ``uri`` and ``chunk_id``; those that are not there are passed
        over. May be async.
        """
        ...


class ChatMemory(Protocol):
    """A memory of the conversation itself.

    What it keeps is state of the node (or of the graph), handed in and given back.
    """

    label: str
    share: str
    """The attribute that holds it; empty: the node keeps it for itself."""

    def recall(self, kept: Sequence[Message], /) -> list[Message]:
        """The messages that are sent before the new one."""
        ...

    async def remember(
        self, kept: Sequence[Message], turn: Sequence[Message], ask: Ask, /
    ) -> list[Message]:
        """What is kept after a turn. ``ask``: for those that summarise."""
        ...


T = TypeVar("T")


def listed_or_one(given: T | Sequence[T] | None) -> list[T]:
    """One thing, several or none, as a list."""
    if given is None:
        return []
    return (
        list(cast("Sequence[T]", given)) if isinstance(given, (list, tuple)) else [cast("T", given)]
    )
