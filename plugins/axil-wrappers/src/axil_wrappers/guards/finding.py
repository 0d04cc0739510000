"""The contract of guards: ``axil.guards``."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

from axil_models import Use, as_given


class Span(NamedTuple):
    """A part of a text that must not pass, and what to write in its place."""

    start: int
    end: int
    label: str
    """``email``: the text that is passed on has ``[email]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The reason why a value must not pass. It does not show the value."""

    reason: str
    spans: tuple[Span, ...] = ()
    """The parts to mask; empty: nothing less than all of it."""


class Guard(Protocol):
    """``axil.guards``: looks at a value before it passes.

    Class attribute ``of``: ``"text"``, the default, each text in a value by itself; ``"value"``,
    the value as a whole, plain data.
    """

    def check(self, value: Any, ctx: Any, /) -> Finding | Awaitable[Finding | None] | None:
        """Return why it must not pass; None: it may. Awaited if necessary.

        Args:
            ctx: the context of the body; a guard that asks a model asks it in a step.
        """
        ...


GuardLike: TypeAlias = Annotated[Guard | Use, as_given]
"""A guard, or the use of one."""


def masked(text: str, spans: Sequence[Span]) -> str:
    """Return a text with the parts replaced by their labels; of parts that overlap, the one that
    begins first, and of those the longest.

    >>> masked("ann@x.org, call", [Span(0, 9, "email")])
    '[email], call'
    """
    parts: list[str] = []
    at = 0
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if span.start < at:
            continue
        parts += [text[at : span.start], f"[{span.label}]"]
        at = span.end
    return "".join([*parts, text[at:]])
