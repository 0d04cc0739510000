"""Joins: when a node fires, by what its incoming edges carry.

A join is asked at a *port*, where the edges of one group end at a node: how many of its trigger
edges are *live* (carry a token), how many *dead* (will carry none), and how many there are. Its
answer is a pure function of these; data edges are waited for in any case, and a port without a
token never fires.

* A usual join is asked once, when all edges are decided.

* An *early* one is asked whenever an edge is decided, and may answer before the others are. Which
tokens it fires with then depends on what came first, so it is recorded with the firing, and a
resumed run fires with the same ones.

* One that fires *per token* is never asked: each token makes a firing of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Rest = Literal["ignore", "cancel"]
"""The rule for firings on the way to an early join that has fired: they continue, and what they
send there is ignored; or they are cancelled, where their outputs lead nowhere else.
"""


class Join(Protocol):
    """A component of kind ``joins`` that decides when a node fires."""

    @property
    def early(self) -> bool:
        """True if it is asked whenever an edge is decided."""
        ...

    @property
    def per_token(self) -> bool:
        """True if each token makes a firing of its own."""
        ...

    @property
    def rest(self) -> Rest:
        """The treatment of firings that an early join does not wait for."""
        ...

    def fires(self, live: int, dead: int, total: int, /) -> bool | None:
        """Return whether the node fires; None, from an early join: that depends on further edges.

        Args:
            live: trigger edges that carry a token.
            dead: trigger edges that will carry none.
            total: trigger edges.
        """
        ...


@dataclass(frozen=True, slots=True)
class PlainJoin:
    """A join of the kernel: waits until all edges are decided, or fires for each token."""

    name: str
    per_token: bool = False
    needs_all: bool = False
    early: bool = False
    rest: Rest = "ignore"

    def fires(self, live: int, dead: int, total: int, /) -> bool:
        return live == total if self.needs_all else live > 0


GATE = PlainJoin("gate")
"""Fires when all edges are decided and at least one is live."""
ALL = PlainJoin("all", needs_all=True)
"""Fires when all edges are live."""
EACH = PlainJoin("each", per_token=True)
"""Fires once for each token."""
JOINS = {join.name: join for join in (GATE, ALL, EACH)}
"""The joins of the kernel, by name."""
