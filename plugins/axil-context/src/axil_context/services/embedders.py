"""``cohere``, ``gemini``, ``mistral``, ``ollama``, ``voyage``: vectors from services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from pydantic import Field

from axil_context.services.calls import JsonService
from axil_models import (
    ModelError,
    Remote,
    ServiceConfig,
    Usual,
    service_config,
    valid_text,
)

if TYPE_CHECKING:
    from axil.plugin import SecretLike
    from axil_context.keywords import ServiceEmbedderKeywords


class ServiceEmbedderConfig(ServiceConfig):
    """An embedding model of a service."""

    dimensions: int | None = Field(
        None,
        ge=1,
        description="The length of the vectors, of models that can shorten them; without it, the "
        "model's.",
    )
    batch_size: int = Field(
        96, ge=1, le=1000, description="The most texts that go into one request."
    )


class ServiceEmbedder(Remote):
    """The base of embedders of services: a subclass says what is asked and where the vectors are.

    Documents and queries are distinguished where the service does so.
    """

    Config = ServiceEmbedderConfig
    service: JsonService

    usual: ClassVar[Usual]
    key_header: ClassVar[str] = ""
    most: ClassVar[int] = 1000
    """The most texts that the service takes at once."""

    def __init__(
        self,
        name: ServiceEmbedderConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        **more: Unpack[ServiceEmbedderKeywords],
    ) -> None:
        """Store the settings; the first call connects. Raises: ConfigError."""
        self.config: ServiceEmbedderConfig = service_config(
            self.Config, name, api_key, base_url, more
        )
        self.service = JsonService(self.config, self.usual, self.key_header)
        self._learned: int | None = None

    @property
    def name(self) -> str:
        """The name of the vector space."""
        kind = type(self).__name__.removesuffix("Embedder").lower()
        size = f"/{self.config.dimensions}" if self.config.dimensions else ""
        return f"{kind}/{self.config.name}{size}"

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None: not known before the first are there."""
        return self.config.dimensions or self._learned

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each document, in their order.

        Raises: ModelError (AX660); ConfigError (AX800): there is no key.
        """
        return await self._embedded(texts, is_query=False)

    async def embed_queries(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each query, in their order. Raises: as ``embed``."""
        return await self._embedded(texts, is_query=True)

    async def _embedded(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        size, vectors = min(self.config.batch_size, self.most), list[list[float]]()
        async with self:
            for at in range(0, len(texts), size):
                batch = [valid_text(text) for text in texts[at : at + size]]
                path, asked = self._path(), self._asked(batch, is_query)
                found = await self.service.post(path, asked, self._read)
                if len(found) != len(batch):
                    host = self.service.host
                    message = f"{host} gave {len(found)} vectors for {len(batch)} texts."
                    raise ModelError(message, transient=False, hint="Is it a model for embeddings?")
                vectors += found
        self._learned = len(vectors[0]) if vectors else self._learned
        return vectors

    def _read(self, answer: Any) -> list[list[float]]:
        return [[float(each) for each in vector] for vector in self._vectors(answer)]

    def _path(self) -> str:
        return "embed"

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        """Return a request."""
        raise NotImplementedError

    def _vectors(self, answer: Any) -> Any:
        """Return the vectors of an answer; what it is not made of raises."""
        raise NotImplementedError

    def _sized(self, name: str) -> dict[str, Any]:
        return {name: self.config.dimensions} if self.config.dimensions else {}


def _in_order(answer: Any) -> list[Any]:
    """Return the vectors of ``data``, each of which says which text it is of."""
    return [each["embedding"] for each in sorted(answer["data"], key=lambda each: each["index"])]


class CohereEmbedder(ServiceEmbedder):
    """``cohere``: vectors from Cohere's API, version 2."""

    examples = ({"name": "embed-v4.0", "api_key": {"env": "CO_API_KEY"}},)
    usual = Usual(
        host="api.cohere.com",
        keys=("CO_API_KEY", "COHERE_API_KEY"),
        place="https://api.cohere.com/v2",
    )
    most = 96

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        kind = "search_query" if is_query else "search_document"
        asked = {"model": self.config.name, "texts": texts, "input_type": kind}
        return {**asked, "embedding_types": ["float"], **self._sized("output_dimension")}

    def _vectors(self, answer: Any) -> Any:
        return answer["embeddings"]["float"]


class VoyageEmbedder(ServiceEmbedder):
    """``voyage``: vectors from Voyage AI."""

    examples = ({"name": "voyage-3.5", "api_key": {"env": "VOYAGE_API_KEY"}},)
    usual = Usual(
        host="api.voyageai.com", keys=("VOYAGE_API_KEY",), place="https://api.voyageai.com/v1"
    )

    def _path(self) -> str:
        return "embeddings"

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        asked = {"model": self.config.name, "input": texts, **self._sized("output_dimension")}
        return {**asked, "input_type": "query" if is_query else "document"}

    def _vectors(self, answer: Any) -> Any:
        return _in_order(answer)


class MistralEmbedder(ServiceEmbedder):
    """``mistral``: vectors from Mistral."""

    examples = ({"name": "mistral-embed", "api_key": {"env": "MISTRAL_API_KEY"}},)
    usual = Usual(
        host="api.mistral.ai", keys=("MISTRAL_API_KEY",), place="https://api.mistral.ai/v1"
    )

    def _path(self) -> str:
        return "embeddings"

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        return {"model": self.config.name, "input": texts, **self._sized("output_dimension")}

    def _vectors(self, answer: Any) -> Any:
        return _in_order(answer)


class GeminiEmbedder(ServiceEmbedder):
    """``gemini``: vectors from Google's Gemini API."""

    examples = ({"name": "gemini-embedding-001", "api_key": {"env": "GEMINI_API_KEY"}},)
    usual = Usual(
        host="generativelanguage.googleapis.com",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        place="https://generativelanguage.googleapis.com/v1beta",
    )
    key_header = "x-goog-api-key"
    most = 100

    def _path(self) -> str:
        return f"models/{self.config.name.removeprefix('models/')}:batchEmbedContents"

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        shared = {
            "model": f"models/{self.config.name.removeprefix('models/')}",
            "taskType": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT",
            **self._sized("outputDimensionality"),
        }
        return {"requests": [{**shared, "content": {"parts": [{"text": t}]}} for t in texts]}

    def _vectors(self, answer: Any) -> Any:
        return [each["values"] for each in answer["embeddings"]]


class OllamaEmbedder(ServiceEmbedder):
    """``ollama``: vectors from Ollama, on this machine or on a server."""

    examples = ({"name": "nomic-embed-text"},)
    usual = Usual(host="localhost", keys=(), place="http://localhost:11434")

    def _path(self) -> str:
        return "api/embed"

    def _asked(self, texts: list[str], is_query: bool) -> Mapping[str, Any]:
        return {"model": self.config.name, "input": texts, **self._sized("dimensions")}

    def _vectors(self, answer: Any) -> Any:
        return answer["embeddings"]
