"""Names of ``axil_context`` for type checkers; written by ``make manifests``."""

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
