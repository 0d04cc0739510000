"""The protocol ``a2a``: workflows as agents of A2A, for agents that speak it.

Each workflow has an agent card and a JSON-RPC endpoint. A run is a task, its session the task's
context. The SDK of the protocol, an extra of this distribution, is imported when routes are made.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil.plugin import install_advice
from axil_serve.errors import NotFound, Unserved
from axil_serve.request import caller_of
from axil_serve.service import RunService


class A2a:
    """Workflows as agents of A2A."""

    def __init__(self) -> None:
        """Raises: Unserved (AX960): the SDK of the protocol is not installed."""
        if any(importlib.util.find_spec(name) is None for name in ("a2a", "sse_starlette")):
            message = "the protocol a2a needs its SDK, which is not installed."
            hint = f"Install it: {install_advice('axil-serve[a2a]')}"
            raise Unserved("AX960", message, hint)

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes below ``/a2a/{workflow}``: the agent card, and JSON-RPC."""
        from axil_serve.a2a_tasks import card_of, endpoints_of

        def check(request: Request) -> str:
            caller_of(request).check("look")
            name = str(request.path_params["workflow"])
            if name not in service.workflows:
                message = f'there is no workflow "{name:.100}".'
                raise NotFound("AX965", message, "List them with GET /v1/workflows.")
            return name

        async def card(request: Request) -> Response:
            name = check(request)
            return JSONResponse(card_of(service, name, str(request.base_url)))

        def checked(endpoint: Any) -> Any:
            async def call(request: Request) -> Response:
                check(request)
                await request.body()  # one that is too large is refused here, with its own status
                return await endpoint(request)

            return call

        path = "/a2a/{workflow}"
        return [
            Route(f"{path}/.well-known/agent-card.json", card, methods=["GET"]),
            *(
                Route(each.path, checked(each.endpoint), methods=list(each.methods or ()))
                for each in endpoints_of(service, path)
            ),
        ]


__all__ = ["A2a"]
