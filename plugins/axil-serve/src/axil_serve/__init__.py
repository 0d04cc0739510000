"""Workflows over HTTP, and the page on which their runs are seen.

Each name is imported from its module at its first use: starlette and uvicorn are imported by what
serves, and by nothing else.
"""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Services": {
        "access": "Access Caller token_digest",
        "app": "app_of",
        "audit": "Audit",
        "guard": "Limits",
        "service": "RunService",
        "signin": "OidcConfig SignIn",
    },
    "Protocols": {
        "a2a": "A2a",
        "agui": "AgUi",
        "chat": "ChatCompletions",
        "responses": "Responses",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)
