"""``context:chroma``: documents, files and folders, found by vectors that Chroma keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from axil_chroma.store import ChromaStore, Place
from axil_context import IndexedSources, StoreRetriever

if TYPE_CHECKING:
    from axil_chroma.keywords import ChromaRetrieverKeywords


class ChromaConfig(IndexedSources, Place):
    """The documents that are searched, and the place of their vectors."""


class ChromaRetriever(StoreRetriever):
    """Documents in a collection of Chroma's. An index, too: blocks can be put and deleted."""

    examples = ({"path": "notes", "embedder": "lexical"},)

    Config = ChromaConfig
    label = "chroma"
    owns_store = True

    if TYPE_CHECKING:

        def __init__(
            self,
            config: ChromaConfig | None = None,
            **settings: Unpack[ChromaRetrieverKeywords],
        ) -> None: ...

    def store_of(self, config: ChromaConfig) -> ChromaStore:
        """Return the collection that the settings name."""
        return ChromaStore(config.place("documents"))
