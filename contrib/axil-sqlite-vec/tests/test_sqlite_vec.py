"""The file keeps the laws of stores, and a retriever finds in it what it was given."""

from __future__ import annotations

from typing import Any

import pytest

from axil import run_sync
from axil_models import ContextError, ContextQuery
from axil_retrieval import LexicalEmbedder, StoreRetriever
from axil_sqlite_vec import SqliteVecStore
from axil_testing.kit import StoreKit

pytest.importorskip("sqlite_vec", reason="sqlite-vec cannot be installed here")


class TestStore(StoreKit):
    component = SqliteVecStore
    config = {"path": "notes"}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return SqliteVecStore(path=str(self.folder / "rows"))


def test_documents_are_found_and_reopened_unchanged(tmp_path):
    documents = [
        {"text": f"Sheet {n} is about {topic}.", "uri": f"sheet-{n}", "metadata": {"tags": [topic]}}
        for n, topic in enumerate(("ferns", "mosses", "lichens"))
    ]

    async def go() -> list[str]:
        retriever = StoreRetriever(
            store=SqliteVecStore(path=str(tmp_path / "rows")),
            embedder=LexicalEmbedder(),
            documents=documents,
        )
        changed = await retriever.refresh()
        found = await retriever.get_blocks(ContextQuery("a sheet about mosses"), 1)
        filtered = ContextQuery("a sheet about mosses", filters={"tags": ["lichens"]})
        found += await retriever.get_blocks(filtered, 5)
        assert [block.uri for block in found] == ["sheet-1", "sheet-2"]
        retriever.index.store.close()
        return changed

    assert run_sync(go()) == ["sheet-0", "sheet-1", "sheet-2"]
    assert run_sync(go()) == []


def test_a_place_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder", "utf-8")
    store = SqliteVecStore(path=str(tmp_path / "file" / "rows"))
    with pytest.raises(ContextError, match=r"AX911 the store .*rows.* cannot be opened"):
        store.marks([])
