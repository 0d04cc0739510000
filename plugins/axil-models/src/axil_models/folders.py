"""Files below a folder in which others write at the same time: what becomes a link after it was
looked at is not followed, and what is no plain file is not opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def entered(folder: Path, parts: Iterable[str] = ()) -> Generator[int | str]:
    """Within it, give a folder below another one, as ``os.scandir`` takes it.

    Raises: OSError: it is not there, or a part of its path is a link.
    """
    if os.open not in os.supports_dir_fd:  # Windows: links need rights there
        path = os.path.realpath(folder.joinpath(*parts))
        if not Path(path).is_relative_to(os.path.realpath(folder)):
            raise FileNotFoundError(path)
        yield path
        return
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for part in parts:
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


__all__ = ["entered", "open_below"]
