"""UltraRAG, by functions that call its client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axil_models import ContextBlock, ContextQuery
from masfactory.adapters.mcp import MCP
from masfactory.adapters.retrieval import Retrieval

Found = Iterable[Mapping[str, Any]]


class UltraRAGRetriever(Retrieval):
    """A retriever of what ``retrieve`` finds."""

    def __init__(
        self,
        *,
        retrieve: Callable[[ContextQuery, int], Found],
        name: str = "UltraRAG",
        passive: bool = True,
        active: bool = False,
        supports_passive: bool = True,
        supports_active: bool = True,
        **keys: Any,
    ) -> None:
        """``keys``: where an item holds what, as ``MCP`` has it."""
        super().__init__(name, passive=passive, active=active)
        self.supports_passive, self.supports_active = supports_passive, supports_active
        self._found = MCP(name=name, call=retrieve, **keys)

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give what ``retrieve`` finds."""
        return self._found.get_blocks(query, top_k=top_k)


def make_ultrarag_mcp(
    *, call: Callable[[ContextQuery, int], Found], name: str = "UltraRAG", **options: Any
) -> MCP:
    """Make a provider of what an UltraRAG server finds; ``options`` are those of ``MCP``."""
    return MCP(name=name, call=call, **options)
