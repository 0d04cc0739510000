"""The usage of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axil_models import content_text, estimated_tokens
from masfactory.errors import missing

__getattr__: Callable[[str], Any] = missing(
    __name__,
    dict.fromkeys(
        (
            *("AnthropicTokenCounter", "DefaultTokenCounter", "GeminiTokenCounter"),
            *("HuggingFaceTokenCounter", "OpenAITokenCounter", "TokenCounter"),
        ),
        "Providers count tokens; TokenUsageTracker.count_tokens estimates them.",
    ),
)


class TokenUsageTracker:
    """Tokens that a model read and wrote, as its provider counts them."""

    def __init__(
        self, model_name: str, api_key: str | None = None, base_url: str | None = None
    ) -> None:
        del api_key, base_url  # nothing is asked of the provider
        self.model_name = model_name
        self.reset()

    @property
    def total_input_usage(self) -> int:
        """Tokens read."""
        return self._read

    @property
    def total_output_usage(self) -> int:
        """Tokens written."""
        return self._written

    @property
    def total_usage(self) -> int:
        """Tokens in all."""
        return self._read + self._written

    def accumulate(self, input_usage: int, output_usage: int) -> None:
        """Count one call."""
        self._read += input_usage
        self._written += output_usage

    def reset(self) -> None:
        """Begin at nothing."""
        self._read = self._written = 0

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a text."""
        return estimated_tokens(text)

    def count_message_tokens(self, messages: Sequence[dict[str, Any]]) -> int:
        """Estimate the tokens of messages."""
        return sum(estimated_tokens(content_text(m.get("content"))) for m in messages)
