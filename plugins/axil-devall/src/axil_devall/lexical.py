"""Texts to vectors by the words and letters in them. No service and no model; the same on every machine.

It finds texts that share words and parts of words, whatever the language. It knows nothing of meaning: "car" and "automobile" are
strangers to it. Where that matters, use an embedder with a model.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")


class Lexical:
    """Words, and three letters at a time, counted into a vector of length 1.

    >>> import asyncio
    >>> a, b, c = asyncio.run(Lexical().embed(["the red door", "a red door", "blue sky"]))
    >>> cosine(a, b) > cosine(a, c)
    True
    """

    def __init__(self, dimensions: int = 512) -> None:
        """``dimensions``: the length of a vector."""
        self.dimensions = dimensions
        self.name = f"lexical:{dimensions}"

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """A vector for each text, in their order; an empty text's is zero. Cost: O(characters)."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.dimensions
        for feature, count in _features(text).items():
            digest = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
            sign = 1.0 if digest >> 63 else -1.0
            vector[digest % self.dimensions] += sign * math.sqrt(count)
        length = math.sqrt(math.fsum(value * value for value in vector))
        return [value / length for value in vector] if length else vector


def _features(text: str) -> Counter[str]:
    """The words of a text, and all runs of three letters in them, their ends marked."""
    found: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        marked = f"^{word}$"
        found[f"w:{word}"] += 2
        found.update(f"t:{marked[at : at + 3]}" for at in range(len(marked) - 2))
    return found


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """How alike two vectors are: 1 the same direction, 0 nothing in common. A zero vector is like none."""
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
