"""Blocks in SQLite's full-text index (FTS5): kept, replaced, forgotten, and ranked by BM25.

What it indexes is our own words, joined by spaces, so that every script is searched.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axil.plugin import without_secrets
from axil_context.retrieval.words import words
from axil_models import ContextBlock, ContextError, block_data, block_key, fits_filters

_TABLES = """
CREATE TABLE IF NOT EXISTS documents (uri TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blocks (\
id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, uri TEXT NOT NULL, block TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS blocks_of_uri ON blocks (uri);
"""
_WORDS = (
    "CREATE VIRTUAL TABLE words USING "
    "fts5 (title, text, tokenize = '{tokenizer}', detail = 'column')"
)
_RANKED = (
    "SELECT -bm25(words, 2.0, 1.0) AS score, block FROM words "
    "JOIN blocks ON blocks.id = words.rowid WHERE words MATCH ? ORDER BY score DESC, blocks.key"
)
MOST_WORDS = 256
"""Of a query, so many distinct words count, the first ones."""
_WAIT_SECONDS = 30.0
"""The time that a writer waits for those of other processes."""


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn on write-ahead logging; wait for a writer of another process, because SQLite does not.

    Raises: sqlite3.OperationalError: it took too long.
    """
    give_up = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


class Table:
    """Blocks searched by their words. Safe between threads; with a file, between processes."""

    def __init__(self, path: str = "", *, stems: bool = True) -> None:
        """``path``: empty: in memory; ``stems``: English words are found by their stem."""
        self._path, self._stems = path, stems
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closing: weakref.finalize[[], Table] | None = None

    @contextmanager
    def _open(self, *, write: bool = False) -> Generator[sqlite3.Connection]:
        """Open the database, for one thread at a time; to ``write``, in a transaction.

        Raises: ContextError (AX899): it cannot be opened, read or written.
        """
        with self._lock:
            database = self._connection = self._connection or self._made()
            if self._closing is None:  # an index that is only dropped leaves no open file
                self._closing = weakref.finalize(self, database.close)
            try:
                if write:
                    database.execute("BEGIN IMMEDIATE")
                yield database
                if write:
                    database.execute("COMMIT")
            except (sqlite3.Error, ValueError, TypeError) as error:  # also a block that is no JSON
                message = f'the index "{self._path or "in memory"}" cannot be used: {error}.'
                hint = "Check the free disk space, and close other programs that use the file."
                raise ContextError("AX899", message, hint) from error
            finally:
                if database.in_transaction:  # it failed, and SQLite has not taken it back itself
                    database.execute("ROLLBACK")

    def _made(self) -> sqlite3.Connection:
        connection = None
        try:
            if self._path:
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path or ":memory:",
                timeout=_WAIT_SECONDS,
                check_same_thread=False,
                isolation_level=None,
            )
            if self._path:
                _log_ahead(connection)
            connection.executescript(_TABLES)
            self._index(connection)
        except (sqlite3.Error, UnicodeDecodeError, OSError) as error:
            if connection is not None:
                connection.close()
            hint = "Check the path."
            if "fts5" in str(error):
                hint = "This Python's SQLite lacks FTS5: use a Python that has it."
            message = f'the index "{self._path or "in memory"}" cannot be opened: {error}.'
            raise ContextError("AX899", message, hint) from error
        return connection

    def _index(self, connection: sqlite3.Connection) -> None:
        """Make the index of words, and make it again where it was made with other stems."""
        wanted = _WORDS.format(tokenizer="porter unicode61" if self._stems else "unicode61")
        connection.execute("BEGIN IMMEDIATE")
        made = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'words'").fetchone()
        if made != (wanted,):
            connection.execute("DROP TABLE IF EXISTS words")
            connection.execute(wanted)
            for number, data in connection.execute("SELECT id, block FROM blocks").fetchall():
                _list(connection, number, ContextBlock(**json.loads(data)))
        connection.execute("COMMIT")

    def digests(self) -> dict[str, str]:
        """Return the digest of each document that is indexed, by its name."""
        with self._open() as database:
            rows = database.execute("SELECT uri, digest FROM documents")
            return {json.loads(uri): digest for uri, digest in rows}

    def replace(self, uri: str, digest: str, blocks: Sequence[ContextBlock]) -> None:
        """Index a document anew, in one transaction."""
        with self._open(write=True) as database:
            _forget(database, "uri = ?", _stored(uri))
            _insert(database, blocks)
            row = (_stored(uri), digest)
            database.execute("INSERT OR REPLACE INTO documents VALUES (?, ?)", row)

    def remove(self, uri: str) -> None:
        """Forget a document."""
        with self._open(write=True) as database:
            _forget(database, "uri = ?", _stored(uri))
            database.execute("DELETE FROM documents WHERE uri = ?", (_stored(uri),))

    def put(self, blocks: Sequence[ContextBlock]) -> None:
        """Add or replace blocks."""
        with self._open(write=True) as database:
            for block in blocks:
                _forget(database, "key = ?", _key(block))
                _insert(database, [block])

    def delete(self, blocks: Sequence[ContextBlock]) -> None:
        """Forget blocks."""
        with self._open(write=True) as database:
            for block in blocks:
                _forget(database, "key = ?", _key(block))

    def search(
        self, text: str, top_k: int, filters: Mapping[str, object], least: float | None = None
    ) -> list[ContextBlock]:
        """Return the best blocks for any of the words of ``text``; scores are BM25's."""
        asked = list(dict.fromkeys(words(text)))[:MOST_WORDS]
        found: list[ContextBlock] = []
        if not asked or top_k < 1:
            return found
        expression = " OR ".join(f'"{word}"' for word in asked)
        with self._open() as database:
            for score, data in database.execute(_RANKED, (expression,)):
                if len(found) == top_k or (least is not None and score < least):
                    break
                block = ContextBlock(**json.loads(data), score=score)
                if fits_filters(block.metadata, filters):
                    found.append(block)
        return found

    def __len__(self) -> int:
        with self._open() as database:
            return int(database.execute("SELECT count(*) FROM blocks").fetchone()[0])

    def close(self) -> None:
        """Close the database; it is opened again when it is used."""
        with self._lock:
            if self._closing is not None:
                self._closing()
                self._closing = self._connection = None


def _stored(name: str) -> str:
    """Return a name as SQLite can hold it, whatever its characters."""
    return json.dumps(name)


def _key(block: ContextBlock) -> str:
    return json.dumps(block_key(block))


def _insert(database: sqlite3.Connection, blocks: Sequence[ContextBlock]) -> None:
    for block in blocks:
        data: Any = without_secrets(block_data(block))
        row = (_key(block), _stored(block.uri or ""), json.dumps(data, default=str))
        made = database.execute("INSERT INTO blocks (key, uri, block) VALUES (?, ?, ?)", row)
        _list(database, made.lastrowid, ContextBlock(**data))


def _list(database: sqlite3.Connection, number: int | None, block: ContextBlock) -> None:
    indexed = (number, " ".join(words(block.title or "")), " ".join(words(block.text)))
    database.execute("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", indexed)


def _forget(database: sqlite3.Connection, which: str, value: str) -> None:
    """``which`` is one of the conditions written above, never what came from outside."""
    numbers = database.execute(f"SELECT id FROM blocks WHERE {which}", (value,)).fetchall()
    database.executemany("DELETE FROM words WHERE rowid = ?", numbers)
    database.executemany("DELETE FROM blocks WHERE id = ?", numbers)
