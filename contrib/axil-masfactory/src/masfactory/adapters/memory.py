"""Memories: they receive the turns of agents, and give context or history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import axil_agent
from axil_models import ContextBlock, ContextQuery
from masfactory.adapters.context.provider import ContextProvider, HistoryProvider, limited
from masfactory.adapters.vectors import Embedding, nearness


class Memory(ContextProvider):
    """The base of memories of your own."""

    def insert(self, key: str, value: Any) -> Any:
        """Keep something; an agent tells each turn: JSON of the input, and the reply's text."""
        raise NotImplementedError

    def update(self, key: str, value: Any) -> Any:
        """Change what is kept."""
        raise NotImplementedError

    def delete(self, key: str, index: int = -1) -> Any:
        """Forget something."""
        raise NotImplementedError

    def reset(self) -> Any:
        """Forget everything."""
        raise NotImplementedError


class HistoryMemory(axil_agent.HistoryMemory, HistoryProvider):
    """Chat messages of earlier turns.

    It holds them itself, as in MASFactory: they stay from one ``invoke`` to the next, agents that
    share it share the conversation, and concurrent runs mix. For history that belongs to a run take
    ``axil_agent.HistoryMemory``.
    """

    def __init__(
        self,
        top_k: int = 10,
        memory_size: int = 1000,
        context_label: str = "CONVERSATION_HISTORY",
        *,
        merge_historical_media: bool = True,
    ) -> None:
        super().__init__(top_k, memory_size, context_label)
        self.merge_historical_media = merge_historical_media
        self._messages: list[dict[str, Any]] = []

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages."""
        return [dict(message) for message in self._messages]

    def insert(  # type: ignore[override]  # MASFactory's name of the second argument
        self, role: str, response: Any
    ) -> None:
        """Add a message."""
        self._messages.append({"role": role, "content": response})
        del self._messages[: -self.memory_size]

    def get_messages(
        self, query: ContextQuery | None = None, *, top_k: int = -1
    ) -> list[dict[str, Any]]:
        """Give the newest messages: ``top_k`` of them, -1: as many as are sent, 0: all."""
        if top_k == -1:
            return self.recall(())
        return self.messages if top_k == 0 else self.messages[-top_k:] if top_k > 0 else []

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give nothing: it gives messages."""
        return []

    def update(self, key: str, value: Any) -> None:
        """Change the newest message of a role."""
        for message in reversed(self._messages):
            if message["role"] == key:
                message["content"] = value
                return

    def delete(self, key: str, index: int = -1) -> None:
        """Forget a message of a role; the newest, unless ``index`` says which."""
        several = [message for message in self._messages if message["role"] == key]
        if -len(several) <= index < len(several):
            self._messages.remove(several[index])

    def reset(self) -> None:
        """Forget everything."""
        self._messages.clear()

    def recall(self, kept: Sequence[Any]) -> list[Any]:
        return super().recall(self.messages) if self._messages else []

    async def remember(self, kept: Sequence[Any], turn: Sequence[Any], ask: Any) -> list[Any]:
        self._messages[:] = await super().remember(self.messages, turn, ask)
        return []


class VectorMemory(Memory):
    """A memory of what was said, found by the nearness of vectors."""

    def __init__(
        self,
        embedding_function: Embedding,
        top_k: int = 10,
        query_threshold: float = 0.8,
        memory_size: int = 20,
        context_label: str = "SEMANTIC_KNOWLEDGE",
        *,
        passive: bool = True,
        active: bool = False,
    ) -> None:
        super().__init__(context_label, passive=passive, active=active)
        self._embed, self.top_k = embedding_function, top_k
        self.query_threshold, self.memory_size = query_threshold, memory_size
        self._kept: dict[str, tuple[str, Any]] = {}

    def insert(self, key: str, value: Any) -> None:
        """Keep something in place of what the key had; what is oldest falls out."""
        if key not in self._kept and 0 < self.memory_size <= len(self._kept):
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (str(value), self._embed(f"{key}: {value}"))

    def update(self, key: str, value: Any) -> None:
        """Keep another value for a key that is there."""
        if key in self._kept:
            self.insert(key, value)

    def delete(self, key: str, index: int = -1) -> None:
        """Forget a key."""
        self._kept.pop(key, None)

    def reset(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def get_blocks(self, query: ContextQuery, *, top_k: int = 8) -> list[ContextBlock]:
        """Give what is near the query."""
        if not self._kept or not query.query_text.strip():
            return []
        asked = self._embed(query.query_text)
        scored = [
            (nearness(asked, vector), key, text) for key, (text, vector) in self._kept.items()
        ]
        near = sorted((s for s in scored if s[0] >= self.query_threshold), key=lambda s: -s[0])
        blocks = [ContextBlock(text, score=n, metadata={"key": key}) for n, key, text in near]
        most = self.top_k if top_k == -1 else top_k
        most = min(most, self.top_k) if most > 0 and self.top_k > 0 else most
        return limited(blocks, most)
