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

    cache_write: float | None = Field(
        default=None,
        ge=0,
        description="A million input tokens that were written to a cache; without it, as others.",
    )
    audio_input: float | None = Field(
        default=None, ge=0, description="A million input tokens of audio; without it, as others."
    )
    audio_output: float | None = Field(
        default=None, ge=0, description="A million output tokens of audio; without it, as others."
    )
    audio_cached: float | None = Field(
        default=None,
        ge=0,
        description="A million tokens of audio that were read from a cache; without it, as cached.",
    )

    audio_hour: float | None = Field(
        default=None, ge=0, description="An hour of audio that is heard, where it is paid by time."
    )

    def priced(self, usage: Usage) -> Usage:
        """Return the usage with its cost."""
        price = Price(
            input=self.input,
            output=self.output,
            cached=self.cached,
            cache_write=self.cache_write,
            audio_input=self.audio_input,
            audio_output=self.audio_output,
            audio_cached=self.audio_cached,
            audio_hour=self.audio_hour,
        )
        cost = price.of(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            (usage.audio_input_tokens, usage.audio_output_tokens, usage.audio_cached_tokens),
            usage.audio_seconds,
        )
        return replace(usage, cost=cost * (1 - usage.discount))
