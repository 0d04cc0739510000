"""Settings of ``axil_chroma`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil.plugin import Address, ReadPath, Secret, WritePath
from axil_context import Boundary
from axil_models import EmbedderLike, Owner


class ChromaMemoryKeywords(TypedDict, total=False):
    """The settings of ``ChromaMemory``; see ``ChromaMemoryConfig``."""

    path: WritePath
    """A folder that keeps it, for one process at a time; made when it is first used."""

    host: Address
    """Or a server (chroma run), for many."""

    port: int
    """The server's."""

    ssl: bool
    """Connect to the server by TLS."""

    token: Secret | str | Mapping[str, str] | None
    """What the server asks for, as a bearer token: {env: NAME} or ${NAME}."""

    tenant: str
    """As Chroma names it."""

    database: str
    """As Chroma names it."""

    collection: str
    """Its name."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    embedder: EmbedderLike
    """Makes vectors of texts: a name, {type: …}, or an object."""

    batch: int
    """Texts that the embedder is given at once."""

    min_score: float | None
    """Blocks with a lower score (cosine, at most 1) are left out."""

    namespace: Sequence[Owner]
    """Kept apart for each: run, session, agent, user."""

    user_field: str
    """The attribute or input that holds the user's name."""

    remember: Literal["turn", "reply"]
    """The reply, or the task and the reply."""

    max_items: int
    """The newest items of each namespace that are kept."""


class ChromaRetrieverKeywords(TypedDict, total=False):
    """The settings of ``ChromaRetriever``; see ``ChromaConfig``."""

    path: WritePath
    """A folder that keeps it, for one process at a time; made when it is first used."""

    host: Address
    """Or a server (chroma run), for many."""

    port: int
    """The server's."""

    ssl: bool
    """Connect to the server by TLS."""

    token: Secret | str | Mapping[str, str] | None
    """What the server asks for, as a bearer token: {env: NAME} or ${NAME}."""

    tenant: str
    """As Chroma names it."""

    database: str
    """As Chroma names it."""

    collection: str
    """Its name."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    embedder: EmbedderLike
    """Makes vectors of texts: a name, {type: …}, or an object."""

    batch: int
    """Texts that the embedder is given at once."""

    min_score: float | None
    """Blocks with a lower score (cosine, at most 1) are left out."""

    documents: Sequence[str | Mapping[str, object]]
    """Texts, or {text, uri, title, metadata}."""

    paths: Sequence[ReadPath]
    """Files and folders; folders are read with all their subfolders."""

    include: Sequence[str]
    """Patterns of names: the files of folders that are read; also *.pdf, *.docx, *.pptx, *.xlsx,
    *.html, *.eml, and pictures.
    """

    attach: Sequence[str]
    """Patterns of names: files that are sent to the model together with the blocks found in them.
    """

    encoding: str
    """The encoding of the files."""

    max_file_bytes: int
    """The largest allowed size of a file."""

    cut_at: Boundary
    """heading, paragraph or size."""

    chunk_chars: int
    """The largest length of a chunk, in characters."""

    overlap_chars: int | None
    """The characters that a chunk repeats of the one before it; the default is an eighth of
    chunk_chars.
    """

    refresh: Literal["once", "query", "never"]
    """When sources are looked at: once, at each query, or never."""


class ChromaStoreKeywords(TypedDict, total=False):
    """The settings of ``ChromaStore``; see ``Place``."""

    path: WritePath
    """A folder that keeps it, for one process at a time; made when it is first used."""

    host: Address
    """Or a server (chroma run), for many."""

    port: int
    """The server's."""

    ssl: bool
    """Connect to the server by TLS."""

    token: Secret | str | Mapping[str, str] | None
    """What the server asks for, as a bearer token: {env: NAME} or ${NAME}."""

    tenant: str
    """As Chroma names it."""

    database: str
    """As Chroma names it."""

    collection: str
    """Its name."""


class SentenceEmbedderKeywords(TypedDict, total=False):
    """The settings of ``SentenceEmbedder``; see ``SentenceConfig``."""

    model: str
    """A folder with the model; or its name, if downloads are allowed."""

    allow_downloads: bool
    """Let the library fetch the model by its name."""

    device: str
    """As torch names it: cpu, cuda, mps."""

    batch: int
    """Texts at once."""
