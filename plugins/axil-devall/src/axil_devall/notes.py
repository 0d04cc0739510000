"""Notes of agents: their file, and the search for the most similar or the newest."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

from axil.plugin import without_secrets
from axil_devall.errors import StoreError
from axil_models import in_thread

Note = Mapping[str, Any]
"""A note of an agent: ``text``, the text it answered (``about``), and the agent (``by``)."""
_MARK: Final = {"axil": "notes", "version": 1}
"""The first line of a file of notes."""


class Embedder(Protocol):
    """Texts to vectors, as ``axil.embedders`` provide it."""

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in their order."""
        ...


class Vectors:
    """A cache of the vectors of texts, each made once while it lives; it changes no result."""

    def __init__(self, embedder: Embedder, most: int = 20_000) -> None:
        self.embedder = embedder
        self._known: dict[str, Sequence[float]] = {}
        self._made: dict[str, Sequence[float]] = {}
        self._most = most
        self._lock = threading.Lock()

    async def of(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return a vector for each text."""
        with self._lock:
            for text in texts:
                if text not in self._known and self._made and (name := digest(text)) in self._made:
                    self._known[text] = self._made[name]
            # another call may drop them meanwhile
            found = {text: self._known[text] for text in texts if text in self._known}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        made: Mapping[str, Sequence[float]] = (
            dict(zip(new, await self.embedder.embed(new), strict=True)) if new else {}
        )
        with self._lock:
            self._known.update(made)
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return [made[text] if text in made else found[text] for text in texts]

    def recall(self, vectors: Any) -> None:
        """Take over vectors made before, by the digests of their texts; malformed ones, and those
        not as long as most, are ignored.
        """
        given = cast("dict[str, Any]", vectors if isinstance(vectors, dict) else {})
        found = {name: vector for name, vector in given.items() if _is_vector(vector)}
        usual = Counter(map(len, found.values())).most_common(1)
        self._made = {name: each for name, each in found.items() if len(each) == usual[0][0]}

    def kept(self, texts: Sequence[str]) -> dict[str, Sequence[float]]:
        """Return the vectors of ``texts`` that are known, by the digests of the texts."""
        with self._lock:
            return {digest(text): self._known[text] for text in texts if text in self._known}

    async def nearest(self, query: str, texts: Sequence[str], most: int, least: float) -> list[int]:
        """Return positions of the texts most similar to ``query``, best first, of equals the later;
        only those of a similarity of ``least``, unless that is negative.
        """
        if not texts or not query.strip():
            return []
        mine, *others = await self.of([query, *texts])
        scores = [cosine(mine, other) for other in others]
        order = sorted(range(len(texts)), key=lambda at: (scores[at], at), reverse=True)
        return [at for at in order if least < 0 or scores[at] >= least][:most]


def _is_vector(given: Any) -> bool:
    return isinstance(given, list) and all(
        type(each) in (int, float) and math.isfinite(each) for each in cast("list[Any]", given)
    )


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine similarity of two vectors; of a zero vector 0."""
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def digest(text: str) -> str:
    """Return the name of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def newest(notes: Sequence[Note], most: int) -> list[Note]:
    """Return the last notes with different texts, oldest first."""
    latest: dict[str, Note] = {}
    for note in reversed(notes):
        latest.setdefault(str(note["text"]), note)
        if len(latest) == most:
            break
    return list(latest.values())[::-1]


class NotesFile:
    """Notes in a file of JSON lines, only appended to, a line at a time: several runs may write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def read(self, most: int = 1000) -> list[Note]:
        """Return the newest notes, oldest first; none: there is no file yet.

        Raises: StoreError (AX854): it is no file of notes.
        """
        return await in_thread(lambda: self._read()[-most:], "axil-notes")

    async def add(self, note: Note) -> None:
        """Append a note. Raises: StoreError (AX854): it cannot be written, or is no such file."""
        await in_thread(lambda: self._add(note), "axil-notes")

    def _read(self) -> list[Note]:
        try:
            # a crash may cut a character in two
            lines = self.path.read_text("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            message = f"the memory {self.path} cannot be read: {error}."
            raise StoreError("AX854", message, "Check its permissions.") from error
        found = [self._note(line, number) for number, line in enumerate(lines, 1) if line.strip()]
        if found and found[0] != _MARK:
            raise self._unfit()
        return [note for note in found[1:] if note is not None and note != _MARK]

    def _note(self, line: str, number: int) -> Note | None:
        try:
            data: Any = json.loads(line)
        except (ValueError, RecursionError):
            if number == 1:
                raise self._unfit() from None
            return None  # a line that a crash cut off
        if not isinstance(data, dict) or (
            number > 1
            and data != _MARK
            and not isinstance(cast("dict[str, Any]", data).get("text"), str)
        ):
            raise self._unfit()
        return cast("Note", data)

    def _unfit(self) -> StoreError:
        message = f"{self.path} is not a file of notes."
        return StoreError("AX854", message, "Set another memory_path, or move the file.")

    def _add(self, note: Note) -> None:
        self._read()
        line = f"{json.dumps(without_secrets(note), ensure_ascii=False)}\n".encode(
            "utf-8", "replace"
        )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                line = _before(file) + line
                # all at once: lines of several writers do not mix
                if os.write(file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(file)
        except OSError as error:
            message = f"the memory {self.path} cannot be written: {error.strerror}."
            hint = "Check that its folder exists and is writable."
            raise StoreError("AX854", message, hint) from error


def _before(file: int) -> bytes:
    """Return the text to write before a line: the mark of a new file, the end of a line that a
    crash cut off, or nothing.
    """
    size = os.lseek(file, 0, os.SEEK_END)
    if not size:
        return json.dumps(_MARK).encode() + b"\n"
    os.lseek(file, size - 1, os.SEEK_SET)
    return b"" if os.read(file, 1) == b"\n" else b"\n"
