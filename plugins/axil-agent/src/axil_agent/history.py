"""``history``: an agent remembers its conversation.

What it keeps is state, not something in this object: fields of the node, carried and journaled like
all state. So rounds of a loop remember, concurrent runs never mix, and a resumed run has lost
nothing.
"""

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
    """Chat messages of earlier turns, sent between the system's message and the new one.

    Nothing is dropped because it was said twice.
    """

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
                and for runs that continue with what an earlier run gave back; empty: the node keeps
                them for itself. Of a conversation in a typed state the agent writes its turn once.
            messages: what it begins with.
            summarise: what would fall out is summarised by the agent's model into one message; else
                it is forgotten.
            drop: messages that are left out at once when there are more than ``top_k``; with a half
                of it, the front of the prompt stays the same for several turns, and a provider's
                prompt cache knows it.
            max_tokens: tokens that are sent, the newest whole turns; with ``summarise``, what is
                kept beyond is summarised.
            tokens_of: how a text's tokens are counted; as ``estimated_tokens`` of axil_models.
        Raises: ConfigError (AX655): memory_size, max_tokens or drop is not positive.
        """
        for name, number in (
            ("memory_size", memory_size),
            ("max_tokens", 1 if max_tokens is None else max_tokens),
            ("drop", drop),
        ):
            if number < 1:
                raise ConfigError(
                    Problem(
                        "AX655", name, f"expected a whole number of at least 1, found {number}."
                    )
                )
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
        # at most what there is: of a larger number nothing would be left
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
        if len(known) <= self.memory_size and len(self._fitting(known, self.max_tokens)) == len(
            known
        ):
            return known
        most = max(self.memory_size // 2, 1)
        new = self._fitting(
            known[-most:], None if self.max_tokens is None else max(self.max_tokens // 2, 1)
        )
        old = known[: len(known) - len(new)]
        text = "\n\n".join(f"{m.get('role')}: {content_text(m.get('content'))}" for m in old)
        reply = await ask(
            Request(
                messages=[{"role": "system", "content": _ASKED}, {"role": "user", "content": text}]
            )
        )
        return [
            {"role": "user", "content": f"[Summary of what was said before]\n{reply.text.strip()}"},
            *new,
        ]

    def _fitting(self, messages: list[Message], most: int | None) -> list[Message]:
        """Return the newest messages that have no more than ``most`` tokens together; None: all."""
        if most is None:
            return messages
        left, first = most, len(messages)
        while (
            first
            and (left := left - self.tokens_of(content_text(messages[first - 1].get("content"))))
            >= 0
        ):
            first -= 1
        return messages[first:]

    def __repr__(self) -> str:
        return (
            f"HistoryMemory(top_k={self.top_k}, "
            f"memory_size={self.memory_size}, share={self.share!r})"
        )


def is_chat_memory(memory: Any) -> bool:
    """Return whether a memory keeps the conversation itself."""
    return hasattr(memory, "recall") and hasattr(memory, "remember")
