"""A run engine: starts, unloads, resumes and recovers many runs; see ``LocalEngine``."""

from axil_engine.engine import LocalEngine

__all__ = ["LocalEngine"]
