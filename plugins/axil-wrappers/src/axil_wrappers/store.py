"""Stores of outcomes as texts, by digest: in this process, or in a folder that processes share."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from axil.plugin import without_secrets

log = logging.getLogger("axil_wrappers.cache")

_FORMAT = 2
_DIGEST = re.compile(r"[0-9a-f]{64}")


class MemoryStore:
    """The ``most`` outcomes of this process that were used last. Safe between threads."""

    def __init__(self, most: int, now: Callable[[], float] = time.time) -> None:
        self._most, self._now = most, now
        self._kept: OrderedDict[str, tuple[float, str]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: str, ttl_seconds: float | None) -> str | None:
        """Return the stored outcome; None: there is none, or it is older than ``ttl_seconds``."""
        with self._lock:
            found = self._kept.get(digest)
            if found is None:
                return None
            if ttl_seconds is not None and self._now() - found[0] > ttl_seconds:
                del self._kept[digest]
                return None
            self._kept.move_to_end(digest)
            return found[1]

    def put(self, digest: str, text: str) -> None:
        """Keep ``text``, in the place of what was kept."""
        with self._lock:
            self._kept[digest] = (self._now(), text)
            self._kept.move_to_end(digest)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)


class FolderStore:
    """A file for each outcome, written beside its place and then moved there: a reader finds a
    whole one or none.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now

    def _file(self, digest: str) -> Path:
        assert _DIGEST.fullmatch(digest)
        return self._folder / digest[:2] / f"{digest}.json"

    def get(self, digest: str, ttl_seconds: float | None) -> str | None:
        """Return as ``MemoryStore.get``; a file that cannot be read is logged and ignored."""
        file = self._file(digest)
        try:
            entry: Any = json.loads(file.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            log.warning("%s cannot be read and is not used: %s", file, error)
            return None
        held = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        at, text = held.get("at"), held.get("outcome")
        if (
            held.get("format") != _FORMAT
            or held.get("key") != digest
            or not isinstance(text, str)
            or type(at) not in (int, float)
        ):
            log.warning("%s was written by another version and is not used", file)
            return None
        if held.get("checksum") != _checksum(digest, cast("float", at), text):
            log.warning("%s was changed since it was written and is not used", file)
            return None
        is_old = ttl_seconds is not None and self._now() - cast("float", at) > ttl_seconds
        return None if is_old else text

    def put(self, digest: str, text: str) -> None:
        """Keep ``text``, unless it holds a secret of this process; a folder that cannot be written
        to is logged and ignored.
        """
        if without_secrets(text) != text:
            return
        file, at = self._file(digest), self._now()
        entry = json.dumps(
            {
                "format": _FORMAT,
                "key": digest,
                "at": at,
                "outcome": text,
                "checksum": _checksum(digest, at, text),
            }
        )
        written = ""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle, written = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".part")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(entry)
                out.flush()
                os.fsync(out.fileno())
            os.replace(written, file)
        except OSError as error:
            log.warning("%s cannot be written: %s", file, error)
            if written:
                with contextlib.suppress(OSError):
                    os.unlink(written)


def _checksum(digest: str, at: float, text: str) -> str:
    whole = f"{digest} {at!r} {text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(whole, digest_size=16).hexdigest()
