"""The data that moves through a plan: tokens, tasks, outcomes, and the names of activations.

A *frame* is one run of one scope: the whole graph, one round of a cycle, one entry of a subgraph,
one item of a map. Its name is ``()`` for the run itself, ``("review", 2, "sub")`` for the subgraph
``sub`` in the third round of the cycle ``review``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, cast

from axil.kernel.state import State

if TYPE_CHECKING:
    from axil.kernel.plan import PlanNode

T = TypeVar("T")
Effects = Literal["none", "idempotent", "external"]
"""The effects of a second run of a body: none, no more than the first, or more."""
Frame = tuple[str | int, ...]
"""The name of a frame: nodes, rounds and indices from the run inward; ``()`` is the run."""
Ordinal = tuple[int, ...]
"""The number of a firing of a node in its frame: ``()`` for the only one; see ``next_ordinal``."""

ENTRY = "@entry"
"""The place of a graph's inputs."""
EXIT = "@exit"
"""The place of a graph's outputs."""


class Activation(NamedTuple):
    """The name of one firing of one node; the same in every run."""

    frame: Frame
    node: str
    ordinal: Ordinal = ()

    @property
    def path(self) -> str:
        """``sub/W``: the node through its graphs, without rounds."""
        return path_of(self.frame, self.node)

    def __str__(self) -> str:
        where = "/".join(str(part) for part in (*self.frame, self.node))
        return f"{where}#{'.'.join(map(str, self.ordinal))}" if self.ordinal else where


def path_of(frame: Frame, node: str) -> str:
    """Return the node's name through the graphs around it, without cycles, rounds and indices."""
    return "/".join(
        [part for part in frame if isinstance(part, str) and not part.startswith(("cycle(", "#"))]
        + [node]
    )


def inner_frame(frame: Frame, node: str, ordinal: Ordinal) -> Frame:
    """Return the name of the frame that an activation opens, without rounds and indices."""
    return (*frame, node, "#" + ".".join(map(str, ordinal))) if ordinal else (*frame, node)


def next_ordinal(position: int, source: Ordinal) -> Ordinal:
    """Return the ordinal of a firing of an ``each`` node: where its token came from, and its
    in-edge.

    Long ones (tokens that turn in a flat cycle) are shortened to their length and a digest.
    """
    if len(source) < 24:
        return (*source, position)
    import hashlib

    digest = hashlib.blake2b(repr((source, position)).encode(), digest_size=7).digest()
    length = source[1] + 1 if source[0] == -1 else len(source) + 1
    return (-1, length, int.from_bytes(digest, "big"), *([0] * 21))


class Token(NamedTuple):
    """A live token: what an edge carries. A dead edge carries none."""

    edge: int
    """The edge's position in the graph's list of edges."""
    payload: Any
    state: State | None
    """None on a data edge that its target could not wait for."""
    ordinal: Ordinal = ()
    """The source's."""


@dataclass(frozen=True, slots=True)
class Carried:
    """An edge's answer that replaces the state, too."""

    payload: object
    values: Mapping[str, object]


class Changes(dict[str, object]):
    """A delta that a frame composed: checked already."""

    __slots__ = ()


_NOTHING: Mapping[str, object] = MappingProxyType({})


class Out(NamedTuple):
    """The result of a body: an output for edges, a delta to write, and, for routers, the edges to
    take.

    >>> Out({"text": "hi"}, delta={"turns": 1})
    Out(output={'text': 'hi'}, delta={'turns': 1}, to=None)
    """

    output: Any = None
    delta: Mapping[str, Any] = _NOTHING
    to: frozenset[str] | None = None
    """Names of the nodes whose edges may carry; None: all."""


class _Quick(Protocol):
    def __call__(self, kind: type[T], values: tuple[object, ...], /) -> T: ...


new_tuple: _Quick = cast("Any", tuple).__new__
"""Makes a named tuple of all its fields, without a call of Python."""


class Task:
    """One firing that is due."""

    __slots__ = ("frame", "node", "ordinal", "owner", "state", "tokens")

    def __init__(
        self,
        frame: Frame,
        node: PlanNode,
        ordinal: Ordinal,
        tokens: tuple[Token, ...],
        state: State,
        owner: Any = None,
    ) -> None:
        self.frame = frame
        self.node = node
        self.ordinal = ordinal
        self.tokens = tokens
        """Live tokens, in edge order."""
        self.state = state
        """The join of the tokens' states."""
        self.owner = owner
        """The machine that gave the task."""

    @property
    def activation(self) -> Activation:
        """The name of the firing."""
        return new_tuple(Activation, (self.frame, self.node.name, self.ordinal))

    def with_tokens(self, tokens: tuple[Token, ...]) -> Task:
        """Return the same firing with other tokens."""
        return Task(self.frame, self.node, self.ordinal, tokens, self.state, self.owner)
