"""Short ways: they lead where the long ways lead, with fewer steps.

This file can be deleted: then every machine is a plain ``Machine``, every result is the same, and
runs are slower. ``scopes`` and the compiler look for it, and nothing else knows of it.

* A *chain*: a node's only edge leads where nothing else is waited for, so the next node is due.
* A *direct* node: all its edges lead to joins of its scope, which are counted down in one go.
* A *round* that comes back and leaves nothing else behind begins the next on the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axil.kernel.barriers import Barrier
from axil.kernel.machine import Machine
from axil.kernel.outcomes import Transition, blame, sent
from axil.kernel.plan import BACK, PlanEdge, Port
from axil.kernel.state import History
from axil.kernel.tokens import Carried, Changes, Frame, Out, Task, Token, new_tuple


def ways(
    out: Sequence[PlanEdge], ports: Sequence[Port], waits: Sequence[int], reach: Sequence[bool]
) -> tuple[Port | None, bool]:
    """Return where the chain from a node leads, and whether the node is direct.

    Args:
        out: its edges.
        reach: whether a chain may lead to each node.
    """
    if not out or not all(_is_direct(arc, ports) for arc in out):
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
        """Return whether ``step``, the last of what is alive in a round, leads back to where the
        round began, and leaves nothing else behind.
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
        self.history = History(state.schema, keeps=True)
        self._waits, self._opens = [*plan.waits], [*plan.opens]
        if self._arrivals:
            self._arrivals.clear()
            self.unneeded.clear()
        if plan.barriers:
            self._barrier = Barrier(plan.barriers)
        unit = plan.nodes[entry].unit
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

    def follow(self, task: Task, out: Out) -> Task | Transition | list[Any]:
        """See ``Machine``: a chain is followed where nothing else is due; the tokens of a direct
        node that fires once are put, each at its port, and its edges decided. Where an edge is
        dead, or replaces the state, the long way is gone.
        """
        plan = self.plan
        node = plan.nodes[task.node]
        payload, delta, to = out
        if to is not None or not node.spreads or self._opens[node.unit] != 1:
            return self.prepare(task, out)
        state, arcs = task.state, node.out
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if delta or state.known:
            state = self.advance(task, delta)
        carried: list[Any] = []
        is_plain, arc = True, arcs[0]
        try:
            for arc in arcs:
                answer = payload if arc.carry is None else arc.carry(payload, state)
                carried.append(answer)
                if answer is None or type(answer) is Carried:
                    is_plain = False
            if not is_plain:
                sends = [sent(arc, carried.pop(0), state) for arc in arcs]
                return Transition(delta, state, [send for send in sends if send is not None])
        except Exception as error:
            blame(plan, arc, error)
            raise
        slots, waits, ordinal, chain = self._slots, self._waits, task.ordinal, node.chain
        self.taken.discard(task)
        self._opens[node.unit] = -1
        if chain is not None and not self.due and arc.port not in slots:
            self.fired[chain.node] = 1
            token = new_tuple(Token, (arc.id, carried[0], state, ordinal))
            task = Task(self.frame, chain.node, chain.ordinal, (token,), state, self)
            self.taken.add(task)
            return task
        self._alive += len(arcs) - 1
        for arc, answer in zip(arcs, carried, strict=True):
            port, token = arc.port, new_tuple(Token, (arc.id, answer, state, ordinal))
            if port in slots:
                slots[port].append(token)
            else:
                slots[port] = [token]
            waits[port] -= 1
            if not waits[port]:
                self._decide(port)
        if self._todo:
            self._settle()
        return carried
