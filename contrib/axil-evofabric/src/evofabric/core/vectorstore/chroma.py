"""``ChromaDB``: a collection of Chroma's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import PrivateAttr

from evofabric.core.typing import DBItem, SearchResult
from evofabric.core.vectorstore.base import VectorDB


class ChromaDB(VectorDB):
    """A collection in memory, or in a folder. Needs the package chromadb.

    Vectors are made by ``embedding``, here: a collection that is opened again finds what it has.
    What Chroma refuses raises; the score is one less the squared distance.
    """

    _collection: Any = PrivateAttr(default=None)

    def _open(self) -> Any:
        if self._collection is None:
            try:
                import chromadb
                from chromadb.config import Settings
            except ImportError as error:
                raise ImportError("ChromaDB needs chromadb. Install it.") from error

            chosen: Any = Settings(anonymized_telemetry=False)
            client = (
                chromadb.PersistentClient(self.persist_directory, settings=chosen)
                if self.persist_directory
                else chromadb.EphemeralClient(settings=chosen)
            )
            self._collection = client.get_or_create_collection(
                self.collection_name, embedding_function=None
            )
        return self._collection

    async def persist(self) -> None:
        """Do nothing: a collection in a folder is kept as it changes."""

    async def clear_db(self) -> int:
        """Take everything out, and say how much it was."""
        held = self._open().get()["ids"]
        if held:
            self._open().delete(ids=held)
        return len(held)

    async def similarity_search(
        self,
        query: str,
        k: int | None = None,
        filter: dict[str, Any] | None = None,  # EvoFabric's name
    ) -> list[SearchResult]:
        """Give the texts that fit best."""
        count = self._open().count()
        if not count:
            return []
        found = self._open().query(
            query_embeddings=[await self.embedding.aembed_query(query)],
            n_results=min(self.top_k if k is None else k, count),
            where=filter or None,
            include=["documents", "metadatas", "distances"],
        )
        rows = zip(found["documents"][0], found["metadatas"][0], found["distances"][0], strict=True)
        return [
            SearchResult(
                text=text,
                metadata={**(data or {}), "_distance": distance},
                score=1 - distance,
                id=str(data["ids"]) if data else "",
            )
            for text, data, distance in rows
        ]

    async def add_texts(
        self,
        items: Sequence[DBItem] | Sequence[str],
        *,
        metadatas: Sequence[dict[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[str]:
        """Add texts, and give their ids."""
        rows = [
            each
            if isinstance(each, DBItem)
            else DBItem(text=each, metadata=_at(metadatas, number), ids=_at(ids, number))
            for number, each in enumerate(items)
        ]
        if not rows:
            return []
        known = [row.ids or str(uuid.uuid4()) for row in rows]
        texts = [row.text for row in rows]
        self._open().add(
            ids=known,
            documents=texts,
            embeddings=await self.embedding.aembed_documents(texts),
            metadatas=[
                {**(row.metadata or {"default": "metadata"}), "ids": key}
                for row, key in zip(rows, known, strict=True)
            ],
        )
        return known

    def get_vector_count(self) -> int:
        """Count the vectors."""
        return self._open().count()

    def get_collection_info(self) -> dict[str, Any]:
        """Describe the collection."""
        return {
            "name": self.collection_name,
            "count": self.get_vector_count(),
            "persist_directory": self.persist_directory,
            "has_custom_embedding": self.embedding is not None,
        }

    async def delete_by_ids(self, ids: list[str]) -> bool:
        """Take texts out."""
        if ids:
            self._open().delete(ids=ids)
        return True


def _at(given: Sequence[Any] | None, number: int) -> Any:
    """Give the item of that position, else the last one; None: there is none."""
    return given[min(number, len(given) - 1)] if given else None
