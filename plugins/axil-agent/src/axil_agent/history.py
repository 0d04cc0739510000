"""``history``: an agent remembers its conversation, in the state of its node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axil import ConfigError, Problem
from axil.plugin import Log, Message, naming_unknown
from axil_models import Ask, Request, content_text, estimated_tokens

_ASKED = (
    "Summarise the conversation below for the model that will continue it: "
    "facts, decisions, open questions. Be brief, and write only the summary."
)
_SUMMARY = "[Summary of what was said before]"


class HistoryMemory:
    """Chat messages of earlier turns, sent between the system's message and the new one."""

    kit_excuse = "it remembers the conversation itself; it gives no blocks"

    passive = False
    active = False

    @naming_unknown
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
        keep_tokens: int | None = None,
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
            summarise: what would fall out is summarised by the agent's model into one message,
                which is always sent.
            drop: messages that are left out at once when there are more than ``top_k``; with half
                of it, the front of the prompt stays the same for several turns, as a provider's
                prompt cache needs it.
            max_tokens: tokens that are sent, the newest whole turns; with ``summarise``, what is
                kept beyond is summarised.
            keep_tokens: tokens of the newest whole turns that stay as they are when the others are
                summarised; None: half of ``max_tokens``.
            tokens_of: counts the tokens of a text.
        Raises: ConfigError (AX655): a number is not positive, or ``keep_tokens`` is of no use.
        """
        limits = {
            "memory_size": memory_size,
            "max_tokens": max_tokens,
            "keep_tokens": keep_tokens,
            "drop": drop,
        }
        for name, number in limits.items():
            if number is not None and number < 1:
                message = f"expected a whole number of at least 1, found {number}."
                raise ConfigError(Problem("AX655", name, message))
        if keep_tokens is not None and not (summarise and keep_tokens < (max_tokens or 0)):
            message = f"expected summarise, and max_tokens above {keep_tokens}."
            raise ConfigError(Problem("AX655", "keep_tokens", message))
        self.top_k, self.memory_size = top_k, memory_size
        self.label = self.context_label = context_label
        self.share, self.first, self.summarise = share, tuple(messages), summarise
        self.max_tokens, self.drop, self.tokens_of = max_tokens, drop, tokens_of
        self.keep_tokens = keep_tokens or (None if max_tokens is None else max(max_tokens // 2, 1))

    def insert(self, role: str, content: object) -> None:
        """Add a message to what it begins with; before the agent is run."""
        self.first = (*self.first, {"role": role, "content": content})

    def recall(self, kept: Sequence[Message]) -> list[Message]:
        """Return the messages that are sent."""
        if self.top_k < 0:
            return []
        if self.summarise and kept and _is_summary(kept[0]):
            rest = self._newest(kept[1:], self.max_tokens and self._left(kept[0]))
            return [dict(kept[0]), *rest]
        return self._newest(kept or self.first, self.max_tokens)

    def _newest(self, kept: Sequence[Message], most_tokens: int | None) -> list[Message]:
        """Return the newest whole turns that may be sent."""
        most = min(self.top_k or self.memory_size, self.memory_size)
        over = max(len(kept) - most, 0)
        over = min(-(-over // self.drop) * self.drop, over + most - 1)
        known = [dict(m) for m in kept[over:]]
        return _whole(
            self._fitting(known if self.top_k == 0 else known[-self.top_k :], most_tokens)
        )

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
        if len(known) <= self.memory_size and self._fitting(known, self.max_tokens) == known:
            return known
        newest = known[-max(self.memory_size // 2, 1) :]
        new = _whole(self._fitting(newest, self.keep_tokens))
        old = known[: len(known) - len(new)]
        text = "\n\n".join(f"{m.get('role')}: {content_text(m.get('content'))}" for m in old)
        messages = [{"role": "system", "content": _ASKED}, {"role": "user", "content": text}]
        reply = await ask(Request(messages=messages))
        return [{"role": "user", "content": f"{_SUMMARY}\n{reply.text.strip()}"}, *new]

    def _left(self, summary: Message) -> int:
        """Return the tokens that are left beside the summary."""
        used = self.tokens_of(content_text(summary.get("content")))
        return max((self.max_tokens or 0) - used, 0)

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


def _is_summary(message: Message) -> bool:
    return str(message.get("content")).startswith(_SUMMARY)


def _whole(messages: list[Message]) -> list[Message]:
    """Return the messages from the first turn on that is whole: half of one would be a conversation
    that the model began, or the result of a tool without its call.
    """
    inside = ("assistant", "tool")
    first = next((n for n, m in enumerate(messages) if m.get("role") not in inside), len(messages))
    return messages[first:]


def is_chat_memory(memory: object) -> bool:
    """Return whether a memory keeps the conversation itself."""
    return hasattr(memory, "recall") and hasattr(memory, "remember")
