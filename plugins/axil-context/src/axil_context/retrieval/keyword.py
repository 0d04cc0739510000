"""``context:keyword``: documents found by their words, ranked by BM25."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Unpack

from pydantic import Field

from axil.plugin import WritePath
from axil_context.retrieval.chunks import chunked
from axil_context.retrieval.sources import Sources, difference
from axil_context.retrieval.table import Table
from axil_models import (
    ContextBlock,
    ContextQuery,
    ProviderSettings,
    decoded_settings,
    with_provider,
)

if TYPE_CHECKING:
    from axil_context.keywords import KeywordRetrieverKeywords


class KeywordConfig(Sources, ProviderSettings):
    """The documents that are searched, and how."""

    path: WritePath = Field(
        "",
        description="The file of the index; empty: the index is kept in memory and rebuilt in "
        "each process.",
    )
    refresh: Literal["once", "query"] = Field(
        "once", description="When changes of the sources are read: never, or at each query."
    )
    stems: bool = Field(
        True, description="Compare English words by their stems: running finds run."
    )
    min_score: float | None = Field(
        None, description="The lowest score of a block that is returned."
    )


class KeywordRetriever:
    """Documents, files and folders, searched by words.

    An index, too: blocks can be put and deleted.
    """

    Config = KeywordConfig

    def __init__(
        self, config: KeywordConfig | None = None, **settings: Unpack[KeywordRetrieverKeywords]
    ) -> None:
        """``settings``: those of ``KeywordConfig``; nothing is read or opened before the first
        query. Raises: ConfigError.
        """
        self.config = decoded_settings(KeywordConfig, config, settings)
        self.context_label = self.config.context_label or "keyword"
        self.passive, self.active = self.config.passive, self.config.active
        self._table = Table(self.config.path, stems=self.config.stems)
        self._lock = threading.RLock()
        self._is_fresh = False

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the best blocks for any word of the query.

        Raises: ContextError (AX890): a source cannot be read; AX899: the index.
        """
        # a run that ends beside this one may not close what was made fresh before it is searched
        with self._lock:
            if not self._is_fresh or self.config.refresh == "query":
                self.refresh()
            text, least = query.query_text, self.config.min_score
            found = self._table.search(text, top_k, query.filters, least)
        return with_provider(self.config.opened(found), self.context_label)

    def refresh(self) -> list[str]:
        """Index what has changed, forget what is gone; return the names of indexed documents."""
        with self._lock:
            cut, known = self.config.cut, self._table.digests()
            found = difference(known, self.config.read(), cut.at, cut.chars, cut.overlap_chars)
            for document in found.changed:
                blocks = [chunk.block(document) for chunk in chunked(document.text, cut)]
                self._table.replace(document.uri, found.digests[document.uri], blocks)
            for uri in found.gone:
                self._table.remove(uri)
            self._is_fresh = True
            return [document.uri for document in found.changed]

    def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks.

        Raises: ContextError (AX892): a block has neither ``uri`` nor ``chunk_id``.
        """
        self._table.put(blocks)

    def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        self._table.delete(blocks)

    def close(self) -> None:
        """Close the index. What was only in memory is gone, and is read again at the next query."""
        with self._lock:
            self._table.close()
            self._is_fresh = False

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"KeywordRetriever({self.context_label!r})"
