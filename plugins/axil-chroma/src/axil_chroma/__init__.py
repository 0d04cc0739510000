"""A store on ChromaDB, with a retriever and a memory that use it.

Chroma's SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_chroma.memory import ChromaMemory
from axil_chroma.retriever import ChromaRetriever
from axil_chroma.sentences import SentenceEmbedder
from axil_chroma.store import ChromaStore

__all__ = ["ChromaMemory", "ChromaRetriever", "ChromaStore", "SentenceEmbedder"]
