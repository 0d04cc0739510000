"""``context:chroma_memory``: what was said, found by vectors that Chroma keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from axil_chroma.store import ChromaStore, Place
from axil_context import MemorySettings, StoreMemory

if TYPE_CHECKING:
    from axil_chroma.keywords import ChromaMemoryKeywords


class ChromaMemoryConfig(MemorySettings, Place):
    """The place of a memory, its owner, and its size."""


class ChromaMemory(StoreMemory):
    """Turns in a collection of Chroma's. An index, too."""

    examples = ({"path": "notes", "embedder": "lexical"},)

    Config = ChromaMemoryConfig
    label = "chroma_memory"
    owns_store = True

    if TYPE_CHECKING:

        def __init__(
            self,
            config: ChromaMemoryConfig | None = None,
            **settings: Unpack[ChromaMemoryKeywords],
        ) -> None: ...

    def store_of(self, config: ChromaMemoryConfig) -> ChromaStore:
        """Return the collection that the settings name."""
        return ChromaStore(config.place("memories"))
