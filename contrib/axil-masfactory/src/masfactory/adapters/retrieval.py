"""Retrievers: documents as context."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axil_models import ContextBlock, ContextQuery
from masfactory.adapters.context.provider import ContextProvider, limited
from masfactory.adapters.vectors import Embedding, nearness


class Retrieval(ContextProvider):
    """The base of retrievers of your own."""


class SimpleKeywordRetriever(Retrieval):
    """All documents, first those with most of the query's words for their length."""

    def __init__(
        self,
        documents: Mapping[str, str],
        *,
        context_label: str = "KEYWORD_RETRIEVER",
        passive: bool = True,
        active: bool = False,
    ) -> None:
        super().__init__(context_label, passive=passive, active=active)
        self.documents = dict(documents)

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give the documents; none where nothing is asked."""
        asked = query.query_text.strip().lower()
        scored = [
            ContextBlock(
                text, uri=name, score=_density(asked, text.lower()), metadata={"doc_id": name}
            )
            for name, text in self.documents.items()
            if asked and text
        ]
        return limited(sorted(scored, key=lambda block: -(block.score or 0)), top_k)


def _density(asked: str, text: str) -> float:
    """Give how often the words of a query are in a text, for each of the text's words; the query as
    it is counts its words twice more.

    >>> _density("fern", "a fern is no moss"), _density("no moss", "a fern is no moss")
    (0.5, 1.0)
    """
    words = asked.split()
    found = sum(text.count(word) for word in words) + (2 * len(words) if asked in text else 0)
    return found / (len(text.split()) + 1)


class VectorRetriever(Retrieval):
    """Documents found by the nearness of the vectors that a function makes of them."""

    def __init__(
        self,
        documents: Mapping[str, str],
        embedding_function: Embedding,
        *,
        similarity_threshold: float = 0.7,
        context_label: str = "VECTOR_RETRIEVER",
        passive: bool = True,
        active: bool = False,
    ) -> None:
        super().__init__(context_label, passive=passive, active=active)
        self.documents = dict(documents)
        self._embed, self.similarity_threshold = embedding_function, similarity_threshold
        self._vectors: dict[str, Any] = {}

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give the documents that are near the query."""
        asked = self._embed(query.query_text)
        scored: list[tuple[float, str, str]] = []
        for name, text in self.documents.items():
            if name not in self._vectors:
                self._vectors[name] = self._embed(text)
            scored.append((nearness(asked, self._vectors[name]), name, text))
        near = [each for each in scored if each[0] >= self.similarity_threshold]
        near.sort(key=lambda each: -each[0])
        return limited(
            [ContextBlock(text, uri=name, score=score) for score, name, text in near], top_k
        )


class FileSystemRetriever(VectorRetriever):
    """The files of a folder, found as by ``VectorRetriever``; they are read when it is made.

    ``cache_path`` is not written: ``axil_context.VectorRetriever`` keeps vectors in a file.
    """

    def __init__(
        self,
        docs_dir: str | Path,
        embedding_function: Embedding,
        *,
        file_extension: str = ".txt",
        similarity_threshold: float = 0.7,
        cache_path: str | Path | None = None,
        context_label: str = "FILESYSTEM_RETRIEVER",
        passive: bool = True,
        active: bool = False,
    ) -> None:
        del cache_path
        folder = Path(docs_dir)
        documents = {
            file.relative_to(folder).as_posix(): file.read_text("utf-8")
            for file in sorted(folder.rglob(f"*{file_extension}"))
        }
        super().__init__(
            documents,
            embedding_function,
            similarity_threshold=similarity_threshold,
            context_label=context_label,
            passive=passive,
            active=active,
        )
