"""The compiled graph: integers, tuples and bound callables; immutable, all that the machine sees.

A ``ResolvedGraph`` is one spec, resolved. A ``Plan`` is one *scope* of it, folded: the whole graph,
or the body of one of its cycles as entered at one node. A plan's node is a vertex, or a cycle of
several.

What a plan has many of is not declared frozen: making a frozen object takes three to five times as
long.

Theory of slots
---------------
Each edge ends in a *port* of its target: one port per group for ``gate`` and ``all``, one in all
for ``each``. A port of the first two counts down ``waits``, its undecided edges, and decides at
zero. A *unit* is what closes as one: a node, or a flat cycle of ``each`` nodes; it counts
``opens``, the reasons why it might still fire, and kills its out-edges at zero. Both counts are the
whole of scheduling: nothing is ever scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from axil.kernel.joins import GATE, Join
from axil.kernel.state import Schema, State
from axil.kernel.tokens import Carried, Effects, Task, Token

Carry = Callable[[Any, State], "object | Carried | None"]
"""From (output, state after the source) to a payload, or None: dead. Pure and synchronous."""
Merge = Callable[[Sequence[State]], Mapping[str, object]]
"""From the states at a join to the values of the merged one."""

Mode = Literal["inline", "async", "thread", "scope"]
"""The way to run a body: called directly, awaited, called in a thread, or as a frame of its own."""


class Body(Protocol):
    """The callable of a firing: it gives an ``Out``, to be awaited where ``mode`` is ``async``."""

    @property
    def mode(self) -> Mode: ...
    def __call__(self, task: Task, ctx: Any, /) -> Any: ...


Left = tuple[str, object]
"""A payload that left a graph, and the name of the node it came from; empty: the graph's entry."""


class Payloads(Protocol):
    """A payload kind, bound when the plan is made: how payloads that meet are put together."""

    @property
    def by_level(self) -> bool:
        """True if payloads meet in the order of their sources' levels; else of edges."""
        ...

    def gather(self, tokens: Sequence[Token], /) -> object:
        """Return the input of a graph, from the tokens at its node."""
        ...

    def output(self, left: Sequence[Left], end: Sequence[str], fired: bool, /) -> object:
        """Return a graph's output, from what left it; None: nothing.

        Args:
            end: nodes whose payloads are preferred, the most preferred first.
            fired: whether anything in the graph fired.
        """
        ...


Filter = Callable[[State], Mapping[str, object]]
"""From a state to the values of the one that goes on."""
Router = Callable[[Any, State], Mapping[str, Filter | None]]
"""From (output, state), asked once per firing, to the taken targets, each with its filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleLimit:
    """The number of rounds that a cycle may turn, and what reaching it means."""

    rounds: int | None = 100
    """None: no limit."""
    at_limit: Literal["limited", "exit"] = "limited"
    """``limited`` ends the run with that status; ``exit`` ends the cycle."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Edge:
    """One edge; ``source`` and ``target`` are vertex positions, -1 is ``@entry`` or ``@exit``."""

    id: int
    name: str
    """``a->b``, with ``#1`` and so on for further edges between the same two."""
    source: int
    target: int
    target_name: str
    carry: Carry | None = None
    """None: the output itself."""
    trigger: bool = True
    group: str = ""
    router: int = -1
    """Position in the source's routers, or -1."""
    condition: object = None
    """The component that decides whether it is taken; for checks, as ``process``."""
    process: object = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ResolvedNode:
    """One node of a graph, resolved."""

    name: str
    body: Body
    join: Join = GATE
    merge: Mapping[str, Merge] | None = None
    routers: tuple[Router, ...] = ()
    lane: str | None = None
    effects: Effects = "idempotent"
    type: str = ""
    own: Body | None = None
    """The body as the node's component gives it, inside all that is wrapped around it."""
    component: object = None
    """The component that it was made of; for checks, as ``wrappers``."""
    wrappers: tuple[object, ...] = ()
    """Innermost first."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ResolvedGraph:
    """A graph, resolved, before its cycles are folded."""

    spec: Any = None
    """The ``GraphSpec`` that it was compiled from; the kernel does not read it."""
    vertices: tuple[ResolvedNode, ...]
    edges: tuple[Edge, ...]
    schema: Schema
    payloads: Payloads
    start: Mapping[str, object]
    """First values of its state, checked."""
    end: tuple[str, ...] = ()
    """Nodes whose payloads are preferred as the output, the most preferred first."""
    loop: str = ""
    """The controller of a declared loop: all that it reaches belongs to its cycle."""
    cycle_limits: Mapping[str, CycleLimit] = field(default_factory=dict[str, CycleLimit])
    """By the node at which the cycle is entered; ``""``: all others."""
    components: tuple[Any, ...] = ()
    """Live components in the order they were made, for their lifecycle."""
    leaving: dict[int, PlanEdge] = field(default_factory=dict[int, "PlanEdge"])
    """Edges that leave a scope, as its plan has them, by id; filled as scopes are folded."""

    @cached_property
    def digest(self) -> str:
        """That of its spec; see ``GraphSpec.digest``."""
        return self.spec.digest()

    def cycle_limit(self, entry: str) -> CycleLimit:
        """Return the limit of a cycle that is entered at ``entry``."""
        return self.cycle_limits.get(entry) or self.cycle_limits.get("") or CycleLimit()


OUTSIDE = -1
"""Port of an edge that leads out of its plan."""
BACK = -2
"""Port of an edge that leads back to the start of its cycle, into the next round."""


@dataclass(slots=True, eq=False, repr=False)
class PlanEdge:
    """An edge as one plan sees it: where its tokens go."""

    id: int
    carry: Carry | None
    port: int
    """The port it ends in, ``OUTSIDE``, or ``BACK``: it was cut, and starts the next round."""
    trigger: bool
    router: int
    target_name: str
    late: bool = False
    """A data edge that its target cannot wait for."""
    inner: bool = False
    """Inside a flat cycle: does not close."""


@dataclass(slots=True, eq=False, repr=False)
class Port:
    """The place where the edges of one group meet."""

    node: int
    group: str
    join: Join
    needs: int
    """Trigger edges, all of which must be live for ``all``."""
    trigger_only: bool
    """No data edge ends here."""
    ordinal: tuple[int, ...]
    """Of the firing that the port makes: ``()``, or its position among the node's ports."""
    is_usual: bool = True
    """True if its join is ``GATE`` or ``ALL``."""
    undecided: int = 0
    """Trigger edges to be decided, of an early join; its ``waits`` are data edges only."""
    feeders: tuple[int, ...] = ()
    """Nodes that are cancelled when an early join fires without them."""


@dataclass(slots=True, eq=False, repr=False)
class PlanNode:
    """One node of a plan."""

    index: int
    """Its position in the plan."""
    name: str
    vertex: ResolvedNode
    """Of a cycle: the cycle's own vertex, whose body is the cycle."""
    level: int
    out: tuple[PlanEdge, ...]
    unit: int
    routers: tuple[Router, ...]
    leaves: bool
    """Has a trigger edge that leaves the scope."""
    body: Body
    call: Callable[[Task, Any], Any]
    """The function that a firing calls: the body, or the shortest way into it."""
    mode: Mode
    quick: bool
    """True if a firing is a plain call: no waiting, no concurrency limit, no fact first."""
    is_coroutine: bool
    """True if ``call`` is a coroutine function: calling it runs nothing of it yet."""
    wants_ctx: bool
    """True if the body takes a context."""
    kind: str = "node"
    """Its type for observers: ``node``, ``graph`` or ``cycle``."""
    spreads: bool = False
    """True if all its edges trigger and lead to joins of this scope, and no router is asked."""
    chain: Port | None = None
    """The port at which its only out-edge ends, if that port waits for nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """One scope, compiled."""

    graph: ResolvedGraph
    nodes: tuple[PlanNode, ...]
    """Sorted by (level, first in-edge, declaration): plan order."""
    ports: tuple[Port, ...]
    waits: tuple[int, ...]
    """Per port: edges to be decided before it decides (``each``: data edges only)."""
    opens: tuple[int, ...]
    """Per unit: ports that are not decided, or edges of an ``each`` node that are open."""
    units: tuple[tuple[int, ...], ...]
    """Nodes of each unit."""
    sources: tuple[int, ...]
    """Units that nothing inside leads to: dead from the start unless something comes from outside.
    """
    entries: Mapping[int, PlanEdge]
    """Edges from outside, by edge id."""
    node_of: Mapping[int, int]
    """The node of each vertex."""
    positions: Mapping[int, int]
    """The position of each edge among the in-edges of a node that fires for each token, by id."""
    flat_limits: Mapping[int, CycleLimit] = field(default_factory=dict[int, CycleLimit])
    """Nodes of flat cycles, and how often each may fire in a frame."""
    barriers: tuple[tuple[int, int], ...] = ()
    """(level, how many nodes on it have an edge that leaves), in a cycle's body."""
    entry: int | None = None
    """A cycle's body: the node that every round starts with."""
    index: Mapping[str, int] = field(default_factory=dict[str, int])
    """Nodes by name."""

    def owner(self, edge: int) -> int:
        """Return the node that an edge starts at; -1: it comes from outside."""
        return self.node_of.get(self.graph.edges[edge].source, -1)

    def rank(self, edge: int) -> tuple[int, int]:
        """Return the place of an edge's tokens at a join: by level, as payloads may want it, and by
        edge.
        """
        node = self.owner(edge) if self.graph.payloads.by_level else -1
        return (self.nodes[node].level if node >= 0 else -1), edge
