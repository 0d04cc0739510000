"""``ContextBlock`` and ``ContextQuery``, which are axil's."""

from __future__ import annotations

from axil_models import ContextBlock, ContextQuery

__all__ = ["ContextBlock", "ContextQuery"]
