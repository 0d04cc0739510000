"""Graphs that a model designs."""

from __future__ import annotations

from masfactory.components.vibe.legacy_vibe_graph import LegacyVibeGraph
from masfactory.components.vibe.vibe_graph import VibeGraph

__all__ = ["LegacyVibeGraph", "VibeGraph"]
