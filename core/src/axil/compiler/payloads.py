"""Payload kinds: how payloads that meet become the input of a graph, and those that leave it its
output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil.contract.messages import Message, as_messages, fold_payloads, gather_messages
from axil.kernel.plan import Left, Payloads
from axil.kernel.tokens import Token


class Fields:
    """Fields of a message, folded into one mapping."""

    by_level = False

    def gather(self, tokens: Sequence[Token]) -> Any:
        """See ``Payloads``."""
        return fold_payloads(token.payload for token in tokens)

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> Any:
        """See ``Payloads``."""
        return fold_payloads(payload for _, payload in left) if left else None


class TypedState(Fields):
    """Typed state, which is the output itself; what edges carry is folded as fields are."""

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> Any:
        """See ``Payloads``. A graph in which anything fired gives ``{}``."""
        return fold_payloads(payload for _, payload in left) if fired else None


class Messages:
    """Lists of messages, one after the other: what was said first comes first."""

    by_level = True

    def gather(self, tokens: Sequence[Token]) -> Any:
        """See ``Payloads``."""
        return gather_messages(tokens)

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool) -> Any:
        """See ``Payloads``.

        The messages of the first node of ``end`` that gave any, else of any node.
        """
        if not left:
            return None
        by_source: dict[str, list[Message]] = {}
        for source, payload in left:
            by_source.setdefault(source, []).extend(as_messages(payload))
        for name in end:
            if by_source.get(name):
                return by_source[name]
        return next((messages for messages in by_source.values() if messages), list[Message]())


KINDS: dict[str, Payloads] = {"fields": Fields(), "messages": Messages(), "state": TypedState()}
"""By the name that specs and files have for them."""
