"""All providers of this distribution keep what providers promise."""

from __future__ import annotations

from typing import Any

from axil_context import (
    HybridRetriever,
    KeywordRetriever,
    MemoryStore,
    StoreRetriever,
    VectorRetriever,
)
from axil_testing.kit import ContextKit, StoreKit


class Failing:
    """An embedder that is out of order."""

    name, dimensions = "failing", 4

    async def embed(self, texts: Any, /) -> Any:
        raise ConnectionError("no embedder today")


class TestKeyword(ContextKit):
    component = KeywordRetriever
    filters = indexes = persists = True

    def make(self) -> Any:
        return KeywordRetriever(path=str(self.folder / "index.sqlite"))

    def broken(self) -> Any:
        return KeywordRetriever(paths=["no/such/file.md"])


class TestKeywordInMemory(ContextKit):
    component = KeywordRetriever
    filters = indexes = True

    def make(self) -> Any:
        return KeywordRetriever()


class TestKeywordDocuments(ContextKit):
    def make(self) -> Any:
        return KeywordRetriever(documents=list(self.texts))

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        """It has them already."""


class TestVector(ContextKit):
    component = VectorRetriever
    filters = indexes = True

    def make(self) -> Any:
        return VectorRetriever()

    def broken(self) -> Any:
        return VectorRetriever(documents=["a"], embedder=Failing())


class TestHybrid(ContextKit):
    component = HybridRetriever
    config = {"providers": ["keyword"]}  # noqa: RUF012  # the kit's own attribute
    filters = indexes = True

    def make(self) -> Any:
        return HybridRetriever(providers=["keyword", "vector"])

    def broken(self) -> Any:
        return HybridRetriever(
            providers=["keyword", {"type": "vector", "documents": ["a"], "embedder": Failing()}]
        )


class TestStored(ContextKit):
    component = StoreRetriever
    filters = indexes = True

    def make(self) -> Any:
        return StoreRetriever()

    def broken(self) -> Any:
        return StoreRetriever(embedder=Failing())


class TestMemoryStore(StoreKit):
    component = MemoryStore

    def make(self) -> Any:
        return MemoryStore()
