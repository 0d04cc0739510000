"""``stores:chroma``: a collection of Chroma's, in a folder or on a server.

Chroma is never given an embedding function, so it never fetches a model. Its client blocks, so each
call has a thread; calls go side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axil.plugin import Address, Secret, WritePath, current_grants
from axil_models import ContextError, Hit, Row, StoreLost, call_async, decoded_settings

if TYPE_CHECKING:
    from axil_chroma.keywords import ChromaStoreKeywords

Result = TypeVar("Result")


class Place(BaseModel):
    """The place of a collection: the settings of every component on Chroma."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: WritePath = Field(
        "",
        description="A folder that keeps it, for one process at a time; "
        "made when it is first used.",
    )
    host: Address = Field("", description="Or a server (chroma run), for many.")
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

    @model_validator(mode="after")
    def _is_one_place(self) -> Place:
        if bool(self.path) == bool(self.host):
            raise ValueError("expected path or host, one of them")
        return self

    def place(self, collection: str) -> Place:
        """Return the place alone, with ``collection`` where the settings name none."""
        given: dict[str, Any] = {name: getattr(self, name) for name in Place.model_fields}
        given["collection"] = self.collection or collection
        return Place(**given)


class _Collection(Protocol):
    """The part of Chroma's collections that is used here."""

    metadata: Mapping[str, Any] | None

    def upsert(self, ids: Any, embeddings: Any, metadatas: Any, documents: Any) -> None: ...
    def query(self, *, query_embeddings: Any, n_results: int, where: Any, include: Any) -> Any: ...
    def get(self, *, where: Any, limit: int, offset: int, include: Any) -> Any: ...
    def delete(self, ids: Any) -> Any: ...


_PAGE = 5000
"""Rows that are read or written at once; Chroma takes some more."""
_VERSION = "axil-rows-1"
"""The mark in the metadata of a collection with rows of stores."""
_MARK, _TAGS = "axil_mark", "axil_tags"
_ANY = "axil"
"""A tag of every row: Chroma takes no empty list."""

_opening = threading.Lock()
"""Chroma's clients of one folder share state, and count themselves without a lock."""


class ChromaStore:
    """One collection. Safe between threads and event loops; opened by use, also after ``close``."""

    examples = ({"path": "notes"},)

    Config = Place

    def __init__(
        self, config: Place | None = None, **settings: Unpack[ChromaStoreKeywords]
    ) -> None:
        """``settings``: those of ``Place``; nothing is opened before it is used.

        Raises: ConfigError.
        """
        self.config = decoded_settings(Place, config, settings)
        self.name = self.config.collection or "blocks"
        self._is_of_a_file = current_grants() is not None
        self._lock = threading.Lock()
        self._client: Any = None
        self._collection: _Collection | None = None
        self._busy = 0
        """Threads in which it is used."""
        self._left: list[Any] = []
        """Clients that were closed while they were used; the last user shuts them."""

    async def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows. Raises: ContextError (AX910, AX911), StoreLost; all methods do."""
        for at in range(0, len(rows), _PAGE):
            await self._asked(self._upsert, rows[at : at + _PAGE])

    def _upsert(self, rows: Sequence[Row]) -> None:
        self._opened().upsert(
            ids=[row.id for row in rows],
            embeddings=[list(row.vector) for row in rows],
            metadatas=[{_MARK: row.mark, _TAGS: [_ANY, *row.tags]} for row in rows],
            documents=[row.data for row in rows],
        )

    async def search(
        self, vector: Sequence[float], top_k: int, tags: Sequence[str], /
    ) -> list[Hit]:
        """Return the nearest rows with all of ``tags``."""
        return await self._asked(self._search, vector, top_k, tags)

    def _search(self, vector: Sequence[float], top_k: int, tags: Sequence[str]) -> list[Hit]:
        found = self._opened().query(
            query_embeddings=[list(vector)],
            n_results=top_k,
            where=_where(tags),
            include=["documents", "distances"],
        )
        parts = zip(found["ids"][0], found["documents"][0], found["distances"][0], strict=True)
        return [Hit(id, data, 1.0 - distance) for id, data, distance in parts]

    async def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        for at in range(0, len(ids), _PAGE):
            await self._asked(self._delete, list(ids[at : at + _PAGE]))

    def _delete(self, ids: Sequence[str]) -> None:
        self._opened().delete(ids)

    async def marks(self, tags: Sequence[str], /) -> dict[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        return await self._asked(self._marks, tags)

    def _marks(self, tags: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        while True:
            page = self._opened().get(
                where=_where(tags), limit=_PAGE, offset=len(found), include=["metadatas"]
            )
            marks = [str(metadata[_MARK]) for metadata in page["metadatas"]]
            found.update(zip(page["ids"], marks, strict=True))
            if len(marks) < _PAGE:
                return found

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

        class Stated(Settings):
            """Settings without those of the environment, and of a file ``.env``."""

            @classmethod
            def settings_customise_sources(
                cls, settings_cls: Any, init_settings: Any, *others: Any, **named: Any
            ) -> tuple[Any, ...]:
                return (init_settings,)

        place = self.config
        # of a folder all clients in a process must have equal settings
        kind = Stated if place.host and self._is_of_a_file else Settings
        settings = kind(anonymized_telemetry=False)
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
        place = self.config
        where = f'"{place.path}"' if place.path else f"{place.host}:{place.port}"
        hint = "Is the server running (chroma run), and is it at this host and port?"
        if place.path:
            hint = "Check the path."
        return ContextError("AX911", f"the store {where} cannot be {act}: {_short(error)}.", hint)

    def _checked(self, client: Any) -> _Collection:
        found: _Collection = client.get_or_create_collection(
            self.name,
            metadata={"axil": _VERSION},
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine"}},
        )
        if (found.metadata or {}).get("axil") != _VERSION:
            message = f'the collection "{self.name}" was made by something else.'
            raise ContextError("AX910", message, "Give another collection.")
        return found

    async def _asked(self, use: Callable[..., Result], *given: Any) -> Result:
        """Return the result of ``use``, run in a thread.

        Raises: StoreLost: the collection was deleted, or its server restarted without a disk;
        ContextError (AX911): a server has gone.
        """
        try:
            return await call_async(self._using, use, given)
        except Exception as error:
            package, kind = type(error).__module__.partition(".")[0], type(error).__name__
            if package == "chromadb" and kind == "NotFoundError":
                with self._lock:
                    self._collection = None
                message = f'the collection "{self.name}" is gone.'
                raise StoreLost("AX911", message, "It is made again by the next use.") from error
            # Chroma lets its client's errors through
            if package in ("httpx", "httpcore"):
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

    async def close(self) -> None:
        """Close the client, once no other run uses it."""
        with self._lock:
            client, self._client, self._collection = self._client, None, None
            if client is not None and self._busy:
                self._left.append(client)
                client = None
        if client is not None:
            await call_async(_shut, client)

    def __repr__(self) -> str:
        return f"ChromaStore({self.name!r})"


def _where(tags: Sequence[str]) -> dict[str, Any] | None:
    """Return the condition, as Chroma writes it, that a row has all of ``tags``; None: any row."""
    parts: list[dict[str, Any]] = [{_TAGS: {"$contains": tag}} for tag in tags]
    return {"$and": parts} if len(parts) > 1 else next(iter(parts), None)


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
