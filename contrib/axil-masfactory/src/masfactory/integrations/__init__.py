"""Systems whose client is given as a function."""

from __future__ import annotations

from masfactory.integrations.memoryos import MemoryOSMemory, make_memoryos_mcp
from masfactory.integrations.ultrarag import UltraRAGRetriever, make_ultrarag_mcp

__all__ = ["MemoryOSMemory", "UltraRAGRetriever", "make_memoryos_mcp", "make_ultrarag_mcp"]
