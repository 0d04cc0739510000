"""Retrieval: keyword, vector and hybrid search over texts, files and folders."""

from __future__ import annotations

from axil_retrieval.hybrid import HybridRetriever
from axil_retrieval.keyword import KeywordRetriever
from axil_retrieval.lexical import LexicalEmbedder
from axil_retrieval.vector import VectorRetriever

__all__ = ["HybridRetriever", "KeywordRetriever", "LexicalEmbedder", "VectorRetriever"]
