"""Clients of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evofabric.absent import missing
from evofabric.core.clients.base import ChatClientBase, EmbedClientBase, RerankClientBase
from evofabric.core.clients.openai import OpenAIChatClient, OpenAIEmbedClient

__all__ = [
    "ChatClientBase",
    "EmbedClientBase",
    "OpenAIChatClient",
    "OpenAIEmbedClient",
    "RerankClientBase",
]

__getattr__: Callable[[str], Any] = missing(
    __name__,
    {
        "PanguClient": "Ask it through a server that is compatible with OpenAI's.",
        "SentenceTransformerEmbed": "Write an EmbedClientBase around the library, or take vectors "
        "of axil_openai.OpenAIEmbedder or axil_context.LexicalEmbedder.",
        "FlagRerankModel": "Write a RerankClientBase around the library; hits of several "
        "retrievers are joined by axil_context.HybridRetriever.",
    },
)
