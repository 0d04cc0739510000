"""``stores:lancedb``: rows in a table of LanceDB's, in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import WritePath
from axil_models import ContextError, Hit, Row, decoded_settings

if TYPE_CHECKING:
    from axil_lancedb.keywords import LanceStoreKeywords


class LanceConfig(BaseModel):
    """The folder and the table of a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: WritePath = Field(
        min_length=1,
        description="A folder; made when it is first used.",
    )
    collection: str = Field("blocks", pattern=r"^\w[\w.-]*$", description="The name of the table.")


class LanceStore:
    """Rows in one table; several processes may use it. Each search compares all rows it may give,
    unless the table has an index.
    """

    examples = ({"path": "notes"},)

    Config = LanceConfig

    def __init__(
        self, config: LanceConfig | None = None, **settings: Unpack[LanceStoreKeywords]
    ) -> None:
        """``settings``: those of ``LanceConfig``; nothing is opened. Raises: ConfigError."""
        self.config = decoded_settings(LanceConfig, config, settings)
        self._open: Any = None

    def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows. Raises: ContextError (AX911); all methods do."""
        if not rows:
            return
        pa: Any = import_module("pyarrow")

        vector = pa.list_(pa.float32(), len(rows[0].vector))
        texts = [pa.field(name, pa.string()) for name in ("id", "data", "mark")]
        tags = pa.field("tags", pa.list_(pa.string()))
        schema = pa.schema([*texts, tags, pa.field("vector", vector)])
        names = ("id", "data", "mark", "tags", "vector")
        given = {name: [getattr(row, name) for row in rows] for name in names}
        table = self._table(schema)
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(pa.table(given, schema=schema))

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> list[Hit]:
        """Return the nearest rows with all of ``tags``."""
        if (table := self._table()) is None:
            return []
        found = _where(table.search(list(vector)).distance_type("cosine"), tags)
        found = found.select(["id", "data", "_distance"]).limit(top_k).to_list()
        return [Hit(each["id"], each["data"], 1 - each["_distance"]) for each in found]

    def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        if ids and (table := self._table()) is not None:
            table.delete(f"id IN ({', '.join(map(_quoted, ids))})")

    def marks(self, tags: Sequence[str], /) -> dict[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        if (table := self._table()) is None:
            return {}
        found = _where(table.search(), tags).select(["id", "mark"]).limit(None).to_list()
        return {each["id"]: each["mark"] for each in found}

    def close(self) -> None:
        """Let the table go, and merge the small files that many writes have left."""
        table, self._open = self._open, None
        if table is not None:
            table.optimize()

    def _table(self, schema: Any = None) -> Any:
        """Return the table, made with ``schema`` where there is none; None: there is none."""
        if self._open is None:
            lancedb: Any = import_module("lancedb")

            try:
                # what another process writes is seen at once
                db = lancedb.connect(self.config.path, read_consistency_interval=timedelta(0))
                name = self.config.collection
                if schema is not None:
                    self._open = db.create_table(name, schema=schema, exist_ok=True)
                elif (Path(self.config.path) / f"{name}.lance").is_dir():
                    self._open = db.open_table(name)
            except (OSError, RuntimeError, ValueError) as error:
                message = f'the store "{self.config.path}" cannot be opened: {error}.'
                raise ContextError("AX911", message, "Check the path.") from error
        return self._open


def _where(query: Any, tags: Sequence[str]) -> Any:
    wanted = f"array_has_all(tags, [{', '.join(map(_quoted, tags))}])"
    return query.where(wanted) if tags else query


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
