"""Memories: providers that learn from each turn, and what they share."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from axil.plugin import Message
from axil_models.context import ContextBlock, ContextProvider, ContextQuery
from axil_models.errors import ContextError
from axil_models.requests import Reply, Request
from axil_models.values import as_text, plain_data

Owner = Literal["run", "session", "agent", "user"]


class Memory(ContextProvider, Protocol):
    """A provider that receives each step."""

    def insert(self, key: str, value: str) -> object:
        """Keep a turn. ``key``: ``Turn.key``; ``value``: the reply's text. May be async."""
        ...


Ask = Callable[[Request], Awaitable[Reply]]
"""A model call that is recorded and counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of an agent, as memories receive it."""

    query: ContextQuery
    """The query for context in this turn: the inputs, the node, the run."""
    reply: str
    """The last reply of the model."""
    role_name: str = ""
    number: int = 1
    """The number of the turn of the node in this run, from 1."""
    ask: Ask | None = None
    """The agent's model, for memories that think; None: there is none at hand."""

    @property
    def key(self) -> str:
        """The turn as the JSON that ``Memory.insert`` is given."""
        data = {"input": self.query.inputs, "role_name": self.role_name, "turn": self.number}
        return json.dumps(data, ensure_ascii=False, default=str)


class TurnMemory(ContextProvider, Protocol):
    """A provider that receives each turn with its run, its node and a model to ask."""

    async def learn(self, turn: Turn, /) -> object:
        """Keep what is worth it of ``turn``, which may come again; plain data that it returns is
        journaled.
        """
        ...


class SharedMemory(ContextProvider, Protocol):
    """A memory that agents of one run share, in an attribute of the state."""

    share: str
    """The attribute: a list of notes."""

    def notes(self, turn: Turn, /) -> list[dict[str, object]]:
        """Return what ``turn`` adds; plain data."""
        ...

    def keep(self, notes: Sequence[Mapping[str, object]], /) -> list[dict[str, object]]:
        """Return those of all ``notes`` that are kept, where the attribute is overwritten."""
        ...


class ChatMemory(Protocol):
    """A memory of the conversation, kept in the state of the node or of the graph."""

    label: str
    share: str
    """The attribute that holds it; empty: the node keeps it for itself."""

    def recall(self, kept: Sequence[Message], /) -> list[Message]:
        """Return the messages that are sent before the new one."""
        ...

    async def remember(
        self, kept: Sequence[Message], turn: Sequence[Message], ask: Ask, /
    ) -> Sequence[Message]:
        """Return what is kept after a turn, plain data. ``ask``: for those that summarise.

        Where the node keeps it, ``kept`` is an ``axil.plugin.Log`` from the second turn on, and
        ``kept.extended(turn)`` takes no time for what is there already.
        """
        ...


def owner_metadata(
    namespace: Sequence[Owner], query: ContextQuery, user_field: str = "user"
) -> dict[str, object]:
    """Return whose memories a query is about, as metadata of their blocks.

    Raises: ContextError (AX894): the query does not say.
    """
    user = query.attributes.get(user_field, query.inputs.get(user_field))
    known = {
        "run": query.run_id,
        "session": query.session_id,
        "agent": query.node_name or None,
        "user": user,
    }
    for name in namespace:
        if known[name] in (None, ""):
            message = f"memories are kept for each {name}, and the query has no {name}."
            hint = "Leave it out of namespace."
            if name == "user":
                hint = f'Give "{user_field}" as an input, or pull it.'
            raise ContextError("AX894", message, hint)
    return {f"owner_{name}": as_text(known[name]) for name in namespace}


def turn_text(turn: Turn, what: Literal["turn", "reply"] = "turn") -> str:
    """Return a turn as the text that is remembered."""
    if what == "reply":
        return turn.reply
    return f"{turn.query.query_text.strip()}\n{turn.reply.strip()}".strip()


def turn_id(turn: Turn) -> str:
    """Return a name of the turn, the same when a resumed run tells it again."""
    lines = [turn.query.run_id, turn.query.session_id, turn.query.node_path, turn.key, turn.reply]
    data = json.dumps(plain_data(lines), sort_keys=True, default=str)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def turn_block(
    turn: Turn, what: Literal["turn", "reply"], uri: str, owner: Mapping[str, object]
) -> ContextBlock | None:
    """Return the block that is remembered of a turn; None: it has no text."""
    text = turn_text(turn, what)
    if not text.strip():
        return None
    about = {"by": turn.role_name, "node": turn.query.node_name, "turn": turn.number}
    metadata = {**about, "at": time.time(), **owner}
    return ContextBlock(text, uri, turn_id(turn), metadata=metadata)


def turn_of(key: str, value: str) -> Turn:
    """Return the turn that ``insert(key, value)`` tells of."""
    try:
        report: object = json.loads(key)
    except ValueError:
        report = None
    is_json = isinstance(report, dict)
    given = cast("dict[str, Any]", report if is_json else {"input": {"message": key}})
    inputs: object = given.get("input")
    is_fields = isinstance(inputs, dict)
    fields = cast("dict[str, Any]", inputs if is_fields else {"message": as_text(inputs)})
    if len(fields) == 1:
        text = as_text(next(iter(fields.values())))
    else:
        text = as_text(fields) if fields else ""
    number: object = given.get("turn")
    return Turn(
        query=ContextQuery(text, fields),
        reply=value,
        role_name=str(given.get("role_name") or ""),
        number=number if isinstance(number, int) else 1,
    )
