"""The routes: runs over HTTP, the page, and the protocols of plugins, behind one guard."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import asdict
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from axil import MISSING, AxilError, ConfigError, SpecError, StateError
from axil.plugin import EngineError, JournalError
from axil_serve.access import Access, Caller
from axil_serve.conversation import workflow_data
from axil_serve.errors import (
    BadRequest,
    Busy,
    Conflict,
    NotAllowed,
    NotFound,
    NotSignedIn,
    TooLarge,
    Unserved,
    error_data,
)
from axil_serve.guard import BodyTooLarge, Guard, Limits, Refused
from axil_serve.openapi import document
from axil_serve.request import (
    body_of,
    caller_of,
    fields_in,
    flag_in,
    number_in,
    page_of,
    paths_in,
    text_in,
    texts_in,
)
from axil_serve.search import search
from axil_serve.service import RunService
from axil_serve.shown import shown_routes
from axil_serve.streams import StreamEvent, StreamPermit

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
_IDLE_EVENTS: Final = 15
"""Looks at a silent run between two comments in a stream, which keep the connection open."""
_PULSE_SECONDS: Final = 0.9
"""Of a silent run, after which its events say that the connection is there."""
SILENCE: Final = b": nothing happens\n\n"
UPLOADS: Final = "/v1/files"
VERBATIM: Final = ("/v1/edit/file", "/v1/edit/change")
"""The routes that give the text of a file to somebody who may write it: a key that stands in it is
written back."""
_CHUNK: Final = 1 << 16
_PAGE_OF_AUDIT: Final = {"before": "0", "limit": "100"}
log = logging.getLogger("axil_serve")
Handler = Callable[[Request], Awaitable[Response]]


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
    api = _Api(service, has_editor=editor is not None)
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


# ---------------------------------------------------------------------------------- the page


def _noted(service: RunService) -> Refused:
    async def note(caller: Caller, method: str, path: str) -> None:
        await service.note(caller, "refused", request=f"{method} {path:.200}")

    return note


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return handle if len(handlers) > 1 else next(iter(handlers.values()))


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


# ------------------------------------------------------------------------------------ the API


class _Api:
    """The routes below ``/v1``."""

    def __init__(self, service: RunService, *, has_editor: bool = False) -> None:
        self.service, self._has_editor = service, has_editor

    def routes(self) -> Iterable[BaseRoute]:
        run = "/v1/runs/{run_id}"
        routes: list[tuple[str, str, Handler]] = [
            ("GET", "/v1/me", self.me),
            ("GET", "/v1/workflows", self.workflows),
            ("GET", "/v1/search", self.search),
            ("GET", "/v1/runs", self.list),
            ("POST", "/v1/runs", self.start),
            ("GET", run, self.look),
            ("DELETE", run, self.remove),
            ("GET", f"{run}/steps", self.steps),
            ("GET", f"{run}/plan", self.plan),
            ("GET", f"{run}/layout", self.layout),
            ("GET", f"{run}/state", self.state),
            ("GET", f"{run}/events", self.events),
            ("POST", f"{run}/answers", self.answer),
            ("POST", f"{run}/cancel", self.cancel),
            ("POST", f"{run}/resume", self.resume),
            ("POST", f"{run}/fork", self.fork),
            ("GET", f"{run}/files", self.run_files),
            ("GET", f"{run}/files/{{file_id}}", self.download),
            ("POST", UPLOADS, self.upload),
            ("GET", UPLOADS, self.uploads),
            ("GET", f"{UPLOADS}/{{file_id}}", self.look_at_upload),
            ("GET", f"{UPLOADS}/{{file_id}}/content", self.read_upload),
            ("DELETE", f"{UPLOADS}/{{file_id}}", self.remove_upload),
            ("GET", "/v1/questions", self.questions),
            ("GET", "/v1/audit", self.audit),
            ("GET", "/v1/openapi.json", self.openapi),
        ]
        handlers: dict[str, dict[str, Handler]] = {}
        for method, path, handler in routes:
            handlers.setdefault(path, {})[method] = handler
        # one route for each path: the answer to another method lists those that there are
        return [Route(path, _by_method(own), methods=[*own]) for path, own in handlers.items()]

    async def me(self, request: Request) -> Response:
        caller = caller_of(request)
        rights = set[str](caller.rights) - ({"run", "answer"} if self.service.watch_only else set())
        look = "all" if caller.sees_all else "own"
        own = {"name": caller.name, "rights": sorted(rights), "look": look, "way": caller.way}
        return JSONResponse({**own, "files": self._has_editor and "edit" in rights})

    async def workflows(self, request: Request) -> Response:
        caller_of(request).check("look")
        found = [workflow_data(self.service, name) for name in self.service.workflows]
        broken = [{"name": name, "problems": each} for name, each in self.service.broken.items()]
        return JSONResponse({"workflows": found, "broken": broken})

    async def search(self, request: Request) -> Response:
        text = request.query_params.get("q", "")
        if not text.strip():
            raise BadRequest("AX966", "the search has no text.", "Send ?q=TEXT.")
        found = await asyncio.to_thread(search, self.service, caller_of(request), text)
        return JSONResponse(found)

    async def list(self, request: Request) -> Response:
        query = request.query_params
        wanted = {name: query.get(name, "") for name in ("status", "session", "workflow")}
        limit = number_in(query.get("limit", "100")) or 1
        given = {"after": query.get("after", ""), "limit": limit}
        runs, after = await self.service.read(
            partial(self.service.page, caller_of(request), **given, **wanted)
        )
        runs = await self.service.read(self.service.facts, runs)
        return JSONResponse({"runs": runs, "next": after or None})

    async def questions(self, request: Request) -> Response:
        found = await self.service.read(self.service.questions, caller_of(request))
        return JSONResponse({"questions": found})

    async def start(self, request: Request) -> Response:
        body = await body_of(
            request, {"workflow", "input", "attributes", "session", "metadata", "files"}
        )
        run_id = await self.service.start(
            caller_of(request),
            text_in(body, "workflow"),
            body.get("input"),
            attributes=fields_in(body, "attributes"),
            session=text_in(body, "session"),
            key=request.headers.get("idempotency-key", ""),
            metadata=fields_in(body, "metadata"),
            files=texts_in(body, "files"),
        )
        headers = {"location": f"/v1/runs/{run_id}"}
        return JSONResponse({"run_id": run_id}, 201, headers=headers)

    async def look(self, request: Request) -> Response:
        return JSONResponse(await self.service.result(caller_of(request), _run(request)))

    async def steps(self, request: Request) -> Response:
        steps = self.service.steps
        found = await self.service.read(steps, caller_of(request), _run(request))
        return JSONResponse({"steps": found})

    async def plan(self, request: Request) -> Response:
        who = caller_of(request), _run(request)
        plan = await self.service.read(self.service.plan, *who)
        layout = await asyncio.to_thread(self.service.layout, *who)
        return JSONResponse({"plan": plan, "layout": layout})

    async def layout(self, request: Request) -> Response:
        try:
            opened = json.loads(request.query_params.get("open", "null"))
        except (ValueError, RecursionError):
            opened = ""
        opened = paths_in({"open": opened}, "open")
        who = caller_of(request), _run(request)
        found = await asyncio.to_thread(self.service.layout, *who, opened)
        return JSONResponse({"layout": found})

    async def state(self, request: Request) -> Response:
        at = request.query_params.get("at", "")
        moment = await self.service.moment(caller_of(request), _run(request), at)
        return JSONResponse({"moment": moment})

    async def events(self, request: Request) -> Response:
        caller, run_id = caller_of(request), _run(request)
        with self.service.permit(caller) as permit:  # errors have a status of their own
            await self.service.read(self.service.look, caller, run_id)
            query = request.query_params
            after = request.headers.get("last-event-id", query.get("after", ""))
            live = query.get("live", "1") != "0"
            events = self.service.batches(caller, run_id, after=after, live=live, permit=permit)
            return event_stream(self._frames(events), permit)

    async def _frames(
        self, batches: AsyncGenerator[Sequence[StreamEvent]]
    ) -> AsyncGenerator[bytes]:
        said = time.monotonic()
        async with aclosing(batches):
            async for batch in batches:
                found = b"".join(frame(e.kind, e.data, id=e.id) for e in batch if e.kind)
                if found or time.monotonic() - said >= _PULSE_SECONDS:
                    yield found or SILENCE
                    said = time.monotonic()
        yield frame("end", {})

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
        # a client that changes nothing sends no body
        body = await body_of(request, {"limits"}) if await request.body() else {}
        await self.service.resume(caller_of(request), _run(request), fields_in(body, "limits"))
        return JSONResponse({}, 202)

    async def remove(self, request: Request) -> Response:
        await self.service.remove(caller_of(request), _run(request))
        return JSONResponse({})

    async def fork(self, request: Request) -> Response:
        body = await body_of(request, {"at", "input", "state", "output", "is_routed"})
        run_id = await self.service.fork(
            caller_of(request),
            _run(request),
            at=text_in(body, "at"),
            input=body.get("input", MISSING),
            state=fields_in(body, "state"),
            output=body.get("output", MISSING),
            is_routed=flag_in(body, "is_routed"),
        )
        return JSONResponse({"run_id": run_id}, 201, headers={"location": f"/v1/runs/{run_id}"})

    async def upload(self, request: Request) -> Response:
        caller, kind = caller_of(request), request.headers.get("content-type", "")
        if kind.partition(";")[0].strip() != "multipart/form-data":
            name = request.query_params.get("name", "file")
            upload = await self.service.upload(caller, name, kind, request.stream())
            return JSONResponse(upload.data(), 201)
        caller.check("run")
        # starlette reads forms with python_multipart; an older one raises its errors as they are
        from python_multipart.exceptions import FormParserError

        try:
            async with request.form(max_files=1, max_fields=10) as form:
                given: Any = form.get("file")
                if set(form) - {"file", "purpose"} or not isinstance(given, UploadFile):
                    message = "the form is not a file and its purpose."
                    raise BadRequest("AX966", message, "Send the fields file and purpose.")
                name = request.query_params.get("name", given.filename or "")
                kind = given.content_type or ""
                purpose = str(form.get("purpose", "user_data"))
                upload = await self.service.upload(
                    caller, name, kind, _chunks(given), purpose=purpose
                )
        except (HTTPException, FormParserError) as error:
            reason = getattr(error, "detail", error)
            raise BadRequest("AX966", f"the form cannot be read: {reason}") from error
        return JSONResponse(upload.data(), 201)

    async def uploads(self, request: Request) -> Response:
        query = request.query_params
        found = [each.data() for each in await self.service.uploads(caller_of(request))]
        wanted = [
            each for each in found if query.get("purpose", each["purpose"]) == each["purpose"]
        ]
        wanted.sort(key=lambda each: each["created_at"])
        return JSONResponse({"files": found, **page_of(wanted, query)})

    async def look_at_upload(self, request: Request) -> Response:
        found = await self.service.find_upload(caller_of(request), _file(request))
        return JSONResponse(found.data())

    async def read_upload(self, request: Request) -> Response:
        found, file = await self.service.open_upload(caller_of(request), _file(request))
        return file_response(file, found.name, found.size, found.media_type)

    async def remove_upload(self, request: Request) -> Response:
        await self.service.remove_upload(caller_of(request), _file(request))
        return JSONResponse({"id": _file(request), "object": "file", "deleted": True})

    async def run_files(self, request: Request) -> Response:
        files, left_out = await self.service.run_files(caller_of(request), _run(request))
        return JSONResponse({"files": [asdict(each) for each in files], "left_out": left_out})

    async def download(self, request: Request) -> Response:
        caller, run_id = caller_of(request), _run(request)
        found, file = await self.service.open_file(caller, run_id, _file(request))
        return file_response(file, Path(found.path).name, found.size, found.media_type)

    async def audit(self, request: Request) -> Response:
        query = request.query_params
        given = {name: number_in(query.get(name, most)) for name, most in _PAGE_OF_AUDIT.items()}
        wanted = {name: query.get(name, "") for name in ("who", "action", "run")}
        found, before = await self.service.acts(
            caller_of(request), before=given["before"], limit=given["limit"] or 1, **wanted
        )
        return JSONResponse({"acts": found, "next": before or None})

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(document(self.service.workflows))


# --------------------------------------------------------------------------------- responses


def file_response(file: BinaryIO, name: str, size: int, media_type: str) -> Response:
    """Return the content of a file, which is closed at its end."""
    headers = {
        "content-length": str(size),
        # never shown as a page of this server, whatever is in it
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name)}",
        "content-security-policy": "default-src 'none'; sandbox",
    }
    return StreamingResponse(_content(file, size), media_type=media_type, headers=headers)


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(_CHUNK):
        yield chunk


def _content(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the bytes that a file had when it was opened."""
    with file:
        while size and (chunk := file.read(min(_CHUNK, size))):
            size -= len(chunk)
            yield chunk


def frame(kind: str, data: Any, *, id: str = "") -> bytes:
    """Return a server-sent event; without ``kind`` it has its data alone."""
    lines = [f"id: {id}"] if id else []
    lines += [f"event: {kind}"] if kind else []
    # JSON has no line breaks of its own, so one line of data is enough; surrogates are escaped
    return "\n".join([*lines, f"data: {json.dumps(data)}", "", ""]).encode()


async def frames_of(
    batches: AsyncGenerator[Sequence[StreamEvent]], show: Callable[[StreamEvent], Iterable[bytes]]
) -> AsyncGenerator[bytes]:
    """Yield what ``show`` gives for events, that of a batch together, and comments meanwhile."""
    idle = 0
    async with aclosing(batches):
        async for batch in batches:
            found: list[bytes] = []
            for event in batch:
                if not event.kind and (idle := idle + 1) % _IDLE_EVENTS == 0:
                    found.append(SILENCE)
                found += show(event)
            if found:
                yield b"".join(found)


def event_stream(
    frames: AsyncGenerator[bytes],
    permit: StreamPermit,
    failed: Callable[[Mapping[str, Any]], bytes] = lambda data: frame("error", data),
) -> Response:
    """Return a response of server-sent events, which gives the permit back at its end.

    ``failed``: returns the last event of a stream that fails, of the data of the error.
    """
    return _EventStream(_whole(frames, failed), permit)


async def _whole(
    frames: AsyncGenerator[bytes], failed: Callable[[Mapping[str, Any]], bytes]
) -> AsyncGenerator[bytes]:
    async with aclosing(frames):
        try:
            async for each in frames:
                yield each
        except AxilError as error:  # the status is sent already
            if status_of(error) == 500:
                log.error("a stream failed: %s", error)
            yield failed(error_data(error.id, public_message(error)))


class _EventStream(StreamingResponse):
    def __init__(self, frames: AsyncIterator[bytes], permit: StreamPermit) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        permit.is_handed_over, self._permit = True, permit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # also of a client that was gone before the first byte
            self._permit.close()


def _run(request: Request) -> str:
    return str(request.path_params["run_id"])


def _file(request: Request) -> str:
    return str(request.path_params["file_id"])


# ------------------------------------------------------------------------------------ errors


def status_of(error: AxilError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, NotFound) or error.id == "AX503":
        return 404
    if isinstance(error, NotSignedIn):
        return 401
    if isinstance(error, NotAllowed):
        return 403
    if isinstance(error, Busy):
        return 503
    if isinstance(error, TooLarge):
        return 413
    if isinstance(error, BadRequest):
        return 400
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, EngineError) and error.id == "AX540":
        return 503
    if isinstance(error, (JournalError, EngineError)):
        return 422 if error.id in ("AX501", "AX502") else 409
    return 422 if isinstance(error, (SpecError, StateError, ConfigError)) else 500


def public_message(error: AxilError) -> str:
    """Return what a client learns of an error; what went wrong inside is for the log alone."""
    if status_of(error) < 500 or isinstance(error, Busy):
        return str(error)
    return "the server failed to handle the request."


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


def refused(error: AxilError) -> Response:
    """Return an error as the answer to a request."""
    data = error_data(error.id, public_message(error), getattr(error, "where", ""))
    return JSONResponse(data, status_of(error))


__all__ = [
    "PAGE",
    "SILENCE",
    "ServeProtocol",
    "app_of",
    "event_stream",
    "file_response",
    "frame",
    "frames_of",
    "public_message",
    "refused",
    "status_of",
]
