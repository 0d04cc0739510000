"""The files that the page may edit: those of one folder, or one file, and the routes for them.

A file is written whole and at once, only where it was opened, and only if it is what the page has
read: a file that changed meanwhile is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from axil import AxilError, Problem, Workflow
from axil.plugin import Registry
from axil_files import EditError, edit_text, workflow_schema
from axil_journals import Bounds, bound_data
from axil_serve.data import plain
from axil_serve.drawing import drawing
from axil_serve.errors import BadRequest, Conflict, NotFound
from axil_serve.layouts import layout_data
from axil_serve.request import body_of, caller_of, paths_in, text_in
from axil_serve.service import RunService

SUFFIXES: Final = (".yaml", ".yml", ".json", ".toml")
_MOST_FILES: Final = 1000
Opened = frozenset[tuple[str, ...]] | None
"""The paths of the nodes that are shown unfolded; None: as at first."""
_WHERE: Final = re.compile(r"^(?P<file>.*?):(?P<line>\d+)(?: (?P<path>.*))?$")


class Findings(Protocol):
    """The findings of ``axil check`` in a file."""

    @property
    def problems(self) -> Sequence[Problem]: ...
    @property
    def bounds(self) -> Bounds | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The parts that an editor needs from the command that opened it."""

    registry: Registry
    check: Callable[..., Findings]
    """Of a path, and ``texts`` in place of what is on the disk."""
    workflow: Callable[[str], tuple[Workflow, Mapping[str, Any]]]
    """Of a path: its workflow, and what is kept with its runs."""


class Editor:
    """Workflow files below a folder, or one file."""

    def __init__(self, place: str | os.PathLike[str], tools: Tools) -> None:
        """Store the place. Raises: NotFound (AX965): there is no such file or folder."""
        path = Path(os.path.realpath(place))
        if not path.exists():
            raise NotFound("AX965", f"there is no file or folder {place}.", "Check the path.")
        self._only = path.name if path.is_file() else ""
        self.folder = path.parent if self._only else path
        self._tools = tools
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Return the workflow files, by their paths below the folder; not those behind links."""
        if self._only:
            return [self._only]
        found: list[str] = []
        for base, folders, files in os.walk(self.folder):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in sorted(files):
                path = Path(base, name)
                if path.suffix in SUFFIXES and not name.startswith(".") and not path.is_symlink():
                    found.append(path.relative_to(self.folder).as_posix())
                if len(found) >= _MOST_FILES:
                    return found
        return found

    def path(self, name: str) -> Path:
        """Return the path of a file. Raises: NotFound (AX965): it is none of this editor's."""
        parts = name.split("/")
        path = self.folder / name
        is_plain = "\0" not in name and not any(not each or each.startswith(".") for each in parts)
        if (
            not is_plain
            or Path(os.path.realpath(path)) != path  # a link, or in the folder that a link leads to
            or self.folder not in path.parents
            or path.suffix not in SUFFIXES
            or (self._only and name != self._only)
        ):
            message = f'"{name:.100}" is not a workflow file that may be edited here.'
            raise NotFound("AX965", message, "Name a file of the folder, by its path below it.")
        return path

    def read(self, name: str) -> dict[str, Any]:
        """Return a file: its text, and a digest by which a change is seen; empty: it is new."""
        path = self.path(name)
        try:
            content = path.read_bytes()
            text = content.decode("utf-8")
        except FileNotFoundError:
            return {"name": name, "text": "", "digest": ""}
        except (OSError, UnicodeDecodeError) as error:
            message = f'the file "{name}" cannot be read as text.'
            raise NotFound("AX965", message, "Look at it on the disk.") from error
        return {"name": name, "text": text.replace("\r\n", "\n"), "digest": _digest(content)}

    def write(self, name: str, text: str, digest: str) -> str:
        """Write a file at once, and return its new digest; an empty digest: it is a new file.

        Raises: Conflict (AX969): it is not what the digest says.
        """
        path = self.path(name)
        with self._lock:
            try:
                before: bytes | None = path.read_bytes()
            except FileNotFoundError:
                before = None
            if (_digest(before) if before is not None else "") != digest:
                message = f'the file "{name}" has changed since it was read.'
                raise Conflict("AX969", message, "Read it again, and make the change there.")
            if before is not None and b"\r\n" in before:
                text = text.replace("\r\n", "\n").replace("\n", "\r\n")
            content = text.encode("utf-8")
            mode = path.stat().st_mode & 0o777 if before is not None else 0o644
            try:
                handle, temporary = tempfile.mkstemp(prefix=".axil-", dir=path.parent)
            except OSError as error:
                message = f'the file "{name}" cannot be written: {error.strerror}.'
                raise BadRequest("AX966", message, "Name an existing folder.") from error
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(temporary, mode)
                os.replace(temporary, path)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
        return _digest(content)

    def check(self, name: str, text: str, opened: Opened = None) -> dict[str, Any]:
        """Return what ``axil check`` finds in a text, the most that a run of it may use, its graph
        and layout as far as it can be read, and why it can only be edited as text.
        """
        path = self.path(name)
        with self._lock:  # what is found of deprecated names is collected for one check at a time
            found = self._tools.check(str(path), texts={path.name: text})
        problems = [_problem(each, str(path)) for each in found.problems]
        fixed = "it is written in TOML" if path.suffix == ".toml" else ""
        most = bound_data(found.bounds)["most"]
        shown = {"problems": problems, "fixed": fixed, "most": most}
        return {**shown, **self.layout(name, text, opened)}

    def layout(self, name: str, text: str, opened: Opened) -> dict[str, Any]:
        """Return the graph of a text, and its layout; None: the text has none that can be read.

        ``opened``: as of ``layout_data``.
        """
        path = self.path(name)
        try:
            loader = self._tools.registry.resolve("loaders", path.suffix.lstrip("."), name)
            document = (loader() if isinstance(loader, type) else loader)(text, name)
            graph = plain(drawing(document.data, document.lines))
        except (AxilError, RecursionError):  # the problems say what is wrong with the text
            graph = None
        return {"graph": graph, "layout": graph and layout_data(graph, opened)}

    def schema(self) -> Mapping[str, Any]:
        """Return the schema of workflow files with the installed components."""
        return workflow_schema(self._tools.registry)

    def workflow(self, name: str) -> tuple[Workflow, Mapping[str, Any]]:
        """Return the workflow of a file as it is on the disk, and what is kept with its runs."""
        return self._tools.workflow(str(self.path(name)))

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes of the page's editor; all need the right ``edit``."""

        async def files(request: Request) -> Response:
            caller_of(request).check("edit")
            return JSONResponse({"files": await asyncio.to_thread(self.names)})

        async def schema(request: Request) -> Response:
            caller_of(request).check("edit")
            return JSONResponse(await asyncio.to_thread(self.schema))

        async def file(request: Request) -> Response:
            caller_of(request).check("edit")
            if request.method == "GET":
                name = request.query_params.get("name", "")
                return JSONResponse(await asyncio.to_thread(self.read, name))
            body = await body_of(request, {"name", "text", "digest"})
            given = [text_in(body, each) for each in ("name", "text", "digest")]
            await service.note(caller_of(request), "write", file=given[0])
            return JSONResponse({"digest": await asyncio.to_thread(self.write, *given)})

        async def check(request: Request) -> Response:
            caller_of(request).check("edit")
            return JSONResponse(await asyncio.to_thread(self.check, *await text_of(request)))

        async def layout(request: Request) -> Response:
            caller_of(request).check("edit")
            return JSONResponse(await asyncio.to_thread(self.layout, *await text_of(request)))

        async def text_of(request: Request) -> tuple[str, str, Opened]:
            body = await body_of(request, {"name", "text", "open"})
            return text_in(body, "name"), text_in(body, "text"), paths_in(body, "open")

        async def change(request: Request) -> Response:
            caller_of(request).check("edit")
            body = await body_of(request, {"text", "edit"})
            edit: Any = body.get("edit")
            if not isinstance(edit, dict):
                raise BadRequest("AX966", "the request has no edit.", 'Send {"edit": {"do": …}}.')
            given = cast("dict[str, Any]", edit)
            try:
                text = await asyncio.to_thread(edit_text, text_in(body, "text"), given)
            except EditError as error:
                raise BadRequest("AX966", error.message, error.hint) from error
            return JSONResponse({"text": text})

        async def run(request: Request) -> Response:
            caller = caller_of(request)
            caller.check("edit")
            caller.check("run")
            body = await body_of(request, {"name", "input"})
            name = text_in(body, "name")
            workflow, origin = await asyncio.to_thread(self.workflow, name)
            service.add(name, workflow, origin)
            run_id = await service.start(caller, name, body.get("input"))
            return JSONResponse({"run_id": run_id}, 201)

        base = "/v1/edit"
        return [
            Route(f"{base}/files", files, methods=["GET"]),
            Route(f"{base}/schema", schema, methods=["GET"]),
            Route(f"{base}/file", file, methods=["GET", "PUT"]),
            Route(f"{base}/check", check, methods=["POST"]),
            Route(f"{base}/layout", layout, methods=["POST"]),
            Route(f"{base}/change", change, methods=["POST"]),
            Route(f"{base}/run", run, methods=["POST"]),
        ]


def _problem(problem: Problem, path: str) -> dict[str, Any]:
    """Return a finding with its line in the file; 0: it is elsewhere, or of the whole file."""
    found = _WHERE.match(problem.where)
    is_here = found is not None and os.path.basename(found["file"]) == os.path.basename(path)
    return {
        "id": problem.id,
        "severity": problem.severity,
        "message": problem.message,
        "hint": problem.hint,
        "where": problem.where.replace(path, os.path.basename(path)),
        "line": int(found["line"]) if found and is_here else 0,
        "path": (found["path"] or "") if found and is_here else "",
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


__all__ = ["SUFFIXES", "Editor", "Findings", "Tools"]
