"""A store for axil in LanceDB.

Its SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_lancedb.store import LanceStore

__all__ = ["LanceStore"]
