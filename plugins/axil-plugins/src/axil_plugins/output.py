"""The output of commands: tables, and the writing of files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from axil import ConfigError, Problem


def put(file: Path, text: str) -> None:
    """Write a file at once: after an interruption, and for readers, there is the old one or the
    new one.

    Raises: ConfigError (AX955): it cannot be written.
    """
    target = Path(os.path.realpath(file))  # a link stays one
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(8)}")
    try:
        temporary.write_text(text, "utf-8", newline="")
        with suppress(OSError):
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise unwritten(file, error) from error
        raise


def unwritten(place: Path, error: OSError) -> ConfigError:
    """Return the system's reason why a file could not be written."""
    message = f"it cannot be written: {error.strerror or error}."
    return ConfigError(
        Problem(
            "AX955",
            str(place),
            message,
            "Check its folder and the free space on the disk; the old content is unchanged.",
        )
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Return columns side by side; the last one is cut at the edge of the terminal, if there is
    one.

    >>> print(table(["a", "b"], [["one", "x"], ["2", "yy"]], width=80))
    a    b
    one  x
    2    yy
    """
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    report = (
        "  ".join(f"{cell:<{widths[i]}}" for i, cell in enumerate(line)).rstrip() for line in lines
    )
    return "\n".join(
        line if not width or len(line) <= width else line[: width - 1] + "…" for line in report
    )


def width_of(stream: Any) -> int | None:
    """Return the columns of a terminal; None: it is not a terminal, and nothing is cut."""
    return shutil.get_terminal_size().columns if stream.isatty() else None
