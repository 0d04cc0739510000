"""The base of stores of texts that are found by what they mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from evofabric.core.factory import BaseComponent
from evofabric.core.typing import DBItem, SearchResult


class DBBase(BaseComponent, ABC):
    """A store of texts."""

    collection_name: str
    persist_directory: str
    embedding: Any
    top_k: int

    @abstractmethod
    async def persist(self) -> None:
        """Keep what was added."""

    @abstractmethod
    async def clear_db(self) -> Any:
        """Take everything out."""

    @abstractmethod
    async def similarity_search(
        self,
        query: str,
        k: int | None = None,
        filter: dict[str, Any] | None = None,  # EvoFabric's name
    ) -> list[SearchResult]:
        """Give the texts that fit best."""

    @abstractmethod
    async def add_texts(
        self,
        items: Sequence[DBItem] | Sequence[str],
        *,
        metadatas: Sequence[dict[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[str]:
        """Add texts, and give their ids."""

    @abstractmethod
    async def delete_by_ids(self, ids: list[str]) -> Any:
        """Take texts out."""


class VectorDB(DBBase, ABC):
    """A store of vectors."""

    persist_directory: str = ""
    top_k: int = 5

    @abstractmethod
    def get_vector_count(self) -> int:
        """Count the vectors."""

    @abstractmethod
    def get_collection_info(self) -> dict[str, Any]:
        """Describe the collection."""
