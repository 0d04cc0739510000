"""Anthropic's Claude as a model of axil agents. The SDK is imported by the first call."""

from __future__ import annotations

from axil_anthropic.model import AnthropicModel

__all__ = ["AnthropicModel"]
