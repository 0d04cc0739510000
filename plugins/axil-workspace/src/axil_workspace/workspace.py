"""``Workspace``: the folder of a run, and everything that may be done in it."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Any, Final

from axil.plugin import granted, is_axils
from axil_workspace.entries import (
    TEMPORARY,
    Entry,
    Kind,
    entry,
    file_fault,
    kind_of,
    listed,
    locked,
    missing,
    moved,
    reading,
    regular,
    replaced,
    there,
)
from axil_workspace.errors import (
    FileFault,
    LimitExceeded,
    NothingThere,
    PathRefused,
    WorkspaceError,
)
from axil_workspace.folders import Folder, parts_of, reached

KEPT: Final = ("attachments", ".axil")
"""Folders at the root whose files stay as they came: what was attached, and the record of it."""
_DEEPEST: Final = 100
_ALL: Final = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size limits of a workspace. Programs that run in it have limits of their own."""

    file_bytes: int = 32 << 20
    """The size of one file that is read or written."""
    total_bytes: int = 2 << 30
    files: int = 50_000
    """Files and folders."""


class Workspace:
    """A folder that nothing leads out of: no ``..``, no absolute path, no link, no race between a
    check and a use.

    It is made when something is first written. Texts that name files are paths below it; an
    absolute path will do if it is inside.

    >>> import tempfile
    >>> place = Workspace(tempfile.mkdtemp())
    >>> place.write("notes/today.txt", b"rain").path
    'notes/today.txt'
    >>> place.read("notes/today.txt")
    b'rain'
    """

    def __init__(
        self, root: str | Path, limits: Limits | None = None, *, kept: tuple[str, ...] = KEPT
    ) -> None:
        """``kept``: folders at the root that are read and never changed."""
        self.root = Path(os.path.realpath(root))
        self.limits = limits or Limits()
        self.kept = kept

    @classmethod
    def of(cls, ctx: Any, limits: Limits | None = None) -> Workspace:
        """Return the workspace of a firing's run. Raises: WorkspaceError (AX874): it has none."""
        root = getattr(ctx, "workspace", None)
        if root is None:
            hint = "Pass workspace=… to the run, or use axil run --workspace DIR."
            raise WorkspaceError("AX874", "this run has no workspace.", hint)
        return cls(root, limits)

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    def resolve(self, path: str | PurePath) -> Path:
        """Return where ``path`` leads, links followed; its last part need not exist.

        For showing, and for handing to programs; not to read or write by: a path may be bent after
        it was resolved. Raises: PathRefused (AX870, AX871); FileFault (AX872, AX875).
        """
        with self._reached(path) as (folder, name):
            return folder.path / name

    def stat(self, path: str | PurePath) -> Entry | None:
        """Return the facts about ``path``, links followed; None: there is no such entry.

        Raises: PathRefused; FileFault (AX872).
        """
        try:
            with self._reached(path) as (folder, name):
                if not name:
                    return entry((), os.stat(folder.path))
                found = folder.lstat(name)
                return None if found is None else entry((*folder.names, name), found)
        except NothingThere:
            return None

    def entries(
        self, path: str | PurePath = ".", *, depth: int = 1, hidden: bool = False
    ) -> Iterator[Entry]:
        """Yield the entries of a folder by name; each folder is followed by its own entries.

        Links are shown and not followed.

        Args:
            depth: 1 is the folder itself, 2 also the folders in it, and so on.
            hidden: also names that begin with a dot, and what is in such folders.
        Raises: PathRefused; FileFault (AX872, AX875). A root that is not there yet is empty.
        """
        if not parts_of(self.root, path) and not self.root.is_dir():
            return
        with self._reached(path) as (folder, name):
            inner = folder.enter(name) if name else folder
            try:
                yield from listed(inner, min(depth, _DEEPEST), hidden)
            finally:
                if inner is not folder:
                    inner.close()

    def read(self, path: str | PurePath) -> bytes:
        """Return the bytes of a file.

        Raises: PathRefused; FileFault (AX872, AX875); LimitExceeded (AX873).
        """
        with self.opened(path) as file:
            return self._whole(file, path)

    @contextmanager
    def opened(self, path: str | PurePath) -> Generator[BufferedReader]:
        """Open a file to read from.

        Raises: PathRefused; FileFault: nothing is there (AX875), or no file (AX872).
        """
        with self._reached(path) as (folder, name), reading(folder, name) as file:
            yield file

    def sha256(self, path: str | PurePath) -> str:
        """Return the SHA-256 of a file, as hexadecimal digits. Raises: as ``opened``."""
        with self.opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def write(self, path: str | PurePath, data: bytes, *, append: bool = False) -> Entry:
        """Put ``data`` into a file; readers see the old file or the new one.

        Folders on the way are made.

        Raises: PathRefused (AX870, AX871, AX881); FileFault (AX872); LimitExceeded (AX873): the
        file is as it was.
        """
        if append:
            return self._changed(path, lambda old: old + data, new=True)
        return self._changed(path, lambda old: data, new=True, blind=True)

    def update(self, path: str | PurePath, change: Callable[[bytes], bytes]) -> Entry:
        """Change a file's bytes, one change after another, among all writers.

        Raises: as ``write``; FileFault (AX875): there is no such file; what ``change`` raises: the
        file is as it was.
        """
        return self._changed(path, change)

    def make_folder(
        self, path: str | PurePath, *, parents: bool = True, exist_ok: bool = True
    ) -> bool:
        """Make a folder; whether it is new.

        Raises: PathRefused; FileFault: something else is there (AX872, AX886); LimitExceeded.
        """
        with self._changing(path, make=parents) as (folder, name):
            found = folder.lstat(name)
            if found is None:
                self._admit(str(path), more_files=1)
                folder.mkdir(name)
                return True
            if not stat.S_ISDIR(found.st_mode):
                message = f'"{path}" exists already and is not a folder.'
                raise FileFault("AX872", message, "Choose another name.")
            if not exist_ok:
                raise there(path)
            return False

    def delete(self, path: str | PurePath, *, recursive: bool = False) -> Kind | None:
        """Take away a file, a link or a folder; what it was, None: nothing was there.

        Raises: PathRefused; FileFault (AX872).
        """
        try:
            with self._changing(path, follow=False) as (folder, name):
                found = folder.lstat(name)
                if found is None:
                    return None
                kind = kind_of(found)
                if kind != "folder":
                    folder.unlink(name)
                elif recursive:
                    folder.rmtree(name)
                else:
                    hint = "Set recursive to delete it with its content."
                    raise FileFault("AX872", f'"{path}" is a folder.', hint)
                return kind
        except NothingThere:
            return None

    def move(
        self, source: str | PurePath, target: str | PurePath, *, overwrite: bool = False
    ) -> Entry:
        """Give a file or a folder another place.

        Raises: PathRefused; FileFault (AX872, AX875, AX886).
        """
        with (
            self._changing(source, follow=False) as (old, name),
            self._changing(target, make=True, follow=False) as (new, other),
        ):
            found = old.lstat(name)
            if found is None:
                raise missing(source)
            before, after = (*old.names, name), (*new.names, other)
            if before != after:
                _apart(before, after, source)
                moved(old, name, new, other, overwrite=overwrite)
            return entry(after, found)

    def copy(
        self, source: str | PurePath, target: str | PurePath, *, overwrite: bool = False
    ) -> Entry:
        """Copy a file, or a folder with all its files.

        Links and special files in it are left out. Raises: as ``move``; LimitExceeded.
        """
        found = self.stat(source)
        if found is None or not found.path:
            raise missing(source)
        with self._changing(target, follow=False, make=True) as (folder, name):
            place = (*folder.names, name)
            _apart(tuple(found.path.split("/")), place, source)
            if folder.lstat(name) is not None and not overwrite:
                raise there(target)
        entries = [found]
        if found.kind == "folder":
            entries += self.entries(source, depth=_DEEPEST, hidden=True)
        self._admit(str(target), sum(each.size for each in entries), len(entries))
        limits = Limits(file_bytes=self.limits.file_bytes, total_bytes=_ALL, files=_ALL)
        admitted = Workspace(self.root, limits, kept=self.kept)
        aside = f"{TEMPORARY}{secrets.token_hex(8)}"
        try:
            for each in entries:
                copied = aside + each.path.removeprefix(found.path)
                if each.kind == "folder":
                    admitted.make_folder(copied)
                elif each.kind == "file":
                    admitted.write(copied, self.read(each.path))
            return admitted.move(aside, "/".join(place), overwrite=overwrite)
        finally:
            admitted.delete(aside, recursive=True)

    @contextmanager
    def _reached(
        self,
        path: str | PurePath,
        *,
        make: Callable[[tuple[str, ...]], None] | None = None,
        follow: bool = True,
    ) -> Generator[tuple[Folder, str]]:
        parts = parts_of(self.root, path)
        try:
            with reached(self.root, parts, make=make, follow=follow) as (folder, name):
                if is_axils(self.root.joinpath(*folder.names, name)):
                    text = f'"{path}" is axil\'s own.'
                    raise PathRefused("AX870", text, "Use another path.")
                yield folder, name
        except WorkspaceError:
            raise
        except OSError as error:
            raise file_fault(error, path) from error

    @contextmanager
    def _changing(
        self, path: str | PurePath, *, make: bool = False, follow: bool = True
    ) -> Generator[tuple[Folder, str]]:
        """Open the place of an entry that is to be changed.

        Raises: PathRefused (AX881): it stays as it came.
        """

        def may(names: tuple[str, ...]) -> None:
            if names[0] in self.kept:
                text = f'"{path}" cannot be changed: "{names[0]}" is read-only.'
                raise PathRefused("AX881", text, "Copy it to another place, and change the copy.")

        def may_make(names: tuple[str, ...]) -> None:
            may(names)
            self._admit(str(path), more_files=1)

        parts = parts_of(self.root, path)
        if not parts:
            raise _root_refused(path)
        may(parts)
        with granted(None):
            self.root.mkdir(parents=True, exist_ok=True)
        with self._reached(path, make=may_make if make else None, follow=follow) as (folder, name):
            if not name:
                raise _root_refused(path)
            may((*folder.names, name))
            yield folder, name

    def _changed(
        self,
        path: str | PurePath,
        change: Callable[[bytes], bytes],
        *,
        new: bool = False,
        blind: bool = False,
    ) -> Entry:
        """Change a file; ``new``: a missing one is empty; ``blind``: the old bytes are not read."""
        with self._changing(path, make=new) as (folder, name), locked(folder):
            found, old = regular(folder, name, missing_ok=new), b""
            if found is not None and not blind:
                with reading(folder, name) as file:
                    old = self._whole(file, path)
            data = change(old)
            most = self.limits.file_bytes
            if len(data) > most:
                text = f'"{path}" would have {len(data)} bytes; {most} are allowed.'
                raise LimitExceeded("AX873", text, "Write less, or write several files.")
            size, mode = (found.st_size, stat.S_IMODE(found.st_mode)) if found else (0, None)
            self._admit(str(path), len(data) - size, 0 if found else 1)
            return entry((*folder.names, name), replaced(folder, name, data, mode))

    def _whole(self, file: BufferedReader, path: str | PurePath) -> bytes:
        data = file.read(self.limits.file_bytes + 1)
        if len(data) > self.limits.file_bytes:
            text = f'"{path}" is larger than {self.limits.file_bytes} bytes.'
            raise LimitExceeded("AX873", text, "Process it with a program.")
        return data

    def _admit(self, path: str, more_bytes: int = 0, more_files: int = 0) -> None:
        """Raises: LimitExceeded (AX873): there is no room for more."""
        files, total, limits = more_files, more_bytes, self.limits
        if (total <= 0 and files <= 0) or limits.files == limits.total_bytes == _ALL:
            return
        with self._reached(".") as (folder, _):
            # whatever its name is: anybody may choose one of a file that is being written
            for each in listed(folder, _DEEPEST, hidden=True, temporary=True):
                files, total = files + 1, total + each.size
        if files > limits.files or total > limits.total_bytes:
            most = f"at most {limits.files} files and {limits.total_bytes} bytes"
            text = f'there is no room for "{path}": the workspace holds {most}.'
            raise LimitExceeded("AX873", text, "Delete files that are not needed.")


def _root_refused(path: str | PurePath) -> PathRefused:
    return PathRefused("AX870", f'"{path}" is the workspace itself.', "Use a path inside it.")


def _apart(before: tuple[str, ...], after: tuple[str, ...], source: str | PurePath) -> None:
    shared = min(len(before), len(after))
    if before[:shared] == after[:shared]:  # into itself, or in the place of what holds it
        where = "to itself, into itself or onto a folder that contains it"
        text = f'"{source}" cannot be moved or copied {where}.'
        raise FileFault("AX872", text, "Choose another place.")
