"""A store for axil in Qdrant.

Its SDK is imported when a store is first used.
"""

from __future__ import annotations

from axil_qdrant.store import QdrantStore

__all__ = ["QdrantStore"]
