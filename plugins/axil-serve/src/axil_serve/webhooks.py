"""The protocol ``webhooks``: an address for each workflow, at which other services start runs.

The body is the input. A sender that repeats a delivery under its id starts one run, also where
several servers share a journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil_serve.errors import BadRequest
from axil_serve.request import body_of, caller_of
from axil_serve.service import RunService

DELIVERY_IDS: Final = ("idempotency-key", "webhook-id", "x-github-delivery")
"""Headers with the id of a delivery; the first one that a request has counts."""


class Webhooks:
    """Addresses that other services call."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the route ``/hooks/{workflow}``."""

        async def deliver(request: Request) -> Response:
            found = (request.headers.get(name, "") for name in DELIVERY_IDS)
            key = next((f"delivery {id}" for id in found if id), "")
            name = str(request.path_params["workflow"])
            given = await _input(service, name, request)
            run_id = await service.start(caller_of(request), name, given, key=key)
            return JSONResponse({"run_id": run_id}, 202, {"location": f"/v1/runs/{run_id}"})

        return [Route("/hooks/{workflow}", deliver, methods=["POST"])]


async def _input(service: RunService, name: str, request: Request) -> Any:
    """Return the input: the fields of a JSON object, or the text of the body.

    Raises: BadRequest (AX966).
    """
    workflow = service.workflows.get(name)
    takes_text = workflow is not None and workflow.plan.graph.spec.payload == "messages"
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "application/json" and not takes_text:
        return await body_of(request)
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError:
        raise BadRequest("AX966", "the body is not UTF-8.", "Send JSON or text.") from None
    return text if takes_text else {"message": text}


__all__ = ["DELIVERY_IDS", "Webhooks"]
