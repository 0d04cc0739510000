"""The prices of models as the user states them; services do not report prices."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from axil_models.budget.prices import Price
from axil_models.requests import Usage


class Prices(BaseModel):
    """Prices of a model, for a million tokens each, in the currency in which a run is limited.

    >>> Prices(input=2, output=10).priced(Usage(input_tokens=1000, output_tokens=100,
    ...     cached_tokens=400)).cost
    0.003
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(default=0, ge=0, description="A million input tokens.")
    output: float = Field(
        default=0, ge=0, description="A million output tokens, those of reasoning included."
    )
    cached: float | None = Field(
        default=None,
        ge=0,
        description="A million input tokens that were read from a cache; without it, as others.",
    )

    def priced(self, usage: Usage) -> Usage:
        """Return the usage with its cost."""
        price = Price(input=self.input, output=self.output, cached=self.cached)
        cost = price.of(usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        return replace(usage, cost=cost)
