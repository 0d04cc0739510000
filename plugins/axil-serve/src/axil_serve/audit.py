"""The audit of a server: who did what, when, to which run, from where.

One line of JSON for each act, in a file to which lines are only appended, by any number of
processes of one machine. Each line has the digest of the line before, so a line that was changed or
taken out is seen. An act is written down before it is done: one that cannot be is not done.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

from axil.plugin import without_secrets
from axil_serve.access import Caller
from axil_serve.errors import Unserved

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AUDIT: Final = ".axil/audit.jsonl"
"""The file, in the folder of a server's files. No workflow file is granted it, whatever it is
allowed."""
_BLOCK: Final = 1 << 16
_MOST: Final = 1_000
"""Lines that are read at once."""


class Audit:
    """A file of acts."""

    def __init__(self, path: str | Path, *, now: Callable[[], float] = time.time) -> None:
        """Store the path; the file is made with the first act."""
        self.path, self._now = Path(path), now
        self._lock = threading.Lock()

    def add(self, caller: Caller, action: str, run_id: str = "", **details: object) -> None:
        """Append an act. Raises: Unserved (AX960): it cannot be written."""
        act = {
            "at": round(self._now(), 3),
            "who": caller.name,
            "way": caller.way,
            "from": caller.place,
            "action": action,
            "run": run_id,
            **without_secrets({name: each for name, each in details.items() if each}),
        }
        try:
            with self._lock:
                self._append(act)
        except OSError as error:
            message = f"the audit {self.path} cannot be written: {error.strerror or error}."
            hint = "Check the folder and the space on the disk; nothing is done without it."
            raise Unserved("AX960", message, hint) from error

    def _append(self, act: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            last, behind, known = b"", 0, 0
            for each in _lines_back(file):  # up to the last one that has a number
                last, behind = last or each, behind + 1
                if known := _entry(each).get("n", 0):
                    break
            number = known + behind if known else behind + 1
            line = json.dumps({"n": number, **act, "before": _digest(last)}, ensure_ascii=False)
            size = os.fstat(file).st_size
            is_torn = size and os.pread(file, 1, size - 1) != b"\n"  # a process was killed there
            content = ("\n" * bool(is_torn) + line + "\n").encode("utf-8", "replace")
            try:
                while content:
                    content = content[os.write(file, content) :]
            except BaseException:
                os.ftruncate(file, size)  # no half of a line
                raise
        finally:
            os.close(file)

    def read(
        self, *, before: int = 0, limit: int = 100, **wanted: str
    ) -> tuple[list[dict[str, Any]], int]:
        """Return acts, the last one first, and the number before which there may be more.

        Args:
            before: only those with a smaller number; 0: from the last one on.
            limit: at most so many.
            wanted: by the names of fields (who, action, run), only those with this value.
        """

        def is_wanted(act: Mapping[str, Any]) -> bool:
            return (not before or act["n"] < before) and all(
                not value or act.get(name) == value for name, value in wanted.items()
            )

        found = list(islice(filter(is_wanted, self._acts()), min(limit, _MOST)))
        return found, found[-1]["n"] if found and len(found) == min(limit, _MOST) else 0

    def _acts(self) -> Iterator[dict[str, Any]]:
        """Yield the acts, the last one first."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            yield from (act for line in _lines_back(file) if "n" in (act := _entry(line)))
        finally:
            os.close(file)

    def check(self) -> tuple[int, str, list[int]]:
        """Return the number of lines, the digest of the last one, and the lines that are damaged,
        or before which something was changed or taken out.

        Lines taken off the end are seen by who kept number and digest elsewhere.
        """
        last, count, wrong = b"", 0, list[int]()
        with suppress(FileNotFoundError), open(self.path, "rb") as file:
            for count, line in enumerate(file, 1):
                line = line.rstrip(b"\n")
                act = _entry(line)
                if act.get("before") != _digest(last) or act.get("n") != count:
                    wrong.append(count)
                last = line
        return count, _digest(last), wrong


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest() if line else ""


def _entry(line: bytes) -> dict[str, Any]:
    """Return the act of a line; empty: it is damaged."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    act = cast("dict[str, Any]", found) if isinstance(found, dict) else dict[str, Any]()
    return act if isinstance(act.get("n"), int) else {}


def _lines_back(file: int) -> Iterator[bytes]:
    """Yield the lines of a file that are not empty, the last one first."""
    end, rest = os.fstat(file).st_size, b""
    while end:
        begin = max(0, end - _BLOCK)
        rest = os.pread(file, end - begin, begin) + rest
        first, *lines = rest.split(b"\n") if begin else [b"", *rest.split(b"\n")]
        yield from (line for line in reversed(lines) if line)
        end, rest = begin, first


__all__ = ["AUDIT", "Audit"]
