"""Names of ``axil_context`` for type checkers; written by ``make manifests``."""

from axil_context.memory.agents_md import AgentsMd as AgentsMd
from axil_context.memory.blackboard import Blackboard as Blackboard
from axil_context.memory.facts import FactMemory as FactMemory
from axil_context.memory.file import FileMemory as FileMemory
from axil_context.memory.skills import Skills as Skills
from axil_context.memory.stored import MemorySettings as MemorySettings, StoreMemory as StoreMemory
from axil_context.retrieval.chunks import (
    Boundary as Boundary,
    Chunk as Chunk,
    Cut as Cut,
    chunked as chunked,
)
from axil_context.retrieval.hybrid import HybridRetriever as HybridRetriever
from axil_context.retrieval.indexed import (
    BlockIndex as BlockIndex,
    Entry as Entry,
    IndexSettings as IndexSettings,
    StoreSettings as StoreSettings,
)
from axil_context.retrieval.keyword import KeywordRetriever as KeywordRetriever
from axil_context.retrieval.lexical import LexicalEmbedder as LexicalEmbedder
from axil_context.retrieval.reading import documents_of as documents_of, pages_of as pages_of
from axil_context.retrieval.reranked import RerankedRetriever as RerankedRetriever
from axil_context.retrieval.rows import MemoryStore as MemoryStore
from axil_context.retrieval.sources import (
    Difference as Difference,
    Sources as Sources,
    difference as difference,
)
from axil_context.retrieval.stored import (
    IndexedSources as IndexedSources,
    StoreRetriever as StoreRetriever,
)
from axil_context.retrieval.vector import VectorRetriever as VectorRetriever
from axil_context.services.calls import JsonService as JsonService
from axil_context.services.embedders import (
    CohereEmbedder as CohereEmbedder,
    GeminiEmbedder as GeminiEmbedder,
    MistralEmbedder as MistralEmbedder,
    OllamaEmbedder as OllamaEmbedder,
    ServiceEmbedder as ServiceEmbedder,
    VoyageEmbedder as VoyageEmbedder,
)
from axil_context.services.rerankers import (
    ModelReranker as ModelReranker,
    ServiceReranker as ServiceReranker,
)
