"""Settings of ``axil_qdrant`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from axil.plugin import Address, Secret, WritePath


class QdrantStoreKeywords(TypedDict, total=False):
    """The settings of ``QdrantStore``; see ``QdrantConfig``."""

    path: WritePath
    """A folder, for one process at a time and some ten thousand rows; or."""

    url: Address
    """a server: http://host:6333."""

    api_key: Secret | str | Mapping[str, str] | None
    """The server's key: {env: NAME} or ${NAME}."""

    collection: str
    """The name of the collection."""

    timeout_seconds: int
    """How long an answer may take."""
