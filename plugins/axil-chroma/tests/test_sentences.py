"""The embedder on sentence-transformers: nothing is imported or fetched before its time.

The library is played by a small module.
"""

from __future__ import annotations

import asyncio
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil.plugin import install_advice
from axil_chroma import SentenceEmbedder
from axil_models import ContextError


class Library(types.ModuleType):
    """A stand-in for the library that notes its calls."""

    def __init__(self) -> None:
        super().__init__("sentence_transformers")
        self.loaded: list[tuple[str, str, bool]] = []
        self.encoded: list[list[str]] = []

    def SentenceTransformer(self, model: str, *, device: str, local_files_only: bool) -> Any:
        self.loaded.append((model, device, local_files_only))
        return self

    def encode(
        self,
        texts: list[str],
        *,
        batch_size: int,
        normalize_embeddings: bool,
        show_progress_bar: bool,
    ) -> Any:
        assert (batch_size, normalize_embeddings, show_progress_bar) == (32, True, False)
        self.encoded.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    def get_sentence_embedding_dimension(self) -> int:
        return 2


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    module = Library()
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return module


def test_a_model_is_loaded_once_from_its_folder(library: Library, tmp_path: Path) -> None:
    embedder = SentenceEmbedder(model=str(tmp_path))
    assert (embedder.name, embedder.dimensions, library.loaded) == (
        f"sentence_transformers/{tmp_path.name}",
        None,
        [],
    )

    async def go() -> list[Any]:
        return await asyncio.gather(*(embedder.embed(["a" * n]) for n in range(1, 6)))

    assert run_sync(go()) == [[[float(n), 1.0]] for n in range(1, 6)]
    assert (embedder.dimensions, library.loaded) == (2, [(str(tmp_path), "cpu", True)])


def test_a_name_is_not_fetched_unless_that_is_allowed(library: Library) -> None:
    with pytest.raises(
        ContextError, match='AX913 "all-small" is not a folder, and downloads are not allowed'
    ):
        run_sync(SentenceEmbedder(model="all-small").embed(["a"]))
    assert library.loaded == []
    run_sync(SentenceEmbedder(model="all-small", allow_downloads=True).embed(["a"]))
    assert library.loaded == [("all-small", "cpu", False)]


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    wanted = re.escape(install_advice("axil-chroma[sentence-transformers]"))
    with pytest.raises(ContextError, match=f"AX912 .* {wanted}"):
        run_sync(SentenceEmbedder(model=str(tmp_path)).embed(["a"]))
