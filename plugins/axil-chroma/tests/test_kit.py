"""Both providers of this distribution keep what providers promise."""

from __future__ import annotations

from typing import Any

import pytest

from axil_chroma import ChromaMemory, ChromaRetriever
from axil_testing.kit import ContextKit

pytest.importorskip("chromadb", reason="chromadb cannot be installed here")


class Failing:
    """An embedder that is out of order."""

    name, dimensions = "failing", 4

    async def embed(self, texts: Any, /) -> Any:
        raise ConnectionError("no embedder today")


class TestRetriever(ContextKit):
    component = ChromaRetriever
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    filters = indexes = persists = True
    sdk = ("chromadb", "numpy", "opentelemetry", "sentence_transformers")

    def make(self) -> Any:
        return ChromaRetriever(path=str(self.folder / "chroma"))

    def broken(self) -> Any:
        return ChromaRetriever(path=str(self.folder / "chroma"), embedder=Failing())


class TestRetrieverOfDocuments(ContextKit):
    component = ChromaRetriever
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return ChromaRetriever(path=str(self.folder / "chroma"), documents=list(self.texts))

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        """It has them already."""


class TestMemory(ContextKit):
    component = ChromaMemory
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    filters = indexes = persists = True
    sdk = ("chromadb", "numpy", "opentelemetry")

    def make(self) -> Any:
        return ChromaMemory(path=str(self.folder / "chroma"))

    def broken(self) -> Any:
        return ChromaMemory(path=str(self.folder / "chroma"), embedder=Failing())


class TestMemoryOfUsers(ContextKit):
    component = ChromaMemory
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    persists = idempotent = True
    namespaced = "user"

    def make(self) -> Any:
        return ChromaMemory(path=str(self.folder / "chroma"), namespace=["user"])

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)
