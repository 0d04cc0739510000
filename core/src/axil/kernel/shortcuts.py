"""Short ways: they lead where the long ways lead, with fewer steps.

This file can be deleted: then every machine is a plain ``Machine``, every result is the same, and
runs are slower. ``scopes`` and ``cycles`` look for it, and nothing else knows of it.

* A *chain*: a node's only edge leads where nothing else is waited for, so the next node is due.
* A *direct* node: all its edges lead to joins of its scope, which are counted down in one go.
* A *round* that comes back and leaves nothing else behind begins the next on the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from axil.kernel.machine import Machine, replaced
from axil.kernel.outcomes import Send, Transition, blame
from axil.kernel.plan import BACK, PlanEdge, PlanNode, Port
from axil.kernel.state import State
from axil.kernel.tokens import Carried, Changes, Frame, Out, Task, Token, new_tuple


def ways(
    out: Sequence[PlanEdge], ports: Sequence[Port], waits: Sequence[int], reach: Sequence[bool]
) -> tuple[Port | None, bool]:
    """Return where the chain from a node leads, and whether the node is direct.

    Args:
        out: its edges.
        reach: whether a chain may lead to each node.
    """
    if not all(_is_direct(arc, ports) for arc in out):
        return None, False
    if len(out) != 1 or out[0].router >= 0:
        return None, True
    port = ports[out[0].port]
    is_alone = port.needs == 1 and port.trigger_only and waits[out[0].port] == 1
    return (port if is_alone and reach[port.node] else None), True


def _is_direct(arc: PlanEdge, ports: Sequence[Port]) -> bool:
    leads_on = arc.port >= 0 and arc.trigger and not arc.late and not arc.inner
    return leads_on and ports[arc.port].is_usual


class QuickMachine(Machine):
    """A machine that takes short ways."""

    __slots__ = ()

    def comes_back(self, step: Transition) -> bool:
        """Whether ``step``, the last of what is alive in a round, leads back to where the round
        began, and leaves nothing else behind.
        """
        if len(step.sends) != 1 or self._alive != 1 or self.plan.turning:
            return False
        arc, _, values = step.sends[0]
        if arc.port != BACK or not arc.trigger or values is not None:
            return False
        return not (self._ended or self._slots or self._late or self.exits or self.returns)

    def again(self, frame: Frame, step: Transition) -> Task:
        """Run the scope once more, as ``frame``, from where ``step`` came back; gives the entry
        node's task, given out.

        What is skipped is not kept.
        """
        plan, (_, state, ((arc, payload, _),)) = self.plan, step
        entry = plan.entry
        assert entry is not None
        self.frame, self.root, self.recorder = frame, state, None
        self.history.restart()
        self._waits, self._opens = [*plan.waits], [*plan.opens]
        if self._arrivals:
            self._arrivals.clear()
            self.unneeded.clear()
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
        task = Task(
            frame,
            entry,
            (),
            (new_tuple(Token, (arc.id, payload, None, last.ordinal)),),
            state,
            self,
        )
        self.taken.add(task)
        return task

    def commit(self, task: Task, step: Transition) -> None:
        """See ``Machine``: a chain is followed, and a direct node's tokens are put in one go."""
        node = self.plan.nodes[task.node]
        unit, chain = node.unit, node.chain
        if (
            chain is not None
            and len(step.sends) == 1
            and self._opens[unit] == 1
            and step.sends[0].values is None
            # nothing came from an earlier firing of this node
            and step.sends[0].arc.port not in self._slots
        ):
            # The only edge leads where nothing else is waited for: the task turns into the next
            # one.
            state = step.state
            self.taken.discard(task)
            self._opens[unit] = -1
            token = new_tuple(
                Token, (step.sends[0].arc.id, step.sends[0].payload, state, task.ordinal)
            )
            self.due.put((chain.node, chain.ordinal, (token,)))
            return
        if node.is_direct and self._opens[unit] == 1:
            alone = self._is_alone(len(step.sends))
            sent: list[tuple[int, Token]] = []
            for arc, payload, values in step.sends:
                state = (
                    step.state
                    if values is None
                    else replaced(step.state, values, self.history, alone)
                )
                sent.append((arc.port, new_tuple(Token, (arc.id, payload, state, task.ordinal))))
            self._forward(task, node, step.state, sent)
            return
        super().commit(task, step)

    def _forward(
        self, task: Task, node: PlanNode, state: State, sent: Sequence[tuple[int, Token]]
    ) -> None:
        """A node whose edges all lead to joins of this scope is done: put its tokens, each at its
        port, and decide its edges.
        """
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
        """``prepare`` and ``commit`` in one for a node that fires once, whose edges lead to joins
        of this scope; False: it is another.

        Raises: as ``prepare``.
        """
        node = self.plan.nodes[task.node]
        payload, delta, to = out
        if not node.spreads or to is not None or self._opens[node.unit] != 1:
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
                        after = replaced(
                            state,
                            schema.check(carried.values, whole=True),
                            self.history,
                            self._is_alone(len(node.out)),
                        )
                        carried = carried.payload
                    elif carried is None:
                        continue
                except Exception as error:
                    blame(self.plan, arc, error)
                    raise
            sent.append((arc.port, new_tuple(Token, (arc.id, carried, after, ordinal))))
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

    def follow(self, task: Task, out: Out) -> Task | Transition:
        """``prepare``, ``commit`` and ``take`` in one, where nothing else is due, and the task's
        only edge leads where nothing else is waited for: the next task, given out. Anywhere else
        the step, not in effect.

        Raises: as ``prepare``.
        """
        node = self.plan.nodes[task.node]
        chain = node.chain
        payload, delta, to = out
        if chain is None or self.due.front or to is not None:
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
                    return Transition(delta, state, ())
                if type(payload) is Carried:
                    return Transition(
                        delta,
                        state,
                        (
                            Send(
                                arc,
                                payload.payload,
                                self.root.schema.check(payload.values, whole=True),
                            ),
                        ),
                    )
            except Exception as error:
                blame(self.plan, arc, error)
                raise
        self._opens[node.unit] = -1
        self.fired[chain.node] = 1
        self.taken.discard(task)
        task = Task(
            self.frame,
            chain.node,
            chain.ordinal,
            (new_tuple(Token, (arc.id, payload, state, task.ordinal)),),
            state,
            self,
        )
        self.taken.add(task)
        return task
