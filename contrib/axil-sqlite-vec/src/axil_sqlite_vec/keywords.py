"""Settings of ``axil_sqlite_vec`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from typing import TypedDict

from axil.plugin import WritePath


class SqliteVecStoreKeywords(TypedDict, total=False):
    """The settings of ``SqliteVecStore``; see ``SqliteVecConfig``."""

    path: WritePath
    """The file; made when it is first used."""
