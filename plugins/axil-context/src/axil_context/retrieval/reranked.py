"""``context:reranked``: the blocks of a provider, in the order that a reranker gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from pydantic import Field

from axil.plugin import refers_to
from axil_models import (
    ContextBlock,
    ContextProvider,
    ContextQuery,
    LaterComponent,
    ProviderLike,
    ProviderSettings,
    Reranker,
    RerankerLike,
    blocks_of,
    decoded_settings,
    scores_of,
)

if TYPE_CHECKING:
    from axil_context.keywords import RerankedRetrieverKeywords


class RerankedConfig(ProviderSettings):
    """The provider whose blocks are ordered, and what orders them."""

    provider: ProviderLike = Field(
        description="The context provider: a name, {type: …}, or an object.",
        json_schema_extra=refers_to("context"),
    )
    reranker: RerankerLike = Field(
        description="Scores the blocks: a name, {type: …}, or an object.",
        json_schema_extra=refers_to("rerankers"),
    )
    depth: int = Field(
        30,
        ge=1,
        description="The number of blocks requested of the provider; at least the number that is "
        "wanted.",
    )
    min_score: float | None = Field(
        None, description="The lowest score of a block that is returned, as the reranker counts."
    )


class RerankedRetriever:
    """A provider whose best blocks a reranker finds among more of them."""

    examples = ({"provider": "keyword", "reranker": {"type": "model", "model": "scripted"}},)
    kit_excuse = "it needs texts and a model that rates them; the tests of axil-context give both"

    Config = RerankedConfig

    def __init__(
        self, config: RerankedConfig | None = None, **settings: Unpack[RerankedRetrieverKeywords]
    ) -> None:
        """``settings``: those of ``RerankedConfig``. Raises: ConfigError."""
        self.config = decoded_settings(RerankedConfig, config, settings)
        self.context_label = self.config.context_label or "reranked"
        self.passive, self.active = self.config.passive, self.config.active
        label = self.context_label
        self._provider = LaterComponent("context", self.config.provider, label)
        self._reranker = LaterComponent("rerankers", self.config.reranker, label)

    @property
    def provider(self) -> ContextProvider:
        """The provider; made when it is first used."""
        return self._provider.get()

    @property
    def reranker(self) -> Reranker:
        """The reranker; made when it is first used."""
        return self._reranker.get()

    async def get_blocks(
        self, query: ContextQuery, top_k: int = 8, *, ctx: object = None
    ) -> list[ContextBlock]:
        """Return the blocks with the best scores; ``metadata["found_score"]`` is the provider's.

        Raises: ContextError (AX658, AX993); and what the reranker raises.
        """
        if top_k < 1:
            return []
        depth = max(self.config.depth, top_k)
        found = await blocks_of(self.provider, query, depth, self.context_label, ctx)
        texts = [block.text for block in found]
        scores = await scores_of(self.reranker, query.query_text, texts, ctx)
        ranked = sorted(zip(scores, found, strict=True), key=lambda each: -each[0])
        least = self.config.min_score
        return [
            replace(
                block,
                score=score,
                metadata={
                    **block.metadata,
                    "provider": self.context_label,
                    "found_score": block.score,
                },
            )
            for score, block in ranked[:top_k]
            if least is None or score >= least
        ]

    async def close(self) -> None:
        """Close what was made by name."""
        await self._provider.close()
        await self._reranker.close()

    def __repr__(self) -> str:
        return f"RerankedRetriever({self.context_label!r})"
