"""``stores:qdrant``: rows in a collection of Qdrant's, on a server or in a folder."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field, model_validator

from axil.plugin import Address, Secret, WritePath
from axil_models import ContextError, Hit, Row, decoded_settings

if TYPE_CHECKING:
    from axil_qdrant.keywords import QdrantStoreKeywords

_PAGE = 1000


class QdrantConfig(BaseModel):
    """The place and the collection of a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: WritePath = Field(
        "",
        description="A folder, for one process at a time and some ten thousand rows; or",
    )
    url: Address = Field("", description="a server: http://host:6333.")
    api_key: Secret | None = Field(None, description="The server's key: {env: NAME} or ${NAME}.")
    collection: str = Field("blocks", min_length=1, description="The name of the collection.")
    timeout_seconds: int = Field(60, ge=1, description="How long an answer may take.")

    @model_validator(mode="after")
    def _is_one_place(self) -> QdrantConfig:
        if bool(self.path) == bool(self.url):
            raise ValueError("expected path or url, one of them")
        return self


class QdrantStore:
    """Rows in one collection; the ids of rows are UUIDs there."""

    examples = ({"path": "notes"},)

    Config = QdrantConfig

    def __init__(
        self, config: QdrantConfig | None = None, **settings: Unpack[QdrantStoreKeywords]
    ) -> None:
        """``settings``: those of ``QdrantConfig``; nothing is opened. Raises: ConfigError."""
        self.config = decoded_settings(QdrantConfig, config, settings)
        self._open: Any = None

    def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows. Raises: ContextError (AX911); all methods do."""
        for at in range(0, len(rows), _PAGE):
            client = self._client() or self._client(len(rows[0].vector))
            client.upsert(self.config.collection, [_point(row) for row in rows[at : at + _PAGE]])

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> list[Hit]:
        """Return the nearest rows with all of ``tags``."""
        if (client := self._client()) is None:
            return []
        found = client.query_points(
            self.config.collection, list(vector), query_filter=_having(tags), limit=top_k
        )
        return [Hit(p.payload["id"], p.payload["data"], p.score) for p in found.points]

    def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        if ids and (client := self._client()) is not None:
            client.delete(self.config.collection, [_uuid(id) for id in ids])

    def marks(self, tags: Sequence[str], /) -> dict[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        marks: dict[str, str] = {}
        client, at = self._client(), None
        while client is not None:
            named = {"limit": _PAGE, "offset": at, "with_payload": ["id", "mark"]}
            page, at = client.scroll(self.config.collection, _having(tags), **named)
            marks.update((point.payload["id"], point.payload["mark"]) for point in page)
            client = client if at is not None else None
        return marks

    def close(self) -> None:
        """Close the client; it is opened again when it is used."""
        client, self._open = self._open, None
        if client is not None:
            client.close()

    def _client(self, numbers: int = 0) -> Any:
        """Return the client; None: there is no collection, and none is made for ``numbers``."""
        from qdrant_client import QdrantClient, models
        from qdrant_client.http.exceptions import ResponseHandlingException

        config = self.config
        try:
            if self._open is None:
                key = config.api_key and config.api_key.resolve(where="api_key").get_secret_value()
                here: dict[str, Any] = {
                    "path": config.path,
                    "force_disable_check_same_thread": True,
                }
                there: dict[str, Any] = {
                    "url": config.url,
                    "api_key": key,
                    "timeout": config.timeout_seconds,
                }
                self._open = QdrantClient(**(here if config.path else there))
            if self._open.collection_exists(config.collection):
                return self._open
            if not numbers:
                return None
            made = models.VectorParams(size=numbers, distance=models.Distance.COSINE)
            self._open.create_collection(config.collection, vectors_config=made)
            if config.url:
                kind = models.PayloadSchemaType.KEYWORD
                self._open.create_payload_index(config.collection, "tags", kind)
            return self._open
        except (OSError, RuntimeError, ValueError, ResponseHandlingException) as error:
            message = f'the store "{config.path or config.url}" cannot be opened: {error}.'
            hint = "Is the server running? A folder is for one process at a time."
            raise ContextError("AX911", message, hint) from error


def _point(row: Row) -> Any:
    from qdrant_client import models

    payload = {"id": row.id, "data": row.data, "mark": row.mark, "tags": list(row.tags)}
    return models.PointStruct(id=_uuid(row.id), vector=list(row.vector), payload=payload)


def _uuid(id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, id))


def _having(tags: Sequence[str]) -> Any:
    from qdrant_client import models

    one = models.FieldCondition
    return models.Filter(must=[one(key="tags", match=models.MatchValue(value=t)) for t in tags])
