"""Hooks that decide when firings start, and that refuse what keeps failing."""

from __future__ import annotations

from fern_pacing.breaker import CircuitBreaker, CircuitOpen
from fern_pacing.pace import PriorityAndRate

__all__ = ["CircuitBreaker", "CircuitOpen", "PriorityAndRate"]
