"""``context:chroma``: documents, files and folders, found by vectors that Chroma keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from axil_chroma import rows
from axil_chroma.store import Place, Store
from axil_models import (
    ContextBlock,
    ContextQuery,
    Document,
    SingleFlight,
    call_async,
    decoded_settings,
    with_provider,
)
from axil_retrieval import Chunk, Sources, chunked, difference


class ChromaConfig(Sources, Place):
    """The documents that are searched, and the place of their vectors."""

    refresh: Literal["once", "query", "never"] = Field(
        "once", description="When sources are looked at: once, at each query, or never."
    )


class ChromaRetriever:
    """Documents in a collection of Chroma's. An index, too: blocks can be put and deleted."""

    examples = ({"path": "notes", "embedder": "lexical"},)

    Config = ChromaConfig

    def __init__(self, config: ChromaConfig | None = None, **settings: Any) -> None:
        """``settings``: those of ``ChromaConfig``; nothing is opened, read or embedded before the
        first query. Raises: ConfigError.
        """
        self.config = decoded_settings(ChromaConfig, config, settings)
        self.context_label = self.config.context_label or "chroma"
        self.passive, self.active = self.config.passive, self.config.active
        self.store = Store(self.config, "documents")
        self._flight = SingleFlight[list[str]]()
        self._fresh_at = -1
        """``lost`` of the store at the time when all sources were in the collection."""

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the nearest blocks; their score is the cosine.

        Raises: ContextError; and what the embedder and Chroma raise.
        """
        if not self._is_fresh() or self.config.refresh == "query":
            await self.refresh()
        found = await self.store.search(query.query_text, top_k, query.filters)
        if not self._is_fresh():  # it was lost meanwhile
            await self.refresh()
            found = await self.store.search(query.query_text, top_k, query.filters)
        return with_provider(await call_async(self.config.opened, found), self.context_label)

    def _is_fresh(self) -> bool:
        return self.config.refresh == "never" or self._fresh_at == self.store.lost

    async def refresh(self) -> list[str]:
        """Embed what is new or has changed, forget what is gone; the names of the documents that
        were embedded.

        A document's old chunks are there until its new ones are. An interrupted process is
        finished by the next one.
        """
        return await self._flight.run(self._refreshed)

    async def _refreshed(self) -> list[str]:
        cut = self.config.cut
        documents = await call_async(self.config.read)
        held = await self.store.all({}, axil_kind="document")
        lost = self.store.lost
        found = difference(_whole(held), documents, cut.at, cut.chars, cut.overlap_chars)
        made = [(document, chunked(document.text, cut)) for document in found.changed]
        await self.store.put(
            [
                each
                for document, chunks in made
                for each in _marked(document, chunks, found.digests[document.uri])
            ]
        )
        stale = [
            id
            for id, metadata in held
            if found.digests.get(_uri(metadata)) != metadata["axil_digest"]
        ]
        new = {rows.id_of(chunk.block(document)) for document, chunks in made for chunk in chunks}
        await self.store.delete([id for id in stale if id not in new])
        self._fresh_at = lost
        return [document.uri for document in found.changed]

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks. Raises: ContextError (AX892, AX893, AX910, AX911)."""
        await self.store.put([(block, {"axil_kind": "block"}) for block in blocks])

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        await self.store.delete([rows.id_of(block) for block in blocks])

    async def close(self) -> None:
        """Close the client; it is opened again when it is used."""
        await self.store.close()

    def __repr__(self) -> str:
        return f"ChromaRetriever({self.store.name!r})"


def _marked(
    document: Document, chunks: Sequence[Chunk], digest: str
) -> list[tuple[ContextBlock, dict[str, Any]]]:
    marks = {"axil_kind": "document", "axil_digest": digest, "axil_chunks": len(chunks)}
    return [(chunk.block(document), marks) for chunk in chunks]


def _uri(metadata: Any) -> str:
    return str(rows.block(metadata).uri)


def _whole(held: Sequence[tuple[str, Any]]) -> dict[str, str]:
    """Return the digest of each document whose chunks are all there."""
    counts: Counter[tuple[str, str, int]] = Counter(
        (_uri(m), m["axil_digest"], int(m["axil_chunks"])) for _, m in held
    )
    return {uri: digest for (uri, digest, chunks), count in counts.items() if count == chunks}
