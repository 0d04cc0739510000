"""Files of the run's workspace in messages: read where a message names them, written where a model
makes images and recordings, or a tool gives them (a picture of the screen), so that edges, journals
and messages hold their paths.

What is made is named by the digest of its content: a call that is made again writes the same
file. Where a reply's ``extra`` holds the same content, which goes back to the model, it is named
there, too.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from axil.plugin import Message, granted
from axil_models.errors import PartError
from axil_models.folders import open_below, written_below
from axil_models.parts import (
    LARGEST_PART_BYTES,
    Part,
    checked_part,
    is_part,
    name_ending,
    part_bytes,
    part_label,
    part_too_large,
    text_part,
)
from axil_models.requests import Reply, Request
from axil_models.threads import in_thread

MADE: Final = "made"
"""The folder of the workspace."""
SMALLEST_BYTES: Final = 4096
"""The size from which on content is a file."""
_FILE: Final = "workspace_file"


async def with_files(request: Request, workspace: Path | None) -> Request:
    """Return the request, with the files that its messages name read into them.

    An earlier message, of a run of the same thread perhaps, may name a file that is not here: it
    says so. Raises: PartError (AX804): a path leads out of the workspace, or there is none, or no
    such file; (AX802, AX803) as ``checked_part``.
    """
    naming = [
        (type(each.get("content")) is not str and _has_path(each.get("content")))
        or ("extra" in each and _has_file(each["extra"]))
        for each in request.messages
    ]
    if not any(naming):
        return request
    users = [at for at, each in enumerate(request.messages) if each.get("role") == "user"]
    present = max(users, default=0)
    messages = [
        await in_thread(lambda m=each, at=at: _filled(m, workspace, is_earlier=at < present))
        if naming[at]
        else each
        for at, each in enumerate(request.messages)
    ]
    return replace(request, messages=messages)


def _filled(message: Message, workspace: Path | None, *, is_earlier: bool) -> Message:
    new, content = dict(message), message.get("content")
    if _has_path(content):
        parts = cast("Sequence[Any]", content)
        read = _read_or_named if is_earlier else _read
        new["content"] = [read(part, workspace) if _is_path(part) else part for part in parts]
    if "extra" in message:
        try:
            new["extra"] = _refilled(message["extra"], workspace)
        except PartError as error:
            if not (is_earlier and error.id == "AX804"):
                raise
            del new["extra"]
    return new


def _read_or_named(part: Part, workspace: Path | None) -> Part:
    try:
        return _read(part, workspace)
    except PartError as error:
        if error.id != "AX804":
            raise
        return text_part(f"{part_label(part)} (its file is not here)")


def _has_file(value: object) -> bool:
    """Return whether plain data names a file in place of its content."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return _FILE in items or any(map(_has_file, items.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_file, cast("list[Any]", value)))


def _has_path(content: object) -> bool:
    return isinstance(content, (list, tuple)) and any(
        _is_path(part) for part in cast("Sequence[Any]", content)
    )


def _is_path(part: Any) -> bool:
    return is_part(part) and bool(part.get("path"))


def _file_bytes(part: Mapping[str, object], workspace: Path | None) -> tuple[str, bytes]:
    """Return the name and the content of the file that a part names.

    Raises: PartError (AX803): it is too large; (AX804): its path leads out of the workspace, or
    there is none, or no such file.
    """
    given = str(part["path"])
    if workspace is None:
        message = f'{part_label(part)} names the file "{given}", and the run has no workspace.'
        hint = "Run with workspace=…, or give the bytes: image(Path(…).read_bytes())."
        raise PartError("AX804", message, hint)
    root = workspace.resolve()
    try:
        file = (root / given).resolve()
    except ValueError:
        message = f"no file can have the name {given!r}."
        raise PartError("AX804", message, "Paths are those of the workspace.") from None
    if not file.is_relative_to(root):
        message = f'the path "{given}" leads out of the workspace.'
        raise PartError("AX804", message, "Copy the file into the workspace.")
    try:
        # the workspace is the run's: the names of its folders say nothing to the fence of a file
        with granted(None), open_below(root, file.relative_to(root).parts) as opened:
            size = os.fstat(opened.fileno()).st_size
            if size > LARGEST_PART_BYTES:
                raise part_too_large(part, size)
            return file.name, opened.read(size)
    except OSError as error:
        message = f'the file "{given}" cannot be read: {error.strerror or error}.'
        raise PartError("AX804", message, "Paths are those of the workspace.") from None


def _read(part: Mapping[str, object], workspace: Path | None) -> Part:
    name, content = _file_bytes(part, workspace)
    rest = {key: value for key, value in part.items() if key != "path"}
    return checked_part({"name": name, **rest, "data": base64.b64encode(content).decode()})


def _refilled(extra: object, workspace: Path | None) -> object:
    """Return the ``extra`` of a message with the content of the files that it names.

    Raises: PartError (AX803, AX804): one cannot be read.
    """

    def read(value: object) -> object:
        if isinstance(value, Mapping) and _FILE in value:
            given = cast("Mapping[str, Any]", value)
            _, content = _file_bytes({"type": "file", "path": given[_FILE]}, workspace)
            encode = base64.urlsafe_b64encode if given["urlsafe"] else base64.b64encode
            return encode(content).decode()
        return cast("Any", value)

    return _each(extra, read)


async def filed(reply: Reply, workspace: Path | None) -> Reply:
    """Return the reply, with the images and recordings that it holds in files of the workspace.

    Small ones stay as they are; so do all where there is no workspace, or it cannot be written to.
    """
    parts, paths = await _written(reply.parts, workspace)
    if not paths:
        return reply
    known = {_plain(data): path for data, path in paths.items()}

    def name(value: Any) -> Any:
        if isinstance(value, str) and len(value) > SMALLEST_BYTES and _plain(value) in known:
            return {_FILE: known[_plain(value)], "urlsafe": bool({"-", "_"} & {*value})}
        return value

    return replace(reply, parts=tuple(parts), extra=_each(reply.extra, name))


async def filed_result(content: object, workspace: Path | None) -> object:
    """Return the result of a tool, with its images and recordings in files, as ``filed``."""
    if not isinstance(content, list):
        return content
    return (await _written(cast("list[object]", content), workspace))[0]


async def _written(
    parts: Sequence[Any], workspace: Path | None
) -> tuple[Sequence[Any], dict[str, str]]:
    """Return parts with large content in files, and the paths of it."""
    large = [each for each in parts if is_part(each) and _is_large(each)]
    if workspace is None or not large:
        return parts, {}
    try:
        paths = await in_thread(lambda: {each["data"]: _put(each, workspace) for each in large})
    except OSError:
        return parts, {}
    named = [_named(each, paths[each["data"]]) if each in large else each for each in parts]
    return named, paths


def _is_large(part: Mapping[str, object]) -> bool:
    return len(str(part.get("data") or "")) * 3 // 4 >= SMALLEST_BYTES


def _put(part: Mapping[str, object], workspace: Path) -> str:
    """Write the content of a part, and return its path. Raises: OSError."""
    content, media_type = part_bytes(part), str(part.get("media_type") or "")
    name = f"{hashlib.sha256(content).hexdigest()[:32]}{name_ending(media_type)}"
    # the workspace is the run's, as where it is read
    with granted(None), written_below(workspace.resolve(), (MADE, name)) as file:
        file.write(content)
    return f"{MADE}/{name}"


def _named(part: Mapping[str, object], path: str) -> Part:
    return {**{key: value for key, value in part.items() if key != "data"}, "path": path}


def _plain(data: str) -> str:
    """Return base64 in its usual letters."""
    return data.replace("-", "+").replace("_", "/").rstrip("=")


def _each(value: object, change: Callable[[object], object]) -> object:
    """Return plain data with ``change`` made to everything in it, from outside to inside."""
    new = change(value)
    if new is not value:
        return new
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return {key: _each(each, change) for key, each in items.items()}
    if isinstance(value, (list, tuple)):
        return [_each(each, change) for each in cast("list[Any]", value)]
    return value
