"""Blocks as Chroma keeps them, and filters as it understands them.

Chroma's metadata holds only flat values, and its strings are UTF-8. So a block is kept whole as
JSON in one metadata field, and beside it those values that filters can ask Chroma for. What Chroma
cannot compare is compared when the block is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from axil_models import ContextBlock, block_data, block_key

BLOCK = "axil_block"
Where = dict[str, Any]
Row = tuple[str, str, dict[str, Any]]
"""Id, document, metadata."""


def row(block: ContextBlock, **marks: str | float) -> Row:
    """Turn a block into Chroma's form; ``marks``: the store's metadata, which no block shows."""
    metadata = {
        **flat(block.metadata),
        "axil_uri": clean(block.uri or ""),
        **marks,
        BLOCK: json.dumps(block_data(block), default=str),
    }
    return id_of(block), clean(block.text), metadata


def block(metadata: Mapping[str, Any], score: float | None = None) -> ContextBlock:
    """Return the block that ``row`` made metadata of."""
    return ContextBlock(**json.loads(metadata[BLOCK]), score=score)


def id_of(block: ContextBlock) -> str:
    """Return the id of a block in Chroma.

    Raises: ContextError (AX892): it has neither ``uri`` nor ``chunk_id``.
    """
    return json.dumps(block_key(block))


def clean(text: str) -> str:
    """Return text that can be UTF-8: lone surrogates are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def flat(metadata: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the values that Chroma can compare."""
    return {name: value for name, value in metadata.items() if _is_flat(name, value)}


def _is_flat(name: str, value: Any) -> bool:
    if name.startswith(("axil_", "chroma:", "$", "#")) or clean(name) != name:
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str) and clean(value) == value


def where(filters: Mapping[str, Any], **marks: Any) -> Where | None:
    """``filters``, as far as Chroma can hold them, and ``marks``, as a condition of Chroma's; None:
    there is none.
    """
    wanted = {**flat(filters), **marks}
    parts: list[Where] = [
        {name: value if isinstance(value, dict) else {"$eq": value}}
        for name, value in wanted.items()
    ]
    return None if not parts else parts[0] if len(parts) == 1 else {"$and": parts}


def is_whole(filters: Mapping[str, Any]) -> bool:
    """Return whether Chroma can express all of ``filters``."""
    return len(flat(filters)) == len(filters)


def metadatas(found: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the metadata of what ``get`` gave."""
    return cast("Sequence[Mapping[str, Any]]", found.get("metadatas") or ())
