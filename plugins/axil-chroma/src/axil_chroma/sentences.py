"""``embedders:sentence_transformers``: a model of sentence-transformers, from a folder."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import current_grants, install_advice
from axil_models import ContextError, call_async, decoded_settings

if TYPE_CHECKING:
    from axil_chroma.keywords import SentenceEmbedderKeywords


class SentenceConfig(BaseModel):
    """The model to use."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(
        min_length=1, description="A folder with the model; or its name, if downloads are allowed."
    )
    allow_downloads: bool = Field(False, description="Let the library fetch the model by its name.")
    device: str = Field("cpu", description="As torch names it: cpu, cuda, mps.")
    batch: int = Field(32, ge=1, description="Texts at once.")


class SentenceEmbedder:
    """Vectors of what sentences mean, of length 1.

    The library is imported, and the model loaded, at the first call.
    """

    examples = ({"model": "models/all-MiniLM-L6-v2"},)

    Config = SentenceConfig

    def __init__(
        self, config: SentenceConfig | None = None, **settings: Unpack[SentenceEmbedderKeywords]
    ) -> None:
        """``settings``: those of ``SentenceConfig``. Raises: ConfigError."""
        self.config = decoded_settings(SentenceConfig, config, settings)
        if (grants := current_grants()) is not None:
            message = "the workflow file tries to load a model, which may hold code that is run."
            grants.need("code", message, "model", later=True)
            if not self.config.allow_downloads:
                folder = grants.path(self.config.model, "read", "model")
                self.config = self.config.model_copy(update={"model": folder})
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """The kind, and the folder's or the model's name."""
        model = self.config.model
        name = model if self.config.allow_downloads else Path(model).name
        return f"sentence_transformers/{name}"

    @property
    def dimensions(self) -> int | None:
        """The length of a vector; None: the model is not loaded yet."""
        model = self._model
        return None if model is None else int(model.get_sentence_embedding_dimension())

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each text.

        Raises: ContextError: AX912: the library is not installed; AX913: the model is not a
        folder.
        """
        return await call_async(self._embedded, list(texts))

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        with self._lock:  # a model is used by one thread at a time
            self._model = self._model or self._loaded()
            found = self._model.encode(
                texts,
                batch_size=self.config.batch,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return [[float(value) for value in vector] for vector in found]

    def _loaded(self) -> Any:
        if not self.config.allow_downloads and not Path(self.config.model).is_dir():
            message = f'"{self.config.model}" is not a folder, and downloads are not allowed.'
            hint = "Give the folder of a model, or set allow_downloads."
            raise ContextError("AX913", message, hint)
        try:
            library: Any = importlib.import_module("sentence_transformers")
        except ImportError as error:
            hint = install_advice("axil-chroma[sentence-transformers]")
            raise ContextError("AX912", "sentence-transformers is not installed.", hint) from error
        return library.SentenceTransformer(
            self.config.model,
            device=self.config.device,
            local_files_only=not self.config.allow_downloads,
        )

    def __repr__(self) -> str:
        return f"SentenceEmbedder({self.name!r})"
