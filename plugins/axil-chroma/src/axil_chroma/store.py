"""A collection of Chroma's: where it is, how it is opened, what is put into it and found in it.

Vectors are always ours: Chroma is never given an embedding function, so it never fetches a model.
Whose vectors a collection holds is written into its metadata when it is made, and another embedder
is refused. Its client blocks, so each call has a thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field, model_validator

from axil.plugin import Secret, current_grants, granted, refers_to, sends_to, writes_path
from axil_chroma import rows
from axil_models import (
    ContextBlock,
    ContextError,
    Embedder,
    ProviderSettings,
    call_async,
    component_later,
    component_of,
    fits_filters,
    vectors_of,
)

Result = TypeVar("Result")


class Place(ProviderSettings):
    """The place of a collection: the settings of every component on Chroma."""

    path: str = Field(
        "",
        description="A folder that keeps it, for one process at a time; "
        "made when it is first used.",
        json_schema_extra=writes_path(),
    )
    host: str = Field(
        "", description="Or a server (chroma run), for many.", json_schema_extra=sends_to()
    )
    port: int = Field(8000, ge=1, le=65535, description="The server's.")
    ssl: bool = Field(False, description="Connect to the server by TLS.")
    token: Secret | None = Field(
        None, description="What the server asks for, as a bearer token: {env: NAME} or ${NAME}."
    )
    tenant: str = Field("default_tenant", description="As Chroma names it.")
    database: str = Field("default_database", description="As Chroma names it.")
    collection: str = Field(
        "", pattern=r"^$|^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$", description="Its name."
    )
    embedder: Any = Field(
        "lexical",
        description="Makes vectors of texts: a name, {type: …}, or an object.",
        json_schema_extra=refers_to("embedders", default=["lexical"]),
    )
    batch: int = Field(64, ge=1, description="Texts that the embedder is given at once.")
    min_score: float | None = Field(
        None, description="Blocks with a lower score (cosine, at most 1) are left out."
    )

    @model_validator(mode="after")
    def _is_one_place(self) -> Place:
        if bool(self.path) == bool(self.host):
            raise ValueError("expected path or host, one of them")
        return self


class _Collection(Protocol):
    """The part of Chroma's collections that is used here."""

    metadata: Mapping[str, Any] | None

    def upsert(self, ids: Any, embeddings: Any, metadatas: Any, documents: Any) -> None: ...
    def query(self, *, query_embeddings: Any, n_results: int, where: Any, include: Any) -> Any: ...
    def get(
        self,
        ids: Any = None,
        *,
        where: Any = None,
        limit: Any = None,
        offset: Any = None,
        include: Any,
    ) -> Any: ...
    def delete(self, ids: Any = None, *, where: Any = None) -> Any: ...
    def count(self) -> int: ...


_PAGE = 5000
"""Rows that are read or written at once; Chroma takes some more."""

_opening = threading.Lock()
"""Chroma's clients of one folder share what is below them, and count themselves without a lock of
their own.
"""


class Store:
    """One collection.

    Safe to use from any thread and event loop. Opened when it is first used, and again after
    ``close``.
    """

    def __init__(self, place: Place, collection: str) -> None:
        self.place, self.name = place, place.collection or collection
        self._lock = threading.Lock()
        self._client: Any = None
        self._collection: _Collection | None = None
        self._grants = current_grants()
        component_later("embedders", place.embedder, self.name)
        self._embedder: Embedder | None = None
        self._busy = 0
        """Threads in which it is used."""
        self._left: list[Any] = []
        """Clients that were closed while they were used; the last user shuts them."""
        self.lost = 0
        """The number of times that the collection was lost with its content, and made anew."""

    @property
    def embedder(self) -> Embedder:
        """The embedder; made when it is first used."""
        with granted(self._grants):
            made = self._embedder = self._embedder or component_of(
                "embedders", self.place.embedder, self.name
            )
        return made

    # -- opening

    def _opened(self) -> _Collection:
        """Return the collection, made if it is not there. Raises: ContextError (AX910, AX911)."""
        with self._lock:
            if self._collection is None:
                with _opening:
                    self._client = self._client or self._connected()
                self._collection = self._checked(self._client)
            return self._collection

    def _connected(self) -> Any:
        import chromadb
        from chromadb.config import Settings
        from chromadb.errors import ChromaError

        place, settings = self.place, Settings(anonymized_telemetry=False)
        named = {"tenant": place.tenant, "database": place.database}
        try:
            if place.path:
                Path(place.path).mkdir(parents=True, exist_ok=True)
                return chromadb.PersistentClient(path=place.path, settings=settings, **named)
            secret = place.token.resolve(where="token").get_secret_value() if place.token else ""
            headers = {"Authorization": f"Bearer {secret}"} if secret else {}
            return chromadb.HttpClient(
                place.host, place.port, ssl=place.ssl, headers=headers, settings=settings, **named
            )
        except (OSError, ValueError, ChromaError) as error:
            raise self._unreachable("opened", error) from error

    def _unreachable(self, act: str, error: Exception) -> ContextError:
        place = self.place
        where = f'"{place.path}"' if place.path else f"{place.host}:{place.port}"
        hint = (
            "Check the path."
            if place.path
            else "Is the server running (chroma run), and is it at this host and port?"
        )
        return ContextError("AX911", f"the store {where} cannot be {act}: {_short(error)}.", hint)

    def _checked(self, client: Any) -> _Collection:
        name = self.embedder.name
        data = {"axil_embedder": name, "axil_version": 1}
        found: _Collection = client.get_or_create_collection(
            self.name,
            metadata=data,
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine"}},
        )
        known = (found.metadata or {}).get("axil_embedder")
        if known != name:
            whose = f'vectors of "{known}"' if known else "vectors of an unknown embedder"
            hint = (
                "Use that embedder, or another collection; "
                "vectors of two embedders cannot be compared."
            )
            raise ContextError(
                "AX910",
                f'the collection "{self.name}" holds {whose}, and the embedder is "{name}".',
                hint,
            )
        return found

    # -- using

    async def _asked(self, use: Callable[..., Result], *given: Any) -> Result:
        """Return the result of ``use``, run in a thread; once more where the collection was
        deleted, or its server restarted.

        Raises: ContextError (AX911): a server has gone; the next use asks it again.
        """
        try:
            try:
                return await call_async(self._using, use, given)
            except Exception as error:
                if not self._lose(error):
                    raise
            return await call_async(self._using, use, given)
        except Exception as error:
            # Chroma lets its client's errors through
            if type(error).__module__.partition(".")[0] in ("httpx", "httpcore"):
                raise self._unreachable("asked", error) from error
            raise

    def _using(self, use: Callable[..., Result], given: Sequence[Any]) -> Result:
        with self._lock:
            self._busy += 1
        try:
            return use(*given)
        finally:
            with self._lock:
                self._busy -= 1
                left, self._left = ([], self._left) if self._busy else (self._left, [])
            for client in left:
                with suppress(Exception):  # it takes nothing from what was found
                    _shut(client)

    def _lose(self, error: Exception) -> bool:
        """Drop a collection that does not exist any more; return whether that was the fault."""
        if type(error).__name__ != "NotFoundError" or not type(error).__module__.startswith(
            "chromadb."
        ):
            return False
        with self._lock:
            was_open, self._collection = self._collection is not None, None
            self.lost += was_open
        return was_open

    async def put(self, made: Sequence[tuple[ContextBlock, Mapping[str, Any]]]) -> None:
        """Add or replace blocks, each with marks of the store's own.

        Raises: ContextError (AX892, AX893, AX910, AX911).
        """
        # Chroma refuses an id that comes twice in one call
        latest = {rows.id_of(block): (block, marks) for block, marks in made}
        wanted = list(latest.values())
        for at in range(0, len(wanted), self.place.batch):
            part = wanted[at : at + self.place.batch]
            # a store that refuses is found before anything is embedded
            await self._asked(self._opened)
            vectors = await vectors_of(self.embedder, [block.text for block, _ in part])
            await self._asked(
                self._put, [rows.row(block, **marks) for block, marks in part], vectors
            )

    def _put(self, made: Sequence[rows.Row], vectors: Sequence[Sequence[float]]) -> None:
        ids, documents, metadatas = zip(*made, strict=True)
        self._opened().upsert(
            ids=list(ids),
            embeddings=list(vectors),
            metadatas=list(metadatas),
            documents=list(documents),
        )

    async def search(
        self, text: str, top_k: int, filters: Mapping[str, Any], **marks: Any
    ) -> list[ContextBlock]:
        """Return the nearest blocks, best first; the score is the cosine.

        Raises: ContextError (AX893, AX910, AX911).
        """
        if top_k < 1 or not text.strip():
            return []
        await self._asked(self._opened)
        vector = (await vectors_of(self.embedder, [text]))[0]
        return await self._asked(self._search, vector, top_k, filters, marks) if any(vector) else []

    def _search(
        self,
        vector: Sequence[float],
        top_k: int,
        filters: Mapping[str, Any],
        marks: Mapping[str, Any],
    ) -> list[ContextBlock]:
        store = self._opened()
        count = (
            min(top_k, max(store.count(), 1)) if rows.is_whole(filters) else max(store.count(), 1)
        )
        found = store.query(
            query_embeddings=[list(vector)],
            n_results=count,
            where=rows.where(filters, **marks),
            include=["metadatas", "distances"],
        )
        least = -math.inf if self.place.min_score is None else self.place.min_score
        scored = zip(found["ids"][0], found["metadatas"][0], found["distances"][0], strict=True)
        blocks = [
            (-(1.0 - distance), id, rows.block(metadata, 1.0 - distance))
            for id, metadata, distance in scored
        ]
        return [
            block
            for cost, _, block in sorted(blocks, key=lambda each: each[:2])
            if -cost >= least and fits_filters(block.metadata, filters)
        ][:top_k]

    async def all(
        self, filters: Mapping[str, Any], **marks: Any
    ) -> list[tuple[str, Mapping[str, Any]]]:
        """Return ids and metadata of all rows that fit, as far as Chroma can say."""
        return await self._asked(self._all, rows.where(filters, **marks))

    def _all(self, condition: rows.Where | None) -> list[tuple[str, Mapping[str, Any]]]:
        store = self._opened()
        found: list[tuple[str, Mapping[str, Any]]] = []
        while True:
            page = store.get(where=condition, limit=_PAGE, offset=len(found), include=["metadatas"])
            found += zip(page["ids"], rows.metadatas(page), strict=True)
            if len(page["ids"]) < _PAGE:
                return found

    async def count(self, filters: Mapping[str, Any], **marks: Any) -> int:
        """Return how many rows fit, as far as Chroma reports it."""
        condition = rows.where(filters, **marks)
        return await self._asked(
            lambda: len(self._opened().get(where=condition, include=[])["ids"])
        )

    async def delete(self, ids: Sequence[str]) -> None:
        """Forget rows; those that are not there are passed over."""
        for at in range(0, len(ids), _PAGE):
            await self._asked(self._delete, list(ids[at : at + _PAGE]))

    def _delete(self, ids: list[str]) -> None:
        self._opened().delete(ids=ids)

    async def close(self) -> None:
        """Close the client once no other run uses it, and an embedder that was made by name."""
        with self._lock:
            client, self._client, self._collection = self._client, None, None
            if client is not None and self._busy:
                self._left.append(client)
                client = None
        if client is not None:
            await call_async(_shut, client)
        embedder, self._embedder = self._embedder, None
        close = getattr(embedder, "close", None)
        if close is not None and isinstance(self.place.embedder, (str, Mapping)):
            await call_async(close)


def _shut(client: Any) -> None:
    parts = (client, getattr(client, "_admin_client", None))
    sessions = [getattr(getattr(part, "_server", None), "_session", None) for part in parts]
    with _opening:
        client.close()
    for session in sessions:
        if session is not None:  # a client of a server leaves its connections open
            session.close()


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
