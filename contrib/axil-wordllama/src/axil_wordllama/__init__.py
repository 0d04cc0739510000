"""An embedder whose small model comes with its dependency: nothing is downloaded at run time.

The library is imported, and the model loaded, when the first text is embedded.
"""

from __future__ import annotations

from axil_wordllama.embedder import WordLlamaEmbedder

__all__ = ["WordLlamaEmbedder"]
