"""``MCP``: what a function finds, as context.

A client of servers that speak the Model Context Protocol is ``axil_mcp.MCPTools``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from axil_models import ContextBlock, ContextQuery
from masfactory.adapters.context.provider import ContextProvider, limited


class MCP(ContextProvider):
    """The result of ``call(query, top_k)`` as blocks; ``…_key`` say where an item holds what."""

    def __init__(
        self,
        *,
        name: str = "MCP",
        call: Callable[[ContextQuery, int], Iterable[Mapping[str, Any]]],
        text_key: str = "text",
        uri_key: str = "uri",
        chunk_id_key: str = "chunk_id",
        score_key: str = "score",
        title_key: str = "title",
        metadata_key: str = "metadata",
        dedupe_key_key: str = "dedupe_key",
        passive: bool = True,
        active: bool = False,
    ) -> None:
        super().__init__(name, passive=passive, active=active)
        self._call = call
        self._keys = {
            "uri": uri_key,
            "chunk_id": chunk_id_key,
            "score": score_key,
            "title": title_key,
            "metadata": metadata_key,
            "dedupe_key": dedupe_key_key,
        }
        self._text_key = text_key

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give what the function finds."""
        return limited([self._block(item) for item in self._call(query, top_k)], top_k)

    def _block(self, item: Mapping[str, Any]) -> ContextBlock:
        if item.get(self._text_key) is None:
            raise ValueError(
                f'{self.context_label}: found an item without "{self._text_key}", expected one '
                "with a text. Name the field that holds it by text_key."
            )
        more = {name: item[key] for name, key in self._keys.items() if item.get(key) is not None}
        return ContextBlock(str(item[self._text_key]), **more)
