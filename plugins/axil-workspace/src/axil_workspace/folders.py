"""Ways into a folder that nothing leads out of.

Theory of operation. A path is first judged as text: no ``..``, nothing absolute that is elsewhere,
no characters that hide. Then it is walked one name at a time, each opened relative to the folder
before it and never through a symbolic link (``openat`` with ``O_NOFOLLOW``). Where a name is a
link, its text is walked in the same way; ``..`` in it goes back along the folders that are held
open, and is refused at the root. So what was checked is what is open. Callers get the open parent
and one last name.

Where a platform has no calls relative to an open folder, the same walk is made with paths, and
``confirm`` looks again after the fact. That narrows a race and does not close it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import unicodedata
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from axil.plugin import granted
from axil_workspace.errors import FileFault, LimitExceeded, PathRefused

HAS_AT: Final = (
    os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
)
_HOPS: Final = 40
"""Links on one way, as Linux counts them."""
_NAME_BYTES: Final = 255
_PATH_BYTES: Final = 4096
_DEPTH: Final = 100
_NO_FOLLOW: Final = (
    getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)


def parts_of(root: Path, path: str | PurePath) -> tuple[str, ...]:
    """Return the names of a path below ``root``; none: the root itself. Nothing is looked up.

    >>> parts_of(Path("/r"), "./a//b.txt"), parts_of(Path("/r"), "/r/a")
    (('a', 'b.txt'), ('a',))

    Raises: PathRefused (AX870).
    """
    text = os.fspath(path)
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise _refused(text, "has characters that are not allowed in file names") from error
    if any(unicodedata.category(sign) == "Cc" for sign in text) or (os.sep == "/" and "\\" in text):
        raise _refused(text, "has control characters or backslashes", "Separate names with /.")
    if len(raw) > _PATH_BYTES:
        raise _refused(text[:80] + "…", f"is longer than {_PATH_BYTES} bytes")
    given = PurePath(text)
    if given.is_absolute() or given.drive:
        if not given.is_relative_to(root):
            raise _refused(text, "is outside the workspace")
        given = given.relative_to(root)
    if ".." in given.parts:
        raise _refused(text, 'contains ".."')
    longest = max((len(os.fsencode(part)) for part in given.parts), default=0)
    if len(given.parts) > _DEPTH or longest > _NAME_BYTES:
        why = f"has a name of more than {_NAME_BYTES} bytes, or more than {_DEPTH} names"
        raise _refused(text[:80], why)
    return given.parts


def _refused(text: str, why: str, hint: str = "") -> PathRefused:
    hint = hint or "Use a path inside the workspace, like notes/today.txt."
    return PathRefused("AX870", f'the path "{text}" {why}.', hint)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder, with its names from the root on."""

    root: Path
    names: tuple[str, ...]
    fd: int | None
    """None: this platform works with paths."""

    @property
    def path(self) -> Path:
        """The path at which the folder was opened."""
        return self.root.joinpath(*self.names)

    def at(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return the arguments of ``os`` calls for an entry of the folder."""
        return (name, {"dir_fd": self.fd}) if self.fd is not None else (str(self.path / name), {})

    def lstat(self, name: str) -> os.stat_result | None:
        """Return the facts about ``name``, links as links; None: there is no such entry."""
        target, ways = self.at(name)
        try:
            return os.stat(target, follow_symlinks=False, **ways)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def link(self, name: str) -> str | None:
        """Return the text of a link; None: the path is not a link."""
        target, ways = self.at(name)
        try:
            return os.readlink(target, **ways)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Return a file, opened, never through a link. Raises: OSError; PathRefused."""
        target, ways = self.at(name)
        fd = os.open(target, flags | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0), mode, **ways)
        try:
            self.confirm(name)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def confirm(self, name: str = "") -> None:
        """Look again, where paths had to do. Raises: PathRefused (AX871)."""
        if self.fd is None:
            real = Path(os.path.realpath(self.path / name))
            if not real.is_relative_to(self.root):
                raise escaped(name)

    def enter(self, name: str) -> Folder:
        """Return a folder in it, opened. Raises: OSError: NotADirectoryError for a link."""
        if self.fd is None:
            found = self.lstat(name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            if not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
            return Folder(self.root, (*self.names, name), None)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=self.fd)
        return Folder(self.root, (*self.names, name), fd)

    def listed(self) -> list[str]:
        """Return the names in it, sorted."""
        return sorted(os.listdir(self.path if self.fd is None else self.fd))

    def mkdir(self, name: str) -> None:
        """Make a folder in it. Raises: OSError."""
        target, ways = self.at(name)
        os.mkdir(target, **ways)

    def unlink(self, name: str) -> None:
        """Take a file or a link away. Raises: OSError."""
        target, ways = self.at(name)
        os.unlink(target, **ways)

    def rmtree(self, name: str) -> None:
        """Take a folder away with all that is in it; links in it are not followed.

        Raises: OSError.
        """
        target, ways = self.at(name)
        shutil.rmtree(target, **ways)

    def replace(self, name: str, other: Folder, new: str) -> None:
        """Give something in it a new place. Raises: OSError."""
        if self.fd is None or other.fd is None:
            os.replace(self.path / name, other.path / new)
        else:
            os.replace(name, new, src_dir_fd=self.fd, dst_dir_fd=other.fd)

    def close(self) -> None:
        """Let it go."""
        if self.fd is not None:
            os.close(self.fd)


def escaped(name: str) -> PathRefused:
    """Return the error of a link that leads out."""
    message = f'"{name}" is a symbolic link to a place outside the workspace.'
    return PathRefused("AX871", message, "Copy the file into the workspace and use the copy.")


def opened(root: Path) -> Folder:
    """Return the root. Raises: OSError: it is not there, or is a link."""
    if not HAS_AT:
        if not root.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
        return Folder(root, (), None)
    return Folder(root, (), os.open(root, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW))


@contextmanager
def reached(
    root: Path,
    parts: Sequence[str],
    *,
    make: Callable[[tuple[str, ...]], None] | None = None,
    follow: bool = True,
) -> Generator[tuple[Folder, str]]:
    """Open the parent and give the last name of what ``parts`` lead to; it is empty for the root.

    Args:
        make: folders on the way that are not there are made; it is asked before, with their names,
            and may raise.
        follow: a link at the end is followed; else it is what is meant.
    Raises: PathRefused (AX871): a link leads out; LimitExceeded: too many links; FileNotFoundError;
    FileFault (AX872): a file on the way.
    """
    with granted(None):  # nothing leads out of it
        yield from _reached(root, parts, make, follow)


def _reached(
    root: Path,
    parts: Sequence[str],
    make: Callable[[tuple[str, ...]], None] | None,
    follow: bool,
) -> Generator[tuple[Folder, str]]:
    way, todo, hops = [opened(root)], deque(parts), 0
    try:
        while todo:
            name = todo.popleft()
            if name in ("", "."):
                continue
            if name == "..":  # from the text of a link
                if len(way) == 1:
                    raise escaped("/".join(parts))
                way.pop().close()
                continue
            is_last = not todo
            link = way[-1].link(name) if follow or not is_last else None
            if link is not None:
                hops += 1
                if hops > _HOPS:
                    message = f'"{"/".join(parts)}" has more than {_HOPS} symbolic links.'
                    raise LimitExceeded("AX873", message)
                _follow(root, link, way, todo, "/".join(parts))
            elif is_last:
                yield way[-1], name
                return
            else:
                _enter(name, way, make)
        if len(way) == 1:
            yield way[-1], ""
            return
        last = way.pop()  # a link that ended in ..
        last.close()
        yield way[-1], last.names[-1]
    finally:
        for folder in way:
            folder.close()


def _follow(root: Path, link: str, way: list[Folder], todo: deque[str], said: str) -> None:
    """Continue with the text of a link instead of its name."""
    target = PurePath(link)
    if target.is_absolute() or target.drive:
        if not target.is_relative_to(root):
            raise escaped(said)
        target = target.relative_to(root)
        while len(way) > 1:
            way.pop().close()
    todo.extendleft(reversed([part for part in target.parts if part != target.anchor]))


def _enter(name: str, way: list[Folder], make: Callable[[tuple[str, ...]], None] | None) -> None:
    """Enter the folder ``name``, which is made if it may be."""
    try:
        way.append(way[-1].enter(name))
    except FileNotFoundError:
        if make is None:
            raise
        make((*way[-1].names, name))
        # somebody else made it; if it is not a folder, entering says so
        with suppress(FileExistsError):
            way[-1].mkdir(name)
        way.append(way[-1].enter(name))
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            message = f'"{"/".join((*way[-1].names, name))}" is not a folder.'
            raise FileFault("AX872", message, "Give another path.") from error
        raise
