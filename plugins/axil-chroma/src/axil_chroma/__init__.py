"""Vector retrieval and vector memory on ChromaDB.

Chroma's SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_chroma.memory import ChromaMemory
from axil_chroma.retriever import ChromaRetriever
from axil_chroma.sentences import SentenceEmbedder

__all__ = ["ChromaMemory", "ChromaRetriever", "SentenceEmbedder"]
