"""A run as one page of HTML, with the page's own scripts and styles, that needs no server."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from dataclasses import asdict
from importlib.resources import files
from typing import Any, Final

from axil import AxilError
from axil_serve.access import Caller
from axil_serve.errors import NotFound
from axil_serve.files import digest_of
from axil_serve.layouts import exported_layouts
from axil_serve.service import RunService

_SCRIPTS: Final = (
    "dom.js",
    "server.js",
    "shell.js",
    "report.js",
    "files.js",
    "graph.js",
    "run.js",
    "timeline.js",
    "tables.js",
    "question.js",
    "details.js",
    "runpage.js",
    "exported.js",
)
"""In this order, each after those that it uses."""
_MOST_STATES: Final = 300
"""Steps of nodes of which the state is written into the page."""
_LARGEST: Final = 500_000
"""Bytes of a file that is written into the page."""
_MOST_TOGETHER: Final = 4_000_000


async def page_of(service: RunService, run_id: str, caller: Caller | None = None) -> str:
    """Return the page of a run, with what a caller sees of it; None: one who has the journal.

    Raises: NotFound (AX965): there is no such run.
    """
    caller = caller or Caller(name="export", sees_all=True)
    steps = await service.read(service.steps, caller, run_id)
    try:
        plan = await service.read(service.plan, caller, run_id)
    except AxilError:  # its workflow does not compile here; the record is shown alone
        plan = None
    states: dict[str, Any] = {}
    if plan is not None:
        for step in [step for step in steps if step["kind"] == "done"][:_MOST_STATES]:
            states[step["id"]] = await service.moment(caller, run_id, step["id"])
        if steps[-1]["kind"] == "ended":  # what its end has stopped
            states[steps[-1]["id"]] = await service.moment(caller, run_id, steps[-1]["id"])
    data = {
        "run": await service.read(service.look, caller, run_id),
        "steps": steps,
        "plan": plan,
        "layouts": [] if plan is None else exported_layouts(plan),
        "states": states,
        "files": await _files(service, run_id, caller),
    }
    return _page(data)


async def _files(service: RunService, run_id: str, caller: Caller) -> dict[str, Any]:
    """Return the files of a run: small ones with their content, others with their digest."""
    try:
        listed, left_out = await service.run_files(caller, run_id)
    except NotFound as none:  # no files are kept here
        return {"files": [], "none": str(none)}
    found: list[dict[str, Any]] = []
    together = 0
    for each in listed:
        try:
            _, file = await service.open_file(caller, run_id, each.file_id)
        except NotFound:  # it was removed meanwhile
            continue
        own = asdict(each)
        with file:
            if each.size <= _LARGEST and together + each.size <= _MOST_TOGETHER:
                data = await asyncio.to_thread(file.read, each.size)
                together += len(data)
                own["data"] = base64.b64encode(data).decode()
            else:
                own["sha256"] = await asyncio.to_thread(digest_of, file)
        found.append(own)
    return {"files": found, "left_out": left_out}


def _page(data: Any) -> str:
    place = files("axil_serve") / "page"
    style = (place / "style.css").read_text("utf-8")
    script = "\n".join(_plainly((place / name).read_text("utf-8")) for name in _SCRIPTS)
    # nothing in the data can end its element: a browser looks for "</script" alone
    text = json.dumps(data).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>axil run</title>\n<style>{style}</style>\n</head>\n"
        '<body>\n<div id="app"></div>\n'
        f'<script type="application/json" id="exported">{text}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _plainly(module: str) -> str:
    """Return a module as a part of one script: without its imports and exports."""
    without = re.sub(r"^import .*$\n", "", module, flags=re.MULTILINE)
    return re.sub(r"^export ", "", without, flags=re.MULTILINE)


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


__all__ = ["page_of"]
