"""Mem0's memory service. The SDK is imported when the service is asked for the first time."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, cast

from axil.plugin import LoopLocal
from axil_devall.config import Mem0Config
from axil_devall.errors import StoreError


class Mem0:
    """The service, for one user or one agent."""

    def __init__(self, config: Mem0Config) -> None:
        self.config = config
        self._clients: LoopLocal[Any] = LoopLocal(self._made)

    async def found(self, query: str, most: int, least: float) -> list[str]:
        """Return memories for ``query``, best first. Raises: StoreError (AX854)."""
        owners = [{name: value} for name, value in self._owner().items()]
        filters = {"OR": owners} if owners else {}
        threshold = {} if least < 0 else {"threshold": least}
        answer = await self._asked(
            "search", query, version="v2", filters=filters, top_k=most, **threshold
        )
        results: Any = answer
        if isinstance(answer, dict):
            results = cast("dict[str, Any]", answer).get("results")
        found = [
            cast("dict[str, Any]", each)
            for each in cast("list[object]", results or [])
            if isinstance(each, dict)
        ]
        return [str(each["memory"]) for each in found if each.get("memory")][:most]

    async def add(self, note: Mapping[str, Any]) -> None:
        """Give the service a turn, to keep of it what it will. Raises: StoreError (AX854)."""
        texts = [
            {"role": "user", "content": str(note.get("about") or "")},
            {"role": "assistant", "content": str(note["text"])},
        ]
        texts = [each for each in texts if each["content"].strip()]
        await self._asked("add", texts, **self._owner())

    def _owner(self) -> dict[str, str]:
        given = {"user_id": self.config.user_id, "agent_id": self.config.agent_id}
        return {name: value for name, value in given.items() if value}

    async def _asked(self, what: str, *args: Any, **named: Any) -> Any:
        try:
            return await getattr(self._clients.get(), what)(*args, **named)
        except Exception as error:  # the SDK raises whatever its transport raises
            message = f"the service Mem0 failed ({type(error).__name__}: {error})."
            hint = "Check the key and the connection to the service."
            raise StoreError("AX854", message, hint) from error

    def _made(self) -> Any:
        """Make a client for an event loop: its connections are of no use on another."""
        made: Any = importlib.import_module("mem0").AsyncMemoryClient
        given = {"org_id": self.config.org_id, "project_id": self.config.project_id}
        key = self.config.api_key.resolve(where="mem0").get_secret_value()
        return made(api_key=key, **{name: value for name, value in given.items() if value})
