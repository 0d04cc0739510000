"""``LegacyVibeGraph``: a graph whose design is kept as JSON."""

from __future__ import annotations

from masfactory.components.vibe.vibe_graph import VibeGraph


class LegacyVibeGraph(VibeGraph):
    """``VibeGraph``, which reads designs as ``graph_design`` JSON, too."""
