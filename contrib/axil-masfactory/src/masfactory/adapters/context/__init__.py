"""Context: what memories and retrievers give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from masfactory.adapters.context.provider import ContextProvider, HistoryProvider
from masfactory.adapters.context.types import ContextBlock, ContextQuery
from masfactory.errors import missing

__all__ = ["ContextBlock", "ContextProvider", "ContextQuery", "HistoryProvider"]

_POLICY = (
    "How much context goes into a prompt is said by axil_agent.Agent(context=ContextPolicy(…))."
)
_NAMES = (
    "ContextComposer",
    "ContextPolicy",
    "ContextRenderer",
    "DefaultContextPolicy",
    "DefaultContextRenderer",
)
__getattr__: Callable[[str], Any] = missing(__name__, dict.fromkeys(_NAMES, _POLICY))
