"""Graphs that a model designs."""

from __future__ import annotations

from masfactory.components.vibe.vibe_graph import VibeGraph

__all__ = ["VibeGraph"]
