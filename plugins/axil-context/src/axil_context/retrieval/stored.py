"""``context:store``: documents, files and folders, found by vectors that a store keeps."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack

from pydantic import Field

from axil_context.retrieval.chunks import chunked
from axil_context.retrieval.indexed import (
    BlockIndex,
    Entry,
    IndexSettings,
    StoreSettings,
    id_of,
    uri_of,
)
from axil_context.retrieval.sources import Difference, Sources, difference
from axil_models import (
    ContextBlock,
    ContextQuery,
    SingleFlight,
    StoreLike,
    call_async,
    decoded_settings,
    with_provider,
)

if TYPE_CHECKING:
    from axil_context.keywords import StoreRetrieverKeywords

_DOCUMENT: Final = "axil:document"
"""The tag of rows that were made of sources."""


class IndexedSources(Sources, IndexSettings):
    """The documents that are searched, and how they are kept."""

    refresh: Literal["once", "query", "never"] = Field(
        "once", description="When sources are looked at: once, at each query, or never."
    )


class StoreConfig(IndexedSources, StoreSettings):
    """The documents that are searched, and the store of their vectors."""


class StoreRetriever:
    """Documents in a store. An index, too: blocks can be put and deleted."""

    examples: ClassVar[Sequence[Mapping[str, object]]] = (
        {"store": "memory", "embedder": "lexical"},
    )

    Config: ClassVar[type[IndexedSources]] = StoreConfig
    label: ClassVar[str] = "store"
    """The label of its blocks where the settings have none."""
    owns_store: ClassVar[bool] = False
    """True if ``store_of`` makes a store of its own, which is closed with it."""

    def __init__(self, config: Any = None, **settings: Unpack[StoreRetrieverKeywords]) -> None:
        """``settings``: those of ``Config``; nothing is opened, read or embedded before the first
        query. Raises: ConfigError.
        """
        self.config: IndexedSources = decoded_settings(self.Config, config, settings)
        self.context_label = self.config.context_label or self.label
        self.passive, self.active = self.config.passive, self.config.active
        store, label = self.store_of(self.config), self.context_label
        self.index = BlockIndex(self.config, store, "documents", label, owns=self.owns_store)
        self._flight = SingleFlight[list[str]]()
        self._fresh_at = -1
        """``lost`` of the store at the time when all sources were in it."""

    def store_of(self, config: Any) -> StoreLike:
        """Return the store that the settings name: an object, or the use of a component."""
        return config.store

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the nearest blocks; their score is the cosine.

        Raises: ContextError; and what the embedder and the store raise.
        """
        if not self._is_fresh() or self.config.refresh == "query":
            await self.refresh()
        found = await self.index.search(query.query_text, top_k, query.filters)
        if not self._is_fresh():  # it was lost meanwhile
            await self.refresh()
            found = await self.index.search(query.query_text, top_k, query.filters)
        return with_provider(await call_async(self.config.opened, found), self.context_label)

    def _is_fresh(self) -> bool:
        return self.config.refresh == "never" or self._fresh_at == self.index.lost

    async def refresh(self) -> list[str]:
        """Embed what is new or has changed, forget what is gone; return the names of documents that
        were embedded.

        A document's old chunks are there until its new ones are. Cost: where nothing has changed,
        one row of the store is read.
        """
        return await self._flight.run(self._refreshed)

    async def _refreshed(self) -> list[str]:
        lost = self.index.lost
        found, whole = await call_async(self._read)
        changed: list[str] = []
        if whole != await self.index.note():
            await self.index.keep("")
            changed = await self._update(found)
            await self.index.keep(whole)
        self._fresh_at = lost
        return changed

    def _read(self) -> tuple[Difference, str]:
        """Read all documents; return them with their digests, and a digest of all."""
        cut = self.config.cut
        found = difference({}, self.config.read(), cut.at, cut.chars, cut.overlap_chars)
        data = json.dumps(dict(found.digests), sort_keys=True).encode("ascii")
        return found, hashlib.sha256(data).hexdigest()

    async def _update(self, found: Difference) -> list[str]:
        """Make the store hold the documents and no others; return the names of embedded ones."""
        held = await self.index.marks([_DOCUMENT])
        digests, known = found.digests, _whole(held)
        changed = [each for each in found.changed if known.get(each.uri) != digests[each.uri]]
        entries: list[Entry] = []
        for document in changed:
            chunks = chunked(document.text, self.config.cut)
            mark = f"{digests[document.uri]} {len(chunks)}"
            blocks = [chunk.block(document) for chunk in chunks]
            entries += [Entry(block=block, tags=(_DOCUMENT,), mark=mark) for block in blocks]
        await self.index.put(entries)
        old = held.keys() - {id_of(entry.block) for entry in entries}
        gone = [id for id in old if digests.get(uri_of(id)) != held[id].partition(" ")[0]]
        await self.index.delete(gone)
        return [document.uri for document in changed]

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks. Raises: ContextError (AX892, AX893, AX910, AX911)."""
        await self.index.keep("")  # a block may take the place of a document's
        await self.index.put([Entry(block=block) for block in blocks])

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        await self.index.keep("")
        await self.index.forget(blocks)

    async def close(self) -> None:
        """Close the store; it is opened again when it is used."""
        await self.index.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.context_label!r})"


def _whole(held: Mapping[str, str]) -> dict[str, str]:
    """Return the digest of each document whose chunks are all there."""
    counts = Counter((uri_of(id), mark) for id, mark in held.items())
    known: dict[str, str] = {}
    for (uri, mark), count in counts.items():
        digest, _, chunks = mark.partition(" ")
        if count == int(chunks):
            known[uri] = digest
    return known
