"""The routes: runs over HTTP, the page, and the protocols of plugins, behind one guard."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil import AxilError
from axil_serve.access import Access, Caller
from axil_serve.api import UPLOADS, Api
from axil_serve.errors import Unserved, error_data
from axil_serve.failures import refused, status_of
from axil_serve.guard import BodyTooLarge, Guard, Limits, Refused
from axil_serve.service import RunService
from axil_serve.shown import shown_routes

if TYPE_CHECKING:
    from axil_serve.signin import SignIn

PAGE: Final = {
    "index.html": "text/html; charset=utf-8",
    **dict.fromkeys(
        (
            "app.js",
            "chat.js",
            "compare.js",
            "details.js",
            "dom.js",
            "editor.js",
            "evaluations.js",
            "exported.js",
            "files.js",
            "forms.js",
            "graph.js",
            "places.js",
            "question.js",
            "report.js",
            "run.js",
            "runpage.js",
            "runs.js",
            "server.js",
            "shell.js",
            "start.js",
            "tables.js",
            "textview.js",
            "timeline.js",
        ),
        "text/javascript; charset=utf-8",
    ),
    "style.css": "text/css; charset=utf-8",
}
"""The files of the page, with their media types."""
VERBATIM: Final = ("/v1/edit/file", "/v1/edit/change")
"""The routes that give the text of a file to somebody who may write it: a key that stands in it is
written back."""
log = logging.getLogger("axil_serve")


class ServeProtocol(Protocol):
    """``axil.protocols``: routes by which clients of a protocol reach the runs of a server.

    It may have a method ``running()``, an async context manager in which requests are answered.
    """

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return starlette routes. ``caller_of(request)`` is the owner of the request's token."""
        ...


def app_of(
    service: RunService,
    access: Access,
    *,
    limits: Limits | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    protocols: Mapping[str, ServeProtocol] | None = None,
    editor: ServeProtocol | None = None,
    sign_in: SignIn | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Guard:
    """Return the ASGI application of a server; its lifespan runs the service.

    Args:
        hosts, origins: as of ``Guard``.
        protocols: further routes, by the names of their protocols.
        editor: the routes by which callers with the right ``edit`` edit workflow files.
        sign_in, secrets: as of ``Guard``; the service has to know the names of the secrets.
    Raises: Unserved (AX967): two protocols have a route of one path.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with service.running(), AsyncExitStack() as stack:
            for protocol in (protocols or {}).values():
                if (running := getattr(protocol, "running", None)) is not None:
                    await stack.enter_async_context(running())
            yield

    limits = limits or Limits()
    service.max_streams, service.max_streams_each = limits.streams, limits.streams_each
    api = Api(service, has_editor=editor is not None)
    routes: list[BaseRoute] = [
        *api.routes(),
        *shown_routes(service),
        *_page_routes(has_sign_in=sign_in is not None),
    ]
    routes += sign_in.routes(service) if sign_in is not None else ()
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
        exception_handlers={
            AxilError: _failed,
            BodyTooLarge: _too_large,
            HTTPException: _no_route,
        },
    )
    return Guard(
        inner,
        access,
        limits=limits,
        hosts=hosts,
        origins=origins,
        public=_public
        if sign_in is None
        else lambda path: _public(path) or float(sign_in.is_public(path)),
        sign_in=sign_in,
        secrets=secrets,
        refused=_noted(service),
        is_upload=lambda path: path == UPLOADS,
        is_verbatim=lambda path: editor is not None and path in VERBATIM,
    )


def _public(path: str) -> float:
    """Return how much of a request a path counts: all files of the page together are one."""
    return 1 / len(PAGE) if path == "/" or path.startswith("/page/") else 0.0


def _noted(service: RunService) -> Refused:
    async def note(caller: Caller, method: str, path: str) -> None:
        await service.note(caller, "refused", request=f"{method} {path:.200}")

    return note


def _page_routes(*, has_sign_in: bool) -> Iterable[BaseRoute]:
    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in PAGE:
            return JSONResponse(error_data("AX965", "the file does not exist."), 404)
        content = (files("axil_serve") / "page" / name).read_bytes()
        if has_sign_in and name == "index.html":
            content = content.replace(b"</head>", b'<meta name="sign-in" content="login"></head>')
        return Response(content, media_type=PAGE[name], headers={"cache-control": "no-cache"})

    return [Route("/", page), Route("/page/{name}", page)]


async def _failed(request: Request, error: Any) -> Response:
    if status_of(error) == 500:
        log.error("%s %s failed: %s", request.method, request.url.path, error)
    return refused(error)


async def _too_large(request: Request, error: Any) -> Response:
    return JSONResponse(error_data("AX964", "the body is too large."), 413)


async def _no_route(request: Request, error: Any) -> Response:
    """Answer a path or a method that no route has, and what a protocol refuses by its status."""
    id = "AX964" if error.status_code == 503 else "AX962" if error.status_code == 403 else "AX965"
    said = str(error.detail)
    if error.status_code in (404, 405):
        said = f"{request.method} {request.url.path:.200} is not served."
    return JSONResponse(error_data(id, said), error.status_code, headers=error.headers)


__all__ = ["PAGE", "ServeProtocol", "app_of"]
