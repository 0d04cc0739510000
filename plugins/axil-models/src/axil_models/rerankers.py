"""Rerankers: how well texts answer a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from axil.plugin import signature_of
from axil_models.errors import ContextError


@runtime_checkable
class Reranker(Protocol):
    """Says how well texts answer a query. ``axil.rerankers``. Lifecycle as a ``Model``'s.

    With a parameter ``ctx`` of ``rerank`` it is given the context of the firing, which may be None.
    """

    @property
    def name(self) -> str:
        """The name, for errors."""
        ...

    async def rerank(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        """Return a score for each text, in their order; higher is better. Raises: ModelError."""
        ...


async def scores_of(
    reranker: Reranker, query: str, texts: Sequence[str], ctx: object = None
) -> list[float]:
    """Return the scores of ``texts``.

    Raises: ContextError (AX993): there is not one for each text, or one is no number.
    """
    if not texts:
        return []
    rerank: object = reranker.rerank
    named = {"ctx": ctx} if "ctx" in signature_of(rerank).parameters else {}
    given = list(await rerank(query, list(texts), **named))
    fits = [type(score) in (int, float) and math.isfinite(score) for score in given]
    if len(given) != len(texts) or not all(fits):
        found = f"gave {len(given)} scores, {sum(fits)} of them numbers"
        message = f'the reranker "{reranker.name}" {found}; expected {len(texts)} numbers.'
        raise ContextError("AX993", message, "Use another model, or fewer texts: depth.")
    return [float(score) for score in given]
