"""Embedders: functions from a text to a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import axil
from axil_context import LexicalEmbedder
from masfactory.errors import Unsupported
from masfactory.utils.apart import apart

__all__ = [
    "AnthropicEmbedder",
    "BagOfWordsEmbedder",
    "BaseEmbedder",
    "HybridEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "SimpleEmbedder",
    "TfidfEmbedder",
]

OPENAI_AVAILABLE = True
ANTHROPIC_AVAILABLE = SENTENCE_TRANSFORMERS_AVAILABLE = SKLEARN_AVAILABLE = False
"""True for the libraries that there are embedders of."""


class BaseEmbedder:
    """The base of embedders of your own."""

    def get_embedding_function(self) -> Callable[[str], Any]:
        """Give the function."""
        raise NotImplementedError


class SimpleEmbedder(BaseEmbedder):
    """Words and parts of words: ``axil_context.LexicalEmbedder``; the same in every process."""

    def __init__(self, vocab_size: int = 10000) -> None:
        self._core = LexicalEmbedder(dimensions=min(max(vocab_size, 16), 65536))

    def get_embedding_function(self) -> Callable[[str], list[float]]:
        return lambda text: list(self._core.vector(text))


class OpenAIEmbedder(BaseEmbedder):
    """Vectors of OpenAI, or of a compatible server: ``axil_openai.OpenAIEmbedder``."""

    def __init__(
        self, model: str = "text-embedding-3-small", api_key: str | None = None, **kwargs: Any
    ) -> None:
        self.model, self._api_key, self._more = model, api_key, kwargs
        self._core: Any = None

    def get_embedding_function(self) -> Callable[[str], list[float]]:

        def embed(text: str) -> list[float]:
            async def once() -> list[float]:
                from axil_openai import OpenAIEmbedder as Core

                core = Core(self.model, api_key=self._api_key, **self._more)
                try:
                    return list((await core.embed([text]))[0])
                finally:
                    await core.close()

            return apart(lambda: axil.run_sync(once()))

        return embed


class HybridEmbedder(BaseEmbedder):
    """Several embedders: their vectors side by side, each multiplied by its weight."""

    def __init__(
        self, embedders: Sequence[BaseEmbedder], weights: Sequence[float] | None = None
    ) -> None:
        self._embedders = list(embedders)
        self._weights = list(weights or [1.0 / max(len(self._embedders), 1)] * len(embedders))
        if len(self._weights) != len(self._embedders):
            raise ValueError(
                f"HybridEmbedder: found {len(self._weights)} weights, expected "
                f"{len(self._embedders)}. Give one for each embedder."
            )

    def get_embedding_function(self) -> Callable[[str], list[float]]:
        functions = [embedder.get_embedding_function() for embedder in self._embedders]

        def embed(text: str) -> list[float]:
            return [
                weight * float(each)
                for function, weight in zip(functions, self._weights, strict=True)
                for each in function(text)
            ]

        return embed


class _Absent(BaseEmbedder):
    instead = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        raise Unsupported(type(self).__name__, self.instead)


class TfidfEmbedder(_Absent):
    """Vectors of words; raises ``Unsupported``."""

    instead = "Use SimpleEmbedder, or axil_context.KeywordRetriever, which ranks by words."


class BagOfWordsEmbedder(_Absent):
    """Vectors of words; raises ``Unsupported``."""

    instead = "Use SimpleEmbedder, or axil_context.KeywordRetriever, which ranks by words."


class SentenceTransformerEmbedder(_Absent):
    """Vectors of a local model; raises ``Unsupported``."""

    instead = (
        "Serve the model behind an OpenAI-compatible server and use OpenAIEmbedder(base_url=…), "
        "or give VectorMemory your own function."
    )


class AnthropicEmbedder(_Absent):
    """Vectors of Anthropic, which has none; raises ``Unsupported``."""

    instead = "Anthropic has no API for vectors. Use OpenAIEmbedder or SimpleEmbedder."
