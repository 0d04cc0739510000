"""``context:vector``: documents found by vectors; exact, in memory, for some thousand chunks."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from operator import mul
from typing import TYPE_CHECKING, Literal, Unpack

from pydantic import Field

from axil.plugin import refers_to
from axil_context.retrieval.chunks import chunked
from axil_context.retrieval.sources import Sources, difference
from axil_models import (
    ContextBlock,
    ContextQuery,
    Embedder,
    EmbedderLike,
    LaterComponent,
    ProviderSettings,
    SingleFlight,
    block_key,
    call_async,
    decoded_settings,
    fits_filters,
    provider_label,
    vectors_of,
    with_provider,
)

if TYPE_CHECKING:
    from axil_context.keywords import VectorRetrieverKeywords

Key = tuple[str, str]
Entry = tuple[Key, tuple[ContextBlock, "array[float]"]]


class VectorConfig(Sources, ProviderSettings):
    """The documents that are searched, and the embedder of their vectors."""

    embedder: EmbedderLike = Field(
        "lexical",
        description="The embedder, which turns texts into vectors: a name, {type: …}, or an "
        "object.",
        json_schema_extra=refers_to("embedders", default=["lexical"]),
    )
    refresh: Literal["once", "query"] = Field(
        "once", description="When changes of the sources are read: never, or at each query."
    )
    min_score: float | None = Field(
        None, description="The lowest cosine similarity of a block that is returned."
    )
    batch: int = Field(64, ge=1, description="The number of texts in one call of the embedder.")


class VectorRetriever:
    """Documents, files and folders, searched by vectors.

    An index, too: blocks can be put and deleted. Gone with the process.
    """

    Config = VectorConfig

    def __init__(
        self, config: VectorConfig | None = None, **settings: Unpack[VectorRetrieverKeywords]
    ) -> None:
        """``settings``: those of ``VectorConfig``; nothing is read or embedded before the first
        query. Raises: ConfigError.
        """
        self.config = decoded_settings(VectorConfig, config, settings)
        self.context_label = self.config.context_label or "vector"
        self.passive, self.active = self.config.passive, self.config.active
        self._digests: dict[str, str] = {}
        self._known: dict[Key, tuple[ContextBlock, array[float]]] = {}
        self._keys: dict[str, set[Key]] = {}
        """The keys of each document's blocks."""
        self._embedder = LaterComponent("embedders", self.config.embedder, provider_label(self))
        self._lock = threading.Lock()
        self._flight = SingleFlight[list[str]]()
        self._is_fresh = False

    @property
    def embedder(self) -> Embedder:
        """The embedder; made when it is first used."""
        return self._embedder.get()

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the nearest blocks; their score is the cosine.

        Raises: ContextError; and what the embedder raises.
        """
        if not self._is_fresh or self.config.refresh == "query":
            await self.refresh()
        if top_k < 1 or not query.query_text.strip() or not self._known:
            return []
        asked = _unit((await vectors_of(self.embedder, [query.query_text], is_query=True))[0])
        with self._lock:
            known = list(self._known.items())
        return await call_async(self._nearest, asked, known, query.filters, top_k)

    def _nearest(
        self, asked: array[float], known: Sequence[Entry], filters: Mapping[str, object], top_k: int
    ) -> list[ContextBlock]:
        least = 0.0 if self.config.min_score is None else self.config.min_score
        scored = [
            (-sum(map(mul, asked, vector)), key, block)
            for key, (block, vector) in known
            if fits_filters(block.metadata, filters)
        ]
        fitting = [each for each in scored if -each[0] >= least and each[0]]
        best = nsmallest(top_k, fitting, key=lambda each: each[:2])
        blocks = self.config.opened(replace(block, score=-cost) for cost, _, block in best)
        return with_provider(blocks, self.context_label)

    async def refresh(self) -> list[str]:
        """Embed what has changed, forget what is gone; return the names of embedded documents."""
        return await self._flight.run(self._refreshed)

    async def _refreshed(self) -> list[str]:
        cut = self.config.cut
        documents = await call_async(self.config.read)
        found = difference(self._digests, documents, cut.at, cut.chars, cut.overlap_chars)
        for document in found.changed:
            blocks = [chunk.block(document) for chunk in chunked(document.text, cut)]
            vectors = await self._vectors(blocks)
            with self._lock:
                self._forget(self._keys.pop(document.uri, set()))
                self._keys[document.uri] = self._hold(blocks, vectors)
                self._digests[document.uri] = found.digests[document.uri]
        with self._lock:
            for uri in found.gone:
                self._forget(self._keys.pop(uri, set()))
                del self._digests[uri]
        self._is_fresh = True
        return [document.uri for document in found.changed]

    async def _vectors(self, blocks: Sequence[ContextBlock]) -> list[array[float]]:
        vectors: list[array[float]] = []
        for at in range(0, len(blocks), self.config.batch):
            texts = [block.text for block in blocks[at : at + self.config.batch]]
            vectors += [_unit(vector) for vector in await vectors_of(self.embedder, texts)]
        return vectors

    def _hold(self, blocks: Sequence[ContextBlock], vectors: Sequence[array[float]]) -> set[Key]:
        held = {
            block_key(block): (block, vector) for block, vector in zip(blocks, vectors, strict=True)
        }
        self._known.update(held)
        return set(held)

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._known.pop(key, None)

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks.

        Raises: ContextError (AX892): a block has neither ``uri`` nor ``chunk_id``; and the
        embedder's.
        """
        keys = [block_key(block) for block in blocks]
        vectors = await self._vectors(blocks)
        with self._lock:
            self._forget(keys)
            self._hold(blocks, vectors)

    def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        with self._lock:
            self._forget([block_key(block) for block in blocks])

    async def close(self) -> None:
        """Close an embedder that was made by name."""
        await self._embedder.close()

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"VectorRetriever({self.context_label!r})"


def _unit(vector: Sequence[float]) -> array[float]:
    """Return the vector made as long as 1; zeros stay zeros."""
    length = math.sqrt(math.fsum(value * value for value in vector))
    return array("d", [value / length for value in vector] if length else vector)
