"""Sources: the documents that a retriever searches, read from settings, files and folders."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from axil import ConfigError, Problem
from axil.plugin import Grants, ReadPath, current_grants, is_axils
from axil_context.retrieval.chunks import Boundary, Cut
from axil_context.retrieval.reading import TAKEN_APART, documents_of, part_of
from axil_models import ContextBlock, ContextError, Document, checked_part


class Given(BaseModel):
    """A document that is given with its text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(description="The text.")
    uri: str = Field("", description="The document's name; without it a hash of the text.")
    title: str | None = Field(None, description="Its title.")
    metadata: dict[str, object] = Field(
        default_factory=dict[str, object],
        description="Plain data by which filters select documents.",
    )
    part: dict[str, object] | None = Field(
        None,
        description="Media that belong to the text: {type: image, path: …}, file, audio; or url, "
        "data, file_id.",
    )

    @field_validator("part")
    @classmethod
    def _is_a_part(cls, given: dict[str, object] | None) -> dict[str, object] | None:
        return None if given is None else checked_part(given)


class Sources(BaseModel):
    """The settings of all retrievers of documents: what is searched, and how it is cut."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    documents: list[str | Given] = Field(
        default_factory=list[str | Given], description="Texts, or {text, uri, title, metadata}."
    )
    paths: list[ReadPath] = Field(
        default_factory=list[str],
        description="Files and folders; folders are read with all their subfolders.",
    )
    include: list[str] = Field(
        ["*.md", "*.txt", "*.rst"],
        description="Patterns of names: the files of folders that are read; also *.pdf, *.docx, "
        "*.pptx, *.xlsx, *.html, *.eml, and pictures.",
    )
    attach: list[str] = Field(
        default_factory=list[str],
        description="Patterns of names: files that are sent to the model together with the "
        "blocks found in them.",
    )
    encoding: str = Field("utf-8", description="The encoding of the files.")
    max_file_bytes: int = Field(5_000_000, ge=1, description="The largest allowed size of a file.")
    cut_at: Boundary = Field("heading", description="heading, paragraph or size.")
    chunk_chars: int = Field(
        1200, ge=20, description="The largest length of a chunk, in characters."
    )
    overlap_chars: int | None = Field(
        None,
        ge=0,
        description="The characters that a chunk repeats of the one before it; the default is an "
        "eighth of chunk_chars.",
    )

    _grants: Grants | None = PrivateAttr(default_factory=current_grants)
    _pages: dict[str, tuple[str, list[Document]]] = PrivateAttr(
        default_factory=dict[str, tuple[str, list[Document]]]
    )
    """The text of each file that takes long to read, with a hash of its bytes."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> Sources:
        if self.overlap_chars is not None and self.overlap_chars > self.chunk_chars // 2:
            most = f"at most half of chunk_chars ({self.chunk_chars // 2})"
            raise ValueError(f"expected overlap_chars of {most}, found {self.overlap_chars}")
        return self

    @property
    def cut(self) -> Cut:
        """The settings by which documents are cut into chunks."""
        overlap = self.chunk_chars // 8 if self.overlap_chars is None else self.overlap_chars
        return Cut(at=self.cut_at, chars=self.chunk_chars, overlap_chars=overlap)

    def read(self) -> list[Document]:
        """Return all documents, each once.

        Raises: ContextError (AX890): a file cannot be read; ConfigError (AX891): two have one name.
        """
        found: dict[str, Document] = {}
        for document in [*(_given(each) for each in self.documents), *self._files()]:
            known = found.setdefault(document.uri, document)
            if known is not document and known != document:
                message = f'two documents have the uri "{document.uri}".'
                hint = "Give each document its own uri."
                raise ConfigError(Problem("AX891", "documents", message, hint))
        return list(found.values())

    def opened(self, blocks: Iterable[ContextBlock]) -> list[ContextBlock]:
        """Return the blocks, with the files of sources that their parts name read into them.

        Raises: ContextError: AX890: a file cannot be read; AX941: it is none of the sources;
        PartError (AX802, AX803).
        """
        return [
            replace(block, part=self._read(block.part))
            if block.part and block.part.get("path")
            else block
            for block in blocks
        ]

    def _read(self, part: Mapping[str, object]) -> dict[str, object]:
        path = Path(str(part["path"]))
        if not self._is_ours(path):
            message = f'a block names the file "{path.as_posix()}", which is none of the sources.'
            raise ContextError("AX941", message, "Add the file or its folder to paths.")
        rest = {key: value for key, value in part.items() if key != "path"}
        data = base64.b64encode(self._bytes(path)).decode()
        return checked_part({"name": path.name, **rest, "data": data})

    def _is_ours(self, path: Path) -> bool:
        parts = [each.part or {} for each in self.documents if isinstance(each, Given)]
        given = [str(part["path"]) for part in parts if "path" in part]
        real, places = path.resolve(), [Path(each).resolve() for each in (*self.paths, *given)]
        return any(real == each or (each.is_dir() and real.is_relative_to(each)) for each in places)

    def _files(self) -> Iterator[Document]:
        for path in self.paths:
            place = Path(path)
            for file in _inside(place, self.include) if place.is_dir() else [place]:
                yield from self._made(file)

    def _made(self, file: Path) -> Iterator[Document]:
        where = file.as_posix()
        data = self._bytes(file)
        if file.suffix.lower() in TAKEN_APART:
            digest = hashlib.sha256(data).hexdigest()
            known = self._pages.get(where)
            if known is None or known[0] != digest:
                known = self._pages[where] = (digest, documents_of(data, where, self.encoding))
            documents = known[1]
        else:
            documents = documents_of(data, where, self.encoding)
        is_shown = any(fnmatchcase(file.name, pattern) for pattern in self.attach)
        for document in documents:
            is_alone = is_shown and document.part is None
            yield replace(document, part=part_of(where)) if is_alone else document

    def _bytes(self, file: Path) -> bytes:
        where = file.as_posix()
        if self._grants is not None:  # a link in a folder may lead elsewhere
            file = Path(self._grants.path(where, "read", "paths"))
        try:
            size = file.stat().st_size
            if size > self.max_file_bytes:
                most = f"max_file_bytes ({self.max_file_bytes})"
                message = f'"{where}" has {size} bytes, more than {most}.'
                raise ContextError("AX890", message, "Raise the limit, or exclude the file.")
            return file.read_bytes()
        except OSError as error:
            message = f'"{where}" cannot be read: {error.strerror or error}.'
            raise ContextError("AX890", message, "Check paths and permissions.") from error


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
    """Return the files of a folder, sorted, without axil's own and links that lead out of it."""
    home = folder.resolve()
    files = {
        file
        for pattern in include
        for file in folder.rglob(pattern)
        if file.is_file() and file.resolve().is_relative_to(home) and not is_axils(file)
    }
    return sorted(files, key=lambda file: file.as_posix())


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The changes after which an index holds these documents and no others."""

    changed: Sequence[Document]
    """The new documents, and those with another text."""
    gone: Sequence[str]
    """Names of those that are there no more."""
    digests: Mapping[str, str]
    """The digest of each document by its name."""


def difference(
    known: Mapping[str, str], documents: Iterable[Document], *settings: object
) -> Difference:
    """Return what has changed against ``known``: digests by name.

    ``settings``: whatever changes what is made of a document.
    """
    digests: dict[str, str] = {}
    changed: list[Document] = []
    for document in documents:
        digests[document.uri] = document.digest(*settings)
        if known.get(document.uri) != digests[document.uri]:
            changed.append(document)
    gone = [uri for uri in known if uri not in digests]
    return Difference(changed=changed, gone=gone, digests=digests)
