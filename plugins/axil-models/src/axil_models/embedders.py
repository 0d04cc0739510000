"""Embedders: vectors for texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from axil_models.errors import ContextError


@runtime_checkable
class Embedder(Protocol):
    """Gives vectors for texts. ``axil.embedders``. Lifecycle as a ``Model``'s.

    One that tells queries from documents has ``async embed_queries(texts)``, too.
    """

    @property
    def name(self) -> str:
        """The name of the vector space: vectors of two embedders with one name can be compared.

        Stores keep it beside the vectors.
        """
        ...

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None: not known before the first are there."""
        ...

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each text, in their order. Raises: ModelError."""
        ...


async def vectors_of(
    embedder: Embedder, texts: Sequence[str], *, is_query: bool = False
) -> list[list[float]]:
    """Return the vectors of documents; ``is_query``: of what is looked for in them.

    Raises: ContextError (AX893): there are not as many as texts, or they differ in length,
    or hold what is not finite.
    """
    if not texts:
        return []
    embed: Any = embedder.embed
    if is_query:
        embed = getattr(embedder, "embed_queries", embed)
    vectors: list[list[float]] = await embed(list(texts))
    lengths = {len(vector) for vector in vectors}
    expected = embedder.dimensions
    are_numbers = all(math.isfinite(each) for vector in vectors for each in vector)
    if len(vectors) != len(texts) or len({*lengths, expected} - {None}) > 1 or not are_numbers:
        faulty = "" if are_numbers else ", not all of them finite"
        found = f"gave {len(vectors)} vectors of {sorted(lengths)} numbers{faulty}"
        wanted = f"expected {len(texts)} of {expected or 'one length'}."
        message = f'the embedder "{embedder.name}" {found}; {wanted}'
        raise ContextError("AX893", message, "It is the embedder's fault.")
    return vectors
