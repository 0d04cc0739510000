"""The entries of a folder, and the reading and replacing of a single file of it."""

from __future__ import annotations

import errno
import mimetypes
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import Any, Final, Literal

from axil_workspace.errors import FileFault, NothingThere
from axil_workspace.folders import Folder

Kind = Literal["file", "folder", "link", "other"]
TEMPORARY: Final = ".axil-"
"""The beginning of the names of files that are being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something in a workspace."""

    path: str
    """From the root on, with ``/``; empty: the root."""
    kind: Kind
    size: int = 0
    """Bytes; of files only."""
    modified: float = 0.0
    """Seconds since the epoch."""

    @property
    def name(self) -> str:
        """The last name."""
        return self.path.rpartition("/")[2]

    @property
    def media_type(self) -> str:
        """The media type, by the file's name."""
        return mimetypes.guess_type(self.path)[0] or "application/octet-stream"


def entry(names: tuple[str, ...], found: os.stat_result) -> Entry:
    """Return the result of ``os.stat`` as an entry."""
    kind = kind_of(found)
    size = found.st_size if kind == "file" else 0
    return Entry(path="/".join(names), kind=kind, size=size, modified=found.st_mtime)


def kind_of(found: os.stat_result) -> Kind:
    """Return the kind of the entry."""
    if stat.S_ISREG(found.st_mode):
        return "file"
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(found.st_mode) else "other"


def listed(folder: Folder, depth: int, hidden: bool, *, temporary: bool = False) -> Iterator[Entry]:
    """Yield the entries of an open folder, down to ``depth``; a folder that cannot be opened is
    shown and not entered. ``temporary``: also those whose names are of files being written.
    """
    for name in folder.listed():
        if (name.startswith(TEMPORARY) and not temporary) or (name.startswith(".") and not hidden):
            continue
        found = folder.lstat(name)
        if found is None:
            continue
        yield entry((*folder.names, name), found)
        if depth > 1 and stat.S_ISDIR(found.st_mode):
            try:
                inner = folder.enter(name)
            except OSError:
                continue
            try:
                with suppress(FileNotFoundError):  # it has gone after it was opened
                    yield from listed(inner, depth - 1, hidden, temporary=temporary)
            finally:
                inner.close()


@contextmanager
def reading(folder: Folder, name: str) -> Generator[BufferedReader]:
    """Open a file to read. Raises: FileFault: NothingThere (AX875), or no file (AX872)."""
    regular(folder, name)
    with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was changed since
            raise _no_file(name)
        yield file


def regular(folder: Folder, name: str, *, missing_ok: bool = False) -> os.stat_result | None:
    """Return the facts about a file before it is opened: special files are never opened.

    Raises: FileFault (AX872, AX875).
    """
    found = folder.lstat(name) if name else os.stat(folder.path)
    if found is None:
        if missing_ok:
            return None
        raise missing("/".join((*folder.names, name)))
    if not stat.S_ISREG(found.st_mode):
        raise _no_file("/".join((*folder.names, name)))
    return found


def replaced(folder: Folder, name: str, data: bytes, mode: int | None) -> os.stat_result:
    """Replace the file ``name`` at once; ``mode``: its permissions, None: the usual ones."""
    temporary = f"{TEMPORARY}{secrets.token_hex(8)}"
    fd = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(fd, mode)
            found = os.fstat(fd)
        folder.replace(temporary, folder, name)
        return found
    except BaseException:
        with suppress(OSError):
            folder.unlink(temporary)
        raise


@contextmanager
def locked(folder: Folder) -> Generator[None]:
    """Lock the folder against others that lock it, in any process, where a platform can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    if folder.fd is None:
        yield
        return
    flock: Any = fcntl.flock
    # a lock belongs to an opening: threads have one each
    held = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder.fd)
    try:
        flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def moved(old: Folder, name: str, new: Folder, other: str, *, overwrite: bool) -> None:
    """Move something. A file replaces another at once; else what is there is put aside first.

    Raises: FileFault (AX886): something is there, and may not be overwritten; OSError: all is as it
    was.
    """
    found = new.lstat(other)
    if found is None:
        old.replace(name, new, other)
        return
    if not overwrite:
        raise there("/".join((*new.names, other)))
    source = old.lstat(name)
    if source is not None and not stat.S_ISDIR(source.st_mode) and not stat.S_ISDIR(found.st_mode):
        old.replace(name, new, other)
        return
    aside = f"{TEMPORARY}{secrets.token_hex(8)}"
    new.replace(other, new, aside)
    try:
        old.replace(name, new, other)
    except BaseException:
        new.replace(aside, new, other)
        raise
    if stat.S_ISDIR(found.st_mode):
        new.rmtree(aside)
    else:
        new.unlink(aside)


def missing(path: str | PurePath) -> NothingThere:
    """Return the error of a path where nothing is."""
    message = f'no file or folder exists at "{path}".'
    return NothingThere("AX875", message, "List the files to see the existing paths.")


def there(path: str | PurePath) -> FileFault:
    """Return the error of a path where something is."""
    return FileFault("AX886", f'"{path}" exists already.', "Choose another name, or set overwrite.")


def _no_file(name: str) -> FileFault:
    return FileFault("AX872", f'"{name}" is not a regular file.', "Give the path of a file.")


def file_fault(error: OSError, path: str | PurePath) -> FileFault:
    """Return the system's error about a path as an error of the workspace."""
    if error.errno == errno.ENOENT:
        return missing(path)
    if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR):
        message = f'"{path}" is not of the expected type: {error.strerror}.'
        return FileFault("AX872", message, "List the folder, and use another path.")
    message = f'"{path}" cannot be used: {error.strerror or error}.'
    return FileFault("AX875", message, "Choose another place.")
