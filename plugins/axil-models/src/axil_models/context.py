"""Context providers: what is asked of them, and the blocks that they give."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from axil.plugin import Message


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A piece of context: what a memory remembers, what a retriever found."""

    text: str
    uri: str | None = None
    chunk_id: str | None = None
    score: float | None = None
    """Higher is better; None: not scored."""
    title: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    dedupe_key: str | None = None
    """Blocks with the same key are the same; None: by ``uri`` and ``chunk_id``, else by what they
    hold.
    """
    part: Mapping[str, object] | None = None
    """An image, a file or a recording that the model is shown, as ``axil_models.parts`` makes them;
    ``text`` may say what it is.
    """


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """The query for context."""

    query_text: str
    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    node_name: str = ""
    node_path: str = ""
    run_id: str | None = None
    session_id: str | None = None
    messages: Sequence[Message] = ()
    filters: Mapping[str, object] = field(default_factory=dict[str, object])
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
        """Return the best blocks, best first.

        With a parameter ``ctx`` it is given the context of the firing, which may be None.
        """
        ...


class Index(ContextProvider, Protocol):
    """A provider whose blocks can be put and deleted one by one; a block is known by its ``uri``
    and ``chunk_id``.
    """

    def put(self, blocks: Sequence[ContextBlock], /) -> object:
        """Add blocks; one that is known already is replaced. May be async."""
        ...

    def delete(self, blocks: Sequence[ContextBlock], /) -> object:
        """Forget blocks, known by ``uri`` and ``chunk_id``; those that are not there are passed
        over. May be async.
        """
        ...
