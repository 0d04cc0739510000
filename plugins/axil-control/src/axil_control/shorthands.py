"""Components that keys of workflow files stand for."""

from __future__ import annotations

from collections.abc import Mapping

from axil import ComponentRef


def context_window(keys: Mapping[str, object]) -> ComponentRef:
    """Return the wrapper that keeps messages for the next firing and obeys the marks on edges."""
    return ComponentRef(type="inbox", config={"window": keys["context_window"]})


def condition(keys: Mapping[str, object]) -> ComponentRef:
    """Return the condition that a statement stands for."""
    return ComponentRef(type="expression", config={"expression": keys["condition"]})


def is_majority_voting(keys: Mapping[str, object]) -> ComponentRef:
    """Return the node that gives the most frequent answer."""
    return ComponentRef(type="vote")
