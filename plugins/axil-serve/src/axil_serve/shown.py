"""The routes that the page has beside those of runs: sessions as conversations, a run as a page,
and evaluations compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil import AxilError
from axil_journals import input_schema
from axil_serve.access import Caller
from axil_serve.conversation import (
    answer_open,
    earlier_messages,
    input_from,
    output_text,
    takes_messages,
)
from axil_serve.conversations import received
from axil_serve.errors import BadRequest, Conflict, NotFound
from axil_serve.export import page_of
from axil_serve.files import ATTACHMENTS, Upload
from axil_serve.request import body_of, caller_of, fields_in, text_in, texts_in
from axil_serve.service import OVER, RunService

_LATEST: Final = 10_000
"""The latest runs, among which sessions are looked for."""
_PAIR: Final = ("first", "second")
_PARTS: Final = {"image": "image", "audio": "audio"}
"""By the first half of a media type, the kind of a part of a message; of others ``file``."""


def shown_routes(service: RunService) -> Iterable[BaseRoute]:
    """Return the routes of sessions, exports and evaluations."""
    sessions = _Sessions(service)

    async def export(request: Request) -> Response:
        run_id = str(request.path_params["run_id"])
        return Response(
            await page_of(service, run_id, caller_of(request)),
            media_type="text/html; charset=utf-8",
            headers={"content-disposition": "attachment", "cache-control": "no-store"},
        )

    async def compared(request: Request) -> Response:
        caller, query = caller_of(request), request.query_params
        if request.method == "POST":  # reports that the caller has in files
            caller.check("look")
            body = await body_of(request, {*_PAIR})
            return JSONResponse(
                await asyncio.to_thread(_compared, {n: fields_in(body, n) for n in _PAIR})
            )
        reports: dict[str, Any] = {}
        for run_id in (query.get(name, "") for name in _PAIR):
            output: Any = (await service.result(caller, run_id))["output"]
            found: Any = cast("dict[str, Any]", output) if isinstance(output, dict) else {}
            reports[f'the run "{run_id}"'] = found.get("report")
        return JSONResponse(await asyncio.to_thread(_compared, reports))

    return [
        Route("/v1/sessions", sessions.list, methods=["GET"]),
        Route("/v1/sessions/messages", sessions.messages, methods=["GET", "POST"]),
        Route("/v1/runs/{run_id}/export", export, methods=["GET"]),
        Route("/v1/evaluations/compare", compared, methods=["GET", "POST"]),
    ]


class _Sessions:
    """The sessions of runs, as conversations."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def list(self, request: Request) -> Response:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for run in await self._service.read(self._latest, caller_of(request)):
            if name := run["session"]:  # the last one that changed first
                key = (run["owner"], name)
                session = found.setdefault(key, {"session": name, "runs": 0, "last": run})
                session["runs"] += 1
        return JSONResponse({"sessions": [*found.values()]})

    def _latest(self, caller: Caller) -> Sequence[dict[str, Any]]:
        return [*self._service.list(caller, among=_LATEST)]

    async def messages(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._say(request)
        caller, query = caller_of(request), request.query_params
        session, owner = query.get("session", ""), query.get("owner", "") or caller.name
        runs = await self._runs(caller, session, owner)
        if not runs:
            raise NotFound("AX965", f'there is no session "{session:.100}".', "List the sessions.")
        last = runs[-1]
        asked = [{**each, "run_id": last["run_id"]} for each in last["questions"]]
        is_at_work = last["status"] not in OVER and not asked
        return JSONResponse(
            {
                "session": session,
                "workflow": last["workflow"],
                "messages": _said(runs),
                "questions": asked,
                "working": last["run_id"] if is_at_work else "",
            }
        )

    async def _runs(self, caller: Caller, session: str, owner: str) -> Sequence[dict[str, Any]]:
        """Return the runs of a session, the first one first."""
        caller.check("look")
        if owner == caller.name:
            ids = await self._service.read(self._service.thread, caller, session)
        else:
            latest = await self._service.read(self._latest, caller)
            own = [run for run in latest if (run["owner"], run["session"]) == (owner, session)]
            ids = [run["run_id"] for run in sorted(own, key=lambda run: run["begun"])]
        return [await self._service.result(caller, run_id) for run_id in ids]

    async def _say(self, request: Request) -> Response:
        """Continue a conversation, or begin one: the answer of the workflow is that of a run."""
        caller, service = caller_of(request), self._service
        caller.check("run")
        body = await body_of(request, {"session", "workflow", "text", "files"})
        session, name, text = (text_in(body, each) for each in ("session", "workflow", "text"))
        if not session:
            raise BadRequest("AX966", "the session has no name.", 'Send {"session": "NAME"}.')
        files = texts_in(body, "files")
        before = await self._runs(caller, session, caller.name)
        if before and before[-1]["questions"]:
            await answer_open(service, caller, before[-1]["run_id"], text)
            return JSONResponse({"run_id": before[-1]["run_id"]}, 202)
        uploads = [await service.find_upload(caller, each) for each in files]
        given = await self._given(caller, name, session, text, uploads)
        run_id = await service.start(caller, name, given, session=session, files=files)
        return JSONResponse({"run_id": run_id}, 201)

    async def _given(
        self, caller: Caller, name: str, session: str, text: str, uploads: Sequence[Upload]
    ) -> Any:
        service = self._service
        if not takes_messages(service, name):
            found = service.workflows.get(name)
            fields = [] if found is None else [*input_schema(found.plan.graph.spec)["properties"]]
            return {fields[0]: text} if len(fields) == 1 else text
        parts: list[dict[str, Any]] = [
            {
                "type": _PARTS.get(each.media_type.partition("/")[0], "file"),
                "path": f"{ATTACHMENTS}/{each.name}",
                "media_type": each.media_type,
            }
            for each in uploads
        ]
        content = [{"type": "text", "text": text}, *parts] if parts else text
        earlier = await earlier_messages(service, caller, session)
        return input_from(service, name, [*earlier, {"role": "user", "content": content}])


def _said(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was said in the runs of a session, each message with its run once."""
    said: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for run in runs:
        given = received(run["input"])
        if given[: len(said)] == said:  # it received the messages before, too
            given = given[len(said) :]
        said += given
        shown += given
        own = {"run_id": run["run_id"], "status": run["status"]}
        if run["status"] == "done":
            said.append({"role": "assistant", "content": output_text(run)})
            shown.append({**said[-1], **own})
        elif run["status"] in OVER:
            shown.append({"role": "error", "content": run["error"] or run["status"], **own})
    return shown


def _compared(given: dict[str, Any]) -> dict[str, Any]:
    """Return how the second of two reports, by their names, differs from the first.

    Raises: NotFound (AX965): axil-evals is not installed; Conflict (AX966): one is no report.
    """
    try:
        from axil_evals import Report, compare
    except ImportError:
        message = "the distribution axil-evals, which tells a difference from chance, is missing."
        raise NotFound("AX965", message, "pip install 'axil-serve[evals]'") from None
    reports: list[Report] = []
    for name, found in given.items():
        report = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        try:
            reports.append(Report.of(report))
        except AxilError as error:
            message = f"{name} is no evaluation that has ended."
            hint = "Name runs of axil eval run --run-id, or send reports of axil eval run --out."
            raise Conflict("AX966", message, hint) from error
    try:
        return compare(*reports).plain()
    except AxilError as error:
        raise Conflict("AX966", str(error)) from error


__all__ = ["shown_routes"]
