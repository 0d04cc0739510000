"""Scopes that run inside a node: cycles, round after round, and graphs.

Neither is special to the machine.

Theory of operation
-------------------
A *visit* is one entry of a scope by one task. It gives a machine to run, is notified when that
machine has nothing left to do, and then gives the next machine or what the visit comes to. The run
keeps visits on a stack of its own; nothing here waits, and nothing recurses however deep graphs are
nested.

A cycle: on entry the member with a live trigger edge from outside is the *initial* node; none of
them cannot be (the cycle would not have fired), several is an error. Each round is a fresh machine
over the body compiled for that entry. The initial node fires unconditionally, with the tokens that
entered or came back, from the join of all paths that ended in the round before. When a round has
nothing left to do, in this order: a live token left on a trigger edge: over; the limit is reached:
over, and the run with it unless the limit is declared an exit; a live token came back on a cut
trigger edge: another round; else the cycle has ended naturally. Payloads of data edges that their
targets could not take wait in the state, in the field ``@edge/<edge>``, until a round begins in
which the target is a node of its own: of this cycle, or of one within it or around it, as they are
entered. So do tokens that came back to the start in the round in which the cycle was left. What the
cycle hands to its parent is one change per field, whatever the number of rounds.

A graph: its own state is made on entry from what it pulls, and what it pushes is projected from its
changes on return; its nodes' own fields go with it unless they are to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from axil.errors import CycleError, KernelBug, LimitReached, format_names
from axil.kernel.joins import GATE
from axil.kernel.machine import (
    Exit,
    FrameResult,
    Machine,
    Send,
    Took,
    Transition,
    entry_tokens,
    output_of,
)
from axil.kernel.plan import Edge, Mode, Plan, ResolvedGraph
from axil.kernel.state import History, Schema, State
from axil.kernel.tokens import Changes, Frame, Out, Task, Token, inner_frame, new_tuple

machine_type: type[Machine] = Machine
try:
    from axil.kernel.shortcuts import QuickMachine
except ImportError:  # that file can be deleted
    pass
else:
    machine_type = QuickMachine


class Round(NamedTuple):
    """The end of one round of a cycle."""

    number: int
    changes: Mapping[str, object]
    exits: Sequence[Exit]
    returns: Sequence[Exit]
    end: str
    """``exit``, ``natural`` or ``limit``; empty: another round follows."""
    total: Mapping[str, object] | None = None
    """The changes of all rounds so far; None: those of earlier ones are known."""
    kept: Sequence[Exit] = ()
    """With ``total``: what left on data edges so far."""


# -- cycles


class CycleBody:
    """A cycle as a node's body."""

    mode: Mode = "scope"
    kind = "cycle"

    def __init__(
        self,
        graph: ResolvedGraph,
        members: Sequence[int],
        edges: Sequence[Edge],
        fold: Callable[[int], Plan],
    ) -> None:
        """Args:
        edges: those that touch one of ``members``, by id.
        fold: makes the plan of a round that starts at a vertex.
        """
        self.graph, self.members, self.edges, self._fold = graph, tuple(members), edges, fold
        self.inside = frozenset(members)
        self.name = cycle_name([graph.vertices[m].name for m in members])
        self._bodies: dict[int, Plan] = {}
        self._waiting: dict[int, dict[int, str]] = {}

    def body(self, entry: int) -> Plan:
        """Return the plan of a round that starts at vertex ``entry``."""
        plan = self._bodies.get(entry)
        if plan is None:
            plan = self._bodies[entry] = self._fold(entry)
        return plan

    def waiting(self, entry: int) -> Mapping[int, str]:
        """Return the edges whose payloads wait in the state for such a round, with their fields:
        data edges, and those that lead back to its start, of a visit that was left.
        """
        waiting = self._waiting.get(entry)
        if waiting is None:
            node_of, nodes = self.body(entry).node_of, self.body(entry).nodes
            waiting = self._waiting[entry] = {
                e.id: waiting_field(e)
                for e in self.edges
                if (e.target == entry and e.source in self.inside)
                or (
                    not e.trigger
                    and e.target in self.inside
                    and not isinstance(nodes[node_of[e.target]].body, CycleBody)
                )
            }
        return waiting

    def entrances(self) -> list[Edge]:
        """Return the edges that lead into the cycle from outside."""
        return [e for e in self.edges if e.target in self.inside and e.source not in self.inside]

    def __call__(self, task: Task, ctx: object, /) -> Any:
        raise KernelBug(f"the body of {self.name} was called; scopes are entered.")


def waiting_field(edge: Edge) -> str:
    """Return the state field in which payloads of an edge wait."""
    return f"@edge/{edge.name}"


def cycle_name(names: Sequence[str]) -> str:
    """Return ``cycle(A,B,C)``, or ``cycle(A,B,+7)``: different at each depth of nesting."""
    shown = list(names) if len(names) <= 3 else [*names[:2], f"+{len(names) - 2}"]
    return f"cycle({','.join(shown)})"


class CycleRun:
    """A visit of a cycle."""

    def __init__(
        self,
        cycle: CycleBody,
        task: Task,
        name: str,
        *,
        known: Iterable[Round] = (),
        took: Took | None = None,
    ) -> None:
        """``known``: recorded rounds. Raises: CycleError."""
        self.cycle, self.task, self.name, self.took = cycle, task, name, took
        self.frame: Frame = inner_frame(task.frame, name, task.ordinal)
        self.ordinal, self.parent = task.ordinal, task.frame
        self.initial = self._initial_of(task)
        self.plan = cycle.body(self.initial)
        self.limit = cycle.graph.cycle_limit(cycle.graph.vertices[self.initial].name)
        self.waiting = cycle.waiting(self.initial)
        self.rounds = 0
        self.state = task.state.rooted()
        self.total = History(self.state.schema, keeps=True)
        self._entered = self.state
        self.data_exits: list[Exit] = []
        """The tokens that left on data edges in all rounds so far."""
        # whether payloads of data edges wait for this round, or waited for an earlier one
        self._has_data = False
        self.recorder: Any = None
        """Left to whatever records the rounds."""
        self._tokens = [Token(t.edge, t.payload, None, t.ordinal) for t in task.tokens]
        self.end = ""
        """Its end, as ``Round.end``; empty: it has not ended. A journal may have the last round and
        not what followed.
        """
        self.last: Round | None = None
        """The round that ended last, to be recorded before the visit goes on."""
        self._exits: Sequence[Exit] = ()
        for each in known:
            self._restore(each)
        if not self.end:
            self.machine = self._round()

    def _initial_of(self, task: Task) -> int:
        edges, graph = self.cycle.graph.edges, self.cycle.graph
        entered = sorted({edges[t.edge].target for t in task.tokens if edges[t.edge].trigger})
        if len(entered) == 1:
            return entered[0]
        names = [graph.vertices[d].name for d in entered]
        entering = [edges[t.edge].name for t in task.tokens if edges[t.edge].trigger]
        raise CycleError(
            f"{self.name} is entered at {len(entered)} nodes at once ({format_names(names)}), by "
            f"the edges {format_names(entering)}; a round starts at one node.",
            hint="Let one node gather what enters, or send only one of these edges at a time.",
        )

    def enters(self, task: Task) -> bool:
        """Return whether the edges that entered satisfy the initial node's join."""
        vertex, edges = self.cycle.graph.vertices[self.initial], self.cycle.graph.edges
        if vertex.join is GATE or vertex.join.per_token:
            return True
        needed: dict[str, set[int]] = {}
        for edge in self.cycle.entrances():
            if edge.target == self.initial and edge.trigger:
                needed.setdefault(edge.group, set()).add(edge.id)
        live = {t.edge for t in task.tokens if edges[t.edge].target == self.initial}
        counts = [(len(ids & live), len(ids - live), len(ids)) for ids in needed.values()]
        return any(n and vertex.join.fires(n, dead, total) for n, dead, total in counts)

    def _round(self) -> Machine:
        machine = machine_type(
            self.plan, (*self.frame, self.rounds), self.state, keeps=True, took=self.took
        )
        edges = self.cycle.graph.edges
        waited = [
            Token(edge, payload, None)
            for edge, field in self.waiting.items()
            for payload in self.state.get(field) or ()
        ]
        self._has_data = bool(waited)
        mine = [t for t in self._tokens if edges[t.edge].target == self.initial]
        if len(mine) > 1:
            mine.sort(key=lambda token: (self.plan.rank(token.edge), token.ordinal))
        tokens = [*waited, *self._tokens]  # since an earlier round: it was there first
        first = [t for t in waited if edges[t.edge].target == self.initial]
        machine.start(
            [t for t in tokens if edges[t.edge].target != self.initial], entry=[*first, *mine]
        )
        self.rounds += 1
        return machine

    def takes_short(self, step: Transition) -> bool:
        """Take in a round if ``step`` ends it by coming back, and in no other way."""
        machine, limit = self.machine, self.limit.rounds
        if (
            self._has_data
            or (limit is not None and self.rounds >= limit)
            or not machine.comes_back(step)
        ):
            return False
        self.total.note(machine.history.changes)
        self.state = step.state
        return True

    def short_round(self, step: Transition) -> Round:
        """Return how the round ended that ``takes_short`` took in."""
        (last,), (arc, payload, _) = self.machine.taken, step.sends[0]
        came = new_tuple(Exit, (arc.id, payload, None, last.ordinal, True))
        changes = self.machine.history.changes
        return new_tuple(Round, (self.rounds - 1, changes, (), (came,), "", None, ()))

    def again(self, step: Transition) -> Task:
        """Begin the next round after ``takes_short``; return its first task, given out."""
        frame = (*self.frame, self.rounds)
        self.rounds += 1
        return self.machine.again(frame, step)

    def next(self, ended: FrameResult) -> None:
        """Take in a machine that has nothing left to do. Raises: LimitReached."""
        changes, state = ended.changes, ended.state
        back = [r for r in ended.returns if r.trigger]
        is_left = any(e.trigger for e in ended.exits)
        stays = [r for r in ended.returns if is_left or not r.trigger]
        if ended.data or self._has_data or stays:
            kept = self._kept((*ended.data, *stays), ended.state)
            changes, state = {**changes, **kept}, state.apply(kept)
        limit = self.limit.rounds
        if is_left:
            end = "exit"
        elif back and limit is not None and self.rounds >= limit:
            end = "limit"
        else:
            end = "" if back else "natural"
        self._take(changes, state, ended.exits, () if end else ended.returns, end)
        self.last = Round(self.rounds - 1, changes, ended.exits, () if end else ended.returns, end)
        if end == "limit" and self.limit.at_limit == "limited":
            raise LimitReached(
                f"{self.name} turned {self.rounds} times, which is its limit, and had not ended.",
                id="AX411",
                where=f'node "{self.name}"',
                hint="Raise the cycle's limit, end it sooner (a condition, a loop_counter, a "
                "loop_timer with less time), or say at_limit: exit in cycle_limits.",
            )

    def _kept(self, stays: Iterable[Exit | Token], state: State) -> dict[str, object]:
        """Return the payloads that wait, by field, where they have changed."""
        edges, left = self.cycle.graph.edges, dict[int, list[Any]]()
        for sent in stays:
            left.setdefault(sent.edge, []).append(sent.payload)
        kept: dict[str, object] = {
            field: left.pop(edge, [])
            for edge, field in self.waiting.items()
            if edge in left or self.state.get(field)
        }
        for edge, payloads in left.items():  # into a cycle within, behind what that has left there
            field = waiting_field(edges[edge])
            kept[field] = [*(state.get(field) or ()), *payloads]
        return kept

    def _take(
        self,
        changes: Mapping[str, object],
        state: State,
        exits: Sequence[Exit],
        returns: Sequence[Exit],
        end: str,
    ) -> None:
        self.total.note(changes)
        self.state = state
        if exits:
            self.data_exits.extend(e for e in exits if not e.trigger)
        self._tokens = [Token(r.edge, r.payload, None, r.ordinal) for r in returns if r.trigger]
        self.end, self._exits = end, [e for e in exits if e.trigger]

    def result(self) -> Machine | Transition:
        """Return the next machine, or the cycle's effect in the scope around it: its changes, and
        its tokens, edge by edge.
        """
        if not self.end:
            self.machine = self._round()
            return self.machine
        around: Machine = self.task.owner
        changes = Changes(self.total.changes)
        left = [*(self._exits if self.end == "exit" else ()), *self.data_exits]
        arcs = {arc.id: arc for arc in self.task.node.out}
        sends = [
            Send(arcs[exit.edge], exit.payload, exit.values)
            for exit in sorted(left, key=lambda exit: exit.edge)
        ]
        return Transition(changes, around.advance(self.task, changes), sends)

    def so_far(self, ended: FrameResult | None) -> Changes:
        """Return what the visit has written so far; ``ended``: of its machine."""
        if ended is not None:
            self.total.note(ended.changes)
        return Changes(self.total.changes)

    def _restore(self, known: Round) -> None:
        self.rounds = known.number + 1
        changes, exits = known.changes, known.exits
        if known.total is not None:
            self.total = History(self.state.schema, keeps=True)
            self.state, self.data_exits = self._entered, []
            changes, exits = known.total, [*known.kept, *(exit for exit in exits if exit.trigger)]
        self._take(changes, self.state.apply(changes), exits, known.returns, known.end)


# -- graphs


class SubgraphBody:
    """A graph as a node's body."""

    mode: Mode = "scope"
    kind = "graph"

    def __init__(
        self,
        plan: Plan,
        pull: Callable[[State], State],
        push: Callable[[FrameResult, State], dict[str, object]],
    ) -> None:
        """Args:
        pull: from the state around it to the state of a new visit.
        push: gives what is written to the state around it.
        """
        self.plan, self.pull, self.push = plan, pull, push

    def __call__(self, task: Task, ctx: object, /) -> Any:
        raise KernelBug("the body of a subgraph was called; scopes are entered.")


class SubgraphRun:
    """A visit of a graph: one machine."""

    def __init__(self, body: SubgraphBody, task: Task, name: str, took: Took | None = None) -> None:
        self.body, self.task = body, task
        root = body.pull(task.state)
        self.machine = machine_type(
            body.plan, inner_frame(task.frame, name, task.ordinal), root, keeps=True, took=took
        )
        gathered = body.plan.graph.payloads.gather(task.tokens)
        self.entered = entry_tokens(body.plan, gathered, root)
        """The tokens that ``@entry`` sent."""
        self.machine.start(self.entered)
        self._ended: FrameResult | None = None

    def next(self, ended: FrameResult) -> None:
        self._ended = ended

    def result(self) -> Transition:
        """Return the visit's effect in the scope around it: where nothing left it, its out-edges
        are dead, and what its nodes wrote is written.
        """
        assert self._ended is not None
        around: Machine = self.task.owner
        output, changes = output_of(self.body.plan.graph, self._ended), self.so_far(None)
        if output is None and not changes:
            return Transition({}, around.advance(self.task, {}), ())
        to = frozenset[str]() if output is None else None
        return around.prepare(self.task, Out(output, changes, to))

    def so_far(self, ended: FrameResult | None) -> Changes:
        ended = self._ended if ended is None else ended
        return Changes({} if ended is None else self.body.push(ended, self.task.state))


ScopeRun = CycleRun | SubgraphRun
"""A visit: one entry of a scope."""


def combine_deltas(schema: Schema, parts: Sequence[Mapping[str, object]]) -> Changes:
    """Return the changes of several frames, in order, as one delta."""
    history = History(schema, keeps=True)
    for part in parts:
        history.note(part)
    return Changes(history.changes)
