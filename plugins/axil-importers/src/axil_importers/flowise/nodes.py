"""The nodes of Flowise's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from axil_importers.draft import Draft

Data = Mapping[str, Any]


def nodes_of(given: Data, draft: Draft) -> Iterator[tuple[int, str, Data]]:
    """Yield the position, the id and the whole of each node; sticky notes become notes."""
    for at, each in enumerate(cast("list[Data]", given["nodes"])):
        data = cast("Data", each["data"])
        if str(data["name"]).startswith("stickyNote"):
            draft.notes.append(str(cast("Data", data["inputs"]).get("note") or "").strip())
        else:
            yield at, str(each["id"]), each
