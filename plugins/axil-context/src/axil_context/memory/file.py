"""``context:file_memory``: what was said, in a file that is only appended to, searched by an index.

The index is made from the file: what other processes append is found by the next query. Nothing is
rewritten, so a deletion is a line, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pydantic import Field

from axil.plugin import WritePath, refers_to
from axil_context.memory.lines import Lines
from axil_context.memory.owned import OwnedSettings
from axil_models import (
    ContextBlock,
    ContextError,
    ContextQuery,
    Index,
    IndexLike,
    LaterComponent,
    SingleFlight,
    Turn,
    block_data,
    block_key,
    block_of,
    blocks_of,
    call_async,
    decoded_settings,
    fits_filters,
    owner_metadata,
    provider_label,
    turn_block,
    turn_of,
    with_provider,
)

if TYPE_CHECKING:
    from axil_context.keywords import FileMemoryKeywords

log = logging.getLogger("axil.memory")

Key = tuple[str, str]


class FileMemoryConfig(OwnedSettings):
    """The place of the memory, its owner, and how it is searched."""

    path: WritePath = Field(
        min_length=1,
        description="The file of JSON lines; made when the first thing is remembered.",
    )
    index: IndexLike = Field(
        "keyword",
        description="The index of its notes: keyword, vector, "
        "{type: …}, or an object with put and delete.",
        json_schema_extra=refers_to("context", default=["keyword"]),
    )
    remember: Literal["turn", "reply"] = Field(
        "turn", description="The reply, or the task and the reply."
    )
    max_items: int = Field(
        1000,
        ge=1,
        description="The newest items of each namespace that are searched; the file keeps all.",
    )
    lock_seconds: float = Field(30.0, gt=0, description="How long a writer waits for another one.")


class FileMemory:
    """A memory in a file, safe between threads and processes.

    An index, too: blocks can be put and deleted.
    """

    examples = ({"path": ".axil/memory.jsonl"},)

    Config = FileMemoryConfig

    def __init__(
        self, config: FileMemoryConfig | None = None, **settings: Unpack[FileMemoryKeywords]
    ) -> None:
        """``settings``: those of ``FileMemoryConfig``; nothing is opened before it is used.

        Raises: ConfigError.
        """
        self.config = decoded_settings(FileMemoryConfig, config, settings)
        self.context_label = self.config.context_label or "file_memory"
        self.passive, self.active = self.config.passive, self.config.active
        self._lines = self._opened()
        self._later = LaterComponent("context", self.config.index, self.context_label)
        self._index: Index | None = None
        self._known: dict[Key, ContextBlock] = {}
        """The notes in the index, oldest first."""
        self._flight = SingleFlight[None]()

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the blocks that fit best; for an empty query, the newest.

        Raises: ContextError (AX658, AX894, AX895).
        """
        own = owner_metadata(self.config.namespace, query, self.config.user_field)
        await self._follow()
        if top_k < 1:
            return []
        wanted = {**query.filters, **own}
        found: Iterable[ContextBlock] = reversed(self._known.values())
        if query.query_text.strip():
            query = replace(query, filters=wanted)
            found = await blocks_of(self._index, query, top_k, self.context_label)
        fitting = [block for block in found if fits_filters(block.metadata, wanted)]
        return with_provider(fitting[:top_k], self.context_label)

    async def learn(self, turn: Turn, /) -> None:
        """Remember a turn, once if it comes again.

        Raises: ContextError (AX894, AX895).
        """
        own = owner_metadata(self.config.namespace, turn.query, self.config.user_field)
        if block := turn_block(turn, self.config.remember, f"memory:{self._lines.path.name}", own):
            await self.put([block])

    async def insert(self, key: str, value: str) -> None:
        """Remember a reply; ``key`` is the JSON of ``Turn.key``. Raises: as ``learn``."""
        await self.learn(turn_of(key, value))

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks. Raises: ContextError (AX892, AX895)."""
        for block in blocks:
            block_key(block)
        records = [{"put": block_data(block)} for block in blocks]
        if records:
            await call_async(self._lines.append, records)

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks, and write that down. Raises: ContextError (AX892, AX895)."""
        records = [{"delete": list(block_key(block))} for block in blocks]
        if records:
            await call_async(self._lines.append, records)

    async def _follow(self) -> None:
        """Bring the index up to date with the file."""
        while self._index is None or await call_async(lambda: self._lines.has_more):
            await self._flight.run(self._followed)

    async def _followed(self) -> None:
        try:
            anew, records = await call_async(self._lines.read)
            index = await self._emptied() if anew or self._index is None else self._index
            gone, new = self._changes(records)
            await call_async(index.delete, gone)
            await call_async(index.put, new)
        except BaseException:
            # what was read is not all in the index: it is made again from the file; a thread that
            # was left behind may still read, with the lines that it has
            self._lines = self._opened()
            raise

    async def _emptied(self) -> Index:
        """Return a new index, without blocks of this memory."""
        before = list(self._known.values())
        self._known = {}
        await self._closed()
        index: Index = self._later.get()
        self._index = index
        if not hasattr(index, "put") or not hasattr(index, "delete"):
            message = f'"{provider_label(index)}" is no index: blocks cannot be put into it.'
            raise ContextError("AX898", message, "Give an index: keyword, vector, chroma.")
        await call_async(index.delete, before)
        return index

    def _changes(
        self, records: Sequence[Mapping[str, object]]
    ) -> tuple[list[ContextBlock], list[ContextBlock]]:
        """Return the blocks that the index has to delete and to put after ``records``."""
        before = dict(self._known)
        named = dict(before)
        for record in records:
            entry = _entry(record)
            if entry is None:
                log.warning(
                    "%s: a line that is no record is passed over: %.60r",
                    self._lines.path.as_posix(),
                    record,
                )
                continue
            key, block, is_put = entry
            self._known.pop(key, None)
            if is_put:
                self._known[key] = block
            else:  # an index that outlives the process may hold it
                named.setdefault(key, block)
        for key in self._beyond():
            del self._known[key]
        gone = [block for key, block in named.items() if key not in self._known]
        return gone, [block for key, block in self._known.items() if before.get(key) is not block]

    def _beyond(self) -> list[Key]:
        """Return the blocks beyond ``max_items`` of their namespace."""
        counts: dict[tuple[object, ...], int] = {}
        beyond: list[Key] = []
        for key, block in reversed(self._known.items()):
            whose = tuple(block.metadata.get(f"owner_{name}") for name in self.config.namespace)
            counts[whose] = counts.get(whose, 0) + 1
            if counts[whose] > self.config.max_items:
                beyond.append(key)
        return beyond

    async def close(self) -> None:
        """Close an index that was made by name; it is made again from the file if needed."""
        await self._closed()
        self._lines = self._opened()

    def _opened(self) -> Lines:
        return Lines(self.config.path, self.config.lock_seconds)

    async def _closed(self) -> None:
        self._index = None
        await self._later.close()

    def __repr__(self) -> str:
        return f"FileMemory({self._lines.path.name!r})"


def _entry(record: Mapping[str, Any]) -> tuple[Key, ContextBlock, bool] | None:
    """Return the content of a record: a block, and whether it is put or forgotten. None: it has
    neither.
    """
    is_put = "put" in record
    try:
        if is_put:
            block = block_of(record["put"])
        else:
            uri, chunk_id = record["delete"]
            block = ContextBlock("", str(uri), str(chunk_id))
        return block_key(block), block, is_put
    except (TypeError, ValueError, KeyError, ContextError):
        return None
