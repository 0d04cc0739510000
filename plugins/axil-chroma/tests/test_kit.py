"""The collection keeps the laws of stores, and the retriever on it those of context providers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from axil_chroma import ChromaRetriever, ChromaStore
from axil_testing.kit import ContextKit, StoreKit
from axil_testing.members import kit_cases, pass_kit

if find_spec("chromadb") is None:
    pytest.skip("chromadb cannot be installed here", allow_module_level=True)


class TestStore(StoreKit):
    component = ChromaStore
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return ChromaStore(path=str(self.folder / "chroma"))


class TestRetriever(ContextKit):
    component = ChromaRetriever
    config = {"path": "chroma"}  # noqa: RUF012  # the kit's own attribute
    filters = indexes = persists = True
    sdk = ("chromadb", "numpy", "opentelemetry", "sentence_transformers")

    def make(self) -> Any:
        return ChromaRetriever(path=str(self.folder / "chroma"))


@pytest.mark.parametrize(("kit", "why"), kit_cases("axil-chroma", "stores:chroma"))
def test_the_store_passes_its_kit_without_a_line_of_code(kit, why):
    pass_kit(kit, why)
