"""DevAll's memories: ``blackboard``, ``simple``, ``file`` and ``mem0``.

Notes live in the run's state, under ``memory/<name>``, unless the workflow names a file: branches
note side by side, a resumed run keeps its notes, and the next run begins without any.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

from pydantic import BaseModel

from axil import Problem, SpecError
from axil.plugin import (
    Registry,
    current_grants,
    decode_config,
    did_you_mean,
    format_names,
    install_advice,
    is_axils,
    make_component,
)
from axil_devall.config import (
    Attachment,
    BlackboardConfig,
    Embedding,
    FileConfig,
    Mem0Config,
    SimpleConfig,
    Source,
)
from axil_devall.errors import StoreError
from axil_devall.mem0 import Mem0
from axil_devall.notes import Note, NotesFile, Vectors, newest
from axil_models import in_thread

CHUNK, OVERLAP = 500, 50
"""Characters of a piece of a file, and how many it repeats of the one before."""
LARGEST: Final = 5_000_000
"""Bytes of a file that is searched."""
YOUNG: Final = 2 * 10**9
"""Nanoseconds in which a file may change again without another time of change."""
_NEW: Final = ".new"
"""The suffix of files that are to become an index."""
MOST: Final = 1000
"""Notes of a memory that count, the newest."""


class Store(Protocol):
    """A memory of a graph."""

    in_state: bool
    """True if its notes are state of the run, handed in as ``notes``."""

    async def found(self, query: str, notes: Sequence[Note], how: Attachment) -> list[str]:
        """Return the items that are remembered for ``query``."""
        ...

    async def add(self, note: Note) -> None:
        """Keep a note; not asked of memories whose notes are state."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The place where the memories of a graph are made."""

    registry: Registry
    root: str
    """The folder of the first file; nothing outside it is read or written, but in a checkout."""
    lenient: bool = False
    """True if unknown keys are only warned of."""

    def path(self, given: str, where: str) -> Path:
        """Return a path below the root, or in DevAll's own checkout below that, where only there is
        such a folder.

        Raises: SpecError (AX855): it leads out of it.
        """
        root = os.path.realpath(self.root or ".")
        project = project_of(root)
        try:
            real = os.path.realpath(os.path.join(root, given))
            there = os.path.realpath(os.path.join(project, given))
        except ValueError:  # NUL
            real = there = ""
        if project and not os.path.exists(real) and _is_nearer(there, real):
            root, real = project, there
        if not real or os.path.commonpath([real, root]) != root:
            message = f"{json.dumps(given)} is outside the folder of the workflow."
            hint = "Move it into that folder or a subfolder."
            raise SpecError(Problem("AX855", where, message, hint))
        grants = current_grants()
        return Path(real if grants is None else grants.path(real, "read", where))

    def written(self, given: str, where: str) -> Path:
        """Return a path below the root that a file may write to.

        Raises: SpecError (AX855): it leads out of it; ConfigError: it is not granted.
        """
        path, grants = self.path(given, where), current_grants()
        return path if grants is None else Path(grants.path(str(path), "write", where))

    def vectors(self, embedding: Embedding | None, where: str) -> Vectors:
        """Return the vectors of an embedder, by default ``lexical``.

        Raises: PluginError: the embedder is missing; ConfigError.
        """
        if embedding is None:
            component = self.registry.resolve("embedders", "lexical", where)
            return Vectors(make_component(component, None, where))
        given = {
            "name": embedding.model,
            "base_url": embedding.base_url or None,
            "api_key": embedding.api_key,
        }
        config = {key: value for key, value in given.items() if value is not None}
        component = self.registry.resolve("embedders", embedding.provider, where)
        return Vectors(make_component(component, config or None, f"{where}.embedding"))


def project_of(folder: str) -> str:
    """Return the folder of DevAll's checkout whose ``yaml_instance`` holds a folder; empty: none.

    Files there name others as they lie in the checkout.
    """
    for each in (Path(folder), *Path(folder).parents):
        if each.name == "yaml_instance" and (each.parent / "runtime").is_dir():
            return str(each.parent)
    return ""


def _is_nearer(path: str, other: str) -> bool:
    """Return whether a path is there, or its folder is and that of the other is not."""
    folder, others = os.path.dirname(path), os.path.dirname(other)
    return os.path.exists(path) or (os.path.exists(folder) and not os.path.exists(others))


class Blackboard:
    """``blackboard``: the newest notes."""

    def __init__(self, config: BlackboardConfig, around: Surroundings, where: str) -> None:
        self.config, self._file = config, _notes_file(config.memory_path, around, where)
        self.in_state = self._file is None

    async def found(self, query: str, notes: Sequence[Note], how: Attachment) -> list[str]:
        known = notes if self._file is None else await self._file.read(self.config.max_items)
        return [str(note["text"]) for note in newest(known[-self.config.max_items :], how.top_k)]

    async def add(self, note: Note) -> None:
        if self._file is not None:
            await self._file.add(note)


class Simple:
    """``simple``: the notes that are most like what is asked."""

    def __init__(self, config: SimpleConfig, around: Surroundings, where: str) -> None:
        self._file = _notes_file(config.memory_path, around, where)
        self._vectors = around.vectors(config.embedding, where)
        self.in_state = self._file is None

    async def found(self, query: str, notes: Sequence[Note], how: Attachment) -> list[str]:
        known = newest(notes if self._file is None else await self._file.read(MOST), MOST)
        texts = [f"{note.get('about') or ''}\n{note['text']}" for note in known]
        best = await self._vectors.nearest(query, texts, how.top_k, how.similarity_threshold)
        return [str(known[at]["text"]) for at in best]

    async def add(self, note: Note) -> None:
        if self._file is not None:
            await self._file.add(note)


class Files:
    """``file``: pieces of files that are most like what is asked; changed files are read again."""

    in_state = False

    def __init__(self, config: FileConfig, around: Surroundings, where: str) -> None:
        self._sources = [
            (source, around.path(source.path, f"{where}.file_sources"))
            for source in config.file_sources
        ]
        missing = [source.path for source, path in self._sources if not path.exists()]
        if missing:
            message = f"there is no file or folder {format_names(missing)} to search."
            hint = f"Paths are relative to {os.path.realpath(around.root or '.')}."
            raise SpecError(Problem("AX855", f"{where}.file_sources", message, hint))
        self._vectors = around.vectors(config.embedding, where)
        self._index: Path | None = None
        self._maker = ""
        # a path that leads out is refused also where nothing is kept there
        index = config.index_path and around.written(config.index_path, f"{where}.index_path")
        if config.embedding is not None and index:
            self._index = index
            self._maker = f"{config.embedding.provider}:{config.embedding.model or ''}"
        self._known: dict[Path, tuple[tuple[int, ...], list[str]]] = {}

    async def found(self, query: str, notes: Sequence[Note], how: Attachment) -> list[str]:
        pieces: list[str] = await in_thread(self._pieces, "axil-files")
        if self._index is not None:
            await in_thread(self._remembered, "axil-files")
        best = await self._vectors.nearest(query, pieces, how.top_k, how.similarity_threshold)
        if self._index is not None:
            await in_thread(lambda: self._remember(pieces), "axil-files")
        return [pieces[at] for at in best]

    async def add(self, note: Note) -> None:
        """Nothing: files are not written."""

    def _pieces(self) -> list[str]:
        pieces: list[str] = []
        for source, root in self._sources:
            for file in _files(source, root):
                if not self._is_index(file):
                    pieces += self._cut(file, source.encoding)
        return pieces

    def _is_index(self, file: Path) -> bool:
        """Return whether a file is the index, or one that a run writes, or wrote, to become it."""
        index = self._index
        return index is not None and (
            file == index or (file.suffix == _NEW and file.name.startswith(f"{index.name}."))
        )

    def _cut(self, file: Path, encoding: str) -> list[str]:
        try:
            seen = file.stat()
            mark = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
            known = self._known.get(file)
            if known is not None and known[0] == mark:
                return known[1]
            is_young = time.time_ns() - seen.st_mtime_ns < YOUNG
            if seen.st_size > LARGEST:
                message = f"{file} is larger than {LARGEST} bytes."
                raise StoreError("AX854", message, "Exclude it with file_types, or split it.")
            text = file.read_text(encoding)
        except FileNotFoundError:  # it has gone since it was listed
            return []
        except (OSError, UnicodeDecodeError, LookupError) as error:
            hint = "Set its encoding, or exclude it with file_types."
            raise StoreError("AX854", f"{file} cannot be read: {error}.", hint) from error
        pieces = [
            text[at : at + CHUNK] for at in range(0, max(len(text) - OVERLAP, 1), CHUNK - OVERLAP)
        ]
        found = [piece for piece in pieces if piece.strip()]
        if not is_young:
            self._known[file] = (mark, found)
        return found

    def _remembered(self) -> None:
        """Take over vectors that an earlier run made."""
        assert self._index is not None
        try:
            data: Any = json.loads(self._index.read_text("utf-8")) if self._index.exists() else {}
        except (OSError, ValueError, RecursionError):
            data = {}  # it is made anew
        given = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if given.get("axil") == "vectors" and given.get("embedder") == self._maker:
            self._vectors.recall(given.get("vectors"))

    def _remember(self, pieces: Sequence[str]) -> None:
        assert self._index is not None
        data = {"axil": "vectors", "embedder": self._maker, "vectors": self._vectors.kept(pieces)}
        made = json.dumps(data, sort_keys=True).encode()
        temporary = self._index.with_name(f"{self._index.name}.{secrets.token_hex(8)}{_NEW}")
        try:
            if self._index.exists() and self._index.read_bytes() == made:
                return
            self._index.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_bytes(made)
                temporary.replace(self._index)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            message = f"the index {self._index} cannot be written: {error.strerror}."
            hint = "Check that its folder is writable, or remove index_path."
            raise StoreError("AX854", message, hint) from error


def _notes_file(given: str | None, around: Surroundings, where: str) -> NotesFile | None:
    if not given or given == "auto":
        return None
    return NotesFile(around.written(given, f"{where}.memory_path"))


def _files(source: Source, root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    suffixes = tuple(
        suffix if suffix.startswith(".") else f".{suffix}" for suffix in source.file_types or ()
    )
    for file in sorted(root.rglob("*") if source.recursive else root.glob("*")):
        inside = file.resolve().is_relative_to(root) and not is_axils(file)
        if file.is_file() and inside and (not suffixes or file.suffix in suffixes):
            yield file


class _Service:
    """``mem0``: what the service remembers."""

    in_state = False

    def __init__(self, config: Mem0Config, around: Surroundings, where: str) -> None:
        if importlib.util.find_spec("mem0") is None:
            message = "the memory uses the service Mem0, but the package mem0ai is not installed."
            raise SpecError(Problem("AX857", where, message, install_advice("axil-devall[mem0]")))
        self._service = Mem0(config)

    async def found(self, query: str, notes: Sequence[Note], how: Attachment) -> list[str]:
        if not query.strip():
            return []
        return await self._service.found(query, how.top_k, how.similarity_threshold)

    async def add(self, note: Note) -> None:
        await self._service.add(note)


Kind = tuple[type[BaseModel], Callable[[Any, Surroundings, str], Store]]
KINDS: Final[Mapping[str, Any]] = {
    "blackboard": (BlackboardConfig, Blackboard),
    "file": (FileConfig, Files),
    "mem0": (Mem0Config, _Service),
    "simple": (SimpleConfig, Simple),
}


def store_of(given: Mapping[str, Any], around: Surroundings, where: str) -> Store:
    """Return the memory that a graph declares.

    Raises: SpecError (AX852): an unknown type; and as its settings and its making do.
    """
    kind = str(given.get("type"))
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"Available: {format_names(list(KINDS))}."
        raise SpecError(Problem("AX852", where, f'no memory has the type "{kind}".', hint))
    model, making = cast("Kind", KINDS[kind])
    config = decode_config(model, given.get("config"), where, lenient=around.lenient)
    return making(config, around, where)
