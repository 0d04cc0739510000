"""Workflows over HTTP, and the page on which their runs are seen.

Each name is imported from its module at its first use: starlette and uvicorn are imported by what
serves, and by nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from axil_serve.access import Access, Caller
    from axil_serve.app import app_of
    from axil_serve.guard import Limits
    from axil_serve.service import RunService

__all__ = ["Access", "Caller", "Limits", "RunService", "app_of"]

_FOUND_IN: Final = {
    "Access": "access",
    "Caller": "access",
    "Limits": "guard",
    "RunService": "service",
    "app_of": "app",
}


def __getattr__(name: str) -> Any:
    if name not in _FOUND_IN:
        raise AttributeError(f"module 'axil_serve' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"axil_serve.{_FOUND_IN[name]}"), name)
