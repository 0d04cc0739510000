"""Context: what memories and retrievers give."""

from __future__ import annotations

from masfactory.adapters.context.provider import ContextProvider, HistoryProvider
from masfactory.adapters.context.types import ContextBlock, ContextQuery

__all__ = ["ContextBlock", "ContextProvider", "ContextQuery", "HistoryProvider"]
