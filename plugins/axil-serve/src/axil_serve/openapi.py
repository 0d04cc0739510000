"""The OpenAPI document of the routes below ``/v1``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from axil_serve.files import FILE_NAME, PURPOSES

_ANY: Final[dict[str, Any]] = {}
_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_FIELDS: Final = {"type": "object", "additionalProperties": True}
_GIVEN: Final = {**_FIELDS, "type": ["object", "null"]}
_STARTED: Final = {"type": "object", "properties": {"run_id": _TEXT}, "required": ["run_id"]}
_NOTHING: Final = {"type": "object"}
_BYTES: Final = {"type": "string", "format": "binary"}
_FILE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "file_id": _TEXT,
        "name": _TEXT,
        "size": {"type": "integer"},
        "media_type": _TEXT,
        "sha256": _TEXT,
        "id": _TEXT,
        "object": {"const": "file"},
        "bytes": {"type": "integer"},
        "created_at": {"type": "integer"},
        "filename": _TEXT,
        "purpose": _TEXT,
        "status": _TEXT,
    },
    "required": ["file_id", "name", "size", "media_type", "sha256"],
}
_RUN: Final = "/v1/runs/{run_id}"
_RESUME: Final = f"{_RUN}/resume"
_CONTENT: Final = f"{_RUN}/files/{{file_id}}"
_MESSAGES: Final = "/v1/sessions/messages"
_COMPARED: Final = "/v1/evaluations/compare"
_UPLOADS: Final = "/v1/files"
_UPLOAD: Final = "/v1/files/{file_id}"

# path, method, what it does, right, fields of the body, required ones, status, answer
_ROUTES: Final[
    tuple[tuple[str, str, str, str, dict[str, Any], tuple[str, ...], int, dict[str, Any]], ...]
] = (
    ("/v1/me", "get", "The caller: its name and rights.", "", {}, (), 200, _FIELDS),
    ("/v1/workflows", "get", "The workflows.", "look", {}, (), 200, _FIELDS),
    (
        "/v1/search",
        "get",
        "The runs in which the text `q` occurs, each with the first step that has it.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    ("/v1/questions", "get", "The open questions of paused runs.", "look", {}, (), 200, _FIELDS),
    (
        "/v1/runs",
        "get",
        "The runs that the caller may see, the last changed first.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        "/v1/runs",
        "post",
        "Start a run. A repeated request with the same header Idempotency-Key returns the same "
        "run.",
        "run",
        {
            "workflow": _TEXT,
            "input": _ANY,
            "attributes": _GIVEN,
            "session": _TEXT,
            "metadata": _GIVEN,
            "files": {"type": ["array", "null"], "items": _TEXT},
        },
        ("workflow",),
        201,
        _STARTED,
    ),
    (_RUN, "get", "A run: status, nodes, questions, output.", "look", {}, (), 200, _FIELDS),
    (_RUN, "delete", "Remove a run that has ended, and its files.", "run", {}, (), 200, _NOTHING),
    (f"{_RUN}/steps", "get", "The recorded steps of a run.", "look", {}, (), 200, _FIELDS),
    (f"{_RUN}/plan", "get", "The graph of a run, by levels.", "look", {}, (), 200, _FIELDS),
    (
        f"{_RUN}/layout",
        "get",
        "The places of a run's graph on the page; `open`: paths of the nodes that are unfolded.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        f"{_RUN}/state",
        "get",
        "The state of a run after the step with the id `at`, and the nodes that were next.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        f"{_RUN}/events",
        "get",
        "The events of a run as server-sent events; Last-Event-ID resumes them.",
        "look",
        {},
        (),
        200,
        _ANY,
    ),
    (
        f"{_RUN}/answers",
        "post",
        "Answer open questions, by their ids.",
        "answer",
        {"answers": {**_FIELDS, "minProperties": 1}},
        ("answers",),
        202,
        _NOTHING,
    ),
    (f"{_RUN}/cancel", "post", "Cancel a run.", "run", {}, (), 202, _NOTHING),
    (
        _RESUME,
        "post",
        "Resume a run that was interrupted, failed, reached a limit or was cancelled; other "
        "`limits` need the right `limits`.",
        "run",
        {"limits": _GIVEN},
        (),
        202,
        _NOTHING,
    ),
    (
        f"{_RUN}/fork",
        "post",
        "Start a run with the record of this one up to the step with the id `at`, optionally "
        "edited.",
        "run",
        {"at": _TEXT, "input": _ANY, "state": _GIVEN, "output": _ANY, "is_routed": _FLAG},
        (),
        201,
        _STARTED,
    ),
    (
        f"{_RUN}/files",
        "get",
        "The files in the folder of a run: attachments and artifacts.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (_CONTENT, "get", "A file of a run.", "look", {}, (), 200, _BYTES),
    (
        _UPLOADS,
        "post",
        "Upload a file under the `name`, for runs to receive; the body is its content.",
        "run",
        {},
        (),
        201,
        _FILE,
    ),
    (_UPLOADS, "get", "The uploads of the caller.", "look", {}, (), 200, _FIELDS),
    (_UPLOAD, "get", "An upload of the caller.", "look", {}, (), 200, _FILE),
    (f"{_UPLOAD}/content", "get", "The content of an upload.", "look", {}, (), 200, _BYTES),
    (_UPLOAD, "delete", "Remove an upload.", "run", {}, (), 200, _NOTHING),
    (
        "/v1/audit",
        "get",
        "Who did what, the last act first; `next` is the `before` of the next page.",
        "audit",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        "/v1/sessions",
        "get",
        "The sessions of the runs that the caller may see, each with its last run.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        _MESSAGES,
        "get",
        "What was said in a session, and what its last run asks.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        _MESSAGES,
        "post",
        "Continue a session, or begin one: a text for its workflow, or the answer to its question.",
        "run",
        {
            "session": {**_TEXT, "minLength": 1},
            "workflow": _TEXT,
            "text": _TEXT,
            "files": {"type": ["array", "null"], "items": _TEXT},
        },
        ("session", "workflow"),
        201,
        _STARTED,
    ),
    (f"{_RUN}/export", "get", "A run as one page of HTML.", "look", {}, (), 200, _TEXT),
    (
        _COMPARED,
        "get",
        "How the evaluation that the run `second` is differs from the run `first`.",
        "look",
        {},
        (),
        200,
        _FIELDS,
    ),
    (
        _COMPARED,
        "post",
        "How the report of an evaluation `second` differs from the report `first`.",
        "look",
        {"first": _FIELDS, "second": _FIELDS},
        ("first", "second"),
        200,
        _FIELDS,
    ),
)
_MEDIA: Final = {
    f"{_RUN}/events": "text/event-stream",
    f"{_RUN}/export": "text/html",
    _CONTENT: "*/*",
    f"{_UPLOAD}/content": "*/*",
}
"""Media types of answers; all others are JSON."""
_HEADERS: Final = {
    (f"{_RUN}/events", "get"): "Last-Event-ID",
    ("/v1/runs", "post"): "Idempotency-Key",
}
_QUERIES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("/v1/search", "get"): ("q",),
    (_UPLOADS, "post"): ("name",),
    (_UPLOADS, "get"): ("purpose", "order", "after", "limit"),
    ("/v1/runs", "get"): ("status", "session", "workflow", "limit", "after"),
    ("/v1/audit", "get"): ("who", "action", "run", "before", "limit"),
    (f"{_RUN}/state", "get"): ("at",),
    (f"{_RUN}/events", "get"): ("after", "live"),
    (_MESSAGES, "get"): ("session", "owner"),
    (_COMPARED, "get"): ("first", "second"),
}


_QUERY_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "limit": {"type": "string", "pattern": "^[0-9]{1,9}$"},
    "name": {"type": "string", "pattern": FILE_NAME, "default": "file"},
    "before": {"type": "string", "pattern": "^[0-9]{1,9}$"},
    "order": {"enum": ["asc", "desc"]},
    "q": {"type": "string", "pattern": "\\S"},
}


def document(workflows: Iterable[str] = ()) -> dict[str, Any]:
    """Return the document. ``workflows``: the names of those that are served.

    >>> document()["paths"]["/v1/runs"]["post"]["responses"]["201"]["description"]
    'done'
    """
    paths: dict[str, dict[str, Any]] = {}
    names = sorted(workflows)
    for path, method, summary, right, fields, required, status, answer in _ROUTES:
        media = _MEDIA.get(path, "application/json")
        error = {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        }
        operation: dict[str, Any] = {
            "summary": summary,
            "description": f"Needs the right `{right}`." if right else "",
            "operationId": f"{method}_{path.strip('/').replace('/', '_').translate(_BRACES)}",
            "parameters": [*_parameters(path, method)],
            "responses": {
                str(status): {"description": "done", "content": {media: {"schema": answer}}},
                "default": {"description": "an error", **error},
            },
        }
        if (path, method) == (_MESSAGES, "post"):
            answered = {"description": "the question of its last run is answered"}
            content = {"content": {media: {"schema": answer}}}
            operation["responses"]["202"] = {**answered, **content}
        if "workflow" in fields and names:
            fields = {**fields, "workflow": {"enum": names}}
        if fields:
            schema = {
                "type": "object",
                "properties": fields,
                "required": list(required),
                "additionalProperties": False,
            }
            body = {"content": {"application/json": {"schema": schema}}}
            operation["requestBody"] = {"required": path != _RESUME, **body}
        elif (path, method) == (_UPLOADS, "post"):
            purpose = {"enum": list(PURPOSES)}
            form: dict[str, Any] = {
                "type": "object",
                "properties": {"file": _BYTES, "purpose": purpose},
            }
            form["additionalProperties"] = False
            content: dict[str, Any] = {
                "application/octet-stream": {"schema": _BYTES},
                "multipart/form-data": {"schema": {**form, "required": ["file"]}},
            }
            operation["requestBody"] = {
                "required": False,
                "content": content,
            }  # a file may be empty
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "axil serve", "version": "1"},
        "paths": paths,
        "security": [{"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {
                        "error": {
                            "type": "object",
                            "properties": {"id": _TEXT, "message": _TEXT},
                            "required": ["id", "message"],
                        }
                    },
                    "required": ["error"],
                }
            },
        },
    }


_BRACES: Final = str.maketrans({"{": "", "}": "", ".": "_"})


def _parameters(path: str, method: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in ("run_id", "file_id"):
        if f"{{{name}}}" in path:
            found.append({"name": name, "in": "path", "required": True, "schema": _TEXT})
    for name in _QUERIES.get((path, method), ()):
        schema = _QUERY_SCHEMAS.get(name, _TEXT)
        found.append({"name": name, "in": "query", "required": name == "q", "schema": schema})
    if (path, method) in _HEADERS:
        found.append({"name": _HEADERS[path, method], "in": "header", "schema": _TEXT})
    return found


__all__ = ["document"]
