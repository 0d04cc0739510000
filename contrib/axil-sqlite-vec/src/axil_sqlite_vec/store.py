"""``stores:sqlite_vec``: rows in a SQLite file; sqlite-vec compares their vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import WritePath
from axil_models import ContextError, Hit, Row, decoded_settings

if TYPE_CHECKING:
    from axil_sqlite_vec.keywords import SqliteVecStoreKeywords

# apsw, because the sqlite3 of many Pythons loads no extensions.
_TABLES = """
PRAGMA foreign_keys = ON;
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS rows (id TEXT PRIMARY KEY, vector BLOB, data TEXT, mark TEXT);
CREATE TABLE IF NOT EXISTS tags (tag TEXT, id TEXT REFERENCES rows ON DELETE CASCADE,
    PRIMARY KEY (tag, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tags_of ON tags (id);
"""
_HAVING = """(? = 0 OR id IN (SELECT id FROM tags WHERE tag IN (SELECT value FROM json_each(?))
    GROUP BY id HAVING count(*) = ?))"""


class SqliteVecConfig(BaseModel):
    """The file of a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: WritePath = Field(
        min_length=1,
        description="The file; made when it is first used.",
    )


class SqliteVecStore:
    """Rows in one file; several processes may use it. Each search compares all rows it may give."""

    examples = ({"path": "notes.db"},)

    Config = SqliteVecConfig

    def __init__(
        self, config: SqliteVecConfig | None = None, **settings: Unpack[SqliteVecStoreKeywords]
    ) -> None:
        """``settings``: those of ``SqliteVecConfig``; nothing is opened. Raises: ConfigError."""
        self.config = decoded_settings(SqliteVecConfig, config, settings)
        self._open: Any = None

    def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows. Raises: ContextError (AX911); all methods do."""
        made = [(row.id, json.dumps(list(row.vector)), row.data, row.mark) for row in rows]
        tags = [(tag, row.id) for row in rows for tag in row.tags]
        with self._opened() as db:
            db.executemany("DELETE FROM rows WHERE id = ?", [(row.id,) for row in rows])
            db.executemany("INSERT INTO rows VALUES (?, vec_f32(?), ?, ?)", made)
            db.executemany("INSERT INTO tags VALUES (?, ?)", tags)

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> list[Hit]:
        """Return the nearest rows with all of ``tags``."""
        near = "SELECT id, data, 1 - vec_distance_cosine(vector, vec_f32(?)) AS score FROM rows"
        given = (json.dumps(list(vector)), *_having(tags), top_k)
        found = self._opened().execute(
            f"{near} WHERE {_HAVING} ORDER BY score DESC, id LIMIT ?", given
        )
        return [Hit(*each) for each in found]

    def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        with self._opened() as db:
            db.executemany("DELETE FROM rows WHERE id = ?", [(id,) for id in ids])

    def marks(self, tags: Sequence[str], /) -> dict[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        asked = f"SELECT id, mark FROM rows WHERE {_HAVING}"
        return dict(self._opened().execute(asked, _having(tags)))

    def close(self) -> None:
        """Close the file; it is opened again when it is used."""
        db, self._open = self._open, None
        if db is not None:
            db.close()

    def _opened(self) -> Any:
        if self._open is None:
            apsw: Any = import_module("apsw")
            vec: Any = import_module("sqlite_vec")
            try:
                Path(self.config.path).parent.mkdir(parents=True, exist_ok=True)
                db = apsw.Connection(self.config.path)
                db.set_busy_timeout(60_000)
                db.enable_load_extension(True)
                db.load_extension(vec.loadable_path())
                db.enable_load_extension(False)
                db.execute(_TABLES).fetchall()
            except (OSError, apsw.Error) as error:
                message = f'the store "{self.config.path}" cannot be opened: {error}.'
                raise ContextError("AX911", message, "Check the path.") from error
            self._open = db
        return self._open


def _having(tags: Sequence[str]) -> tuple[int, str, int]:
    return len(tags), json.dumps(list(tags)), len(tags)
