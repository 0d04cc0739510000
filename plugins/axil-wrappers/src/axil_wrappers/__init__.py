"""Wrappers of a node's body: retries, limits of time, caches, fallbacks, budgets, guards."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Wrappers": {
        "budget": "Budget",
        "cache": "Cache",
        "errors": "LimiterConflict TimeoutReached WrapperError",
        "fallback": "Fallback",
        "fields": "Collect Write",
        "inside": "Around Settings Wrapper",
        "limit": "Limit",
        "models": "FallbackModel",
        "retry": "Retry",
        "timeout": "Timeout",
    },
    "Guards": {
        "guards.errors": "GuardTripped",
        "guards.finding": "Finding Guard Span",
        "guards.wrapper": "Guarded",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_wrappers.guards": "axil_guards",
}
"""Moved places → their names in the digests of runs that were recorded before."""
