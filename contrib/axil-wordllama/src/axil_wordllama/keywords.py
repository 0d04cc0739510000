"""Settings of ``axil_wordllama`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from typing import Literal, TypedDict


class WordLlamaEmbedderKeywords(TypedDict, total=False):
    """The settings of ``WordLlamaEmbedder``; see ``WordLlamaConfig``."""

    dimensions: Literal[64, 128, 256]
    """The length of a vector; shorter ones are smaller and find a little less."""
