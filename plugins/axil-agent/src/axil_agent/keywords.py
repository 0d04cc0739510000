"""Settings of ``axil_agent`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from typing import TypedDict

from axil_models import ModelLike


class CachedKeywords(TypedDict, total=False):
    """The settings of ``Cached``; see ``CacheConfig``."""

    model: ModelLike
    """The model: the name of an installed adapter, or {type: …} with its settings."""

    keep: bool
    """Also answer later requests, from the replies that this process keeps; false: only requests at
    the same time make one call.
    """

    ttl_seconds: float | None
    """The longest age of a kept reply, in real time."""
