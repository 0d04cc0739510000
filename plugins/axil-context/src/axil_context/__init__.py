"""Context for agents: memory, and retrieval from documents."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Memory": {
        "memory.agents_md": "AgentsMd",
        "memory.blackboard": "Blackboard",
        "memory.facts": "FactMemory",
        "memory.file": "FileMemory",
        "memory.skills": "Skills",
        "memory.stored": "MemorySettings StoreMemory",
    },
    "Retrieval": {
        "retrieval.chunks": "Boundary Chunk Cut chunked",
        "retrieval.hybrid": "HybridRetriever",
        "retrieval.indexed": "BlockIndex Entry IndexSettings StoreSettings",
        "retrieval.keyword": "KeywordRetriever",
        "retrieval.lexical": "LexicalEmbedder",
        "retrieval.reading": "documents_of pages_of",
        "retrieval.reranked": "RerankedRetriever",
        "retrieval.rows": "MemoryStore",
        "retrieval.sources": "Difference Sources difference",
        "retrieval.stored": "IndexedSources StoreRetriever",
        "retrieval.vector": "VectorRetriever",
    },
    "Services": {
        "services.calls": "JsonService",
        "services.embedders": """
            CohereEmbedder GeminiEmbedder MistralEmbedder OllamaEmbedder ServiceEmbedder
            VoyageEmbedder
        """,
        "services.rerankers": "ModelReranker ServiceReranker",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_context.memory": "axil_memory",
    "axil_context.retrieval": "axil_retrieval",
}
"""Moved places → their names in the digests of runs that were recorded before."""
