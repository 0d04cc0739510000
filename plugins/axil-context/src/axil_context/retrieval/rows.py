"""``stores:memory``: rows in this process's memory, compared one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest
from operator import mul

from axil_models import Hit, Row


class MemoryStore:
    """Rows in memory; gone with the object. For tests, and for some thousand rows."""

    def __init__(self) -> None:
        """Hold nothing."""
        self._rows: dict[str, Row] = {}

    def upsert(self, rows: Sequence[Row], /) -> None:
        """Add or replace rows."""
        self._rows.update((row.id, row) for row in rows)

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> list[Hit]:
        """Return the nearest rows with all of ``tags``. Cost: a product for each of them."""
        scored = (
            Hit(row.id, row.data, sum(map(mul, vector, row.vector))) for row in self._having(tags)
        )
        return nlargest(top_k, scored, key=lambda hit: hit.score)

    def delete(self, ids: Sequence[str], /) -> None:
        """Delete rows."""
        for id in ids:
            self._rows.pop(id, None)

    def marks(self, tags: Sequence[str], /) -> Mapping[str, str]:
        """Return the marks of the rows with all of ``tags``."""
        return {row.id: row.mark for row in self._having(tags)}

    def _having(self, tags: Sequence[str]) -> list[Row]:
        wanted = set(tags)
        return [row for row in self._rows.values() if wanted <= set(row.tags)]

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._rows)} rows)"
