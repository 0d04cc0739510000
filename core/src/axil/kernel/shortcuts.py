"""Short ways to the results of the long ways.

This file can be deleted: then every machine is a plain ``Machine``, every result is the same, and
runs are slower. Only ``scopes`` and the compiler know of it.

* A *chain*: a node's only edge leads where nothing else is waited for, so the next node is due.

* A *direct* node: all its edges lead to joins of its scope, which are counted down in one go.

* A *round* that comes back and leaves nothing behind begins the next on the same machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from axil.kernel.machine import Machine, Transition, blame, sent
from axil.kernel.plan import BACK, PlanEdge, Port
from axil.kernel.state import Delta, State
from axil.kernel.tokens import Carried, Changes, Frame, Out, Task, Token, new_tuple
from axil.kernel.values import EMPTY, MAX_WAITING, check_size


def ways(
    out: Sequence[PlanEdge], ports: Sequence[Port], waits: Sequence[int], reach: Sequence[bool]
) -> tuple[Port | None, bool]:
    """Return where the chain from a node leads, and whether the node is direct.

    Args:
        out: its edges.
        reach: whether a chain may lead to each node.
    """
    if not out:
        return None, False
    for arc in out:
        leads_on = arc.port >= 0 and arc.trigger and not arc.late and not arc.inner
        if not (leads_on and ports[arc.port].is_usual):
            return None, False
    if len(out) != 1 or out[0].router >= 0:
        return None, True
    port = ports[out[0].port]
    is_alone = port.needs == 1 and port.trigger_only and waits[out[0].port] == 1
    return (port if is_alone and reach[port.node] else None), True


class QuickMachine(Machine):
    """A machine that takes short ways."""

    __slots__ = ()

    def comes_back(self, step: Transition) -> bool:
        """Return whether ``step``, the last of what is alive in a round, leads back to its start,
        and leaves nothing behind.
        """
        if len(step.sends) != 1 or self._alive != 1 or self.plan.flat_limits:
            return False
        arc, _, values = step.sends[0]
        if arc.port != BACK or not arc.trigger or values is not None:
            return False
        return not (self._ended or self._slots or self._late or self.exits or self.returns)

    def again(self, frame: Frame, step: Transition) -> Task:
        """Run the scope once more, as ``frame``, from where ``step`` came back; return the entry
        node's task. What is skipped is not kept.
        """
        plan, (_, state, ((arc, payload, _),)) = self.plan, step
        entry = plan.entry
        assert entry is not None
        self.frame, self.root, self.recorder = frame, state, None
        self.history.restart()
        self._waits, self._opens = [*plan.waits], [*plan.opens]
        if self._arrivals:
            self._arrivals.clear()
            self.unneeded = EMPTY
        if self._barrier is not None:
            self._barrier.restart()
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
            plan.nodes[entry],
            (),
            (new_tuple(Token, (arc.id, payload, None, last.ordinal)),),
            state,
            self,
        )
        self.taken.add(task)
        return task

    def follow(self, task: Task, out: Out) -> Task | Transition | list[object]:
        """See ``Machine``: a chain is followed where nothing else is due; a direct node that fires
        once puts its tokens. Where an edge is dead, or replaces the state, the long way is gone.
        """
        node = task.node
        payload, delta, to = out
        if to is not None or self._opens[node.unit] != 1:
            return self.prepare(task, out)
        state = task.state
        if delta and type(delta) is not Changes:
            delta = self.root.schema.check(delta)
        if state.known or (delta and (self._alive != 1 or self._ended or self.history.keeps)):
            state = self.advance(task, delta)
        elif delta:  # what ``advance`` does where the path is alone
            state = state.apply(delta)
        chain, arc = node.chain, node.out[0]
        if chain is None or self.due or arc.port in self._slots:
            return self._spread(task, payload, delta, state)
        try:
            if arc.carry is not None:
                payload = arc.carry(payload, state)
            if payload is None or type(payload) is Carried:
                sends = () if payload is None else (sent(arc, payload, state),)
                return Transition(delta, state, sends)
        except Exception as error:
            blame(self.plan, arc, error)
            raise
        self.taken.discard(task)
        self._opens[node.unit] = -1
        self.fired[chain.node] = 1
        tokens = (new_tuple(Token, (arc.id, payload, state, task.ordinal)),)
        node = self.plan.nodes[chain.node]
        task = Task(self.frame, node, chain.ordinal, tokens, state, self)
        self.taken.add(task)
        return task

    def _spread(
        self, task: Task, payload: object, delta: Delta, state: State
    ) -> Transition | list[object]:
        """Put the tokens of a direct node, each at its port, and decide its edges.

        Returns: what each edge carries; where one is dead, or replaces the state: the transition.
        """
        node = task.node
        carried: list[object] = []
        is_plain, arc, used = True, node.out[0], 0
        seen: set[int] = set()
        try:
            for arc in node.out:
                answer = payload if arc.carry is None else arc.carry(payload, state)
                if answer is not payload and len(node.out) > 1:
                    used += check_size(answer, MAX_WAITING, used, seen)
                carried.append(answer)
                if answer is None or type(answer) is Carried:
                    is_plain = False
            if not is_plain:
                both = zip(node.out, carried, strict=True)
                sends = [sent(arc, given, state) for arc, given in both if given is not None]
                return Transition(delta, state, sends)
        except Exception as error:
            blame(self.plan, arc, error)
            raise
        slots, waits, ordinal = self._slots, self._waits, task.ordinal
        self.taken.discard(task)
        self._opens[node.unit] = -1
        self._alive += len(carried) - 1
        for at, arc in enumerate(node.out):
            port, token = arc.port, new_tuple(Token, (arc.id, carried[at], state, ordinal))
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
