"""``OpenAIChatClient``: OpenAI, and servers that are compatible with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from pydantic import Field, PrivateAttr, field_validator

import axil_models
from evofabric.core.clients.base import (
    ChatClientBase,
    EmbedClientBase,
    messages_of,
    response_of,
    specs_of,
)
from evofabric.core.typing import ChatStreamChunk, LLMChatResponse


class OpenAIChatClient(ChatClientBase):
    """OpenAI's Chat Completions: ``axil_openai.OpenAIModel``."""

    model: str
    stream: bool = True
    client_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """``api_key``, ``base_url`` and other settings of axil's adapter."""
    http_client_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Settings of the HTTP client: none of them can be set."""
    inference_kwargs: dict[str, Any] = Field(default_factory=dict[str, Any])

    _core: Any = PrivateAttr(default=None)

    @field_validator("http_client_kwargs")
    @classmethod
    def _none_is_set(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given:
            raise ValueError(
                f"found http_client_kwargs {sorted(given)}, expected none. The settings of "
                "axil_openai.OpenAIModel are client_kwargs."
            )
        return given

    def __repr__(self) -> str:
        return f"OpenAIChatClient(model={self.model!r})"

    @property
    def core(self) -> Any:
        """The model of axil; made by the first use."""
        if self._core is None:
            from axil_openai import OpenAIModel

            self._core = OpenAIModel(self.model, **self.client_kwargs)
        return self._core

    def _request(self, messages: Sequence[Any], kwargs: Mapping[str, Any]) -> axil_models.Request:
        settings = {**self.inference_kwargs, **kwargs}
        tools, form = settings.pop("tools", None), settings.pop("response_format", None)
        output = None
        if form is not None:
            output = axil_models.Structure(name=form.__name__, schema=form.model_json_schema())
        return axil_models.Request(
            messages=messages_of(messages),
            tools=specs_of(tools),
            settings=settings,
            output=output,
        )

    async def create(self, messages: Sequence[Any], **kwargs: Any) -> LLMChatResponse:
        return response_of(await self.core.reply(self._request(messages, kwargs), _unheard))

    async def create_on_stream(self, messages: Sequence[Any], **kwargs: Any) -> AsyncIterator[Any]:
        came: asyncio.Queue[Any] = asyncio.Queue()

        def emit(chunk: Any) -> None:
            plain: Mapping[str, Any] = (
                cast("Mapping[str, Any]", chunk) if isinstance(chunk, Mapping) else {}
            )
            if plain.get("kind") == "text":
                came.put_nowait(ChatStreamChunk(content=str(plain["text"])))

        async def ask() -> None:
            try:
                reply = await self.core.reply(self._request(messages, kwargs), emit)
                came.put_nowait(response_of(reply))
            except Exception as error:  # noqa: BLE001  # raised where it is waited for
                came.put_nowait(error)

        task = asyncio.create_task(ask())
        try:
            while True:
                each = await came.get()
                if isinstance(each, Exception):
                    raise each
                yield each
                if isinstance(each, LLMChatResponse):
                    return
        finally:
            task.cancel()


def _unheard(chunk: Any) -> None:
    del chunk


class OpenAIEmbedClient(EmbedClientBase):
    """OpenAI's embeddings: ``axil_openai.OpenAIEmbedder``."""

    model: str
    base_url: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    dimensions: int | None = None
    max_retries: int | None = 2
    request_timeout: Any = None

    def embed_documents(self, texts: list[str], **kwargs: Any) -> list[list[float]]:
        """Give the vector of each text."""
        from axil_openai import OpenAIEmbedder

        del kwargs
        embedder = OpenAIEmbedder(
            self.model, self.api_key, self.base_url or None, dimensions=self.dimensions or None
        )
        with ThreadPoolExecutor(1) as elsewhere:  # a loop may be running here
            return elsewhere.submit(lambda: asyncio.run(embedder.embed(texts))).result()

    def embed_query(self, text: str, **kwargs: Any) -> list[float]:
        """Give a text's vector."""
        return self.embed_documents([text], **kwargs)[0]
