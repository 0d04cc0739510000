"""An engine on Temporal: it decides when a run is executed, and by which worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axil_temporal.engine import TemporalEngine


def __getattr__(name: str) -> Any:
    """Import the engine when it is used: Temporal's client takes a while to be imported."""
    if name != "TemporalEngine":
        raise AttributeError(f"module 'axil_temporal' has no attribute {name!r}")
    from axil_temporal.engine import TemporalEngine

    return TemporalEngine


__all__ = ["TemporalEngine"]
