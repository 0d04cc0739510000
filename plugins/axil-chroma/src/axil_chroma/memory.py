"""``context:chroma_memory``: what was said, found by vectors that Chroma keeps; for all runs, or
each run, agent or user apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from axil_chroma import rows
from axil_chroma.store import Place, Store
from axil_models import (
    ContextBlock,
    ContextQuery,
    Owner,
    Turn,
    decoded_settings,
    fits_filters,
    owner_metadata,
    turn_id,
    turn_of,
    turn_text,
    with_provider,
)


class ChromaMemoryConfig(Place):
    """The place of the memory, its owner, and its size."""

    namespace: list[Owner] = Field(
        default_factory=list[Owner], description="Kept apart for each: run, session, agent, user."
    )
    user_field: str = Field(
        "user", description="The attribute or input that holds the user's name."
    )
    remember: Literal["turn", "reply"] = Field(
        "turn", description="The reply, or the task and the reply."
    )
    max_items: int = Field(
        1000, ge=1, description="The newest items of each namespace that are kept."
    )


class ChromaMemory:
    """Turns in a collection of Chroma's: looked for before each step, written after it.

    An index, too.
    """

    examples = ({"path": "notes", "embedder": "lexical"},)

    Config = ChromaMemoryConfig

    def __init__(self, config: ChromaMemoryConfig | None = None, **settings: Any) -> None:
        """``settings``: those of ``ChromaMemoryConfig``; nothing is opened before it is used.

        Raises: ConfigError.
        """
        self.config = decoded_settings(ChromaMemoryConfig, config, settings)
        self.context_label = self.config.context_label or "chroma_memory"
        self.passive, self.active = self.config.passive, self.config.active
        self.store = Store(self.config, "memories")

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the nearest blocks; for an empty query, the newest.

        Raises: ContextError (AX893, AX894, AX910, AX911).
        """
        wanted = {
            **query.filters,
            **owner_metadata(self.config.namespace, query, self.config.user_field),
        }
        if query.query_text.strip() or top_k < 1:
            found = await self.store.search(query.query_text, top_k, wanted)
        else:
            newest = sorted(await self.store.all(wanted), key=_age, reverse=True)
            found = [
                block
                for block in (rows.block(metadata) for _, metadata in newest)
                if fits_filters(block.metadata, wanted)
            ][:top_k]
        return with_provider(found, self.context_label)

    async def learn(self, turn: Turn, /) -> None:
        """Remember a turn, once if it comes again. Raises: as ``get_blocks``."""
        own = owner_metadata(self.config.namespace, turn.query, self.config.user_field)
        text = turn_text(turn, self.config.remember)
        if text.strip():
            about = {
                "by": turn.role_name,
                "node": turn.query.node_name,
                "turn": turn.number,
                "at": time.time(),
            }
            await self.put(
                [
                    ContextBlock(
                        text, f"memory:{self.store.name}", turn_id(turn), metadata={**about, **own}
                    )
                ]
            )

    async def insert(self, key: str, value: str) -> None:
        """Remember a reply; ``key`` is the JSON of ``Turn.key``. Raises: as ``get_blocks``."""
        await self.learn(turn_of(key, value))

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks; of each namespace the oldest go where there are too many.

        Raises: ContextError (AX892 and as above).
        """
        now = time.time()
        await self.store.put(
            [
                (block, {"axil_kind": "memory", "axil_at": now + n * 1e-6})
                for n, block in enumerate(blocks)
            ]
        )
        names = [f"owner_{name}" for name in self.config.namespace]
        owned = [
            block.metadata for block in blocks if all(name in block.metadata for name in names)
        ]
        # blocks without an owner push out blocks without an owner
        whose = {tuple((name, metadata[name]) for name in names) for metadata in owned}
        for owner in sorted(whose, key=repr):
            await self._evict(dict(owner))

    async def _evict(self, owner: dict[str, Any]) -> None:
        if await self.store.count(owner, axil_kind="memory") > self.config.max_items:
            held = sorted(await self.store.all(owner, axil_kind="memory"), key=_age, reverse=True)
            await self.store.delete([id for id, _ in held[self.config.max_items :]])

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks."""
        await self.store.delete([rows.id_of(block) for block in blocks])

    async def close(self) -> None:
        """Close the client; it is opened again when it is used."""
        await self.store.close()

    def __repr__(self) -> str:
        return f"ChromaMemory({self.store.name!r})"


def _age(held: tuple[str, Any]) -> tuple[float, str]:
    id, metadata = held
    return float(metadata.get("axil_at") or 0.0), id
