"""The file in which a process keeps which batch each model call is in: ids, and no texts."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from axil import ConfigError, Problem

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL,
    token TEXT NOT NULL,
    size INTEGER NOT NULL,
    begun REAL NOT NULL,
    id TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    batch INTEGER NOT NULL REFERENCES batches (number)
);
CREATE INDEX IF NOT EXISTS calls_of_batches ON calls (batch);
CREATE INDEX IF NOT EXISTS calls_of_runs ON calls (run);
"""
_COLUMNS = "number, place, token, size, begun, id"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A batch that was submitted, or may have been."""

    number: int
    place: str
    token: str
    """The id that we gave it."""
    size: int
    """The number of its requests."""
    begun: float
    """The time at which it was submitted, in seconds of the epoch."""
    id: str = ""
    """The id that the service gave it; empty: it is not known whether the service has it."""


class BatchFile:
    """The batches and the calls in them; one process at a time has the file open.

    >>> file = BatchFile()
    >>> batch = file.begin("a-service", "a-token", {"a-call": "a-run"}, 0.0)
    >>> file.name(batch.number, "batch_7")
    >>> file.batch_of("a-call").id
    'batch_7'
    >>> file.close()
    """

    def __init__(self, path: Path | None = None) -> None:
        """``path``: without it, nothing outlives the object.

        Raises: ConfigError (AX982): it is no such file, cannot be written, or is in use.
        """
        self.path = path
        self._taken: set[str] = set()
        self._is_closed = False
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(
                str(path or ":memory:"), timeout=0.5, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        try:
            # the lock that the first transaction takes is held until the file is closed
            self._rows.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._rows.execute("BEGIN EXCLUSIVE")
            self._rows.execute("COMMIT")
            self._rows.executescript(_SCHEMA)
        except sqlite3.Error as error:
            self._rows.close()
            raise _unusable(path, error) from error

    def batch_of(self, key: str) -> Submitted | None:
        """Return the batch that a call is in; None: none."""
        found = self._rows.execute(
            f"SELECT {_COLUMNS} FROM batches JOIN calls ON batch = number WHERE key = ?", (key,)
        ).fetchone()
        return None if found is None else Submitted(*found)

    def calls_of(self, number: int) -> list[str]:
        """Return the calls in a batch."""
        found = self._rows.execute("SELECT key FROM calls WHERE batch = ?", (number,))
        return [key for (key,) in found]

    def ids(self) -> dict[int, str]:
        """Return the ids of the batches that calls are in, by number."""
        found = self._rows.execute(
            "SELECT DISTINCT number, id FROM batches JOIN calls ON batch = number ORDER BY number"
        )
        return dict(found.fetchall())

    def begin(self, place: str, token: str, runs: Mapping[str, str], begun: float) -> Submitted:
        """Keep a batch that is about to be submitted; ``runs``: of its calls, by key."""
        rows = self._rows
        rows.execute("BEGIN")
        try:
            made = rows.execute(
                "INSERT INTO batches (place, token, size, begun) VALUES (?, ?, ?, ?)",
                (place, token, len(runs), begun),
            )
            number = int(made.lastrowid or 0)
            rows.executemany(
                "INSERT OR REPLACE INTO calls (key, run, batch) VALUES (?, ?, ?)",
                [(key, run, number) for key, run in runs.items()],
            )
            rows.execute("COMMIT")
        except BaseException:
            rows.execute("ROLLBACK")
            raise
        return Submitted(number, place, token, len(runs), begun)

    def name(self, number: int, id: str) -> None:
        """Keep the id that the service gave a batch."""
        self._rows.execute("UPDATE batches SET id = ? WHERE number = ?", (id, number))

    def drop(self, number: int) -> None:
        """Forget a batch, and the calls in it."""
        self._rows.execute("DELETE FROM calls WHERE batch = ?", (number,))
        self._rows.execute("DELETE FROM batches WHERE number = ?", (number,))

    def forget(self, key: str) -> None:
        """Forget a call that failed: asked again, it is a new one."""
        self._rows.execute("DELETE FROM calls WHERE key = ?", (key,))

    def take(self, key: str) -> None:
        """Note that a call has its reply; it is forgotten when its run has ended."""
        self._taken.add(key)

    def is_taken(self, key: str) -> bool:
        """Return whether a call has its reply in this process."""
        return key in self._taken

    def settle(self, run: str) -> None:
        """Forget the calls of a run that have their replies."""
        found = self._rows.execute("SELECT key FROM calls WHERE run = ?", (run,)).fetchall()
        done = [(key,) for (key,) in found if key in self._taken]
        self._taken.difference_update(key for (key,) in done)
        if done:
            self._rows.execute("BEGIN")
            self._rows.executemany("DELETE FROM calls WHERE key = ?", done)
            self._rows.execute("COMMIT")

    def close(self) -> None:
        """Close the file, and remove it where no call is in it; closed, it stays so."""
        if self._is_closed:
            return
        self._is_closed = True
        with closing(self._rows):
            is_empty = not self._rows.execute("SELECT 1 FROM calls LIMIT 1").fetchone()
        if is_empty and self.path is not None:
            self.path.unlink(missing_ok=True)


def _unusable(path: Path | None, error: Exception) -> ConfigError:
    is_in_use = "locked" in str(error)
    message = f"{path} is in use by another process." if is_in_use else f"{path}: {error}."
    hint = "Wait until it has ended." if is_in_use else "It keeps which batch each call is in."
    return ConfigError(Problem("AX982", "--batch-api", message, hint))


__all__ = ["BatchFile", "Submitted"]
