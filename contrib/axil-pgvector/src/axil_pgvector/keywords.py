"""Settings of ``axil_pgvector`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from axil.plugin import Secret


class PgvectorStoreKeywords(TypedDict, total=False):
    """The settings of ``PgvectorStore``; see ``PgvectorConfig``."""

    dsn: Secret | str | Mapping[str, str]
    """The database, as libpq names it: postgresql://user@host/name; {env: NAME}."""

    collection: str
    """The name of the table."""
