"""Blocks in a store: embedded, put, found by nearness, selected by their metadata.

* A row's data is the block as JSON. Each entry of the metadata is a tag, so that the store selects.
* Vectors have length 1 and one number more than the embedder gives: 0 for a text that has a vector,
  1 for a row without one, which so has the score 0 for every query.
* A row of the index's own says what it is for, which embedder made the vectors, and how long they
  are. Another embedder is refused before anything is embedded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import Field

from axil.plugin import is_async, refers_to, without_secrets
from axil_models import (
    ContextBlock,
    ContextError,
    Embedder,
    EmbedderLike,
    Hit,
    LaterComponent,
    ProviderSettings,
    Row,
    Store,
    StoreLike,
    StoreLost,
    block_data,
    block_key,
    call_async,
    fits_filters,
    vectors_of,
)

_SPACE: Final = "axil:space"
"""The tag of rows that say which embedder's vectors a store holds."""
_NOTE: Final = "axil:note"
"""The tag of rows that keep one text for the owner of the index."""
_OWN: Final = 2
"""Rows of the index's own that a search without tags may find: its space and its note."""
_LONGEST: Final = 200
"""Characters of a tag."""


class IndexSettings(ProviderSettings):
    """The settings of all that keeps blocks in a store."""

    embedder: EmbedderLike = Field(
        "lexical",
        description="Makes vectors of texts: a name, {type: …}, or an object.",
        json_schema_extra=refers_to("embedders", default=["lexical"]),
    )
    batch: int = Field(64, ge=1, description="Texts that the embedder is given at once.")
    min_score: float | None = Field(
        None, description="Blocks with a lower score (cosine, at most 1) are left out."
    )


class StoreSettings(IndexSettings):
    """The settings of what keeps blocks in a store that is named by its component."""

    store: StoreLike = Field(
        "memory",
        description="Keeps the vectors: a name, {type: …}, or an object.",
        json_schema_extra=refers_to("stores", default=["memory"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A block to put into an index."""

    block: ContextBlock
    tags: Sequence[str] = ()
    """Tags beside those of its metadata; they contain no ``=``."""
    mark: str = ""
    is_listed: bool = False
    """True if ``newest`` may find it."""


class BlockIndex:
    """Blocks in one store, with the vectors of one embedder.

    Safe to use from any thread and event loop. Nothing is opened before it is used.
    """

    def __init__(
        self, settings: IndexSettings, store: object, use: str, where: str, *, owns: bool = False
    ) -> None:
        """``store``: an object, or the use of a component; ``use``: what the blocks are
        (``documents``); ``where``: the provider, for errors; ``owns``: close an object, too.
        """
        self.settings, self.use, self.where = settings, use, where
        self.lost = 0
        """The number of times that the rows were lost."""
        self._owns = owns
        self._store = LaterComponent("stores", store, where)
        self._embedder = LaterComponent("embedders", settings.embedder, where)
        self._space = 0
        """The length of the vectors in the store; 0: it is not known that there are any."""
        self._one_at_a_time = threading.Lock()

    @property
    def store(self) -> Store:
        """The store; made when it is first used."""
        return self._store.get()

    @property
    def embedder(self) -> Embedder:
        """The embedder; made when it is first used."""
        return self._embedder.get()

    async def put(self, entries: Sequence[Entry]) -> None:
        """Add or replace blocks.

        Raises: ContextError (AX892, AX893, AX910, and what the store raises).
        """
        latest = list({id_of(entry.block): entry for entry in entries}.values())
        size = self.settings.batch
        for part in (latest[at : at + size] for at in range(0, len(latest), size)):
            # a store that refuses is found before anything is embedded
            await self._opened()
            vectors = await vectors_of(self.embedder, [entry.block.text for entry in part])
            await self._claim(len(vectors[0]))
            rows = [_row(entry, vector) for entry, vector in zip(part, vectors, strict=True)]
            try:
                await self._call("upsert", rows)
            except StoreLost:
                await self._claim(len(vectors[0]))
                await self._call("upsert", rows)

    async def search(
        self, text: str, top_k: int, filters: Mapping[str, Any], tags: Sequence[str] = ()
    ) -> list[ContextBlock]:
        """Return the nearest blocks, best first; the score is the cosine.

        Raises: ContextError (AX893, AX910, and what the store raises).
        """
        if top_k < 1 or not text.strip():
            return []
        has_rows = await self._opened()
        vector = (await vectors_of(self.embedder, [text], is_query=True))[0]
        if not has_rows or not any(vector):
            return []
        self._fit(len(vector))
        wanted = [*tags, *tags_of(filters)]
        try:
            hits = await self._hits(_unit(vector), top_k + (0 if wanted else _OWN), wanted)
        except StoreLost:
            return []
        least = -math.inf if self.settings.min_score is None else self.settings.min_score
        found = [_block(hit) for hit in hits if hit.data and hit.score >= least]
        return [block for block in found if fits_filters(block.metadata, filters)][:top_k]

    async def newest(
        self, top_k: int, filters: Mapping[str, object], tags: Sequence[str]
    ) -> list[ContextBlock]:
        """Return the listed blocks with the greatest marks, greatest first."""
        if top_k < 1 or not await self._opened():
            return []
        marks = await self.marks(tags, filters)
        ids = sorted(marks, key=lambda id: (marks[id], id), reverse=True)
        found: list[ContextBlock] = []
        for at in range(0, len(ids), top_k):
            part = ids[at : at + top_k]
            origin = _unit([0.0] * self._space)
            hits = await asyncio.gather(*(self._hits(origin, 1, [_own_tag(id)]) for id in part))
            blocks = [_block(hit) for each in hits for hit in each]
            found += [block for block in blocks if fits_filters(block.metadata, filters)]
            if len(found) >= top_k:
                break
        return found[:top_k]

    async def marks(
        self, tags: Sequence[str], filters: Mapping[str, object] | None = None
    ) -> Mapping[str, str]:
        """Return the marks of the rows that have all of ``tags`` and fit the filters, by id."""
        try:
            return await self._call("marks", [*tags, *tags_of(filters or {})])
        except StoreLost:
            return {}

    async def delete(self, ids: Sequence[str]) -> None:
        """Forget rows; those that are not there are passed over."""
        if ids:
            with suppress(StoreLost):  # they are gone
                await self._call("delete", list(ids))

    async def forget(self, blocks: Sequence[ContextBlock]) -> None:
        """Forget blocks."""
        await self.delete([id_of(block) for block in blocks])

    async def note(self) -> str:
        """Return the text that was kept last; empty: there is none."""
        return next(iter((await self.marks([_NOTE])).values()), "")

    async def keep(self, note: str) -> None:
        """Keep one text; empty: forget it. An index without rows keeps none."""
        if not note:
            await self.delete([_NOTE])
        elif self._space:
            row = Row(id=_NOTE, vector=_unit([0.0] * self._space), tags=(_NOTE,), mark=note)
            await self._call("upsert", [row])

    async def _opened(self) -> bool:
        """Return whether there is something in the store. Raises: ContextError (AX910)."""
        if not self._space:
            for mark in (await self.marks([_SPACE])).values():
                self._space = self._checked(mark)
        return bool(self._space)

    async def _claim(self, length: int) -> None:
        """Write, before the first row, whose vectors the store holds. Raises: ContextError (AX910):
        another process was first.
        """
        if self._space:
            self._fit(length)
            return
        mark = json.dumps([self.use, self.embedder.name, length])
        id = f"{_SPACE}:{hashlib.sha256(mark.encode('ascii')).hexdigest()[:16]}"
        row = Row(id=id, vector=_unit([0.0] * length), tags=(_SPACE,), mark=mark)
        try:
            await self._call("upsert", [row])
        except StoreLost:
            await self._call("upsert", [row])
        try:
            for other in (await self.marks([_SPACE])).values():
                self._checked(other)
        except ContextError:
            await self.delete([id])
            raise
        self._space = length

    def _checked(self, mark: str) -> int:
        """Return the length of the vectors that a space's mark tells of. Raises: as ``_opened``."""
        use, name, length = cast("tuple[str, str, int]", json.loads(mark))
        if use != self.use:
            message = f"the store of {self.where} holds {use}, and is opened for {self.use}."
            raise ContextError("AX910", message, "Give each of them a collection of its own.")
        if name != self.embedder.name or self.embedder.dimensions not in (None, length):
            raise self._foreign(name, length, self.embedder.dimensions)
        return length

    def _fit(self, length: int) -> None:
        """Refuse a vector that is not as long as those in the store."""
        if length != self._space:
            raise self._foreign(self.embedder.name, self._space, length)

    def _foreign(self, name: str, length: int, own: int | None) -> ContextError:
        mine = f'"{self.embedder.name}"' + ("" if own is None else f" ({own} numbers)")
        held = f'the store of {self.where} holds vectors of "{name}" ({length} numbers)'
        hint = "Use that embedder or another collection: vectors of two cannot be compared."
        return ContextError("AX910", f"{held}, and the embedder is {mine}.", hint)

    async def _hits(self, vector: Sequence[float], top_k: int, tags: Sequence[str]) -> list[Hit]:
        found: Sequence[Hit] = await self._call("search", vector, top_k, list(tags))
        return sorted(found, key=lambda hit: (-hit.score, hit.id))

    async def _call(self, name: str, *given: Any) -> Any:
        # a plain method is not called after its cancellation: it might open a closed store again
        method, is_awaited = getattr(self.store, name), True

        def wanted(*given: Any) -> Any:
            return method(*given) if is_awaited else None

        try:
            return await self._alone(method if is_async(method) else wanted, *given)
        except StoreLost:
            self.lost += self._space > 0
            self._space = 0
            raise
        finally:
            is_awaited = False

    async def _alone(self, method: Callable[..., Any], *given: Any) -> Any:
        """Return what ``method`` gives; of plain ones, one works at a time."""

        def alone() -> Any:
            with self._one_at_a_time:
                return method(*given)

        return await (method(*given) if is_async(method) else call_async(alone))

    async def close(self) -> None:
        """Close the store and the embedder made by name, until they are used again."""
        for close in (self._store.release(owns=self._owns), self._embedder.release()):
            if close is not None:
                await self._alone(close)


def id_of(block: ContextBlock) -> str:
    """Return the id of a block's row.

    Raises: ContextError (AX892): it has neither ``uri`` nor ``chunk_id``.
    """
    return json.dumps(block_key(block))


def uri_of(id: str) -> str:
    """Return the ``uri`` of the block whose row has this id."""
    return str(json.loads(id)[0])


def _own_tag(id: str) -> str:
    """Return the tag that only the row with this id has."""
    return f"axil:{hashlib.sha256(id.encode('ascii')).hexdigest()}"


def tags_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return a tag for each entry of ``metadata``; values that are equal have one tag.

    >>> tags_of({"lang": "en", "n": 1.0, "flag": True, "path": ["a", {"b": 2}]})
    ['lang="en"', 'n=1', 'flag=1', 'path=["a", {"b": 2}]']
    """
    return list(_tags(metadata))


def _tags(metadata: Mapping[str, Any]) -> Iterator[str]:
    for name, value in metadata.items():
        key = json.dumps(str(name))[1:-1]
        tag = f"{key}={json.dumps(_comparable(value), sort_keys=True, default=str)}"
        tag = tag.replace("\x7f", "\\u007f")
        if len(tag) > _LONGEST:
            tag = f"#{hashlib.sha256(tag.encode('ascii')).hexdigest()}"
        yield tag


def _comparable(value: Any) -> Any:
    """Return one form for values that are equal in Python: ``True``, ``1`` and ``1.0``."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return {str(name): _comparable(each) for name, each in entries.items()}
    if isinstance(value, (list, tuple)):
        return [_comparable(each) for each in cast("Sequence[Any]", value)]
    return value


def _row(entry: Entry, vector: Sequence[float]) -> Row:
    id = id_of(entry.block)
    own = [_own_tag(id)] if entry.is_listed else []
    tags = dict.fromkeys([*entry.tags, *own, *_tags(entry.block.metadata)])
    return Row(
        id=id,
        vector=_unit(vector),
        data=json.dumps(without_secrets(block_data(entry.block)), default=str),
        tags=tuple(tags),
        mark=entry.mark,
    )


def _unit(vector: Sequence[float]) -> list[float]:
    """Return the vector made as long as 1, with one number more: 1 where all others are 0."""
    length = math.sqrt(math.fsum(value * value for value in vector))
    return [*(value / length for value in vector), 0.0] if length else [*vector, 1.0]


def _block(hit: Hit) -> ContextBlock:
    return ContextBlock(**json.loads(hit.data), score=hit.score)
