"""The machine: tokens in, tasks out. Pure arithmetic: no clock, no I/O, no tasks, no awaits.

Theory of operation
-------------------
A machine runs one scope once: a graph, or one round of a cycle. ``start`` puts the tokens that come from outside.
``take`` gives the next task that is due. ``prepare`` and ``commit`` take its outcome: the state advances, each out-edge is asked what it
carries, and a token goes into the slot of its target.

An edge is undecided, then live or dead, exactly once. A node that fires decides each of its out-edges when it has
finished all its firings; a node that will never fire kills all of them. So death travels like life, every edge of an
acyclic scope is decided, and no join waits for something that will not come.

A *path* is what a state has come along. It ends where a firing sends nothing onward, where a token leaves the scope or
comes back, where a token meets a node that does not fire. ``end`` joins the states of all ended paths in plan order:
by level, node and ordinal, never by the clock.

Where a commit finds no other live token, no other task and no ended path, every other activation so far is its
ancestor. Then nothing can ask for history any more, and it is folded into values. Whether a commit is *alone* in this
sense does not depend on the clock either.

In a cycle's body a node starts only when all nodes on lower levels that could leave the cycle are decided and none has
left; tasks above that level wait behind the ``Barrier`` and, if the round is left, never start.

Short ways: ``follow`` is ``prepare``, ``commit`` and ``take`` at once where one path is alone, ``again`` turns a round that came
back and left nothing behind, and where no path is alive the frame is over and no edge is asked. They lead where the long
ways lead; a property test compares them.

Nothing in this file knows what a body, a message or a journal is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from axil.bounds import Turns
from axil.joins import replaced, state_at
from axil.outcome import Ended, Exit, Send, Step, blame, sends_of
from axil.plan import BACK, OUTSIDE, Node, Plan
from axil.ports import Ports
from axil.state import Delta, History, State, join
from axil.tokens import Carried, Changes, Frame, Ordinal, Out, Task, Token, quick


class Machine(Ports):
    """One scope, running once."""

    __slots__ = ("_late", "_turns", "commits", "exits", "frame", "head", "history", "returns", "root", "said", "taken")

    def __init__(self, plan: Plan, frame: Frame, root: State, *, keeps: bool = False) -> None:
        """``root``: the state the scope begins with, its history folded. ``keeps``: a parent will want the changes."""
        super().__init__(plan)
        self.frame, self.root = frame, root
        self.history = History(root.schema, keeps)
        self.head: State | None = root if self._is_shared else None
        self.commits = 0
        """Of a shared state: how many firings have written to it."""
        self.taken: set[Task] = set()
        """Tasks that were given out and are not done."""
        self.exits: list[Exit] = []
        self.returns: list[Exit] = []
        self.said: object = None
        """What its only firing so far came to, as whoever keeps a record says it; empty: there were several."""
        self._late: tuple[Token, ...] = ()
        self._turns = Turns(plan, frame) if plan.turning else None

    # ------------------------------------------------------------------ in

    def start(self, tokens: Iterable[Token] = (), entry: Sequence[Token] | None = None) -> None:
        """Begin: ``tokens`` on edges from outside, all others of which are dead; ``entry``: fire the entry node with these."""
        plan = self.plan
        for token in tokens:
            arc = plan.entries[token.edge]
            if arc.port == OUTSIDE:  # straight from the entry to the exit
                self.exits.append(Exit(token.edge, token.payload, None, token.ordinal, arc.trigger))
                self._ended.append((-1, token.ordinal, token.edge, self.root if token.state is None else token.state))
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

    def comes_back(self, step: Step) -> bool:
        """Whether ``step``, the last of what is alive in a round, leads back to where the round began, and leaves nothing else behind."""
        if len(step.sends) != 1 or self._alive != 1 or self.head is not None or self.plan.turning:
            return False
        arc, _, values = step.sends[0]
        if arc.port != BACK or not arc.trigger or values is not None:
            return False
        return not (self._ended or self._slots or self._late or self.exits or self.returns)

    def again(self, frame: Frame, step: Step) -> Task:
        """Run the scope once more, as ``frame``, from where ``step`` came back; gives the entry node's task, given out.

        What is skipped is not kept.
        """
        plan, (_, state, ((arc, payload, _),)) = self.plan, step
        entry = plan.entry
        assert entry is not None
        self.frame, self.root, self.said = frame, state, None
        self.history.restart()
        self._waits, self._opens = [*plan.waits], [*plan.opens]
        if self._barrier is not None:
            self._barrier.restart()
        unit = plan.unit_of[entry]
        self._opens[unit] += 1
        self.fired = bytearray(len(plan.nodes))
        self.fired[entry] = 1
        if plan.sources != (unit,):
            self._close_sources()
        self.skips.clear()
        last = self.taken.pop()
        task = Task(frame, entry, (), (quick(Token, (arc.id, payload, None, last.ordinal)),), state, self)
        self.taken.add(task)
        return task

    def prepare(self, task: Task, out: Out) -> Step:
        """Work out what ``out`` does, without doing it: the state after it, and what each edge carries.

        Raises: whatever an edge's function or a router raises; RouteError; StateError.
        """
        delta, state = out.delta, task.state
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if delta or state.known or self.head is not None:
            state = self.advance(task, delta)
        return quick(Step, (delta, state, sends_of(self.plan, task.node, out, state)))

    def advance(self, task: Task, delta: Delta) -> State:
        """The state after ``task`` wrote ``delta`` (checked, or a frame's changes)."""
        if self.head is not None:
            self.commits += 1
            self.history.note(delta)
            self.head = self.head.apply(delta)
            return self.head
        if self._alive == 1 and not self._ended:  # this task alone: nobody can ask for history any more
            state = task.state
            if state.known:
                state = self.history.fold(state)
            if delta:
                if self.history.keeps:
                    self.history.note(delta)
                return state.apply(delta)
            return state
        return task.state.apply(delta, self.history)

    def commit(self, task: Task, step: Step) -> None:
        """Put a firing's tokens on its out-edges and let everything follow that follows."""
        node = self.plan.nodes[task.node]
        unit, chain = node.unit, node.chain
        if (
            chain is not None
            and len(step.sends) == 1
            and self._opens[unit] == 1
            and step.sends[0].values is None
            and step.sends[0].arc.port not in self._slots  # nothing came from an earlier firing of this node
        ):
            # The only edge leads where nothing else is waited for: the task turns into the next one.
            state = step.state if self.head is None else None
            self.taken.discard(task)
            self._opens[unit] = -1
            token = quick(Token, (step.sends[0].arc.id, step.sends[0].payload, state, task.ordinal))
            self._put((chain.node, chain.ordinal, (token,)))
            return
        alone = self._is_alone(len(step.sends))
        if node.is_direct and self._opens[unit] == 1 and self.head is None:
            sent: list[tuple[int, Token]] = []
            for arc, payload, values in step.sends:
                state = step.state if values is None else replaced(step.state, values, self.history, alone)
                sent.append((arc.port, quick(Token, (arc.id, payload, state, task.ordinal))))
            self._forward(task, node, step.state, sent)
            return
        self.taken.discard(task)
        self._alive -= 1
        goes_on = False
        ordinal, again, last = task.ordinal, 0, -1
        for arc, payload, values in step.sends:
            state = step.state
            if arc.id == last:  # a scope may send several tokens on one edge: each has a name of its own, behind the first
                again += 1
                ordinal = (*task.ordinal, -2, again)
            elif again:
                ordinal, again = task.ordinal, 0
            last = arc.id
            if values is not None and self.head is None:
                state = replaced(state, values, self.history, alone)
            if arc.port >= 0:
                if arc.late:
                    self._late = (*self._late, quick(Token, (arc.id, payload, None, ordinal)))
                else:
                    goes_on = goes_on or arc.trigger
                    self._deliver(arc, quick(Token, (arc.id, payload, state if self.head is None else None, ordinal)))
                continue
            there = self.exits if arc.port == OUTSIDE else self.returns
            there.append(quick(Exit, (arc.id, payload, values, ordinal, arc.trigger)))
            self._ended.append((task.node, ordinal, arc.id, state))
            goes_on = goes_on or arc.trigger
            self._left = self._left or (arc.trigger and arc.port == OUTSIDE)
        if not goes_on:
            self._ended.append((task.node, task.ordinal, -1, step.state))
        if self._alive or self.head is not None:
            self._drop(unit)
            if self._todo:
                self._settle()
        else:
            self._die()

    def _forward(self, task: Task, node: Node, state: State, sent: Sequence[tuple[int, Token]]) -> None:
        """A node whose edges all lead to joins of this scope is done: put its tokens, each at its port, and decide its edges."""
        slots, waits = self._slots, self._waits
        self.taken.discard(task)
        self._alive += len(sent) - 1
        for port, token in sent:
            if port in slots:
                slots[port].append(token)
            else:
                slots[port] = [token]
        if not sent:
            self._ended.append((task.node, task.ordinal, -1, state))
            if not self._alive:
                self._die()
                return
        self._opens[node.unit] = -1
        for arc in node.out:
            waits[arc.port] -= 1
            if not waits[arc.port]:
                self._decide(arc.port)
        if self._todo:
            self._settle()

    def spread(self, task: Task, out: Out) -> bool:
        """``prepare`` and ``commit`` in one for a node that fires once, whose edges lead to joins of this scope; False: it is another.

        Raises: as ``prepare``.
        """
        node = self.plan.nodes[task.node]
        payload, delta, to = out
        if not node.spreads or to is not None or self.head is not None or self._opens[node.unit] != 1:
            return False
        state, schema = task.state, self.root.schema
        if delta and type(delta) is not Changes:
            delta = schema.check(delta)
        if delta or state.known:
            state = self.advance(task, delta)
        sent: list[tuple[int, Token]] = []
        ordinal = task.ordinal
        for arc in node.out:
            carried, after, carry = payload, state, arc.carry
            if carry is not None:
                try:
                    carried = carry(payload, state)
                    if type(carried) is Carried:
                        after = replaced(state, schema.check(carried.values, whole=True), self.history, self._is_alone(len(node.out)))
                        carried = carried.payload
                    elif carried is None:
                        continue
                except Exception as error:
                    blame(self.plan, arc, error)
                    raise
            sent.append((arc.port, quick(Token, (arc.id, carried, after, ordinal))))
        if not sent or len(sent) < len(node.out):
            self._forward(task, node, state, sent)
            return True
        self.taken.discard(task)
        self._alive += len(sent) - 1
        self._opens[node.unit] = -1
        slots, waits = self._slots, self._waits
        for port, token in sent:  # all edges are live: put and decided in one go
            if port in slots:
                slots[port].append(token)
            else:
                slots[port] = [token]
            waits[port] -= 1
            if not waits[port]:
                self._decide(port)
        if self._todo:
            self._settle()
        return True

    def _is_alone(self, sends: int) -> bool:
        """Whether a task that sends so many tokens is all that there is of paths, before and after."""
        return sends == 1 and self._alive == 1 and not self._ended

    def follow(self, task: Task, out: Out) -> Task | Step:
        """``prepare``, ``commit`` and ``take`` in one, where nothing else is due, and the task's only edge leads where nothing else is
        waited for: the next task, given out. Anywhere else the step, not in effect.

        Raises: as ``prepare``.
        """
        node = self.plan.nodes[task.node]
        chain = node.chain
        payload, delta, to = out
        if chain is None or self.ready or self.head is not None or to is not None:
            return self.prepare(task, out)
        arc, state = node.out[0], task.state
        if self._opens[node.unit] != 1 or arc.port in self._slots:
            return self.prepare(task, out)
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if state.known or self._ended or self._alive != 1:
            state = self.advance(task, delta)
        elif delta:
            if self.history.keeps:
                self.history.note(delta)
            state = state.apply(delta)
        if arc.carry is not None:
            try:
                payload = arc.carry(payload, state)
                if payload is None:
                    return Step(delta, state, ())
                if type(payload) is Carried:
                    return Step(delta, state, (Send(arc, payload.payload, self.root.schema.check(payload.values, whole=True)),))
            except Exception as error:
                blame(self.plan, arc, error)
                raise
        self._opens[node.unit] = -1
        self.fired[chain.node] = 1
        self.taken.discard(task)
        task = Task(self.frame, chain.node, chain.ordinal, (quick(Token, (arc.id, payload, state, task.ordinal)),), state, self)
        self.taken.add(task)
        return task

    def put_back(self, task: Task) -> None:
        """Take back a task that was given out last and not begun: it is the first that is due."""
        self.taken.discard(task)
        self.ready.append((task.node, task.ordinal, task.tokens))

    def abandon(self, task: Task, changes: Delta) -> None:
        """End the path of a task that will not be done, with what is known of it."""
        self._ended.append((task.node, task.ordinal, -1, self.advance(task, changes)))
        self.taken.discard(task)
        self._alive -= 1

    # ------------------------------------------------------------------ out

    def take(self) -> Task | None:
        """The next task that is due, in a fixed order; None when there is none at present.

        Raises: ConcurrentReset, or what a custom merge raises; ``failed_node`` says at which node.
        """
        if not self.ready:
            return None
        node, ordinal, tokens = self.ready[-1]
        while self._turns is not None and not self._turns.may_fire(node):  # the limit of its cycle is an exit
            for token in self._pop()[2]:
                self._end_path(token)
            self._drop(self.plan.nodes[node].unit)
            self._settle()
            if not self.ready:
                return None
            node, ordinal, tokens = self.ready[-1]
        if self.head is not None:
            state = self.head
        elif len(tokens) != 1 or (state := tokens[0].state) is None or self.plan.nodes[node].vertex.merge:
            state = state_at(self.plan, node, tokens, self.root, self.history)
        if len(self.ready) > 1:
            self.ready.pop()
        else:
            self._pop()
        self.fired[node] = 1
        task = Task(self.frame, node, ordinal, tokens, state, self)
        task.head = self.commits
        self.taken.add(task)
        return task

    @property
    def failed_node(self) -> int:
        """The node whose task ``take`` could not make."""
        return self.ready[-1][0]

    def end(self) -> Ended:
        """Close the books: join all ended paths. Asked before the machine is quiet, it gives what there is so far."""
        if len(self._ended) == 1 and not (self._slots or self._late or self._alive) and self.head is None:
            whole = self.history.fold(self._ended[0][3])
            return quick(Ended, (whole, self.history.changes, tuple(self.exits), tuple(self.returns), (), True))
        edges = self.plan.graph.edges
        under_way = [task.tokens for task in self.taken]
        held = () if self._barrier is None else self._barrier.held
        for tokens in [*under_way, *(tokens for *_, tokens in (*reversed(self.ready), *self._behind, *held))]:
            for token in tokens:
                self._end_path(token)
        waiting: list[Token] = []
        for slot in self._slots.values():
            for token in slot:
                self._end_path(token)
                if not edges[token.edge].trigger:
                    waiting.append(token)
        data = (*sorted(waiting, key=self._place), *sorted(self._late, key=self._place))
        if self.head is not None:
            whole = self.head
        else:
            self._ended.sort(key=lambda path: path[:3])
            states = [state for *_, state in self._ended]
            whole = self.history.fold(join(states, self.history)) if states else self.root
        exits, returns = (tuple(sorted(several, key=_by_edge)) for several in (self.exits, self.returns))
        return Ended(whole, self.history.changes, exits, returns, data, any(self.fired))


def _by_edge(exit: Exit) -> tuple[int, Ordinal]:
    return exit.edge, exit.ordinal
