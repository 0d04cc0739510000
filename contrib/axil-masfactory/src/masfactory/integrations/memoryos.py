"""MemoryOS, by functions that call its client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axil_models import ContextBlock, ContextQuery
from masfactory.adapters.mcp import MCP
from masfactory.adapters.memory import Memory

Found = Iterable[Mapping[str, Any]]


class MemoryOSMemory(Memory):
    """A memory whose contents ``retrieve`` gives and ``insert_fn`` takes."""

    def __init__(
        self,
        *,
        retrieve: Callable[[ContextQuery, int], Found],
        insert_fn: Callable[[str, Any], Any] | None = None,
        update_fn: Callable[[str, Any], Any] | None = None,
        delete_fn: Callable[[str, int], Any] | None = None,
        reset_fn: Callable[[], Any] | None = None,
        name: str = "MemoryOS",
        passive: bool = True,
        active: bool = False,
        supports_passive: bool = True,
        supports_active: bool = True,
        **keys: Any,
    ) -> None:
        """``keys``: where an item holds what, as ``MCP`` has it."""
        super().__init__(name, passive=passive, active=active)
        self.supports_passive, self.supports_active = supports_passive, supports_active
        self._found = MCP(name=name, call=retrieve, **keys)
        self._insert, self._update = insert_fn, update_fn
        self._delete, self._reset = delete_fn, reset_fn

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give what ``retrieve`` finds."""
        return self._found.get_blocks(query, top_k=top_k)

    def insert(self, key: str, value: Any) -> Any:
        return self._insert(key, value) if self._insert is not None else None

    def update(self, key: str, value: Any) -> Any:
        return self._update(key, value) if self._update is not None else None

    def delete(self, key: str, index: int = -1) -> Any:
        return self._delete(key, index) if self._delete is not None else None

    def reset(self) -> Any:
        return self._reset() if self._reset is not None else None


def make_memoryos_mcp(
    *, call: Callable[[ContextQuery, int], Found], name: str = "MemoryOS", **options: Any
) -> MCP:
    """Make a provider of what a MemoryOS server finds; ``options`` are those of ``MCP``."""
    return MCP(name=name, call=call, **options)
