"""Calls of services that take and give JSON, by httpx2."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from axil.plugin import install_advice
from axil_models import (
    ContextError,
    ModelError,
    Service,
    ServiceConfig,
    Showing,
    Usual,
    reading_reply,
)

if TYPE_CHECKING:
    from httpx2 import AsyncClient

T = TypeVar("T")

_LARGEST = 200_000_000
"""Bytes of an answer."""


class JsonService(Service["AsyncClient"]):
    """A service that is posted JSON, with its key in a header."""

    def __init__(self, config: ServiceConfig, usual: Usual, key_header: str = "") -> None:
        """``key_header``: the header that holds the key; empty: ``Authorization: Bearer …``."""
        super().__init__(config, usual, self._make, lambda each: each.aclose(), lambda error: None)
        self._key_header = key_header

    def _make(self, key: str) -> AsyncClient:
        try:
            import httpx2
        except ImportError as error:
            message = "calls of services need httpx2, which is not installed."
            raise ContextError(
                "AX940", message, install_advice("axil-context[services]")
            ) from error
        config = self.config
        headers = dict(config.headers)
        if key:
            name, value = self._key_header or "Authorization", f"Bearer {key}"
            headers[name] = key if self._key_header else value
        return httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(config.timeout_seconds, connect=config.connect_timeout_seconds),
            trust_env=not self.is_of_a_file,
        )

    async def post(self, path: str, body: Mapping[str, object], read: Callable[[object], T]) -> T:
        """Return what ``read`` makes of the service's answer.

        Raises: ModelError (AX660); ConfigError (AX800): there is no key.
        """
        url = f"{(self.base_url or '').rstrip('/')}/{path}"

        async def attempt(client: AsyncClient, show: Showing) -> T:
            async with client.stream("POST", url, json=body) as response:
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > _LARGEST:
                        message = f"{self.address} sent more than {_LARGEST} bytes."
                        raise ModelError(message, transient=False)
            if response.status_code >= 400:
                raise self._error(response.status_code, bytes(data), response.headers)
            self.checked(response.headers)
            with reading_reply():
                return read(json.loads(data))

        return await self.call(attempt, lambda chunk: None)

    def _error(self, status: int, data: bytes, headers: Mapping[str, str]) -> ModelError:
        try:
            body: object = json.loads(data)
        except ValueError:
            body = data.decode("utf-8", "replace")
        return self.refused(status, body, headers)
