"""The machine: tokens in, tasks out. Pure arithmetic: no clock, no I/O, no tasks, no awaits.

Theory of operation
-------------------
A machine runs one scope once: a graph, or one round of a cycle. ``start`` puts the tokens that come
from outside. ``take`` gives the next task that is due. ``prepare`` and ``commit`` take its outcome:
the state advances, each out-edge is asked what it carries, and a token goes into the slot of its
target.

Tokens wait for one another in *slots*, at the ports of nodes. A port counts its undecided edges and
decides at zero: its node is due, or it is not. A unit counts the reasons why it might still fire;
at zero it is closed, and its edges with it, which may decide further ports. Nothing is ever
scanned, and nothing recurses.

An edge is undecided, then live or dead, exactly once. A node that fires decides each of its
out-edges when it has finished all its firings; a node that will never fire kills all of them. So
death travels like life, every edge of an acyclic scope is decided, and no join waits for something
that will not come.

A *path* is what a state has come along. It ends where a firing sends nothing onward, where a token
leaves the scope or comes back, where a token meets a node that does not fire. ``end`` joins the
states of all ended paths in plan order: by level, node and ordinal, never by the clock.

Where a commit finds no other live token, no other task and no ended path, every other activation so
far is its ancestor. Then nothing can ask for history any more, and it is folded into values.
Whether a commit is *alone* in this sense does not depend on the clock either.

In a cycle's body a node starts only when all nodes on lower levels that could leave the cycle are
decided and none has left; tasks above that level wait behind the ``Barrier`` and, if the round is
left, never start.

``follow``, ``comes_back`` and ``again`` are where ``shortcuts`` takes short ways; here
they lead nowhere.

Nothing in this file knows what a body, a message or a journal is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from axil.errors import KernelBug, RouteError
from axil.kernel.barriers import Arrivals, Barrier, Due, FlatFirings
from axil.kernel.joins import GATE
from axil.kernel.plan import OUTSIDE, Filter, Plan, PlanEdge, PlanNode, Port, ResolvedGraph
from axil.kernel.state import Delta, History, State, join, merged
from axil.kernel.tokens import (
    Activation,
    Carried,
    Changes,
    Frame,
    Ordinal,
    Out,
    Task,
    Token,
    new_tuple,
    next_ordinal,
)
from axil.kernel.values import EMPTY, MAX_WAITING, check_size


class Send(NamedTuple):
    """The token of one edge from one firing; ``values`` replace the state, None keeps it."""

    arc: PlanEdge
    payload: object
    values: Mapping[str, object] | None


class Transition(NamedTuple):
    """An outcome, worked out and not yet in effect."""

    delta: Delta
    state: State
    sends: Sequence[Send]


class Exit(NamedTuple):
    """A token that left the scope, or came back to its start."""

    edge: int
    payload: object
    values: Mapping[str, object] | None
    ordinal: Ordinal
    trigger: bool


class FrameResult(NamedTuple):
    """The result of a scope."""

    state: State
    """All ended paths, joined in plan order; history folded."""
    changes: Delta
    """One change per written field; empty for a frame without a parent."""
    exits: tuple[Exit, ...]
    returns: tuple[Exit, ...]
    data: tuple[Token, ...]
    """Data tokens that no firing took."""
    fired: bool
    """True if anything ran."""


def sends_of(
    plan: Plan,
    arcs: Sequence[PlanEdge],
    output: object,
    state: State,
    filters: Mapping[int, Filter] = MappingProxyType({}),
) -> list[Send]:
    """Return the tokens that edges carry of an output, in order; a dead one carries none.

    Args:
        state: after the firing.
        filters: those that routers put on edges, by edge id.

    Raises: whatever an edge's function or a filter raises; StateError; InvalidValue (AX639): too
    much together.
    """
    sends: list[Send] = []
    used = 0
    seen: set[int] = set()  # set[int]() takes ten times as long
    for arc in arcs:
        try:
            answer = output if arc.carry is None else arc.carry(output, state)
            if answer is None:
                continue
            if answer is not output and len(arcs) > 1:
                used += check_size(answer, MAX_WAITING, used, seen)
            sends.append(sent(arc, answer, state, filters.get(arc.id)))
        except Exception as error:
            blame(plan, arc, error)
            raise
    return sends


def sent(arc: PlanEdge, answer: object, state: State, keep: Filter | None = None) -> Send:
    """Return the token of a live edge."""
    values = None
    if type(answer) is Carried:
        answer, values = answer.payload, answer.values
    if keep is not None:
        values = keep(state)
    if values is not None:
        values = state.schema.check(values, whole=True)
    return new_tuple(Send, (arc, answer, values))


def blame(plan: Plan, arc: PlanEdge, error: Exception) -> None:
    """Note on an error on which edge it happened."""
    name = plan.graph.edges[arc.id].name
    if name not in str(error):
        error.add_note(f"on the edge {name}")


def routed(plan: Plan, node: PlanNode, out: Out, state: State) -> list[Send]:
    """Return the tokens of the edges that a node's routers, or the outcome itself, choose.

    Raises: as ``sends_of``; whatever a router raises; RouteError.
    """
    output, _, to = out
    if to is not None and (strange := sorted(to - {arc.target_name for arc in node.out})):
        raise RouteError(f"sends to {strange}, to which it has no edge.")
    taken = [router(output, state) for router in node.routers if to != frozenset()]
    arcs: list[PlanEdge] = []
    filters: dict[int, Filter] = {}
    for arc in node.out:
        if to is not None and arc.target_name not in to:
            continue
        if arc.router >= 0:
            if arc.target_name not in taken[arc.router]:
                continue
            if (keep := taken[arc.router][arc.target_name]) is not None:
                filters[arc.id] = keep
        arcs.append(arc)
    return sends_of(plan, arcs, output, state, filters)


def output_of(graph: ResolvedGraph, ended: FrameResult) -> object:
    """Return a graph's output, as its payload kind says; None: nothing left it."""
    left: list[tuple[str, object]] = []
    for exit in ended.exits:
        source = graph.edges[exit.edge].source
        left.append((graph.vertices[source].name if source >= 0 else "", exit.payload))
    return graph.payloads.output(left, graph.end, ended.fired)


Took = Callable[[Activation], "frozenset[str] | None"]
_BY_EDGE = itemgetter(Token._fields.index("edge"), Token._fields.index("ordinal"))


def state_at(
    plan: Plan, node: int, tokens: Sequence[Token], root: State, history: History
) -> State:
    """Return the state in which a node fires with ``tokens``: their states, joined; ``root`` where
    they have none.

    Raises: ConcurrentReset, SchemaMismatch, or what the node's own merge raises.
    """
    vertex = plan.nodes[node].vertex
    # never asked for its truth: that would count its fields
    if not vertex.merge and tokens and (state := tokens[0].state) is not None:
        for token in tokens:
            if token.state is not state:
                break
        else:  # the common case: nothing was written since the paths parted
            return state
    states = [token.state for token in tokens if token.state is not None]
    if not states:
        return root
    merge = vertex.merge.get(plan.graph.edges[tokens[-1].edge].group) if vertex.merge else None
    if merge is not None:
        return merged(states, root.schema.check(merge(states), whole=True), history)
    return states[0] if len(states) == 1 else join(states, history)


def replaced(state: State, values: Mapping[str, object], history: History, alone: bool) -> State:
    """Return ``state`` with exactly ``values`` (checked); ``alone``: no other path is alive."""
    if not alone:
        return state.replace(values, history)
    new = state.replace(values)
    history.note_replace(state, new)
    return new


class Machine:
    """One scope, running once."""

    __slots__ = (
        "_alive", "_arrivals", "_barrier", "_ended", "_flat", "_late", "_left", "_opens", "_slots",
        "_todo", "_waits", "broken", "due", "exits", "fired", "frame", "history", "plan",
        "recorder", "returns", "root", "running", "skips", "taken", "took", "unneeded",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan,
        frame: Frame,
        root: State,
        *,
        keeps: bool = False,
        took: Took | None = None,
    ) -> None:
        """``root``: the state it begins with; ``keeps``: a parent will want the changes."""
        self.plan, self.frame = plan, frame
        self.due: deque[Due] = deque()
        """The firings that are due."""
        self.skips: list[int] = []
        """Nodes that will not fire, since this was last emptied."""
        self.fired = bytearray(len(plan.nodes))
        """Per node: whether it has fired."""
        self._waits = list(plan.waits)
        self._opens = list(plan.opens)
        self._slots: dict[int, list[Token]] = {}
        # tokens with a state that wait in slots, tasks due and tasks running: the paths that are
        # alive
        self._alive: int = 0
        # (node, ordinal, edge, state) of ended paths
        self._ended: list[tuple[int, Ordinal, int, State]] = []
        self._arrivals: dict[int, Arrivals] = {}  # at the ports of early joins
        self.took = took
        """The edges that recorded firings of nodes with an early join took; None: none is known."""
        self.broken: dict[int, Exception] = {}
        """The errors of joins, by node."""
        self.unneeded: frozenset[int] = EMPTY
        """Nodes that an early join fired without, whose firings are cancelled."""
        self._todo: list[int] = []  # units found closed, whose out-edges are still to be killed
        self._left = False
        self._barrier = Barrier(plan.barriers) if plan.barriers else None
        self._flat = FlatFirings(plan, frame) if plan.flat_limits else None
        self.root = root
        self.history = History(root.schema, keeps)
        self.taken: set[Task] = set()
        """Tasks that were given out and are not done."""
        self.exits: list[Exit] = []
        self.returns: list[Exit] = []
        self.recorder: Any = None
        """Left to whatever records the firings of this scope; None where a round begins."""
        self.running: Any = None
        """Left to the scheduler: the frame that this is the machine of."""
        self._late: tuple[Token, ...] = ()

    # -- in

    def start(self, tokens: Iterable[Token] = (), entry: Sequence[Token] | None = None) -> None:
        """Begin with ``tokens`` on edges from outside; ``entry``: those of the entry node."""
        plan = self.plan
        for token in tokens:
            arc = plan.entries[token.edge]
            if arc.port == OUTSIDE:  # straight from the entry to the exit
                self.exits.append(Exit(token.edge, token.payload, None, token.ordinal, arc.trigger))
                state = self.root if token.state is None else token.state
                self._ended.append((-1, token.ordinal, token.edge, state))
            else:
                self._deliver(arc, token)
        if plan.entry is not None and entry is not None:
            self._opens[plan.nodes[plan.entry].unit] += 1
            self._alive += 1
            self._due(plan.entry, (), tuple(entry))
        for arc in plan.entries.values():
            if arc.port >= 0 and not arc.late:
                self._close(arc)
        self._close_sources()

    def prepare(self, task: Task, out: Out) -> Transition:
        """Work out what ``out`` does, without doing it.

        Raises: whatever an edge's function or a router raises; RouteError; StateError.
        """
        delta, state = out.delta, task.state
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if delta or state.known:
            state = self.advance(task, delta)
        plan = self.plan
        node = task.node
        if out.to is None and not node.routers:
            sends = sends_of(plan, node.out, out.output, state)
        else:
            sends = routed(plan, node, out, state)
        return new_tuple(Transition, (delta, state, sends))

    def follow(self, task: Task, out: Out) -> Task | Transition | list[object]:
        """Do ``prepare``; or, where a short way leads on, ``commit`` as well, and return the
        payloads sent, or ``take`` as well, and return the next task.
        """
        return self.prepare(task, out)

    def comes_back(self, step: Transition) -> bool:
        """Return whether a short way leads from ``step`` into the next round of a cycle."""
        return False

    def again(self, frame: Frame, step: Transition) -> Task:
        """Take it: return the first task of the next round."""
        raise KernelBug("this machine has no short way into a round.")

    def advance(self, task: Task, delta: Delta) -> State:
        """Return the state after ``task`` wrote ``delta`` (checked, or a frame's changes)."""
        # this task alone: history cannot be needed any more
        if self._alive == 1 and not self._ended:
            state = task.state
            if state.known:
                state = task.state = self.history.fold(state)  # no join may ask for it any more
            if delta:
                if self.history.keeps:
                    self.history.note(delta)
                return state.apply(delta)
            return state
        return task.state.apply(delta, self.history)

    def commit(self, task: Task, step: Transition) -> None:
        """Put a firing's tokens on its out-edges, and do what follows."""
        node = task.node
        unit = node.unit
        # whether this task is the only path, before and after
        alone = len(step.sends) == 1 and self._alive == 1 and not self._ended
        self.taken.discard(task)
        self._alive -= 1
        continues = False
        ordinal, again, last = task.ordinal, 0, -1
        for arc, payload, values in step.sends:
            state = step.state
            # a scope may send several tokens on one edge: each has a name of its own, behind the
            # first
            if arc.id == last:
                again += 1
                ordinal = (*task.ordinal, -2, again)
            elif again:
                ordinal, again = task.ordinal, 0
            last = arc.id
            if values is not None:
                state = replaced(state, values, self.history, alone)
            if arc.port >= 0:
                if arc.late:
                    self._late = (*self._late, new_tuple(Token, (arc.id, payload, None, ordinal)))
                else:
                    continues = continues or arc.trigger
                    self._deliver(arc, new_tuple(Token, (arc.id, payload, state, ordinal)))
                continue
            there = self.exits if arc.port == OUTSIDE else self.returns
            there.append(new_tuple(Exit, (arc.id, payload, values, ordinal, arc.trigger)))
            self._ended.append((node.index, ordinal, arc.id, state))
            continues = continues or arc.trigger
            self._left = self._left or (arc.trigger and arc.port == OUTSIDE)
        if not continues:
            self._ended.append((node.index, task.ordinal, -1, step.state))
        if self._alive:
            self._drop(unit)
            if self._todo:
                self._settle()
        else:
            self._die()

    def give_up_unneeded(self) -> list[Task]:
        """End the paths of firings under way that an early join does not need; return them."""
        given_up = [task for task in self.taken if task.node.index in self.unneeded]
        for task in given_up:
            self.taken.discard(task)
            self._give_up(task.node.index, [(-1, task.ordinal, task.state)])
        return given_up

    def _give_up(self, node: int, paths: Sequence[tuple[int, Ordinal, State | None]]) -> None:
        self._alive -= 1
        self._ended += [(node, at, edge, state) for edge, at, state in paths if state is not None]
        self._drop(self.plan.nodes[node].unit)
        if self._todo:
            self._settle()

    def put_back(self, task: Task) -> None:
        """Take back the task that was given out last: it is the first that is due."""
        self.taken.discard(task)
        self.due.appendleft((task.node.index, task.ordinal, task.tokens))

    def abandon(self, task: Task, changes: Delta) -> None:
        """End the path of a task that will not be done, with its changes so far."""
        self._ended.append((task.node.index, task.ordinal, -1, self.advance(task, changes)))
        self.taken.discard(task)
        self._alive -= 1

    # -- out

    def take(self) -> Task | None:
        """Return the next task that is due, in a fixed order; None: there is none at present.

        Raises: ConcurrentReset, or what a custom merge raises; ``failed_node`` says at which node.
        """
        if not self.due:
            return None
        node, ordinal, tokens = self.due[0]
        if self.unneeded and node in self.unneeded:
            self.due.popleft()
            self._give_up(node, [(t.edge, t.ordinal, t.state) for t in tokens])
            return None
        if node in self.broken:
            raise self.broken[node]
        if self._flat is not None:
            self._flat.check(node)
        plan_node = self.plan.nodes[node]
        if len(tokens) != 1 or (state := tokens[0].state) is None or plan_node.vertex.merge:
            state = state_at(self.plan, node, tokens, self.root, self.history)
        self.due.popleft()
        self.fired[node] = 1
        task = Task(self.frame, plan_node, ordinal, tokens, state, self)
        self.taken.add(task)
        return task

    @property
    def failed_node(self) -> int:
        """The node whose task ``take`` could not make."""
        return self.due[0][0]

    def states(self) -> Iterator[State]:
        """Yield the states of paths that are alive or have ended, one several times."""
        yield self.root
        for tokens in self._held():
            yield from (token.state for token in tokens if token.state is not None)
        yield from (task.state for task in self.taken)
        yield from (ended[3] for ended in self._ended)

    def waiting(self) -> Iterator[Any]:
        """Yield what is on edges, with firings that are not done, or has left the scope."""
        for tokens in self._held():
            yield from (token.payload for token in tokens)
        yield from (left.payload for left in (*self.exits, *self.returns))

    def _held(self) -> Iterator[Iterable[Token]]:
        """Yield the tokens that wait, and those of firings that are not done."""
        held = () if self._barrier is None else self._barrier.held
        waves = () if self._flat is None else self._flat.held
        due = (tokens for *_, tokens in (*self.due, *held, *waves))
        taken = (task.tokens for task in self.taken)
        yield from (*due, *taken, *self._slots.values(), self._late)

    def end(self) -> FrameResult:
        """Join all ended paths; before the machine is quiet: what there is so far."""
        if len(self._ended) == 1 and not (self._slots or self._late or self._alive):
            whole = self.history.fold(self._ended[0][3])
            return new_tuple(
                FrameResult,
                (whole, self.history.changes, tuple(self.exits), tuple(self.returns), (), True),
            )
        edges = self.plan.graph.edges
        self._ended += [(task.node.index, task.ordinal, -1, task.state) for task in self.taken]
        held = () if self._barrier is None else self._barrier.held
        waves = () if self._flat is None else self._flat.held
        for *_, tokens in (*self.due, *waves):
            for token in tokens:
                self._end_path(token)
        waiting: list[Token] = []
        for _, node, _, tokens in held:  # the round was left before they could fire
            is_each = self.plan.nodes[node].vertex.join.per_token  # the data are in its slot
            for token in tokens:
                self._end_path(token)
                if not edges[token.edge].trigger and not is_each:
                    waiting.append(token)
        for index, slot in self._slots.items():
            port = self.plan.ports[index]
            if port.join.per_token and self.fired[port.node]:
                continue  # the data there was taken by each firing, and its path went on with them
            for token in slot:
                self._end_path(token)
                if not edges[token.edge].trigger:
                    waiting.append(token)
        data = (*sorted(waiting, key=self._place), *sorted(self._late, key=self._place))
        self._ended.sort(key=lambda path: path[:3])
        states = [state for *_, state in self._ended]
        whole = self.history.fold(join(states, self.history)) if states else self.root
        exits, returns = (
            tuple(sorted(several, key=_by_edge)) for several in (self.exits, self.returns)
        )
        return FrameResult(whole, self.history.changes, exits, returns, data, any(self.fired))

    # -- slots and counts

    def _deliver(self, arc: PlanEdge, token: Token) -> None:
        index = arc.port
        if token.state is not None:
            self._alive += 1
        port = self.plan.ports[index]
        if port.is_usual:
            if index in self._slots:
                self._slots[index].append(token)
            else:
                self._slots[index] = [token]
        elif port.join.per_token and arc.trigger and not self._waits[index]:
            self._fire_each(index, token)
        elif port.join.early and self._waits[index] < 0:  # its node fired without this token
            self._end_path(token)
        else:
            self._slots.setdefault(index, []).append(token)
            if port.join.early and arc.trigger:
                self._early(index).arrive(arc)
                self._ask(index)

    def _fire_each(self, index: int, token: Token) -> None:
        port = self.plan.ports[index]
        edges = self.plan.graph.edges
        data = tuple(t for t in self._slots.get(index, ()) if not edges[t.edge].trigger)
        self._opens[self.plan.nodes[port.node].unit] += 1
        ordinal = next_ordinal(self.plan.positions[token.edge], token.ordinal)
        due = port.node, ordinal, tuple(sorted((*data, token), key=self._place))
        if self._flat is None or not self._flat.hold(due):
            self._due(*due)

    def _place(self, token: Token) -> tuple[bool, tuple[int, int], Ordinal]:
        """Return the place of a token at a join; one of an earlier round is first."""
        return token.state is not None, self.plan.rank(token.edge), token.ordinal

    def _close(self, arc: PlanEdge) -> None:
        index = arc.port
        port = self.plan.ports[index]
        if not port.is_usual and arc.trigger:
            if port.join.per_token:
                self._drop(self.plan.nodes[port.node].unit)
                return
            if port.join.early:
                if self._waits[index] >= 0 and self._early(index).close(arc):
                    self._ask(index)
                return
        self._waits[index] -= 1
        if not self._waits[index]:
            self._decide(index)

    def _drop(self, unit: int) -> None:
        self._opens[unit] -= 1
        if not self._opens[unit]:
            self._todo.append(unit)
        elif self._flat is not None and self._flat.is_quiet(unit, self._opens[unit]):
            self._begin_wave(unit)

    def _begin_wave(self, unit: int) -> None:
        """Let the held firings of a flat cycle happen; end the tokens beyond the limit."""
        assert self._flat is not None
        within, beyond = self._flat.wave(unit)
        for due in within:
            self._due(*due)
        for _, _, tokens in beyond:
            for token in tokens:
                self._end_path(token)
            self._drop(unit)

    def _decide(self, index: int) -> None:
        """Decide whether a node is due, once all edges of its port are."""
        port = self.plan.ports[index]
        tokens = self._slots.get(index)
        if port.join.early:
            self._ask(index)
            return
        if port.join.per_token:  # it was waiting for data only
            edges = self.plan.graph.edges
            for token in [t for t in tokens or () if edges[t.edge].trigger]:
                self._fire_each(index, token)
            self._slots[index] = [t for t in tokens or () if not edges[t.edge].trigger]
            self._drop(self.plan.nodes[port.node].unit)
            return
        if tokens:
            if len(tokens) == 1 and port.needs == 1 and port.trigger_only and port.is_usual:
                del self._slots[index]
                self._due(port.node, port.ordinal, (tokens[0],))
                return
            if port.trigger_only and port.join is GATE:
                del self._slots[index]
                tokens.sort(key=self._place if self.plan.graph.payloads.by_level else _BY_EDGE)
                self._alive += 1 - len(tokens)
                self._due(port.node, port.ordinal, tuple(tokens))
                return
            edges = self.plan.graph.edges
            live = len({t.edge for t in tokens if edges[t.edge].trigger})
            if live and self._fires(port, live, port.needs - live):
                del self._slots[index]
                self._fire(port, tokens)
                return
            for token in tokens:  # their paths end here; data among them may wait for another round
                self._end_path(token)
            self._slots[index] = [
                Token(t.edge, t.payload, None, t.ordinal)
                for t in tokens
                if not edges[t.edge].trigger
            ]
        self._drop(self.plan.nodes[port.node].unit)

    def _fires(self, port: Port, live: int, dead: int) -> bool | None:
        """Ask a join. If it raises, its node is due, and fails when it is taken."""
        try:
            return port.join.fires(live, dead, port.needs)
        except Exception as error:  # noqa: BLE001
            self.broken[port.node] = error
            return True

    def _fire(self, port: Port, tokens: list[Token]) -> None:
        tokens.sort(key=self._place)
        self._alive += 1 - sum(1 for t in tokens if t.state is not None)
        self._due(port.node, port.ordinal, tuple(tokens))

    def _early(self, index: int) -> Arrivals:
        found = self._arrivals.get(index)
        if found is None:
            found = self._arrivals[index] = Arrivals(self.plan.ports[index].undecided)
        return found

    def _ask(self, index: int) -> None:
        """Ask an early join; a node that fired in this activation before fires with the same
        edges.
        """
        port = self.plan.ports[index]
        if self._waits[index]:  # data edges are not decided
            return
        tokens = self._slots.get(index, [])
        edges, arrived = self.plan.graph.edges, self._early(index)
        live = len(arrived.edges)
        node = self.plan.nodes[port.node]
        took = self.took and self.took(Activation(self.frame, node.name, port.ordinal))
        if took and took <= {edges[t.edge].name for t in tokens}:
            answer: bool | None = True
        elif took and arrived.undecided:
            return
        else:
            took = None
            answer = (
                self._fires(port, live, port.needs - live - arrived.undecided) if live else None
            )
        if answer is None and arrived.undecided:
            return
        self._waits[index] = -1
        mine = [t for t in tokens if answer and (took is None or edges[t.edge].name in took)]
        for token in tokens:
            if token not in mine:
                self._end_path(token)
        if not mine:
            data = [t for t in tokens if not edges[t.edge].trigger]
            self._slots[index] = [Token(t.edge, t.payload, None, t.ordinal) for t in data]
            self._drop(node.unit)
            return
        self._slots.pop(index, None)
        self._fire(port, mine)
        self.unneeded = self.unneeded.union(port.feeders)

    def _end_path(self, token: Token) -> None:
        if token.state is not None:
            self._alive -= 1
            self._ended.append(
                (self.plan.owner(token.edge), token.ordinal, token.edge, token.state)
            )

    def _due(self, node: int, ordinal: Ordinal, tokens: tuple[Token, ...]) -> None:
        if self._barrier is not None and self._barrier.holds(level := self.plan.nodes[node].level):
            self._barrier.hold(level, (node, ordinal, tokens))
        else:
            self.due.append((node, ordinal, tokens))

    def _close_sources(self) -> None:
        """Begin to close what nothing leads to and nothing has opened."""
        opens = self._opens
        for unit in self.plan.sources:
            if not opens[unit]:
                self._todo.append(unit)
        if self._todo:
            self._settle()

    def _settle(self) -> None:
        """Kill the out-edges of closed units, and those of what that closes, without recursion."""
        todo = self._todo
        nodes = self.plan.nodes
        while todo:
            unit = todo.pop()
            for index in self.plan.units[unit]:
                for arc in nodes[index].out:
                    if arc.port >= 0 and not arc.late and not arc.inner:
                        self._close(arc)
            self._closed(unit)

    def _closed(self, unit: int) -> None:
        """Note what a closed unit skipped, and lift its barrier."""
        self._opens[unit] = -1
        for index in self.plan.units[unit]:
            if not self.fired[index]:
                self.skips.append(index)
            node = self.plan.nodes[index]
            if node.leaves and self._barrier is not None:
                self.due.extend(self._barrier.lift(node.level, self._left))

    def _die(self) -> None:
        """End a machine with no path alive: what has not fired is skipped, no edge is asked."""
        opens, fired = self._opens, self.fired
        if 0 in fired:
            for index, node in enumerate(self.plan.nodes):
                if not fired[index] and opens[node.unit] >= 0:
                    self.skips.append(index)
        self._opens = [-1] * len(opens)


def entry_tokens(plan: Plan, inputs: object, root: State) -> list[Token]:
    """Return the tokens that ``@entry`` sends of ``inputs``."""
    tokens: list[Token] = []
    for id in sorted(plan.entries):
        edge = plan.graph.edges[id]
        if edge.source >= 0:
            continue
        payload = inputs if edge.carry is None else edge.carry(inputs, root)
        if payload is not None:
            tokens.append(new_tuple(Token, (id, payload, root, ())))
    return tokens


def _by_edge(exit: Exit) -> tuple[int, Ordinal]:
    return exit.edge, exit.ordinal
