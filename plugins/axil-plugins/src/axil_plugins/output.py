"""The output of commands: tables, and the writing of files."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from axil import ConfigError, Problem
from axil_cli import Session, table_lines


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


def tell_table(head: Sequence[str], rows: Sequence[Sequence[str]], session: Session) -> None:
    """Write columns side by side; on a terminal the last one is cut at its edge."""
    width = shutil.get_terminal_size().columns if session.stdout.isatty() else None
    session.say("\n".join(table_lines([head, *rows], width=width)))
