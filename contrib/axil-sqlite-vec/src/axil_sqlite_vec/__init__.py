"""A store for axil in a SQLite file, searched by sqlite-vec.

Its SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_sqlite_vec.store import SqliteVecStore

__all__ = ["SqliteVecStore"]
