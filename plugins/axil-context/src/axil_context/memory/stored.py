"""``context:store_memory``: what was said, found by vectors that a store keeps; for all runs, or
each run, agent or user apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack

from pydantic import Field

from axil_context.memory.owned import OwnedSettings
from axil_context.retrieval.indexed import BlockIndex, Entry, IndexSettings, StoreSettings
from axil_models import (
    ContextBlock,
    ContextQuery,
    StoreLike,
    Turn,
    decoded_settings,
    owner_metadata,
    turn_block,
    turn_of,
    with_provider,
)

if TYPE_CHECKING:
    from axil_context.keywords import StoreMemoryKeywords

_MEMORY: Final = "axil:memory"
"""The tag of rows that are memories."""


class MemorySettings(OwnedSettings, IndexSettings):
    """The owner of a memory, and its size."""

    remember: Literal["turn", "reply"] = Field(
        "turn", description="The reply, or the task and the reply."
    )
    max_items: int = Field(
        1000, ge=1, description="The newest items of each namespace that are kept."
    )


class StoreMemoryConfig(MemorySettings, StoreSettings):
    """The store of a memory, its owner, and its size."""


class StoreMemory:
    """Turns in a store: looked for before each step, written after it. An index, too."""

    examples: ClassVar[Sequence[Mapping[str, object]]] = (
        {"store": "memory", "embedder": "lexical"},
    )

    Config: ClassVar[type[MemorySettings]] = StoreMemoryConfig
    label: ClassVar[str] = "store_memory"
    """The label of its blocks where the settings have none."""
    owns_store: ClassVar[bool] = False
    """True if ``store_of`` makes a store of its own, which is closed with it."""

    def __init__(self, config: Any = None, **settings: Unpack[StoreMemoryKeywords]) -> None:
        """``settings``: those of ``Config``; nothing is opened before it is used.

        Raises: ConfigError.
        """
        self.config: MemorySettings = decoded_settings(self.Config, config, settings)
        self.context_label = self.config.context_label or self.label
        self.passive, self.active = self.config.passive, self.config.active
        store, label = self.store_of(self.config), self.context_label
        self.index = BlockIndex(self.config, store, "memories", label, owns=self.owns_store)

    def store_of(self, config: Any) -> StoreLike:
        """Return the store that the settings name: an object, or the use of a component."""
        return config.store

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the nearest blocks; for an empty query, the newest.

        Raises: ContextError (AX893, AX894, AX910, AX911).
        """
        config = self.config
        wanted = {**query.filters, **owner_metadata(config.namespace, query, config.user_field)}
        if query.query_text.strip() or top_k < 1:
            found = await self.index.search(query.query_text, top_k, wanted)
        else:
            found = await self.index.newest(top_k, wanted, [_MEMORY])
        return with_provider(found, self.context_label)

    async def learn(self, turn: Turn, /) -> None:
        """Remember a turn, once if it comes again. Raises: as ``get_blocks``."""
        own = owner_metadata(self.config.namespace, turn.query, self.config.user_field)
        if block := turn_block(turn, self.config.remember, f"memory:{self.context_label}", own):
            await self.put([block])

    async def insert(self, key: str, value: str) -> None:
        """Remember a reply; ``key`` is the JSON of ``Turn.key``. Raises: as ``get_blocks``."""
        await self.learn(turn_of(key, value))

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks; of each namespace the oldest go where there are too many.

        Raises: ContextError (AX892 and as above).
        """
        entries: list[Entry] = []
        for number, block in enumerate(blocks):
            mark = f"{time.time() + number * 1e-6:020.6f}"
            entries.append(Entry(block=block, tags=(_MEMORY,), mark=mark, is_listed=True))
        await self.index.put(entries)
        names = [f"owner_{name}" for name in self.config.namespace]
        owned = [each.metadata for each in blocks if all(name in each.metadata for name in names)]
        owners = {tuple((name, metadata[name]) for name in names) for metadata in owned}
        for owner in sorted(owners, key=repr):
            await self._evict(dict(owner))

    async def _evict(self, owner: Mapping[str, object]) -> None:
        marks = await self.index.marks([_MEMORY], owner)
        if len(marks) > self.config.max_items:
            newest = sorted(marks, key=lambda id: (marks[id], id), reverse=True)
            await self.index.delete(newest[self.config.max_items :])

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        await self.index.forget(blocks)

    async def close(self) -> None:
        """Close the store; it is opened again when it is used."""
        await self.index.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.context_label!r})"
