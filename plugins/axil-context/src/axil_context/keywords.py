"""Settings of ``axil_context`` as typed keywords; written by ``make manifests``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from axil.plugin import ReadPath, WritePath
from axil_context.retrieval.chunks import Boundary
from axil_context.retrieval.sources import Given
from axil_models import (
    EmbedderLike,
    IndexLike,
    ModelLike,
    Owner,
    ProviderLike,
    RerankerLike,
    Retry,
    StoreLike,
)


class AgentsMdKeywords(TypedDict, total=False):
    """The settings of ``AgentsMd``; see ``AgentsMdConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    folder: ReadPath
    """The folder that is worked in."""

    root: ReadPath
    """The outermost folder whose file counts; empty: only that of folder."""

    names: Sequence[str]
    """Names of the file; of each folder the first one that is there."""

    max_bytes: int
    """The largest size of all files together."""


class BlackboardKeywords(TypedDict, total=False):
    """The settings of ``Blackboard``; see ``BlackboardConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    share: str
    """The attribute that holds the notes; agents with one name share them."""

    remember: Literal["turn", "reply"]
    """The content of a note: the reply, or the task and the reply."""

    max_items: int
    """Notes that count, the newest; others fall off unless the field only grows."""


class FactMemoryKeywords(TypedDict, total=False):
    """The settings of ``FactMemory``; see ``FactsConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    namespace: Sequence[Owner]
    """Kept apart for each: run, session, agent, user."""

    user_field: str
    """The attribute or input that holds the user's name."""

    index: IndexLike
    """The memory that keeps them: chroma_memory, file_memory, {type: …}, or an object with put and
    delete.
    """

    candidates: int
    """Known facts that the model is shown, the nearest."""

    max_facts: int
    """Facts of one turn; more are refused."""

    max_chars: int
    """A fact's length; a longer one is refused."""

    audit: WritePath
    """A file of JSON lines that each decision is written to; empty: only the journal has them."""


class FileMemoryKeywords(TypedDict, total=False):
    """The settings of ``FileMemory``; see ``FileMemoryConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    namespace: Sequence[Owner]
    """Kept apart for each: run, session, agent, user."""

    user_field: str
    """The attribute or input that holds the user's name."""

    path: WritePath
    """The file of JSON lines; made when the first thing is remembered."""

    index: IndexLike
    """The index of its notes: keyword, vector, {type: …}, or an object with put and delete."""

    remember: Literal["turn", "reply"]
    """The reply, or the task and the reply."""

    max_items: int
    """The newest items of each namespace that are searched; the file keeps all."""

    lock_seconds: float
    """How long a writer waits for another one."""


class HybridRetrieverKeywords(TypedDict, total=False):
    """The settings of ``HybridRetriever``; see ``HybridConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    providers: Sequence[ProviderLike]
    """Context providers: names, {type: …}, or objects."""

    weights: Sequence[float]
    """The weight of each provider; empty: equal weights."""

    k: int
    """A rank constant: a larger number makes the difference between the ranks smaller."""

    depth: int
    """The number of blocks requested of each provider; at least the number requested of all."""


class KeywordRetrieverKeywords(TypedDict, total=False):
    """The settings of ``KeywordRetriever``; see ``KeywordConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    documents: Sequence[str | (Given | Mapping[str, object])]
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

    path: WritePath
    """The file of the index; empty: the index is kept in memory and rebuilt in each process."""

    refresh: Literal["once", "query"]
    """When changes of the sources are read: never, or at each query."""

    stems: bool
    """Compare English words by their stems: running finds run."""

    min_score: float | None
    """The lowest score of a block that is returned."""


class ModelRerankerKeywords(TypedDict, total=False):
    """The settings of ``ModelReranker``; see ``ModelRerankerConfig``."""

    model: ModelLike
    """Rates the texts: {type: …}, or an object."""

    batch: int
    """Texts that are rated in one call."""


class RerankedRetrieverKeywords(TypedDict, total=False):
    """The settings of ``RerankedRetriever``; see ``RerankedConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    provider: ProviderLike
    """The context provider: a name, {type: …}, or an object."""

    reranker: RerankerLike
    """Scores the blocks: a name, {type: …}, or an object."""

    depth: int
    """The number of blocks requested of the provider; at least the number that is wanted."""

    min_score: float | None
    """The lowest score of a block that is returned, as the reranker counts."""


class ServiceEmbedderKeywords(TypedDict, total=False):
    """The settings of ``ServiceEmbedder``; see ``ServiceEmbedderConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    dimensions: int | None
    """The length of the vectors, of models that can shorten them; without it, the model's."""

    batch_size: int
    """The most texts that go into one request."""

    model_name: str
    model: str


class ServiceRerankerKeywords(TypedDict, total=False):
    """The settings of ``ServiceReranker``; see ``ServiceRerankerConfig``."""

    headers: Mapping[str, str]
    """Further headers of every request."""

    timeout_seconds: float
    """The longest silence, before a reply and within it."""

    connect_timeout_seconds: float
    """How long a connection may take to be made."""

    retry: Retry | Mapping[str, object]
    """When it is asked again."""

    service: Literal["", "cohere", "jina", "voyage"]
    """The maker of the service, with its address and the variable of its key; empty: the server at
    base_url, such as llama.cpp or vLLM.
    """

    model_name: str
    model: str


class SkillsKeywords(TypedDict, total=False):
    """The settings of ``Skills``; see ``SkillsConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    paths: Sequence[ReadPath]
    """Folders of skills, or of folders that are skills."""

    allow: Sequence[str]
    """Only these skills; empty: all."""

    max_file_bytes: int
    """A larger file is not read."""


class StoreMemoryKeywords(TypedDict, total=False):
    """The settings of ``StoreMemory``; see ``StoreMemoryConfig``."""

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

    store: StoreLike
    """Keeps the vectors: a name, {type: …}, or an object."""

    namespace: Sequence[Owner]
    """Kept apart for each: run, session, agent, user."""

    user_field: str
    """The attribute or input that holds the user's name."""

    remember: Literal["turn", "reply"]
    """The reply, or the task and the reply."""

    max_items: int
    """The newest items of each namespace that are kept."""


class StoreRetrieverKeywords(TypedDict, total=False):
    """The settings of ``StoreRetriever``; see ``StoreConfig``."""

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

    store: StoreLike
    """Keeps the vectors: a name, {type: …}, or an object."""

    documents: Sequence[str | (Given | Mapping[str, object])]
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


class VectorRetrieverKeywords(TypedDict, total=False):
    """The settings of ``VectorRetriever``; see ``VectorConfig``."""

    context_label: str
    """The label of its blocks; without one, the component's name."""

    passive: bool
    """Its blocks go into the prompt."""

    active: bool
    """The model may ask it."""

    documents: Sequence[str | (Given | Mapping[str, object])]
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

    embedder: EmbedderLike
    """The embedder, which turns texts into vectors: a name, {type: …}, or an object."""

    refresh: Literal["once", "query"]
    """When changes of the sources are read: never, or at each query."""

    min_score: float | None
    """The lowest cosine similarity of a block that is returned."""

    batch: int
    """The number of texts in one call of the embedder."""
