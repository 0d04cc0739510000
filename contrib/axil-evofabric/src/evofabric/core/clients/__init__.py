"""Clients of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing
from evofabric.core.clients.base import ChatClientBase
from evofabric.core.clients.openai import OpenAIChatClient

__all__ = ["ChatClientBase", "OpenAIChatClient"]

_VECTORS = "Vectors are made by axil_openai.OpenAIEmbedder or axil_context.LexicalEmbedder."
_RANKS = "Hits of several retrievers are joined by axil_context.HybridRetriever."
__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "PanguClient": "Ask it through a server that is compatible with OpenAI's.",
        "EmbedClientBase": _VECTORS,
        "OpenAIEmbedClient": _VECTORS,
        "SentenceTransformerEmbed": _VECTORS,
        "RerankClientBase": _RANKS,
        "FlagRerankModel": _RANKS,
    },
)
