"""``history``: an agent remembers its conversation, in the state of its node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from axil import ConfigError, Problem
from axil.plugin import Log, Message
from axil_models import Ask, Request, content_text, estimated_tokens

_ASKED = (
    "Summarise the conversation below for the model that will continue it: "
    "facts, decisions, open questions. Be brief, and write only the summary."
)


class HistoryMemory:
    """Chat messages of earlier turns, sent between the system's message and the new one."""

    kit_excuse = "it remembers the conversation itself; it gives no blocks"

    passive = False
    active = False

    def __init__(
        self,
        top_k: int = 10,
        memory_size: int = 1000,
        context_label: str = "history",
        *,
        share: str = "",
        messages: Sequence[Message] = (),
        summarise: bool = False,
        max_tokens: int | None = None,
        drop: int = 1,
        tokens_of: Callable[[str], int] = estimated_tokens,
    ) -> None:
        """Set what is remembered, and how much of it is sent.

        Args:
            top_k: messages that are sent, the newest; 0: all, negative: none. It is rounded to
                whole turns.
            memory_size: messages that are kept; up to twice as many are stored, so that old ones
                are dropped many at a time.
            share: the attribute that holds the messages, for agents that share one conversation,
                and for runs that continue an earlier one; empty: the node keeps them for itself.
            messages: what it begins with.
            summarise: what would fall out is summarised by the agent's model into one message.
            drop: messages that are left out at once when there are more than ``top_k``; with half
                of it, the front of the prompt stays the same for several turns, as a provider's
                prompt cache needs it.
            max_tokens: tokens that are sent, the newest whole turns; with ``summarise``, what is
                kept beyond is summarised.
            tokens_of: counts the tokens of a text.
        Raises: ConfigError (AX655): memory_size, max_tokens or drop is not positive.
        """
        limits = {"memory_size": memory_size, "max_tokens": max_tokens, "drop": drop}
        for name, number in limits.items():
            if number is not None and number < 1:
                message = f"expected a whole number of at least 1, found {number}."
                raise ConfigError(Problem("AX655", name, message))
        self.top_k, self.memory_size = top_k, memory_size
        self.label = self.context_label = context_label
        self.share, self.first, self.summarise = share, tuple(messages), summarise
        self.max_tokens, self.drop, self.tokens_of = max_tokens, drop, tokens_of

    def insert(self, role: str, content: Any) -> None:
        """Add a message to what it begins with; before the agent is run."""
        self.first = (*self.first, {"role": role, "content": content})

    def recall(self, kept: Sequence[Message]) -> list[Message]:
        """Return the messages that are sent."""
        if self.top_k < 0:
            return []
        most = min(self.top_k or self.memory_size, self.memory_size)
        over = max(len(kept) - most, 0)
        over = min(-(-over // self.drop) * self.drop, over + most - 1)
        known = [dict(m) for m in (kept[over:] or self.first)]
        sent = self._fitting(known if self.top_k == 0 else known[-self.top_k :], self.max_tokens)
        # half a turn would be a conversation that the model began
        while sent and sent[0].get("role") == "assistant":
            sent = sent[1:]
        return sent

    async def remember(
        self, kept: Sequence[Message], turn: Sequence[Message], ask: Ask
    ) -> Sequence[Message]:
        """Return the conversation to keep after ``turn``.

        Cost: O(turn), amortised, without ``summarise``, where ``kept`` is a log.
        """
        is_short = len(kept) + len(turn) <= 2 * self.memory_size
        if type(kept) is Log and is_short and not self.summarise:
            return kept.extended([dict(m) for m in turn])
        known = [*(dict(m) for m in kept or self.first), *(dict(m) for m in turn)]
        if not self.summarise:
            return known[-self.memory_size :]
        most_tokens = self.max_tokens
        if len(known) <= self.memory_size and self._fitting(known, most_tokens) == known:
            return known
        half_tokens = None if most_tokens is None else max(most_tokens // 2, 1)
        new = self._fitting(known[-max(self.memory_size // 2, 1) :], half_tokens)
        old = known[: len(known) - len(new)]
        text = "\n\n".join(f"{m.get('role')}: {content_text(m.get('content'))}" for m in old)
        messages = [{"role": "system", "content": _ASKED}, {"role": "user", "content": text}]
        reply = await ask(Request(messages=messages))
        summary = f"[Summary of what was said before]\n{reply.text.strip()}"
        return [{"role": "user", "content": summary}, *new]

    def _fitting(self, messages: list[Message], most: int | None) -> list[Message]:
        """Return the newest messages that have no more than ``most`` tokens together; None: all."""
        if most is None:
            return messages
        for first in range(len(messages), 0, -1):
            most -= self.tokens_of(content_text(messages[first - 1].get("content")))
            if most < 0:
                return messages[first:]
        return messages

    def __repr__(self) -> str:
        limits = f"top_k={self.top_k}, memory_size={self.memory_size}"
        return f"HistoryMemory({limits}, share={self.share!r})"


def is_chat_memory(memory: Any) -> bool:
    """Return whether a memory keeps the conversation itself."""
    return hasattr(memory, "recall") and hasattr(memory, "remember")
