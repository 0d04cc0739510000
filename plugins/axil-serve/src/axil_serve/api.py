"""The routes below ``/v1``."""

from __future__ import annotations

import asyncio
import json
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
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import quote

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from axil import MISSING
from axil_serve.conversation import workflow_data
from axil_serve.errors import BadRequest
from axil_serve.events import SILENCE, event_stream, frame
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
from axil_serve.streams import StreamEvent

_PULSE_SECONDS: Final = 0.9
"""Of a silent run, after which its events say that the connection is there."""
UPLOADS: Final = "/v1/files"
_CHUNK: Final = 1 << 16
_PAGE_OF_AUDIT: Final = {"before": "0", "limit": "100"}
Handler = Callable[[Request], Awaitable[Response]]


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await handlers[method](request)

    return handle if len(handlers) > 1 else next(iter(handlers.values()))


class Api:
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


def _run(request: Request) -> str:
    return str(request.path_params["run_id"])


def _file(request: Request) -> str:
    return str(request.path_params["file_id"])
