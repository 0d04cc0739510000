"""The file keeps the laws of stores, and a retriever finds in it what it was given."""

from __future__ import annotations

from typing import Any

import pytest

from axil_models import ContextError
from axil_sqlite_vec import SqliteVecStore
from axil_testing.kit import StoreKit

pytest.importorskip("sqlite_vec", reason="sqlite-vec cannot be installed here")


class TestStore(StoreKit):
    component = SqliteVecStore
    config = {"path": "notes"}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return SqliteVecStore(path=str(self.folder / "rows"))


def test_a_place_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder", "utf-8")
    store = SqliteVecStore(path=str(tmp_path / "file" / "rows"))
    with pytest.raises(ContextError, match=r"AX911 the store .*rows.* cannot be opened"):
        store.marks([])
