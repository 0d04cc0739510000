"""OpenTelemetry spans and metrics of runs; see ``OpenTelemetry``."""

from __future__ import annotations

from axil_otel.hook import OpenTelemetry

__all__ = ["OpenTelemetry"]
