"""A file of JSON lines that many processes append to, and that is read in pieces."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from filelock import FileLock, Timeout

from axil.plugin import without_secrets
from axil_models import ContextError

log = logging.getLogger("axil.memory")

_KNOWN_BY = 256
"""Bytes before the offset, by which a file is known to be what was read."""


class Lines:
    """Records, one a line.

    Writers take turns by a lock beside the file; a line that was cut off by a crash is passed over.
    """

    def __init__(self, path: str, lock_seconds: float = 30.0) -> None:
        """Nothing is opened yet. ``lock_seconds``: how long a writer waits for its turn."""
        self.path = Path(path)
        self._lock_seconds = lock_seconds
        self._offset = 0
        self._file = 0
        """The inode that was read."""
        self._size, self._changed = -1, 0
        """The file's size when it was last read, and when it had been changed."""
        self._before = b""
        """The last bytes before the offset: a restored copy may have the same inode."""

    def append(self, records: Sequence[Mapping[str, object]]) -> None:
        """Write records behind all others, as one piece, without the secrets of this process.

        Raises: ContextError (AX895): the file cannot be written.
        """
        kept = (json.dumps(without_secrets(record), default=str) for record in records)
        data = "".join(line + "\n" for line in kept).encode("ascii")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with (
                FileLock(f"{self.path}.lock", timeout=self._lock_seconds),
                self.path.open("ab+") as file,
            ):
                if file.seek(0, os.SEEK_END):
                    file.seek(-1, os.SEEK_END)
                    # somebody died while writing; what follows must not become part of that line
                    if file.read(1) != b"\n":
                        data = b"\n" + data
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, Timeout) as error:
            message = f'the memory "{self.path.as_posix()}" cannot be written: {error}.'
            hint = "Check the path, its permissions, and which process holds the lock."
            raise ContextError("AX895", message, hint) from error

    @property
    def has_more(self) -> bool:
        """True if the file has changed since it was last read."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return self._size >= 0
        known = (self._file, self._size, self._changed)
        return (found.st_ino, found.st_size, found.st_mtime_ns) != known

    def read(self) -> tuple[bool, list[dict[str, object]]]:
        """Return whether the reading started over, and the records since the last reading.

        Raises: ContextError (AX895).
        """
        try:
            with self.path.open("rb") as file:
                found = os.fstat(file.fileno())
                file.seek(self._offset - len(self._before))
                anew = found.st_ino != self._file or file.read(len(self._before)) != self._before
                file.seek(0 if anew else self._offset)
                data = file.read()
        except FileNotFoundError:
            anew, data, found = self._size >= 0, b"", None
        except OSError as error:
            message = f'the memory "{self.path.as_posix()}" cannot be read: {error}.'
            raise ContextError("AX895", message, "Check the path and its permissions.") from error
        start = 0 if anew else self._offset
        whole = data[: data.rfind(b"\n") + 1]  # what has no end yet is read when it has one
        self._before = ((b"" if anew else self._before) + whole)[-_KNOWN_BY:]
        self._file, self._changed = (found.st_ino, found.st_mtime_ns) if found else (0, 0)
        self._offset, self._size = start + len(whole), start + len(data) if found else -1
        records = [self._record(line) for line in whole.split(b"\n") if line.strip()]
        return anew, [record for record in records if record is not None]

    def _record(self, line: bytes) -> dict[str, object] | None:
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return cast("dict[str, Any]", record)
        log.warning(
            "%s: a line that cannot be read is passed over: %.60r", self.path.as_posix(), line
        )
        return None
