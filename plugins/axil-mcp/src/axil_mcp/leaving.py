"""The messages of a server on their way to its client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axil.plugin import without_secrets


class MessageStream:
    """A stream of messages before another one, which gets them without secrets of the process."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def send(self, item: Any) -> None:
        """Send a message: a result, a report of progress, a question."""
        from mcp_types import jsonrpc_message_adapter

        said = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if (left := without_secrets(said)) != said:
            item = replace(
                item, message=jsonrpc_message_adapter.validate_python(left, by_name=False)
            )
        await self._stream.send(item)

    async def __aenter__(self) -> MessageStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


__all__ = ["MessageStream"]
