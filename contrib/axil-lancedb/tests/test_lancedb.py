"""The table keeps the laws of stores, and a retriever finds in it what it was given."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from axil_lancedb import LanceStore
from axil_models import ContextError
from axil_testing.kit import StoreKit

if find_spec("lancedb") is None:
    pytest.skip("lancedb cannot be installed here", allow_module_level=True)


class TestStore(StoreKit):
    component = LanceStore
    config = {"path": "notes"}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return LanceStore(path=str(self.folder / "rows"))


def test_a_place_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder", "utf-8")
    store = LanceStore(path=str(tmp_path / "file" / "rows"))
    with pytest.raises(ContextError, match=r"AX911 the store .*rows.* cannot be opened"):
        store.marks([])
