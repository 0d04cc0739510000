"""The routes: runs over HTTP, the page, and the protocols of plugins, behind one guard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Final, Protocol, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from axil import MISSING, AxilError, ConfigError, SpecError, StateError
from axil.plugin import EngineError, JournalError
from axil_serve.access import Access, Caller
from axil_serve.errors import BadRequest, Conflict, NotAllowed, NotFound, Unserved
from axil_serve.guard import BodyTooLarge, Guard, Limits
from axil_serve.openapi import document
from axil_serve.search import search
from axil_serve.service import RunService, StreamEvent

PAGE: Final = {
    "index.html": "text/html; charset=utf-8",
    **dict.fromkeys(
        (
            "app.js",
            "compare.js",
            "dom.js",
            "editor.js",
            "graph.js",
            "look.js",
            "run.js",
            "server.js",
        ),
        "text/javascript; charset=utf-8",
    ),
    "style.css": "text/css; charset=utf-8",
}
"""The files of the page, with their media types."""
_IDLE_EVENTS: Final = 15
Handler = Callable[[Request], Awaitable[Response]]


class ServeProtocol(Protocol):
    """``axil.protocols``: routes by which clients of a protocol reach the runs of a server."""

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return starlette routes. ``caller_of(request)`` is the owner of the request's token."""
        ...


def caller_of(request: Request) -> Caller:
    """Return the owner of the request's token; the guard has checked it."""
    return cast("Caller", request.state.caller)


def app_of(
    service: RunService,
    access: Access,
    *,
    limits: Limits | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    protocols: Mapping[str, ServeProtocol] | None = None,
    editor: ServeProtocol | None = None,
) -> Guard:
    """Return the ASGI application of a server; its lifespan runs the service.

    Args:
        hosts, origins: as of ``Guard``.
        protocols: further routes, by the names of their protocols.
        editor: the routes by which callers with the right ``edit`` edit workflow files.
    Raises: Unserved (AX967): two protocols have a route of one path.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with service.running():
            yield

    limits = limits or Limits()
    api = _Api(service, limits, has_files=editor is not None)
    routes: list[BaseRoute] = [*api.routes(), *_page_routes()]
    routes += editor.routes(service) if editor is not None else ()
    taken = {getattr(route, "path", ""): "axil-serve" for route in routes}
    for name, protocol in (protocols or {}).items():
        for route in protocol.routes(service):
            path = getattr(route, "path", "")
            if taken.setdefault(path, name) != name:
                message = (
                    f'the protocol "{name}" has the route {path}, which {taken[path]} has already.'
                )
                raise Unserved("AX967", message, "Select one of them with --protocol.")
            routes.append(route)
    inner = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={AxilError: _failed, BodyTooLarge: _too_large},
    )
    return Guard(inner, access, limits=limits, hosts=hosts, origins=origins, public=_is_public)


def _is_public(path: str) -> bool:
    return path == "/" or path.startswith("/page/")


# ---------------------------------------------------------------------------------- the page


def _page_routes() -> Iterable[BaseRoute]:
    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in PAGE:
            return JSONResponse(_error("AX965", "the file does not exist."), 404)
        content = (files("axil_serve") / "page" / name).read_bytes()
        return Response(content, media_type=PAGE[name], headers={"cache-control": "no-cache"})

    return [Route("/", page), Route("/page/{name}", page)]


# ------------------------------------------------------------------------------------ the API


class _Api:
    """The routes below ``/v1``."""

    def __init__(self, service: RunService, limits: Limits, *, has_files: bool = False) -> None:
        self.service, self._limits, self._streams = service, limits, 0
        self._has_files = has_files

    def routes(self) -> Iterable[BaseRoute]:
        run = "/v1/runs/{run_id}"
        routes: list[tuple[str, str, Handler]] = [
            ("GET", "/v1/me", self.me),
            ("GET", "/v1/workflows", self.workflows),
            ("GET", "/v1/search", self.search),
            ("GET", "/v1/runs", self.list),
            ("POST", "/v1/runs", self.start),
            ("GET", run, self.look),
            ("GET", f"{run}/steps", self.steps),
            ("GET", f"{run}/plan", self.plan),
            ("GET", f"{run}/state", self.state),
            ("GET", f"{run}/events", self.events),
            ("POST", f"{run}/answers", self.answer),
            ("POST", f"{run}/cancel", self.cancel),
            ("POST", f"{run}/resume", self.resume),
            ("POST", f"{run}/fork", self.fork),
            ("GET", "/v1/openapi.json", self.openapi),
        ]
        return [Route(path, handler, methods=[method]) for method, path, handler in routes]

    async def me(self, request: Request) -> Response:
        caller = caller_of(request)
        rights = set[str](caller.rights) - ({"run", "answer"} if self.service.watch_only else set())
        look = "all" if caller.sees_all else "own"
        own = {"name": caller.name, "rights": sorted(rights), "look": look}
        return JSONResponse({**own, "files": self._has_files and "edit" in rights})

    async def workflows(self, request: Request) -> Response:
        caller_of(request).check("look")
        found = [
            {
                "name": name,
                "description": workflow.plan.graph.spec.description,
                "payload": workflow.plan.graph.spec.payload,
            }
            for name, workflow in self.service.workflows.items()
        ]
        return JSONResponse({"workflows": found})

    async def search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        if not text.strip():
            raise BadRequest("AX966", "the search has no text.", "Send ?q=TEXT.")
        found = await asyncio.to_thread(search, self.service, caller_of(request), text)
        return JSONResponse(found)

    async def list(self, request: Request) -> Response:
        query = request.query_params
        wanted = {name: query.get(name, "") for name in ("status", "session", "workflow")}
        runs = await self.service.read(self.service.list, caller_of(request), **wanted)
        most, first = _number(query.get("limit", "100")), _number(query.get("offset", "0"))
        return JSONResponse({"runs": runs[first : first + most], "total": len(runs)})

    async def start(self, request: Request) -> Response:
        body = await body_of(request, {"workflow", "input", "attributes", "session"})
        run_id = await self.service.start(
            caller_of(request),
            text_in(body, "workflow"),
            body.get("input"),
            attributes=fields_in(body, "attributes"),
            session=text_in(body, "session"),
            key=request.headers.get("idempotency-key", ""),
        )
        headers = {"location": f"/v1/runs/{run_id}"}
        return JSONResponse({"run_id": run_id}, 201, headers=headers)

    async def look(self, request: Request) -> Response:
        look = self.service.look
        return JSONResponse(await self.service.read(look, caller_of(request), _run(request)))

    async def steps(self, request: Request) -> Response:
        steps = self.service.steps
        found = await self.service.read(steps, caller_of(request), _run(request))
        return JSONResponse({"steps": found})

    async def plan(self, request: Request) -> Response:
        plan = self.service.plan
        found = await self.service.read(plan, caller_of(request), _run(request))
        return JSONResponse({"plan": found})

    async def state(self, request: Request) -> Response:
        at = request.query_params.get("at", "")
        stood = await self.service.moment(caller_of(request), _run(request), at)
        return JSONResponse({"moment": stood})

    async def events(self, request: Request) -> Response:
        caller, run_id = caller_of(request), _run(request)
        if self._streams >= self._limits.streams:
            return JSONResponse(_error("AX964", "too many streams are open."), 503)
        await self.service.read(
            self.service.look, caller, run_id
        )  # errors have a status of their own
        query = request.query_params
        after = request.headers.get("last-event-id", query.get("after", ""))
        events = self.service.stream(
            caller, run_id, after=after, live=query.get("live", "1") != "0"
        )
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            self._frames(events), media_type="text/event-stream", headers=headers
        )

    async def _frames(self, events: AsyncIterator[StreamEvent]) -> AsyncGenerator[bytes]:
        self._streams += 1
        try:
            silent = 0
            async for event in events:
                if event.kind:
                    yield frame(event.kind, event.data, id=event.id)
                    silent = 0
                elif (silent := silent + 1) % _IDLE_EVENTS == 0:
                    yield b": nothing happens\n\n"
            yield frame("end", {})
        finally:
            self._streams -= 1

    async def answer(self, request: Request) -> Response:
        body = await body_of(request, {"answers"})
        answers = fields_in(body, "answers")
        if not answers:
            raise BadRequest("AX966", "the request has no answers.", 'Send {"answers": {"id": …}}.')
        await self.service.answer(caller_of(request), _run(request), answers)
        return JSONResponse({}, 202)

    async def cancel(self, request: Request) -> Response:
        await self.service.cancel(caller_of(request), _run(request))
        return JSONResponse({}, 202)

    async def resume(self, request: Request) -> Response:
        await self.service.resume(caller_of(request), _run(request))
        return JSONResponse({}, 202)

    async def fork(self, request: Request) -> Response:
        body = await body_of(request, {"at", "input", "state", "output"})
        run_id = await self.service.fork(
            caller_of(request),
            _run(request),
            at=text_in(body, "at"),
            input=body.get("input", MISSING),
            state=fields_in(body, "state"),
            output=body.get("output", MISSING),
        )
        return JSONResponse({"run_id": run_id}, 201, headers={"location": f"/v1/runs/{run_id}"})

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(document())


# ---------------------------------------------------------------------------------- requests


async def body_of(request: Request, names: set[str] | None = None) -> dict[str, Any]:
    """Return the body of a request, an object. Raises: BadRequest (AX966).

    ``names``: the fields that it may have; None: any.
    """
    # A page of another origin can send a form without being asked, and no JSON.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadRequest("AX966", "the body is not declared as JSON.", "Send application/json.")
    try:
        found: Any = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadRequest("AX966", "the body is not valid JSON.", "Send a JSON object.") from error
    if not isinstance(found, dict):
        raise BadRequest("AX966", "the body is not a JSON object.", 'Send {"name": value}.')
    body = cast("dict[str, Any]", found)
    if names is not None and (strange := sorted(body.keys() - names)):
        message = f'the body has an unknown field "{strange[0]:.100}".'
        raise BadRequest("AX966", message, f"Available: {', '.join(sorted(names))}.")
    return body


def text_in(body: Mapping[str, Any], name: str) -> str:
    """Return a text of a body; empty: it is not there. Raises: BadRequest (AX966)."""
    found = body.get(name, "")
    if not isinstance(found, str):
        raise BadRequest("AX966", f"{name} is not a text.", "Send a text.")
    return found


def fields_in(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object of a body. Raises: BadRequest (AX966)."""
    found: Any = body.get(name) or {}
    if not isinstance(found, dict):
        raise BadRequest("AX966", f"{name} is not an object.", 'Send {"name": value}.')
    return cast("dict[str, Any]", found)


def frame(kind: str, data: Any, *, id: str = "") -> bytes:
    """Return a server-sent event; without ``kind`` it has its data alone."""
    lines = [f"id: {id}"] if id else []
    lines += [f"event: {kind}"] if kind else []
    # JSON has no line breaks of its own, so one line of data is enough; surrogates are escaped
    return "\n".join([*lines, f"data: {json.dumps(data)}", "", ""]).encode()


def _run(request: Request) -> str:
    return str(request.path_params["run_id"])


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadRequest("AX966", f'expected a number, found "{text:.20}".', "Send digits.")
    return int(text)


# ------------------------------------------------------------------------------------ errors


def status_of(error: AxilError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, NotFound) or error.id == "AX503":
        return 404
    if isinstance(error, NotAllowed):
        return 403
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, EngineError) and error.id == "AX540":
        return 503
    if isinstance(error, (JournalError, EngineError)):
        return 422 if error.id in ("AX501", "AX502", "AX528") else 409
    return 422 if isinstance(error, (SpecError, StateError, ConfigError)) else 500


async def _failed(request: Request, error: Any) -> Response:
    status = status_of(error)
    # what went wrong inside is for the server's log alone
    message = str(error) if status < 500 else "the server failed to handle the request."
    return JSONResponse(_error(error.id, message), status)


async def _too_large(request: Request, error: Any) -> Response:
    return JSONResponse(_error("AX964", "the body is too large."), 413)


def _error(id: str, message: str) -> dict[str, Any]:
    return {"error": {"id": id, "message": message}}


__all__ = [
    "PAGE",
    "ServeProtocol",
    "app_of",
    "body_of",
    "caller_of",
    "fields_in",
    "frame",
    "status_of",
    "text_in",
]
