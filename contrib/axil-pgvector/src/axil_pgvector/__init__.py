"""A store for axil in PostgreSQL, searched by pgvector.

Its SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_pgvector.store import PgvectorStore

__all__ = ["PgvectorStore"]
