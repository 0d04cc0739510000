"""``context:hybrid``: what several providers find, as one ranking.

Reciprocal rank fusion: a block's score is the sum, over the providers that found it, of ``weight /
(k + rank)``. (Cormack, Clarke, Büttcher: SIGIR 2009.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from pydantic import Field, model_validator

from axil.plugin import refers_to
from axil_models import (
    ContextBlock,
    ContextError,
    ContextProvider,
    ContextQuery,
    LaterComponent,
    ProviderLike,
    ProviderSettings,
    block_identity,
    blocks_of,
    call_async,
    decoded_settings,
    named_providers,
)

if TYPE_CHECKING:
    from axil_context.keywords import HybridRetrieverKeywords


class HybridConfig(ProviderSettings):
    """The retrievers whose findings are merged."""

    providers: list[ProviderLike] = Field(
        min_length=1,
        description="Context providers: names, {type: …}, or objects.",
        json_schema_extra=refers_to("context"),
    )
    weights: list[float] = Field(
        default_factory=list[float],
        description="The weight of each provider; empty: equal weights.",
    )
    k: int = Field(
        60,
        ge=0,
        description="A rank constant: a larger number makes the difference between the ranks "
        "smaller.",
    )
    depth: int = Field(
        30,
        ge=1,
        description="The number of blocks requested of each provider; at least the number "
        "requested of all.",
    )

    @model_validator(mode="after")
    def _each_has_a_weight(self) -> HybridConfig:
        if self.weights and len(self.weights) != len(self.providers):
            expected = f"expected as many weights as providers ({len(self.providers)})"
            raise ValueError(f"{expected}, found {len(self.weights)}")
        if any(weight < 0 for weight in self.weights):
            raise ValueError("expected weights of 0 or more, found a negative one")
        return self


class HybridRetriever:
    """Several providers as one. They are asked side by side; one that fails is an error."""

    examples = ({"providers": [{"type": "keyword"}]},)

    Config = HybridConfig

    def __init__(
        self, config: HybridConfig | None = None, **settings: Unpack[HybridRetrieverKeywords]
    ) -> None:
        """``settings``: those of ``HybridConfig``. Raises: ConfigError."""
        self.config = decoded_settings(HybridConfig, config, settings)
        self.context_label = self.config.context_label or "hybrid"
        self.passive, self.active = self.config.passive, self.config.active
        label = self.context_label
        self._providers = [LaterComponent("context", each, label) for each in self.config.providers]

    @property
    def providers(self) -> list[ContextProvider]:
        """The providers; those given by name are made when they are first used."""
        return [each.get() for each in self._providers]

    async def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the blocks with the best sums; ``metadata["found_by"]`` has each finder's rank,
        from 1.

        Raises: ContextError (AX658).
        """
        if top_k < 1:
            return []
        labelled = named_providers(self.providers)
        depth = max(self.config.depth, top_k)
        calls = [blocks_of(each, query, depth, self.context_label) for _, each in labelled]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(call) for call in calls]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        labels = [label for label, _ in labelled]
        weights = self.config.weights or [1.0] * len(tasks)
        found = list(zip(labels, weights, (task.result() for task in tasks), strict=True))
        return fused(found, self.config.k, self.context_label)[:top_k]

    async def put(self, blocks: Sequence[ContextBlock], /) -> None:
        """Add or replace blocks in all of them. Raises: ContextError (AX898): one is no index."""
        await self._each("put", blocks)

    async def delete(self, blocks: Sequence[ContextBlock], /) -> None:
        """Forget blocks in all of them. Raises: ContextError (AX898): one is no index."""
        await self._each("delete", blocks)

    async def _each(self, act: str, blocks: Sequence[ContextBlock]) -> None:
        for label, provider in named_providers(self.providers):
            if not hasattr(provider, act):
                message = f'"{label}" is not an index: it cannot {act} blocks.'
                hint = "Use indexes as providers: keyword, vector, chroma."
                raise ContextError("AX898", message, hint)
        for provider in self.providers:
            await call_async(getattr(provider, act), blocks)

    async def close(self) -> None:
        """Close those that were made by name, every one, whatever the others raise."""
        async with AsyncExitStack() as closing:
            for each in self._providers:
                closing.push_async_callback(each.close)

    def __repr__(self) -> str:
        return f"HybridRetriever({self.context_label!r}, {len(self.config.providers)} providers)"


def fused(
    found: Sequence[tuple[str, float, Sequence[ContextBlock]]], k: int, provider: str
) -> list[ContextBlock]:
    """Return one ranking of ``(label, weight, blocks)``, best first; of equals, the one that an
    earlier provider ranked better.

    >>> a, b, c = ContextBlock("a"), ContextBlock("b"), ContextBlock("c")
    >>> [block.text for block in fused([("one", 1, [a, b]), ("two", 1, [b, c])], 60, "both")]
    ['b', 'a', 'c']
    """
    scores: dict[str, float] = {}
    ranks: dict[str, dict[str, int]] = {}
    first: dict[str, ContextBlock] = {}
    for label, weight, blocks in found:
        for rank, block in enumerate(blocks, 1):
            key = block_identity(block)
            if label in ranks.setdefault(key, {}):
                continue
            first.setdefault(key, block)
            ranks[key][label] = rank
            scores[key] = scores.get(key, 0.0) + weight / (k + rank)
    order = sorted(first, key=lambda key: -scores[key])  # stable: equals stay as they were found
    result: list[ContextBlock] = []
    for key in order:
        metadata = {**first[key].metadata, "provider": provider, "found_by": ranks[key]}
        result.append(replace(first[key], score=scores[key], metadata=metadata))
    return result
