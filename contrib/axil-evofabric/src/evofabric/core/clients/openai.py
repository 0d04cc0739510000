"""``OpenAIChatClient``: OpenAI, and servers that are compatible with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import axil_models
from evofabric.core.clients.base import ChatClientBase, messages_of, response_of, specs_of
from evofabric.core.typing import ChatStreamChunk, LLMChatResponse


class OpenAIChatClient(ChatClientBase):
    """OpenAI's Chat Completions: ``axil_openai.OpenAIModel``."""

    def __init__(
        self,
        model: str,
        stream: bool = True,
        client_kwargs: Mapping[str, Any] | None = None,
        http_client_kwargs: Mapping[str, Any] | None = None,
        inference_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """``client_kwargs``: ``api_key``, ``base_url`` and other settings of axil's adapter.

        Raises: TypeError: settings of the HTTP client are given.
        """
        if http_client_kwargs:
            raise TypeError(
                f"OpenAIChatClient: found http_client_kwargs {sorted(http_client_kwargs)}, "
                "expected none. The settings of axil_openai.OpenAIModel are client_kwargs."
            )
        self.model, self.stream = model, stream
        self.client_kwargs = dict(client_kwargs or {})
        self.inference_kwargs = dict(inference_kwargs or {})
        self._core: Any = None

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
