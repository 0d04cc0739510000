"""Retrieval: keyword, vector and hybrid search over texts, files and folders.

The parts of a retriever of documents are here too: sources, how they are read, and how they are cut
into chunks.
"""

from __future__ import annotations

from axil_retrieval.chunks import Boundary, Chunk, Cut, chunked
from axil_retrieval.hybrid import HybridRetriever
from axil_retrieval.indexed import BlockIndex, Entry, IndexSettings, StoreSettings
from axil_retrieval.keyword import KeywordRetriever
from axil_retrieval.lexical import LexicalEmbedder
from axil_retrieval.reading import documents_of, pages_of
from axil_retrieval.rows import MemoryStore
from axil_retrieval.sources import Difference, Sources, difference
from axil_retrieval.stored import IndexedSources, StoreRetriever
from axil_retrieval.vector import VectorRetriever

__all__ = [
    "BlockIndex",
    "Boundary",
    "Chunk",
    "Cut",
    "Difference",
    "Entry",
    "HybridRetriever",
    "IndexSettings",
    "IndexedSources",
    "KeywordRetriever",
    "LexicalEmbedder",
    "MemoryStore",
    "Sources",
    "StoreRetriever",
    "StoreSettings",
    "VectorRetriever",
    "chunked",
    "difference",
    "documents_of",
    "pages_of",
]
