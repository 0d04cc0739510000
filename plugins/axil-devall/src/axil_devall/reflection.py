"""DevAll's reflection: the model revises its reply, as the file instructs."""

from __future__ import annotations

from collections.abc import Sequence

from axil.plugin import Message, text_of


class Reflection:
    """A ``Thinking`` whose question is a request of its own, with the conversation in it."""

    def __init__(self, prompt: str, memories: str = "") -> None:
        """``memories``: what is remembered for this, as text."""
        self.prompt, self.memories = prompt, memories

    async def after(self, messages: Sequence[Message], reply: str, /) -> Sequence[Message] | None:
        """Return one message with the conversation and the instruction."""
        text = "\n\n".join(f"{m['role']}: {text_of(m.get('content'))}" for m in messages)
        parts = [
            "Here is a conversation with an assistant, "
            "and below it what you are to do with the assistant's last message.",
            "===== Conversation =====\n\n"
            f"{text}\n\nassistant: {reply}\n\n===== End of Conversation =====",
            self.memories,
            f"Your task: {self.prompt.strip()}",
            "Write the new last message of the assistant, and nothing else.",
        ]
        return [{"role": "user", "content": "\n\n".join(part for part in parts if part)}]
