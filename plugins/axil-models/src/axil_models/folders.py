"""Files below a folder in which others write at the same time: what becomes a link after it was
looked at is not followed, and what is no plain file is not opened.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def entered(
    folder: Path, parts: Iterable[str] = (), *, makes: bool = False
) -> Generator[int | str]:
    """Within it, give a folder below another one, as ``os.scandir`` takes it; ``makes``: folders
    that are not there are made.

    Raises: OSError: it is not there, or a part of its path is a link.
    """
    if makes:
        folder.mkdir(parents=True, exist_ok=True)
    if os.open not in os.supports_dir_fd:  # Windows: links need rights there
        path = os.path.realpath(folder.joinpath(*parts))
        if not Path(path).is_relative_to(os.path.realpath(folder)):
            raise FileNotFoundError(path)
        if makes:
            os.makedirs(path, exist_ok=True)
        yield path
        return
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for part in parts:
            if makes:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)


def open_below(folder: Path, parts: Sequence[str]) -> BinaryIO:
    """Open a plain file below a folder to read from.

    Raises: OSError: it is not there, is no plain file, or a part of its path is a link.
    """
    *folders, name = parts or ("",)  # the folder itself is no file
    with entered(folder, folders) as at:
        if isinstance(at, str):
            path = os.path.realpath(os.path.join(at, name))
            if not Path(path).is_relative_to(at):
                raise FileNotFoundError(path)
            return open(path, "rb")
        number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise FileNotFoundError(f"{name} is no plain file")
    return os.fdopen(number, "rb")


@contextmanager
def written_below(folder: Path, parts: Sequence[str]) -> Generator[BinaryIO]:
    """Within it, give a file to write to, which is then a file below a folder, in the place of one
    of its name; where the ``with`` fails, there is nothing of it. Folders are made.

    Raises: OSError: it cannot be written, or a part of its path is a link.
    """
    *folders, name = parts
    with entered(folder, folders, makes=True) as at:
        temporary, place = f".{secrets.token_hex(8)}", None if isinstance(at, str) else at
        if isinstance(at, str):
            temporary, name = os.path.join(at, temporary), os.path.join(at, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=place), "wb") as file:
            try:
                yield file
                file.close()
                os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
            except BaseException:
                file.close()
                os.unlink(temporary, dir_fd=place)
                raise


__all__ = ["entered", "open_below", "written_below"]
