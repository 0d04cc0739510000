"""Prices from a table that is kept: that of genai-prices, in dollars; nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from axil import ConfigError, Problem
from axil.plugin import install_advice


@dataclass(frozen=True, slots=True)
class Listed:
    """The price of a model in the table, with its steps for long requests and its dates."""

    model: Any
    provider: Any

    def of(
        self,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        written_tokens: int = 0,
        audio_tokens: tuple[int, int, int] = (0, 0, 0),
        audio_seconds: float = 0.0,
    ) -> float:
        """Return the cost of a call; see ``Price.of``."""
        from genai_prices import Usage

        cached = min(cached_tokens, input_tokens)
        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cached,
            cache_write_tokens=min(written_tokens, input_tokens - cached),
            **_of_audio(*audio_tokens, audio_seconds),
        )
        return float(self.model.calc_price(usage, self.provider).total_price)


def _of_audio(heard: int, spoken: int, known: int, seconds: float) -> dict[str, Any]:
    given = {
        "input_audio_tokens": heard,
        "output_audio_tokens": spoken,
        "cache_audio_read_tokens": known,
        "audio_seconds": seconds,
    }
    return {name: amount for name, amount in given.items() if amount}


def listed(name: str) -> Listed | None:
    """Return the price of a model by its name, also with its provider: ``anthropic/claude-…``.

    Raises: ConfigError (AX301): genai-prices is not installed.
    """
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError as error:
        message = "pricing.table needs genai-prices, which is not installed."
        hint = install_advice("axil-models[prices]")
        raise ConfigError(Problem("AX301", "pricing.table", message, hint)) from error
    known = get_snapshot()
    provider, _, model = name.partition("/")
    for wanted, of in ((name, None), (model, provider)):
        try:
            found = known.find_provider_model(wanted, None, of, None) if wanted else None
        except LookupError:
            continue
        if found is not None:
            return Listed(found[1], found[0])
    return None
