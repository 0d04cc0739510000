"""``human``: a person reads what came and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from axil import Context, Out, Question
from axil.plugin import Message, Overdue, as_messages, is_messages, message, render, text_of
from axil_control.switches import check_receivers, receiver_of, resolve_receiver
from axil_files import parse_duration


def shown(messages: Sequence[Message]) -> str:
    """Return the input as a person reads it: a text, or texts behind their sources.

    >>> shown([message("hi", source="A")])
    'hi'
    >>> shown([message("hi", source="A"), message("you")])
    'A: hi\\n\\nuser: you'
    """
    if len(messages) == 1:
        return text_of(messages[0])
    return "\n\n".join(
        f"{m.get('source') or m.get('role', 'user')}: {text_of(m)}" for m in messages
    )


class Human:
    """``human``: asks a person, and gives the answer as one user message.

    A channel asks; without a channel the run pauses with the question.
    """

    examples = ({"description": "May it be sent?", "within": "2 days", "default": "no"},)
    lane = "human"
    reply_name = "the answer"

    class Config(BaseModel, extra="forbid", frozen=True):
        """The task for the person."""

        description: str | None = Field(
            default=None, description="What the person is asked to do; shown with what came."
        )
        within: float | str | None = Field(
            default=None,
            description='The time to answer: seconds, or "15m", "2h 30m", "3 days"; '
            "without it for ever.",
        )
        default: Any = Field(
            default=None, description="The answer if there is none within that time."
        )
        late: str | None = Field(
            default=None,
            description="The node that runs instead, with the same input, if there is no answer "
            "within that time; else it gets nothing.",
        )

        @field_validator("within")
        @classmethod
        def _is_a_duration(cls, within: float | str | None) -> float | None:
            return None if within is None else parse_duration(within)

        @model_validator(mode="after")
        def _says_one_thing(self) -> Human.Config:
            if self.within is None and (self.default is not None or self.late is not None):
                raise ValueError("AX523 default and late need a time: set within.")
            if self.default is not None and self.late is not None:
                raise ValueError("AX523 expected default or late, not both.")
            return self

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()
        self._late, self._others = self.config.late or "", frozenset[str]()

    def bind(self, out_edges: list[object]) -> None:
        """Called when the plan is made: ``late`` is one of the nodes that it leads to.

        Raises: BindingError (AX611).
        """
        receivers = [receiver_of(edge) for edge in out_edges]
        if self.config.late:
            self._late = resolve_receiver(self.config.late, receivers)
            check_receivers("late", [self._late], receivers)
            self._others = frozenset(receivers) - {self._late}

    async def run(self, messages: list[Message], ctx: Context) -> object:
        config, description = self.config, self.config.description or ""
        question = Question(
            text=shown(messages) or description,
            data={"description": description} if description else {},
            default=config.default,
            within_seconds=cast("float | None", config.within),
        )
        if not config.late:
            return answered(await ctx.ask(question))
        try:
            answer = answered(await ctx.ask(question))
        except Overdue:
            return Out(messages, to=frozenset([self._late]))
        return Out(answer, to=self._others)


def answered(answer: object) -> object:
    """Return an answer as output: text and parts become one user message; messages and fields
    stay.
    """
    if isinstance(answer, str) or answer is None:
        return [message(answer or "")]
    if is_messages(answer) and answer:
        return as_messages(answer)
    if isinstance(answer, Mapping):
        fields = dict(cast("Mapping[str, object]", answer))
        return [{"role": "user", **fields}] if "content" in fields else fields
    return [message(answer if isinstance(answer, list) else render(answer))]
