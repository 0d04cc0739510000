"""``embedders:lexical``: vectors of words and parts of words; it knows no meaning.

Each word, and each run of three characters in it, is hashed to a place and a sign of the vector,
whose length is made 1. So texts that share words, or forms of a word, are near each other, and
"car" and "automobile" are not.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from axil_context.retrieval.words import words
from axil_models import decoded_settings


class LexicalConfig(BaseModel):
    """The settings by which texts are hashed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dimensions: int = Field(
        512,
        ge=16,
        le=65536,
        description="The length of a vector; longer vectors have fewer collisions.",
    )


class LexicalEmbedder:
    """Vectors of words and parts of words; deterministic."""

    Config = LexicalConfig

    def __init__(self, config: LexicalConfig | None = None, **settings: int) -> None:
        """``settings``: those of ``LexicalConfig``. Raises: ConfigError."""
        self.config = decoded_settings(LexicalConfig, config, settings)

    @property
    def name(self) -> str:
        """The kind, its version, and the length."""
        return f"lexical-1/{self.config.dimensions}"

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self.config.dimensions

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector of length 1 for each text; all zeros where there is no word."""
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        """Return the vector of one text. Cost: a hash for each character."""
        vector = [0.0] * self.config.dimensions
        for feature, weight in _features(text).items():
            hashed = zlib.crc32(feature.encode("utf-8"))
            sign = 1.0 if zlib.crc32(feature.encode("utf-8"), 0x9E3779B9) & 1 else -1.0
            vector[hashed % self.config.dimensions] += sign * weight
        length = math.sqrt(math.fsum(value * value for value in vector))
        return [value / length for value in vector] if length else vector


def _features(text: str) -> dict[str, float]:
    """Return the features of a text and their weights.

    Short words count less: they are mostly those that every text has.
    """
    weights: dict[str, float] = {}
    for word, count in Counter(words(text)).items():
        weight = (1 + math.log(count)) * min(len(word) if word.isascii() else 6, 6) / 6
        weights[word] = weights.get(word, 0.0) + weight
        padded = f"^{word}$"
        parts = [padded[at : at + 3] for at in range(len(padded) - 2)] if len(word) > 2 else []
        for part in parts:
            name = f"#{part}"
            weights[name] = weights.get(name, 0.0) + weight * 0.6 / math.sqrt(len(parts))
    return weights
