"""``openai``: vectors from the embeddings API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field

from axil_models import ModelError, Remote, Showing, reading_reply, service_config, valid_text
from axil_openai.connection import Connection, OpenAIConfig

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from axil.plugin import SecretLike
    from axil_openai.keywords import OpenAIEmbedderKeywords


class EmbedderConfig(OpenAIConfig):
    """An embedding model of a service."""

    dimensions: int | None = Field(
        None,
        ge=1,
        description="The length of the vectors, "
        "of models that can shorten them; without it, the model's.",
    )
    batch_size: int = Field(256, ge=1, le=2048, description="How many texts go into one request.")


class OpenAIEmbedder(Remote):
    """``openai``: vectors for texts.

    >>> OpenAIEmbedder("text-embedding-3-small", dimensions=256).name
    'openai/text-embedding-3-small/256'
    """

    examples = ({"name": "a-model", "api_key": {"env": "OPENAI_API_KEY"}},)

    Config = EmbedderConfig
    service: Connection

    def __init__(
        self,
        name: EmbedderConfig | str | None = None,
        api_key: SecretLike | None = None,
        base_url: str | None = None,
        **more: Unpack[OpenAIEmbedderKeywords],
    ) -> None:
        """Store the settings, with the arguments of ``OpenAIModel``; the first call connects.

        Raises: ConfigError: all that is wrong with them.
        """
        self.config: EmbedderConfig = service_config(EmbedderConfig, name, api_key, base_url, more)
        self.service = Connection(self.config)
        self._learned: int | None = None

    @property
    def name(self) -> str:
        """The name of the vector space."""
        size = f"/{self.config.dimensions}" if self.config.dimensions else ""
        return f"openai/{self.config.name}{size}"

    @property
    def dimensions(self) -> int | None:
        """The length of the vectors; None: not known before the first are there."""
        return self.config.dimensions or self._learned

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """Return a vector for each text, in their order.

        Raises: ModelError (AX660); ConfigError (AX800): there is no key.
        """
        vectors: list[list[float]] = []
        async with self:
            for at in range(0, len(texts), self.config.batch_size):
                batch = texts[at : at + self.config.batch_size]
                vectors += await self._batch([valid_text(text) for text in batch])
        return vectors

    async def _batch(self, texts: list[str]) -> list[list[float]]:
        size = self.config.dimensions
        more: dict[str, Any] = {} if size is None else {"dimensions": size}

        async def attempt(client: AsyncOpenAI, show: Showing) -> list[list[float]]:
            answer = await client.embeddings.create(
                model=self.config.name, input=texts, encoding_format="float", **more
            )
            with reading_reply():
                found = sorted(answer.data or (), key=lambda each: each.index)
                return [[float(number) for number in each.embedding] for each in found]

        vectors = await self.service.call(attempt, lambda chunk: None)
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != len(texts) or len(sizes) != 1 or self.dimensions not in (None, *sizes):
            found = f"gave {len(vectors)} vectors of {sorted(sizes)} numbers"
            message = f"{self.service.host} {found} for {len(texts)} texts."
            if self.dimensions:
                message += f" Expected {self.dimensions} numbers each."
            hint = "Check that the model is one for embeddings, and its dimensions."
            raise ModelError(message, transient=False, hint=hint)
        self._learned = sizes.pop()
        return vectors
