"""Files of runs: what callers upload, and the folder of each run with what it received and wrote.

``ROOT/RUN_ID`` is the workspace of a run; what it received is in its folder ``attachments``.
``ROOT/.uploads`` holds uploads, by caller, until runs receive copies of them. A file is asked for
by an id, which is looked up in a list; no path comes from a request. Links are never followed.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import logging
import mimetypes
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from axil_models import entered, open_below, written_below
from axil_serve.errors import BadRequest, NotFound, TooLarge

ATTACHMENTS: Final = "attachments"
_UPLOADS: Final = ".uploads"
_MOST_LISTED: Final = 1_000
_MOST_SEEN: Final = 50_000
"""Files and folders of one run that are looked at."""
_CHUNK: Final = 1 << 16
_RUN_ID: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")
FILE_NAME: Final = (
    "^(?![. ])"
    "[^\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
    '/\\\\:<>"|?*]'
    "{1,200}(?<![. ])$"
)
"""The pattern of names of uploads: without folders, what the systems of people refuse, and
characters that are not seen."""
_NAME: Final = re.compile(FILE_NAME)
_LINKED: Final = (errno.ELOOP, errno.ENOTDIR)
PURPOSES: Final = ("assistants", "batch", "evals", "fine-tune", "user_data", "vision")
"""The purposes of uploads that OpenAI's clients name; nothing depends on them."""
log = logging.getLogger("axil.serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that a caller uploaded."""

    file_id: str
    name: str
    size: int
    """Bytes."""
    media_type: str
    sha256: str
    purpose: str = "user_data"
    """One of ``PURPOSES``."""
    created: int = 0
    """Seconds since 1970."""

    def data(self) -> dict[str, Any]:
        """Return it as an answer: in axil's words, and in those of OpenAI's file API."""
        own = {name: getattr(self, name) for name in ("name", "size", "media_type", "sha256")}
        return {
            "file_id": self.file_id,
            **own,
            "id": self.file_id,
            "object": "file",
            "bytes": self.size,
            "created_at": self.created,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file in the folder of a run."""

    file_id: str
    path: str
    """From the folder on, with ``/``."""
    kind: str
    """``attachment``: the run received it; ``artifact``: the run wrote it."""
    size: int
    media_type: str


class RunFiles:
    """The files of the runs of a server."""

    def __init__(
        self, root: str | Path, *, file_bytes: int = 32 << 20, caller_bytes: int = 1 << 30
    ) -> None:
        """Store the settings.

        Args:
            file_bytes: the largest upload.
            caller_bytes: of all uploads of one caller.
        """
        self.root = Path(os.path.realpath(root))
        self.file_bytes, self._caller_bytes = file_bytes, caller_bytes
        self._arriving: dict[str, int] = {}  # bytes of uploads that are being written, by caller

    # ------------------------------------------------------------------------------- uploads

    async def save(
        self,
        owner: str,
        name: str,
        media_type: str,
        chunks: AsyncIterable[bytes],
        *,
        purpose: str = "user_data",
    ) -> Upload:
        """Store an upload.

        Raises: BadRequest (AX966): the name is no file name; TooLarge (AX964).
        """
        name = _checked(name)
        if purpose not in PURPOSES:
            hint = f"Available: {', '.join(PURPOSES)}."
            raise BadRequest("AX966", "it is not a purpose of files.", hint, "purpose")
        place = self._place(owner)
        used = sum(each.size for each in await asyncio.to_thread(self.uploads, owner))
        temporary = place / f".{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            await asyncio.to_thread(temporary.mkdir, parents=True)
            with await asyncio.to_thread(open, temporary / "content", "xb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    arriving = self._arriving[owner] = self._arriving.get(owner, 0) + len(chunk)
                    if size > self.file_bytes:
                        message = f"the file has more than {self.file_bytes} bytes."
                        raise TooLarge("AX964", message, "Send a smaller file.")
                    self._check_room(used + arriving)
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
            # others may have arrived meanwhile; one that does so now is in one number, or in both
            arriving = self._arriving.get(owner, 0)
            used = sum(each.size for each in await asyncio.to_thread(self.uploads, owner))
            self._check_room(used + arriving)
            upload = Upload(
                file_id=secrets.token_hex(16),
                name=name,
                size=size,
                media_type=_media_type(name, media_type),
                sha256=digest.hexdigest(),
                purpose=purpose,
                created=int(time.time()),
            )
            (temporary / "upload.json").write_text(json.dumps(asdict(upload)), "utf-8")
            os.replace(temporary, place / upload.file_id)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        finally:
            self._arriving[owner] = self._arriving.get(owner, 0) - size
            if self._arriving[owner] <= 0:
                del self._arriving[owner]
        return upload

    def _check_room(self, size: int) -> None:
        """Raises: TooLarge (AX964): the uploads of a caller have more bytes together."""
        if size > self._caller_bytes:
            message = f"the uploads have more than {self._caller_bytes} bytes together."
            raise TooLarge("AX964", message, "Delete one: DELETE /v1/files/FILE_ID.")

    def uploads(self, owner: str) -> list[Upload]:
        """Return the uploads of a caller, by name."""
        found: list[Upload] = []
        with suppress(FileNotFoundError):
            for folder in os.scandir(self._place(owner)):
                with suppress(NotFound):
                    found.append(self.upload(owner, folder.name))
        return sorted(found, key=lambda each: (each.name, each.file_id))

    def remove(self, owner: str, file_id: str) -> None:
        """Remove an upload; the copies that runs received stay. Raises: NotFound (AX965)."""
        self.upload(owner, file_id)
        shutil.rmtree(self._place(owner) / file_id, ignore_errors=True)

    def open_upload(self, owner: str, file_id: str) -> tuple[Upload, BinaryIO]:
        """Open an upload to read from. Raises: NotFound (AX965)."""
        found = self.upload(owner, file_id)
        try:
            return found, open(self._place(owner) / file_id / "content", "rb")
        except FileNotFoundError:  # it was removed meanwhile
            raise _no_upload(file_id) from None

    def found(self, owner: str, file_ids: Iterable[str]) -> list[Upload]:
        """Return uploads of a caller by their ids.

        Raises: NotFound (AX965): the caller has no such upload; BadRequest (AX966): two have one
        name.
        """
        uploads = [self.upload(owner, file_id) for file_id in dict.fromkeys(file_ids)]
        names = [each.name for each in uploads]
        if len(set(names)) < len(names):
            message = "two of the files have the same name."
            raise BadRequest("AX966", message, "Upload one of them under another name.")
        return uploads

    def _place(self, owner: str) -> Path:
        # a name of a caller may be "..": its digest is the name of the folder
        return self.root / _UPLOADS / hashlib.sha256(owner.encode()).hexdigest()[:32]

    def upload(self, owner: str, file_id: str) -> Upload:
        """Return an upload of a caller. Raises: NotFound (AX965)."""
        if _ID.fullmatch(file_id):
            try:
                text = (self._place(owner) / file_id / "upload.json").read_text("utf-8")
                upload = Upload(**json.loads(text))
                texts = (upload.file_id, upload.name, upload.media_type, upload.sha256)
                numbers = (upload.size, upload.created)
                if all(type(each) is int for each in numbers) and all(
                    type(each) is str for each in (*texts, upload.purpose)
                ):
                    return upload
                raise ValueError("a field is of another type")
            except FileNotFoundError:
                pass
            except (
                OSError,
                ValueError,
                TypeError,
                RecursionError,
            ) as error:  # as if it had not arrived
                log.warning("the upload %s cannot be read: %s", file_id, error)
        raise _no_upload(file_id)

    # ---------------------------------------------------------------------- folders of runs

    def folder(self, run_id: str) -> Path | None:
        """Return the folder of a run, which need not exist; None: its id is no name of one."""
        return self.root / run_id if _RUN_ID.fullmatch(run_id) else None

    def attach(self, owner: str, uploads: Iterable[Upload], run_id: str) -> None:
        """Copy uploads into the folder of a run: all, or none.

        Raises: BadRequest (AX966): the name of one is too long for the file system, or the run
        has another file of this name.
        """
        place = self.root / run_id / ATTACHMENTS
        copied: list[str] = []
        try:
            self._attach(owner, uploads, run_id, copied)
        except BaseException:
            with suppress(OSError), entered(self.root / run_id, (ATTACHMENTS,)) as at:
                within, number = (at, None) if isinstance(at, str) else ("", at)
                for name in copied:
                    os.unlink(os.path.join(within, name), dir_fd=number)
            for folder in (place, place.parent):  # unless another server is at it
                with suppress(OSError):
                    folder.rmdir()
            raise

    def _attach(
        self, owner: str, uploads: Iterable[Upload], run_id: str, copied: list[str]
    ) -> None:
        place = self.root / run_id / ATTACHMENTS
        for each in uploads:
            if os.path.lexists(place / each.name):  # another server begins the same run
                if _digest(self.root / run_id, (ATTACHMENTS, each.name)) != each.sha256:
                    raise other_files()
                continue
            try:
                with (
                    open(self._place(owner) / each.file_id / "content", "rb") as source,
                    written_below(self.root / run_id, (ATTACHMENTS, each.name)) as copy,
                ):
                    shutil.copyfileobj(source, copy)
                copied.append(each.name)
            except OSError as error:
                if error.errno in _LINKED:  # the run is at work, and made it one
                    raise other_files() from error
                if error.errno != errno.ENAMETOOLONG:
                    raise
                message = f"the name of the file {each.file_id} is too long for the file system."
                raise BadRequest("AX966", message, "Upload it under a shorter one.") from error

    def tidy(self, before: float) -> None:
        """Remove uploads that were stored before a time, in seconds since 1970."""
        for upload in self.root.glob(f"{_UPLOADS}/*/*"):
            with suppress(OSError):
                if upload.stat().st_mtime < before:
                    shutil.rmtree(upload)

    def forget(self, run_id: str) -> None:
        """Remove the folder of a run."""
        if (folder := self.folder(run_id)) is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def copy(self, run_id: str, new_id: str) -> None:
        """Copy what is in the folder of a run into that of another one."""
        folder = self.folder(run_id)
        for parts, _ in _files(folder) if folder is not None else ():
            with (
                suppress(OSError),
                open_below(self.root / run_id, parts) as source,
                written_below(self.root / new_id, parts) as copy,
            ):
                shutil.copyfileobj(source, copy)

    def listed(self, run_id: str) -> tuple[list[RunFile], int]:
        """Return the files of a run by path, and how many were left out of the list."""
        folder = self.folder(run_id)
        seen = sorted(_files(folder)) if folder is not None else []
        files = [_run_file(parts, size) for parts, size in seen[:_MOST_LISTED]]
        return files, len(seen) - len(files)

    def open(self, run_id: str, file_id: str) -> tuple[RunFile, BinaryIO]:
        """Open a file of a run to read from. Raises: NotFound (AX965)."""
        folder = self.folder(run_id)
        for parts, _ in _files(folder) if folder is not None else ():
            if _file_id(parts) == file_id and folder is not None:
                with suppress(OSError):  # it was removed meanwhile, or became a link
                    file = open_below(folder, parts)
                    return _run_file(parts, os.fstat(file.fileno()).st_size), file
        message = f'the run has no file "{file_id:.100}".'
        raise NotFound("AX965", message, "List the files with GET /v1/runs/RUN_ID/files.")


def _no_upload(file_id: str) -> NotFound:
    message = f'there is no upload "{file_id:.100}".'
    return NotFound("AX965", message, "List the uploads with GET /v1/files.")


def other_files() -> BadRequest:
    """Return the error of a run that was begun with other files."""
    message = "the run of this key received other files."
    return BadRequest("AX966", message, "Use another key for another run.")


def _digest(folder: Path, parts: tuple[str, ...]) -> str:
    """Return the digest of a file; empty: it is a link, or no plain file."""
    with suppress(OSError), open_below(folder, parts) as file:
        return digest_of(file)
    return ""


def digest_of(file: BinaryIO) -> str:
    """Return the SHA-256 of what is left to read in a file."""
    found = hashlib.sha256()
    while chunk := file.read(1 << 20):
        found.update(chunk)
    return found.hexdigest()


def digests(uploads: Iterable[Upload]) -> Mapping[str, str]:
    """Return the digests of uploads by their names."""
    return {each.name: each.sha256 for each in uploads}


def _files(folder: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the plain files below a folder with their sizes; hidden ones are left out."""
    waiting: list[tuple[str, ...]] = [()]
    number = 0
    while waiting:
        parts = waiting.pop()
        with suppress(OSError), entered(folder, parts) as place, os.scandir(place) as found:
            for entry in found:
                number += 1
                if number > _MOST_SEEN:
                    return
                if entry.name.startswith(".") or entry.name == "__pycache__":
                    continue
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((*parts, entry.name))
                    elif entry.is_file(follow_symlinks=False):
                        yield (*parts, entry.name), entry.stat(follow_symlinks=False).st_size


def _run_file(parts: tuple[str, ...], size: int) -> RunFile:
    path = "/".join(parts).encode("utf-8", "replace").decode()
    return RunFile(
        file_id=_file_id(parts),
        path=path,
        kind="attachment" if parts[0] == ATTACHMENTS and len(parts) > 1 else "artifact",
        size=size,
        media_type=_media_type(path, ""),
    )


def _file_id(parts: tuple[str, ...]) -> str:
    return hashlib.sha256("/".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _checked(name: str) -> str:
    """Return the name of a file. Raises: BadRequest (AX966): it cannot be one.

    >>> _checked("report.pdf")
    'report.pdf'
    """
    is_text = name.encode("utf-8", "replace") == name.encode("utf-8", "surrogatepass")
    if not (is_text and _NAME.fullmatch(name)):
        message = f"{name[:100]!r} is not the name of a file."
        hint = "Send ?name=NAME, without folders, that begins with a letter or a digit."
        raise BadRequest("AX966", message, hint)
    return name


_FORM: Final = "application/x-www-form-urlencoded"


def _media_type(name: str, given: str) -> str:
    given = given.partition(";")[0].strip()
    if _MEDIA_TYPE.fullmatch(given) and given != _FORM:  # which curl sends with any data
        return given
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


__all__ = [
    "ATTACHMENTS",
    "FILE_NAME",
    "PURPOSES",
    "RunFile",
    "RunFiles",
    "Upload",
    "digest_of",
    "digests",
]
