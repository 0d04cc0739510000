"""``embedders:wordllama``: what words mean, by the model in the wheel of WordLlama.

A text's vector is the mean of those of its tokens, made as long as 1. Word order counts for
nothing; texts about one thing in other words are near each other. Most of what it knows is English.
"""

from __future__ import annotations

import importlib
import logging
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from pydantic import BaseModel, ConfigDict, Field

from axil_models import ContextError, call_async, decoded_settings

if TYPE_CHECKING:
    from axil_wordllama.keywords import WordLlamaEmbedderKeywords


class WordLlamaConfig(BaseModel):
    """The settings of the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dimensions: Literal[64, 128, 256] = Field(
        256, description="The length of a vector; shorter ones are smaller and find a little less."
    )


class WordLlamaEmbedder:
    """Vectors of what words mean; deterministic, on the CPU, without a connection."""

    Config = WordLlamaConfig

    def __init__(
        self, config: WordLlamaConfig | None = None, **settings: Unpack[WordLlamaEmbedderKeywords]
    ) -> None:
        """``settings``: those of ``WordLlamaConfig``. Raises: ConfigError."""
        self.config = decoded_settings(WordLlamaConfig, config, settings)
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def name(self) -> str:
        """The kind, the model, and the length."""
        return f"wordllama/l2_supercat/{self.config.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self.config.dimensions

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector of length 1 for each text; all zeros where there is no word.

        Raises: ContextError (AX912): the library is not installed.
        """
        return await call_async(self._embedded, list(texts))

    def _embedded(self, texts: list[str]) -> list[list[float]]:
        with self._lock:  # the tokenizer keeps what it pads to
            self._model = self._model or self._loaded()
            # a lone surrogate is no text to the tokenizer
            whole = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            vectors: list[list[float]] = self._model.embed(whole).tolist()
        return [_unit(vector) for vector in vectors]

    def _loaded(self) -> Any:
        root = logging.getLogger()
        level, handlers = root.level, list(root.handlers)
        try:
            library: Any = importlib.import_module("wordllama")
        except ImportError as error:
            hint = "It has no wheel for Python 3.14: use an older Python, or another embedder."
            raise ContextError("AX912", "wordllama is not installed.", hint) from error
        # importing it configures the logging of the whole program
        root.setLevel(level)
        for handler in [each for each in root.handlers if each not in handlers]:
            root.removeHandler(handler)
        return library.WordLlama.load(
            trunc_dim=self.config.dimensions,
            # without a cache it looks for its tokenizer beside nothing, and downloads it
            cache_dir=Path(library.__file__).parent,
            disable_download=True,
        )

    def __repr__(self) -> str:
        return f"WordLlamaEmbedder({self.name!r})"


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else list(vector)
