"""Marks of what is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["trace_chat"]

F = TypeVar("F", bound=Callable[..., object])


def trace_chat(function: F) -> F:
    """Give the function as it is: axil-otel traces every call of a model."""
    return function
