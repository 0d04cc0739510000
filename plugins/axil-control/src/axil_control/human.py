"""``human``: a person reads what came and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, Field

from axil.context import Context, Question
from axil.inputs import Message, as_messages, is_messages, message, render, text_of

TASK = "TASK"
"""What a message is said to come from that no node sent: the run's own input."""


def shown(messages: Sequence[Message]) -> str:
    """What came, as blocks with their sources.

    >>> shown([message("hi", source="A")])
    '=== INPUT FROM A (user) ===\\n\\nhi'
    """
    return "\n\n".join(f"=== INPUT FROM {m.get('source') or TASK} ({m.get('role', 'user')}) ===\n\n{text_of(m)}" for m in messages)


class Human:
    """``human``: asks a person, and gives the answer as one user message.

    How the person is asked is a channel's business; where no channel is attached, the run pauses with the question.
    """

    lane = "human"

    class Config(BaseModel, extra="forbid", frozen=True):
        """What the person is asked to do."""

        description: str | None = Field(default=None, description="What the person is asked to do; shown with what came.")

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    async def run(self, messages: list[Message], ctx: Context) -> Any:
        description = self.config.description or ""
        question = Question(text=shown(messages) or description, data={"description": description} if description else {})
        return answered(await ctx.ask(question))


def answered(answer: Any) -> Any:
    """An answer as output: text and parts become one user message, messages and fields stay what they are."""
    if isinstance(answer, str) or answer is None:
        return [message(answer or "")]
    if is_messages(answer) and answer:
        return as_messages(answer)
    if isinstance(answer, Mapping):
        fields = dict(cast("Mapping[str, Any]", answer))
        return [{"role": "user", **fields}] if "content" in fields else fields
    return [message(answer if isinstance(answer, list) else render(answer))]
