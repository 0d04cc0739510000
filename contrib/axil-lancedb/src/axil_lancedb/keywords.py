"""Settings of ``axil_lancedb`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from typing import TypedDict

from axil.plugin import WritePath


class LanceStoreKeywords(TypedDict, total=False):
    """The settings of ``LanceStore``; see ``LanceConfig``."""

    path: WritePath
    """A folder; made when it is first used."""

    collection: str
    """The name of the table."""
