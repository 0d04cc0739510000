"""Runs that wait for an answer to a call: in memory, or in a folder, where they outlive the
process.

A client is given a secret for each, which it sends back with the answer. A run is taken once, even
by servers that share the folder: taking removes its file, which only one of them can.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A run that waits for answers."""

    tool: str
    call: str
    """The digest of the arguments of its call."""
    run_id: str
    until: float = 0.0
    """The time at which it is dropped, in seconds since 1970."""


def digest_of(arguments: Mapping[str, Any]) -> str:
    """Return the digest of a call's arguments."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


class Shelf(Protocol):
    """The place of runs, by the digests of their secrets; oldest first."""

    def __iter__(self) -> Iterator[str]: ...
    def put(self, key: str, paused: Paused) -> None: ...
    def look(self, key: str) -> Paused | None: ...
    def remove(self, key: str) -> bool: ...


class Waiting:
    """Runs that wait, a bounded number for a bounded time."""

    def __init__(self, most: int, keep_seconds: float, folder: Path | None = None) -> None:
        self._most, self._keep_seconds = most, keep_seconds
        self._shelf: Shelf = InMemory() if folder is None else InFolder(folder)

    def __len__(self) -> int:
        return sum(1 for _ in self._shelf)

    def put(self, paused: Paused, state: str) -> str:
        """Keep a run under what it is taken by, and return that. The oldest makes room for it."""
        keys = list(self._shelf)
        for key in keys[: max(0, len(keys) - self._most + 1)]:
            self._shelf.remove(key)
        self._shelf.put(_key(state), replace(paused, until=time.time() + self._keep_seconds))
        return state

    def take(self, state: str, tool: str = "", call: str = "") -> Paused | None:
        """Return the run that waits under a secret; once, and for the same call.

        Without ``tool`` it is that which waits under its own id.
        """
        key = _key(state)
        found = self._shelf.look(key)
        if found is None or (tool and (found.tool, found.call) != (tool, call)):
            return None
        if not tool and found.run_id != state:
            return None
        return found if self._shelf.remove(key) and found.until >= time.time() else None


def _key(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


class InMemory:
    """Runs of this process."""

    def __init__(self) -> None:
        self._kept: dict[str, Paused] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._kept))

    def put(self, key: str, paused: Paused) -> None:
        """Keep a run."""
        self._kept[key] = paused

    def look(self, key: str) -> Paused | None:
        """Return a run; None: there is none."""
        return self._kept.get(key)

    def remove(self, key: str) -> bool:
        """Return whether this call removed it."""
        return self._kept.pop(key, None) is not None


class InFolder:
    """Runs in files, of this process and of others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __iter__(self) -> Iterator[str]:
        times: list[tuple[float, str]] = []
        for path in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):  # another server has taken it
                times.append((path.stat().st_mtime, path.stem))
        return (key for _, key in sorted(times))

    def put(self, key: str, paused: Paused) -> None:
        """Keep a run: the file is there as a whole, or not at all."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._folder / f"{key}.new"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(paused), file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._folder / f"{key}.json")

    def look(self, key: str) -> Paused | None:
        """Return a run; None: there is none."""
        try:
            text = (self._folder / f"{key}.json").read_text("utf-8")
            return TypeAdapter(Paused).validate_python(json.loads(text))
        except (OSError, ValueError, RecursionError):
            return None

    def remove(self, key: str) -> bool:
        """Return whether this call removed it."""
        try:
            (self._folder / f"{key}.json").unlink()
        except FileNotFoundError:
            return False
        return True
