"""``stores:pgvector``: rows in a table of PostgreSQL; pgvector compares their vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, LiteralString, Unpack, cast

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import Secret, current_grants, note_own
from axil_models import ContextError, Hit, Row, decoded_settings
from axil_pgvector.connecting import hosts, parameters

if TYPE_CHECKING:
    from axil_pgvector.keywords import PgvectorStoreKeywords

_TABLE: LiteralString = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS {table} (id text PRIMARY KEY, vector vector NOT NULL, data text NOT NULL,
    mark text NOT NULL, tags text[] NOT NULL);
CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (tags);
"""


class PgvectorConfig(BaseModel):
    """The database and the table of a store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dsn: Secret = Field(
        description="The database, as libpq names it: postgresql://user@host/name; {env: NAME}."
    )
    collection: str = Field(
        "axil_blocks", pattern=r"^[a-z_][a-z0-9_]{0,50}$", description="The name of the table."
    )


class PgvectorStore:
    """Rows in one table; many processes may use it. Each search compares all rows it may give,
    unless the table has an index.
    """

    examples = ({"dsn": {"env": "DATABASE_URL"}},)
    kit_excuse = "it needs a server: the tests of axil-pgvector start one"

    Config = PgvectorConfig

    def __init__(
        self, config: PgvectorConfig | None = None, **settings: Unpack[PgvectorStoreKeywords]
    ) -> None:
        """``settings``: those of ``PgvectorConfig``; nothing is opened.

        Raises: ConfigError: all that is wrong with them; AX131 a workflow file's ``dsn`` means more
        than a host, a name and a password.
        """
        self.config = decoded_settings(PgvectorConfig, config, settings)
        self._open: Any = None
        grants, dsn = current_grants(), self.config.dsn
        self._is_of_a_file = grants is not None
        if grants and (
            dsn.is_known or (grants.allows(f"env:{dsn.name}") and dsn.name in os.environ)
        ):
            for host in hosts(self._parameters()):
                note_own(f"net:{host}", "dsn")

    def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows. Raises: ContextError (AX911); all methods do."""
        made = [(r.id, str(list(r.vector)), r.data, r.mark, list(r.tags)) for r in rows]
        put = (
            "INSERT INTO {table} VALUES (%s, %s::vector, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
            " (vector, data, mark, tags) ="
            " (excluded.vector, excluded.data, excluded.mark, excluded.tags)"
        )
        self._asked(lambda cursor, sql: cursor.executemany(sql(put), made))

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> list[Hit]:
        """Return the nearest rows with all of ``tags``."""
        near = (
            "SELECT id, data, 1 - (vector <=> %s::vector) FROM {table} WHERE tags @> %s"
            " ORDER BY vector <=> %s::vector LIMIT %s"
        )
        given = (str(list(vector)), list(tags), str(list(vector)), top_k)
        found = self._asked(lambda cursor, sql: cursor.execute(sql(near), given).fetchall())
        return [Hit(*each) for each in found]

    def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        gone = "DELETE FROM {table} WHERE id = ANY(%s)"
        self._asked(lambda cursor, sql: cursor.execute(sql(gone), (list(ids),)))

    def marks(self, tags: Sequence[str], /) -> dict[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        having = "SELECT id, mark FROM {table} WHERE tags @> %s"
        return dict(self._asked(lambda c, sql: c.execute(sql(having), (list(tags),)).fetchall()))

    def close(self) -> None:
        """Close the connection; it is opened again when it is used."""
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()

    def _parameters(self) -> dict[str, str]:
        dsn = self.config.dsn.resolve(where="dsn").get_secret_value()
        return parameters(dsn, is_of_a_file=self._is_of_a_file)

    def _asked(self, use: Callable[[Any, Callable[[LiteralString], Any]], Any]) -> Any:
        """Return what ``use`` gives in a transaction; it is given a cursor, and what fills in the
        name of the table.
        """
        import psycopg
        from psycopg import sql

        name = self.config.collection
        names = {"table": sql.Identifier(name), "index": sql.Identifier(f"{name}_tags")}
        try:
            if self._open is None:
                self._open = psycopg.connect(**cast("Any", self._parameters()))
                with self._open.transaction():
                    # two processes that begin at once would make the extension twice
                    self._open.execute("SELECT pg_advisory_xact_lock(7243)")
                    self._open.execute(sql.SQL(_TABLE).format(**names))
            with self._open.transaction(), self._open.cursor() as cursor:
                return use(cursor, lambda text: sql.SQL(text).format(**names))
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError):
                self.close()
            message = f"the store {name} cannot be opened or asked: {str(error).strip()}."
            hint = "Check dsn; the database needs the extension pgvector."
            raise ContextError("AX911", message, hint) from error
