"""The machine: tokens in, tasks out. Pure arithmetic: no clock, no I/O, no tasks, no awaits.

Theory of operation
-------------------
A machine runs one scope once: a graph, or one round of a cycle. ``start`` puts the tokens that come
from outside. ``take`` gives the next task that is due. ``prepare`` and ``commit`` take its outcome:
the state advances, each out-edge is asked what it carries, and a token goes into the slot of its
target.

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axil.errors import KernelBug
from axil.kernel.outcomes import Exit, FrameResult, Transition, routed, sends_of
from axil.kernel.plan import OUTSIDE, Plan
from axil.kernel.slots import Ports, Took
from axil.kernel.state import Delta, History, State, join, merged
from axil.kernel.tokens import Changes, Frame, Ordinal, Out, Task, Token, new_tuple


def state_at(
    plan: Plan, node: int, tokens: Sequence[Token], root: State, history: History
) -> State:
    """Return the state in which the node at ``node`` fires with ``tokens``: their states, joined;
    ``root`` where they have none.

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


def replaced(state: State, values: Mapping[str, Any], history: History, alone: bool) -> State:
    """``state`` with exactly ``values`` (checked); ``alone``: no other path is alive."""
    if not alone:
        return state.replace(values, history)
    new = state.replace(values)
    history.note_replace(state, new)
    return new


class Machine(Ports):
    """One scope, running once."""

    __slots__ = ("_late", "exits", "history", "recorder", "returns", "root", "running", "taken")

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
        super().__init__(plan, frame, took)
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

    # ------------------------------------------------------------------ in

    def start(self, tokens: Iterable[Token] = (), entry: Sequence[Token] | None = None) -> None:
        """Begin with ``tokens`` on edges from outside; ``entry``: those of the entry node."""
        plan = self.plan
        for token in tokens:
            arc = plan.entries[token.edge]
            if arc.port == OUTSIDE:  # straight from the entry to the exit
                self.exits.append(Exit(token.edge, token.payload, None, token.ordinal, arc.trigger))
                self._ended.append(
                    (
                        -1,
                        token.ordinal,
                        token.edge,
                        self.root if token.state is None else token.state,
                    )
                )
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
        """Work out what ``out`` does, without doing it: the state after it, and what each edge
        carries.

        Raises: whatever an edge's function or a router raises; RouteError; StateError.
        """
        delta, state = out.delta, task.state
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if delta or state.known:
            state = self.advance(task, delta)
        plan = self.plan
        node = plan.nodes[task.node]
        if out.to is None and not node.routers:
            sends = sends_of(plan, node.out, out.output, state)
        else:
            sends = routed(plan, node, out, state)
        return new_tuple(Transition, (delta, state, sends))

    def follow(self, task: Task, out: Out) -> Task | Transition | list[Any]:
        """``prepare``; or, where a short way leads on, ``commit`` as well, and the payloads that
        were sent, or ``take`` as well, and the next task.
        """
        return self.prepare(task, out)

    def comes_back(self, step: Transition) -> bool:
        """Return whether a short way leads from ``step`` into the next round of a cycle."""
        return False

    def again(self, frame: Frame, step: Transition) -> Task:
        """Take it: return the first task of the next round, given out."""
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
        """Put a firing's tokens on its out-edges and let everything follow that follows."""
        node = self.plan.nodes[task.node]
        unit = node.unit
        alone = self._is_alone(len(step.sends))
        self.taken.discard(task)
        self._alive -= 1
        goes_on = False
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
                    goes_on = goes_on or arc.trigger
                    self._deliver(arc, new_tuple(Token, (arc.id, payload, state, ordinal)))
                continue
            there = self.exits if arc.port == OUTSIDE else self.returns
            there.append(new_tuple(Exit, (arc.id, payload, values, ordinal, arc.trigger)))
            self._ended.append((task.node, ordinal, arc.id, state))
            goes_on = goes_on or arc.trigger
            self._left = self._left or (arc.trigger and arc.port == OUTSIDE)
        if not goes_on:
            self._ended.append((task.node, task.ordinal, -1, step.state))
        if self._alive:
            self._drop(unit)
            if self._todo:
                self._settle()
        else:
            self._die()

    def _is_alone(self, sends: int) -> bool:
        """Return whether a task that sends so many tokens is the only path, before and after."""
        return sends == 1 and self._alive == 1 and not self._ended

    def give_up_unneeded(self) -> list[Task]:
        """End the paths of firings under way that an early join fired without; return them."""
        given_up = [task for task in self.taken if task.node in self.unneeded]
        for task in given_up:
            self.taken.discard(task)
            self._give_up(task.node, [(-1, task.ordinal, task.state)])
        return given_up

    def _give_up(self, node: int, paths: Sequence[tuple[int, Ordinal, State | None]]) -> None:
        """End the path that a firing of ``node`` is, which will not happen or not end."""
        self._alive -= 1
        self._ended += [(node, at, edge, state) for edge, at, state in paths if state is not None]
        self._drop(self.plan.nodes[node].unit)
        if self._todo:
            self._settle()

    def put_back(self, task: Task) -> None:
        """Take back a task that was given out last and not begun: it is the first that is due."""
        self.taken.discard(task)
        self.due.front.append((task.node, task.ordinal, task.tokens))

    def abandon(self, task: Task, changes: Delta) -> None:
        """End the path of a task that will not be done, with what is known of it."""
        self._ended.append((task.node, task.ordinal, -1, self.advance(task, changes)))
        self.taken.discard(task)
        self._alive -= 1

    # ------------------------------------------------------------------ out

    def take(self) -> Task | None:
        """Return the next task that is due, in a fixed order; None when there is none at present.

        Raises: ConcurrentReset, or what a custom merge raises; ``failed_node`` says at which node.
        """
        if not self.due.front:
            return None
        node, ordinal, tokens = self.due.front[-1]
        if self.unneeded and node in self.unneeded:
            self.due.take()
            self._give_up(node, [(t.edge, t.ordinal, t.state) for t in tokens])
            return None
        if node in self.broken:
            raise self.broken[node]
        if self._turns is not None:
            self._turns.check(node)
        if (
            len(tokens) != 1
            or (state := tokens[0].state) is None
            or self.plan.nodes[node].vertex.merge
        ):
            state = state_at(self.plan, node, tokens, self.root, self.history)
        if len(self.due.front) > 1:
            self.due.front.pop()
        else:
            self.due.take()
        self.fired[node] = 1
        task = Task(self.frame, node, ordinal, tokens, state, self)
        self.taken.add(task)
        return task

    @property
    def failed_node(self) -> int:
        """The node whose task ``take`` could not make."""
        return self.due.front[-1][0]

    def end(self) -> FrameResult:
        """Join all ended paths; before the machine is quiet: what there is so far."""
        if len(self._ended) == 1 and not (self._slots or self._late or self._alive):
            whole = self.history.fold(self._ended[0][3])
            return new_tuple(
                FrameResult,
                (whole, self.history.changes, tuple(self.exits), tuple(self.returns), (), True),
            )
        edges = self.plan.graph.edges
        self._ended += [(task.node, task.ordinal, -1, task.state) for task in self.taken]
        held = () if self._barrier is None else self._barrier.held
        waves = () if self._turns is None else self._turns.held
        for *_, tokens in (*self.due.items(), *waves):
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


def _by_edge(exit: Exit) -> tuple[int, Ordinal]:
    return exit.edge, exit.ordinal
