"""Joins: when a node fires, by what its incoming edges carry.

A join is asked at a *port*: the place where the edges of one group end at a node. It knows how many
of the port's trigger edges are *live* (carry a token), how many are *dead* (will carry none), and
how many there are. Its answer is a pure function of these three numbers; data edges are waited for
in any case, and a port without a single token never fires.

A join is one of three kinds:

* A usual one is asked once, when all edges are decided. What is fast plays no part.
* An *early* one is asked whenever an edge is decided, and may answer before the others are. Which
  tokens it fires with then depends on what came first, so it is recorded with the firing, and a
  run that goes on fires with the same ones.
* One that fires *per token* is never asked: each token makes a firing of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Rest = Literal["ignore", "cancel"]
"""The rule for firings on the way to an early join that has fired: they go on, and what they
send there is ignored; or they are cancelled, where their outputs lead nowhere else.
"""


class Join(Protocol):
    """A component of kind ``joins`` that decides when a node fires."""

    @property
    def early(self) -> bool:
        """True if the join is asked whenever an edge is decided; else it is asked once, when all
        edges are.
        """
        ...

    @property
    def per_token(self) -> bool:
        """True if each token makes a firing of its own: then the join is never asked."""
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
            total: trigger edges; all are decided where ``live + dead == total``.
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
        """See ``Join``."""
        return live == total if self.needs_all else live > 0


GATE = PlainJoin("gate")
"""Fires when all edges are decided, with whatever arrived; at least one has to be live."""
ALL = PlainJoin("all", needs_all=True)
"""Fires when all edges are live."""
EACH = PlainJoin("each", per_token=True)
"""Fires once for each token."""
JOINS = {join.name: join for join in (GATE, ALL, EACH)}
"""The joins of the kernel, by name."""
