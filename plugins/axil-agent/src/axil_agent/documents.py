"""Documents, and how they are cut into chunks.

All retrievers cut alike, so that a chunk has one name whoever finds it.

A chunk is a piece of its document's text, character for character: ``text[start:end]``. Its id is
these two numbers, so a block's ``uri`` and ``chunk_id`` lead back to the very place. Where keyword
and vector search find the same chunk, they name it the same, and a fusion of both knows that it is
one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from axil import ConfigError, Problem
from axil_agent.errors import ContextError
from axil_agent.interfaces import ContextBlock
from axil_agent.parts import checked

Boundary = Literal["heading", "paragraph", "size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text, and where it is from."""

    text: str
    uri: str
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Plain data; goes with each chunk, and is what filters look at."""
    part: Mapping[str, Any] | None = None
    """An image, a file or a recording that goes with each chunk."""

    def digest(self, *settings: Any) -> str:
        """Hash all that there is to index, and the ``settings`` that change what is made of it."""
        told = [
            self.text,
            self.title,
            dict(self.metadata),
            *settings,
            *([] if self.part is None else [dict(self.part)]),
        ]
        data = json.dumps(told, sort_keys=True, ensure_ascii=True, default=str)
        return hashlib.sha256(data.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document: ``document.text[start:end]``."""

    text: str
    start: int
    """Characters before it."""
    end: int
    heading: str = ""
    """The headings above it: ``Guide > Install``."""

    @property
    def id(self) -> str:
        """Where it is: ``120-480``."""
        return f"{self.start}-{self.end}"

    def block(self, document: Document) -> ContextBlock:
        """The chunk as a block that says where it is from."""
        place = {
            "start": self.start,
            "end": self.end,
            **({"heading": self.heading} if self.heading else {}),
        }
        metadata = {**document.metadata, **place}
        title = document.title or self.heading or None
        return ContextBlock(
            self.text, document.uri, self.id, title=title, metadata=metadata, part=document.part
        )


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How documents are cut."""

    at: Boundary = "heading"
    """``heading``: at Markdown headings; ``paragraph``: at empty lines; both at most ``chars``
    long. ``size``: wherever that ends.
    """
    chars: int = 1200
    """A chunk's length at most, in characters."""
    overlap_chars: int = 150
    """What a chunk repeats of the one before it, where a section had to be cut."""


_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})")
_BREAKS = (
    re.compile(r"\n[ \t\r]*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?。！？][\"'”’)]*\s"),
    re.compile(r"\s"),
)
"""Where a text is best cut, best first: paragraph, line, sentence, word."""


def chunked(text: str, cut: Cut | None = None) -> list[Chunk]:
    """The chunks of a text, in order. What is not white space is in at least one of them.

    >>> [(c.heading, c.text) for c in chunked("# A\\none\\n# B\\ntwo")]
    [('A', '# A\\none'), ('B', '# B\\ntwo')]
    """
    cut = cut or Cut()
    sections = _sections(text) if cut.at == "heading" else [("", 0, len(text))]
    return [
        chunk
        for heading, start, end in sections
        for chunk in _pieces(text, start, end, heading, cut)
    ]


def _sections(text: str) -> list[tuple[str, int, int]]:
    """Find ``(headings, start, end)`` of the text under each heading; fenced code has none."""
    found: list[tuple[str, int]] = [("", 0)]
    path: list[tuple[int, str]] = []
    fence = ""
    at = 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        heading = None if fence else _HEADING.match(line.lstrip("\ufeff").rstrip("\r\n"))
        if heading:
            path = [
                *(step for step in path if step[0] < len(heading[1])),
                (len(heading[1]), heading[2]),
            ]
            found.append((" > ".join(name for _, name in path), at))
        at += len(line)
    ends = [start for _, start in found[1:]] + [len(text)]
    return [(heading, start, end) for (heading, start), end in zip(found, ends, strict=True)]


def _pieces(text: str, start: int, end: int, heading: str, cut: Cut) -> Iterator[Chunk]:
    """Pieces of ``text[start:end]``, each at most ``cut.chars`` long."""
    while True:
        start, last = _stripped(text, start, end)
        if start == last:
            return
        stop = last if last - start <= cut.chars else _stop(text, start, start + cut.chars, cut)
        first, shown = _stripped(text, start, stop)
        yield Chunk(text=text[first:shown], start=first, end=shown, heading=heading)
        if stop >= last:
            return
        start = max(_again(text, start, stop, cut.overlap_chars), start + 1)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), max(
        start + len(piece.rstrip()), start + len(piece) - len(piece.lstrip())
    )


def _stop(text: str, start: int, limit: int, cut: Cut) -> int:
    """Where the chunk that begins at ``start`` ends: at the last good place in its second half."""
    least = start + max(cut.chars // 2, cut.overlap_chars + 1, 1)
    breaks = _BREAKS[3:] if cut.at == "size" else _BREAKS
    for pattern in breaks:
        places = [match.end() for match in pattern.finditer(text, least, limit)]
        if places:
            return places[-1]
    return limit


def _again(text: str, start: int, stop: int, overlap: int) -> int:
    """Where the next chunk begins: ``overlap`` characters back, at a word's beginning where there
    is one.
    """
    if not overlap:
        return stop
    back = max(stop - overlap, start + 1)
    word = _BREAKS[3].search(text, back, stop)
    return word.end() if word else back


# --------------------------------------------------------------------------------------------------


class Given(BaseModel):
    """A document that is given with its text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(description="The text.")
    uri: str = Field("", description="Its name; without one, a hash of the text.")
    title: str | None = Field(None, description="Its title.")
    metadata: dict[str, Any] = Field(
        default_factory=dict[str, Any], description="Plain data that filters can ask for."
    )
    part: dict[str, Any] | None = Field(
        None,
        description="What goes with the text: {type: image, path: …}, "
        "file, audio; or url, data, file_id.",
    )

    @field_validator("part")
    @classmethod
    def _is_a_part(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if given is None else checked(given)


class Sources(BaseModel):
    """What a retriever searches, and how it is cut: the settings of all retrievers of documents."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documents: list[str | Given] = Field(
        default_factory=list[str | Given], description="Texts, or {text, uri, title, metadata}."
    )
    paths: list[str] = Field(
        default_factory=list[str],
        description="Files and folders; folders are searched to any depth.",
    )
    include: list[str] = Field(
        ["*.md", "*.txt", "*.rst"],
        description="Names of the files of folders that are read: patterns.",
    )
    attach: list[str] = Field(
        default_factory=list[str],
        description="Names of files that are shown to the model "
        "with what is found in them: patterns.",
    )
    encoding: str = Field("utf-8", description="Of the files.")
    max_file_bytes: int = Field(5_000_000, ge=1, description="A larger file is an error.")
    cut_at: Boundary = Field("heading", description="heading, paragraph or size.")
    chunk_chars: int = Field(1200, ge=20, description="A chunk's length at most, in characters.")
    overlap_chars: int | None = Field(
        None,
        ge=0,
        description="What a chunk repeats of the one before it; usual: an eighth of chunk_chars.",
    )

    _pages: dict[str, tuple[str, list[Document]]] = PrivateAttr(
        default_factory=dict[str, tuple[str, list[Document]]]
    )
    """What was made of each PDF, with a hash of its bytes: taking one apart takes long."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> Sources:
        if self.overlap_chars is not None and self.overlap_chars > self.chunk_chars // 2:
            raise ValueError(
                f"overlap_chars is at most half of chunk_chars ({self.chunk_chars // 2}), "
                f"found {self.overlap_chars}"
            )
        return self

    @property
    def cut(self) -> Cut:
        """How documents are cut."""
        overlap = self.chunk_chars // 8 if self.overlap_chars is None else self.overlap_chars
        return Cut(at=self.cut_at, chars=self.chunk_chars, overlap_chars=overlap)

    def read(self) -> list[Document]:
        """All documents, each once.

        Raises: ContextError (AX890): a file cannot be read; ConfigError (AX891): two have one name.
        """
        found: dict[str, Document] = {}
        for document in [*(_given(each) for each in self.documents), *self._files()]:
            known = found.setdefault(document.uri, document)
            if known is not document and known != document:
                told = f'two documents are called "{document.uri}".'
                raise ConfigError(
                    Problem("AX891", "documents", told, "Give each a uri of its own.")
                )
        return list(found.values())

    def opened(self, blocks: Iterable[ContextBlock]) -> list[ContextBlock]:
        """The blocks, with the files that their parts name read into them: those of the sources,
        and no others.

        Raises: ContextError: AX890: a file cannot be read; AX941: it is none of the sources;
        PartError (AX802, AX803).
        """
        return [
            replace(block, part=self._read(block.part))
            if block.part and block.part.get("path")
            else block
            for block in blocks
        ]

    def _read(self, part: Mapping[str, Any]) -> dict[str, Any]:
        path = Path(str(part["path"]))
        if not self._is_ours(path):
            told = (
                f'what was found goes with the file "{path.as_posix()}", '
                "which is none of the sources."
            )
            raise ContextError("AX941", told, "Give the file or its folder in paths.")
        rest = {key: value for key, value in part.items() if key != "path"}
        return checked(
            {"name": path.name, **rest, "data": base64.b64encode(self._bytes(path)).decode()}
        )

    def _is_ours(self, path: Path) -> bool:
        given = [
            each.part["path"]
            for each in self.documents
            if isinstance(each, Given) and each.part and "path" in each.part
        ]
        real, places = path.resolve(), [Path(each).resolve() for each in (*self.paths, *given)]
        return any(
            real == place or (place.is_dir() and real.is_relative_to(place)) for place in places
        )

    def _files(self) -> Iterator[Document]:
        for path in self.paths:
            place = Path(path)
            for file in _inside(place, self.include) if place.is_dir() else [place]:
                yield from self._made(file)

    def _made(self, file: Path) -> Iterator[Document]:
        from axil_agent.reading import documents_of, part_of

        where = file.as_posix()
        data = self._bytes(file)
        if file.suffix.lower() == ".pdf":
            digest = hashlib.sha256(data).hexdigest()
            known = self._pages.get(where)
            if known is None or known[0] != digest:
                known = self._pages[where] = (digest, documents_of(data, where, self.encoding))
            documents = known[1]
        else:
            documents = documents_of(data, where, self.encoding)
        is_shown = any(fnmatchcase(file.name, pattern) for pattern in self.attach)
        for document in documents:
            yield (
                replace(document, part=part_of(where))
                if is_shown and document.part is None
                else document
            )

    def _bytes(self, file: Path) -> bytes:
        where = file.as_posix()
        try:
            size = file.stat().st_size
            if size > self.max_file_bytes:
                told = (
                    f'"{where}" has {size} bytes, more than max_file_bytes ({self.max_file_bytes}).'
                )
                raise ContextError("AX890", told, "Raise the limit, or leave the file out.")
            return file.read_bytes()
        except OSError as error:
            raise ContextError(
                "AX890",
                f'"{where}" cannot be read: {error.strerror or error}.',
                "Check paths and permissions.",
            ) from error


def _given(each: str | Given) -> Document:
    given = Given.model_validate({"text": each}) if isinstance(each, str) else each
    name = hashlib.sha256(given.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Document(
        text=given.text,
        uri=given.uri or f"text:{name}",
        title=given.title,
        metadata=given.metadata,
        part=given.part,
    )


def _inside(folder: Path, include: Sequence[str]) -> list[Path]:
    """The files of a folder, sorted; links that lead out of it are not followed."""
    home = folder.resolve()
    files = {
        file
        for pattern in include
        for file in folder.rglob(pattern)
        if file.is_file() and file.resolve().is_relative_to(home)
    }
    return sorted(files, key=lambda file: file.as_posix())


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What has to be done so that an index holds these documents and no other."""

    changed: Sequence[Document]
    """Those that are new, and those that are not what they were."""
    gone: Sequence[str]
    """Names of those that are there no more."""
    digests: Mapping[str, str]
    """The digest of each document by its name."""


def difference(
    known: Mapping[str, str], documents: Iterable[Document], *settings: Any
) -> Difference:
    """What has changed against ``known``: digests by name.

    ``settings``: whatever changes what is made of a document.
    """
    digests: dict[str, str] = {}
    changed: list[Document] = []
    for document in documents:
        digests[document.uri] = document.digest(*settings)
        if known.get(document.uri) != digests[document.uri]:
            changed.append(document)
    return Difference(
        changed=changed, gone=[uri for uri in known if uri not in digests], digests=digests
    )


def fits(metadata: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Whether a block with ``metadata`` is one that ``filters`` ask for.

    >>> fits({"lang": "en", "n": 1}, {"lang": "en"}), fits({}, {"lang": "en"})
    (True, False)
    """
    return all(name in metadata and metadata[name] == value for name, value in filters.items())


def held(block: ContextBlock) -> dict[str, Any]:
    """A block as plain data that an index can keep; ``ContextBlock(**…)`` makes it one again."""
    told = {
        "text": block.text,
        "uri": block.uri,
        "chunk_id": block.chunk_id,
        "title": block.title,
        "metadata": dict(block.metadata),
    }
    return told if block.part is None else {**told, "part": dict(block.part)}


def keyed(block: ContextBlock) -> tuple[str, str]:
    """What an index knows a block by.

    Raises: ContextError (AX892): it has neither ``uri`` nor ``chunk_id``.
    """
    if not block.uri and not block.chunk_id:
        told = f"a block without uri and chunk_id cannot be put into an index: {block.text!r:.60}."
        raise ContextError("AX892", told, "Give it one of them.")
    return block.uri or "", block.chunk_id or ""
