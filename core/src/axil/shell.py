"""The shell around the machines of one run: starts bodies, feeds outcomes back, pauses, stops. It decides nothing that a machine decides.

There is a queue of *frames* that have something due. A frame is a machine with a parent; a scope (a cycle, a graph, a
sub-run of a body) opens a frame and is told when it has nothing left to do. So depth is a chain of objects, never a stack
of calls or awaits. An inline body costs a call; an async body costs a task if it waits (see ``crew``); a thread body a thread.
Whoever hears what a body came to works the queue; ``drive`` does what is left over, and the end.

Outcomes are journaled in the order in which they take effect, and bodies that the world could notice start only when all before
them is safe (see ``journal``).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable
from typing import Any, cast

from axil.composite import CycleVisit, GraphVisit, Left, Subgraph, Visit, entry_tokens, kind_of
from axil.context import Clock, Context, Executor
from axil.crew import SLICE, Crew, LocalExecutor, Work
from axil.desk import REAL_CLOCK, Desk, Pause, paused_by
from axil.errors import AxilError, LimitReached, NodeFailed, RunCancelled
from axil.fold import Cycle
from axil.journal import Book, Replay
from axil.live import Live, Queue, broken_off
from axil.machine import Machine
from axil.observers import Observers
from axil.outcome import Ended, Step
from axil.plan import Node, no_outcome
from axil.record import leaving, retold, told
from axil.result import CycleTally, Meter, Options, Result, ending_of, made
from axil.spec import Limits
from axil.state import State
from axil.subruns import SubRuns
from axil.tokens import EXIT, Activation, Out, Task, quick
from axil.values import isolate


class Shell:
    """What works the frames of one run, and its crew's foreman."""

    __slots__ = (
        "_book", "_ended", "_failures", "_hearers", "_is_bare", "_is_local", "_is_unheard", "_open", "_queue", "_replay", "_root",
        "_stop", "_subs", "_turn_ends", "_waiter", "crew", "cycles", "desk", "limits", "meter", "observers",
    )  # fmt: skip

    def __init__(self, run_id: str, options: Options, book: Book | None, replay: Replay, root: Machine) -> None:
        """``replay``: what is known of the run, and is not done again; ``root``: what it runs, not started yet."""
        self._book, self._replay, self._root = book, replay, Live(root)
        self.limits: Limits = options.limits or root.plan.graph.limits
        self.meter = Meter(self.limits, self.halt)
        self.cycles: dict[str, CycleTally] = {}
        """How its cycles ended so far, by path."""
        if replay.header is not None:
            self.meter.restore(replay.used)
            self.cycles.update((path, CycleTally(*tally)) for path, tally in replay.used.get("cycles", {}).items())
        self.observers = Observers.freeze(options.hooks, options.observers)
        heard = (self.observers.firing_started, self.observers.firing_finished, self.observers.firing_skipped)
        self._hearers = (heard[:2] != (None, None), *heard)
        self.crew = Crew(self.limits, book, self)
        self.crew.announce = None if self.observers.firing_started is None else self._announce
        self._subs = SubRuns(self.crew)
        clock: Clock = options.clock or REAL_CLOCK
        executor: Executor = options.executor or LocalExecutor(options.threads, run_id)
        means = (clock, self.meter, executor, self._subs, self.cycles)
        self.desk = Desk(run_id, options, self.observers, replay, *means, book=book)
        self._is_local = type(executor) is LocalExecutor
        self._is_bare = self._is_local and book is None
        self._is_unheard = book is None and self.observers.firing_finished is None  # nobody wants to know what a firing came to
        self._queue: Queue[Live] = Queue()
        self._open: dict[Task, Live] = {}  # scopes under way, by the task that entered them
        self._waiter: asyncio.Future[None] | None = None
        self._failures: tuple[tuple[tuple[Any, ...], NodeFailed], ...] = ()
        self._stop: AxilError | None = None
        self._ended: Ended | None = None
        self._turn_ends = 0.0

    def start(self, inputs: Any) -> None:
        """Put what ``@entry`` carries of ``inputs``."""
        machine = self._root.machine
        try:
            tokens = entry_tokens(machine.plan, inputs, machine.root)
        except Exception as error:  # noqa: BLE001  # an entry edge's function raised: the input does not fit the graph
            self.fail(self._root, -1, (), "@entry", error)
            return
        machine.start(tokens)
        self.notice(self._root)

    # ------------------------------------------------------------------ the loop

    async def drive(self) -> None:
        """See to what no hand does: the beginning, what a slice of time did not suffice for, and the end."""
        crew = self.crew
        while crew.broken is None:
            if self._stop is None:
                crew.admit()
                self._work()
            if self._stop is not None or not (self._queue.front or crew):
                return
            crew.call()
            if self._queue.front:
                await asyncio.sleep(0)
                await self.desk.kept()  # what is worked out waits for what is written down, now and then
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        raise crew.broken

    def _work(self) -> None:
        """Work the queue until it is empty, for a slice of time at most."""
        crew, usage, most, done = self.crew, self.meter.usage, self.meter.most, self._replay.done
        self._turn_ends = turn_ends = time.monotonic() + SLICE
        begun = 0
        while self._queue.front and self._stop is None:
            live = self._queue.front[-1]
            machine = live.machine
            if self._subs.are_dropped and live.is_dropped:
                self._queue.take()
                continue
            if not machine.ready:
                self._queue.take()
                live.queued = False
                self._settle(live)
                continue
            try:
                task = machine.take()
            except LimitReached as limit:
                self.halt(limit)
                return
            except Exception as error:  # noqa: BLE001  # a join or a custom merge failed: the node it is for has failed
                node = machine.failed_node
                self.fail(live, node, (), machine.plan.nodes[node].name, error)
                return
            if task is None:
                continue
            node = machine.plan.nodes[task.node]
            if done and (entry := done.get(Activation(task.frame, node.name, task.ordinal))) is not None:
                for each, told_of in live.turns(task, entry, self._replay.order.get(machine.frame, ())):
                    self._commit(live, each, retold(machine, each, told_of))
            elif node.mode == "scope":
                self._enter(live, task, node)
            elif usage.firings >= most:
                self.halt(self.meter.limit())
            else:
                usage.firings += 1
                if node.quick:
                    self._walk(live, task, node)
                else:
                    crew.put(Work(live, task, node))
            begun += 1
            if not begun & 3 and time.monotonic() > turn_ends:
                return

    def _walk(self, live: Live, task: Task, node: Node, out: Any = None) -> None:
        """Do a firing that is a call, or take in what it came to (``out``), and go on as long as one firing follows, which is a call."""
        machine, meter = live.machine, self.meter
        usage, nodes = meter.usage, machine.plan.nodes
        step_on = machine.follow if self._book is None else machine.prepare
        is_heard, started, finished, skipped = self._hearers
        who: Any = None
        while True:
            if is_heard:
                who = quick(Activation, (task.frame, node.name, task.ordinal))
            try:
                if out is None:
                    if is_heard and started is not None:
                        started(who, "node")
                    out = node.call(task, self._context(task, node) if node.wants_ctx else None)
                if type(out) is not Out:
                    if not inspect.isawaitable(out):
                        raise no_outcome(out)
                    self.crew.put(Work(live, task, node, out))
                    return
                if node.spreads and self._is_unheard and machine.spread(task, out):
                    self.notice(live)
                    return
                after: Any = step_on(task, out)
            except Pause as pause:
                self._pause(live, pause)
                return
            except Exception as error:  # noqa: BLE001  # a body may raise anything, and an edge or the state may refuse what it gave
                self.fail(live, task.node, task.ordinal, node.name, error)
                return
            if type(after) is not Task:
                step: Step = after
                if self._book is not None and not self._tell(live, task, node, step):
                    return
                try:
                    again: Task | None = None
                    if live.again is not None and (skipped is None or 0 not in machine.fired):
                        again = live.again(step, None if self._book is None else self.desk.note)
                except AxilError as error:  # the round cannot be journaled
                    self.fail(live, task.node, task.ordinal, node.name, error)
                    return
                if again is None:
                    self._commit(live, task, step)
                    return
                after = again
            if is_heard and finished is not None:
                finished(who, "node", isolate(after.tokens[0].payload))
            task, node, out = after, nodes[after.node], None
            fired = usage.firings
            if fired >= meter.most or self._stop is not None or (not fired & 3 and time.monotonic() > self._turn_ends):
                machine.put_back(task)
                self.notice(live)
                return
            if node.quick:
                usage.firings = fired + 1
            elif node.mode == "scope":
                self._enter(live, task, node)
                return
            else:
                usage.firings = fired + 1
                self.crew.put(Work(live, task, node))
                return

    def _spread(self, live: Live, task: Task, out: Out) -> bool:
        """Take in what a body came to where all that follows are joins, and nobody wants to be told; False: there is more to it."""
        try:
            if not live.machine.spread(task, out):
                return False
        except Exception as error:  # noqa: BLE001  # an edge or the state may refuse what it gave
            self.fail(live, task.node, task.ordinal, live.machine.plan.nodes[task.node].name, error)
            return True
        self.notice(live)
        return True

    def _context(self, task: Task, node: Node) -> Context:
        return Context(self.desk, task, Activation(task.frame, node.name, task.ordinal))

    def begin(self, work: Work) -> Awaitable[Any]:
        """Begin one body."""
        task, node = work.task, work.node
        if work.doing is not None:
            return work.doing
        if self._is_bare and node.is_coroutine and not node.wants_ctx:
            return node.call(task, None)
        is_external = self._book is not None and node.vertex.effects == "external"
        is_here = self._is_local and node.is_coroutine and not is_external  # awaited as it is, with nothing around it
        ctx = self._context(task, node) if node.wants_ctx or not is_here else None
        if ctx is None or is_here:
            return node.call(task, ctx)
        return self.desk.execute_once(node.body, task, ctx) if is_external else self.desk.execute(node.body, task, ctx)

    def _announce(self, work: Work) -> None:
        if self.observers.firing_started is not None and work.doing is None:
            self.observers.firing_started(Activation(work.task.frame, work.node.name, work.task.ordinal), "node")

    def hear(self, work: Work, out: Any, error: BaseException | None) -> None:
        """See ``Foreman``."""
        live, task, node = work.live, work.task, work.node
        subs = self._subs
        if subs.are_any:
            subs.leave(task)
        if not (subs.are_dropped and live.is_dropped):
            if error is not None:
                self._hear_error(work, error)
            elif self._stop is None:
                if type(out) is not Out:
                    self.fail(live, task.node, task.ordinal, node.name, no_outcome(out))
                elif not (node.spreads and self._is_unheard and self._spread(live, task, out)):
                    self._turn_ends = time.monotonic() + SLICE
                    self._walk(live, task, node, out)
        if self._queue.front and self._stop is None:
            self._work()
        if self._queue.front or self._stop is not None:
            self.wake()

    def _hear_error(self, work: Work, error: BaseException) -> None:
        live, task, name = work.live, work.task, work.node.name
        if isinstance(error, asyncio.CancelledError):
            if self._stop is None:
                self.fail(live, task.node, task.ordinal, name, RunCancelled("the body was cancelled from outside"))
        elif (pause := paused_by(error)) is not None:
            self._pause(live, self.desk.all_asked(Activation(task.frame, name, task.ordinal), pause))
        else:
            self.fail(live, task.node, task.ordinal, name, error)

    # ------------------------------------------------------------------ outcomes

    def _record(self, live: Live, task: Task, node: Node, step: Step) -> None:
        if self._book is None or self._tell(live, task, node, step):
            self._commit(live, task, step)

    def _tell(self, live: Live, task: Task, node: Node, step: Step) -> bool:
        """Journal a step. False: it cannot be, and its node has failed."""
        try:
            entry = told(live.machine, task, step)
        except AxilError as error:
            self.fail(live, task.node, task.ordinal, node.name, error)
            return False
        self.desk.note(entry)
        return True

    def _commit(self, live: Live, task: Task, step: Step) -> None:
        machine = live.machine
        machine.commit(task, step)
        node = machine.plan.nodes[task.node]
        if self.observers.firing_finished is not None:
            output = isolate(step.sends[0].payload) if step.sends else None  # what a watcher does to it is seen by nobody
            self.observers.firing_finished(Activation(task.frame, node.name, task.ordinal), kind_of(node), output)
        self.notice(live)

    def notice(self, live: Live) -> None:
        """A frame's machine moved: report what it skipped, and queue it if something is due or nothing is left."""
        machine = live.machine
        if machine.skips:
            if self.observers.firing_skipped is not None:
                for index in machine.skips:
                    node = machine.plan.nodes[index]
                    self.observers.firing_skipped(Activation(machine.frame, node.name), kind_of(node))
            machine.skips.clear()
        if not live.queued and (machine.ready or len(machine.taken) == live.paused):
            live.queued = True
            self._queue.put(live)

    # ------------------------------------------------------------------ scopes

    def _enter(self, live: Live, task: Task, node: Node) -> None:
        body = node.body
        activation = Activation(task.frame, node.name, task.ordinal)
        if self.observers.firing_started is not None:
            self.observers.firing_started(activation, kind_of(node))
        try:
            if isinstance(body, Cycle):
                visit: Visit = CycleVisit(body, task, node.name, told=self._replay.rounds.get(activation, ()))
                if not visit.enters(task):
                    self._record(live, task, node, Step({}, task.state, ()))
                    return
                if visit.is_over:
                    self._leave(live, task, node, cast("Left", visit.result()))
                    return
            else:
                visit = GraphVisit(cast("Subgraph", body), task, node.name)
        except Exception as error:  # noqa: BLE001  # entering failed: the node has failed
            self.fail(live, task.node, task.ordinal, node.name, error)
            return
        inner = self._open[task] = Live(visit.machine, live, task)
        inner.visit = visit
        if isinstance(visit, CycleVisit) and not self._replay.done:
            inner.again = visit.turn
        self.notice(inner)

    def _settle(self, live: Live) -> None:
        """A frame has nothing due: it has ended, or it is stuck on open questions, or it waits for bodies at work."""
        machine = live.machine
        if machine.taken:
            if len(machine.taken) == live.paused:  # all in it has ended or waits for answers: so does the task that opened it
                if live.waiter is not None:
                    live.tell(Pause(*live.questions))
                elif live.parent is not None:
                    self._pause(live.parent, Pause(*live.questions))
            return
        try:
            ended = machine.end()
        except Exception as error:  # noqa: BLE001  # what its paths wrote cannot be joined: the frame has failed
            if live.waiter is not None:
                live.tell(error)
            elif live.parent is not None and live.task is not None:
                task = live.task
                self.fail(live.parent, task.node, task.ordinal, live.parent.machine.plan.nodes[task.node].name, error)
            else:
                self.fail(live, -1, (), EXIT, error)
            return
        if live.parent is None or live.task is None:
            self._ended = ended
            return
        if live.waiter is not None:
            live.over = True
            live.tell(ended)
            return
        assert live.visit is not None
        parent, task = live.parent, live.task
        node = parent.machine.plan.nodes[task.node]
        try:
            live.visit.next(ended)
            if self._book is not None and (entry := live.visit.fact()) is not None:
                self.desk.note(entry)
            outcome = live.visit.result()
            step = parent.machine.prepare(task, outcome) if isinstance(outcome, Out) else None
        except LimitReached as limit:
            live.over = True
            self.halt(limit)
            return
        except Exception as error:  # noqa: BLE001  # what a scope hands back was refused: its node has failed
            self.fail(parent, task.node, task.ordinal, node.name, error)
            return
        if isinstance(outcome, Machine):
            live.machine = outcome
            self.notice(live)
            return
        del self._open[task]
        if isinstance(outcome, Left):
            self._leave(parent, task, node, outcome)
        else:
            self._record(parent, task, node, step or Step({}, parent.machine.advance(task, {}), ()))

    def _leave(self, live: Live, task: Task, node: Node, left: Left) -> None:
        self.cycles.setdefault(Activation(task.frame, node.name).path, CycleTally()).count(left.reason, left.rounds)
        self._record(live, task, node, leaving(live.machine, task, left))

    # ------------------------------------------------------------------ ends

    def _pause(self, live: Live, pause: Pause) -> None:
        live.paused += 1
        live.questions = (*live.questions, *pause.questions)
        self.notice(live)

    def fail(self, live: Live, node: int, ordinal: tuple[int, ...], name: str, error: BaseException) -> None:
        """A firing raised, or what it gave was refused."""
        activation = Activation(live.machine.frame, name, ordinal)
        failed = error if isinstance(error, NodeFailed) else NodeFailed(activation.path, error)
        if self.observers.firing_failed is not None:
            kind = kind_of(live.machine.plan.nodes[node]) if node >= 0 else "node"
            self.observers.firing_failed(activation, kind, error)
        if (container := live.contain(failed)) is not None:
            self._subs.drop([container])
            return
        self._failures = (*self._failures, ((*live.order(), (node, ordinal, -1)), failed))
        self.halt(failed)

    def halt(self, why: AxilError) -> None:
        """Start nothing more; from any thread."""
        if self._stop is None:
            self._stop = why
        self.crew.is_sent_home = True
        self.desk.at_home(self.wake)

    def wake(self) -> None:
        """See ``Foreman``."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def stop(self) -> None:
        """Cancel bodies at work, innermost frames first, and wait until they are gone."""
        while self.crew:
            await self.crew.send_home()

    def conclude(self) -> tuple[Result, State]:
        """What the run has come to, and the state it leaves."""
        came_to = ending_of(self._failures, self._stop, self._ended is not None, self._root.questions)
        self.meter.usage.seconds = self.desk.elapsed
        ended = self._ended or broken_off(self._root, self._open.values())
        return made(self.desk.run_id, self._root.machine.plan.graph, ended, came_to, self.meter.usage, self.cycles), ended.state

    async def close(self) -> None:
        """The run is over: let go of its threads, its journal, and of whatever would hold it longer than its users do."""
        try:
            await self.desk.executor.close()
        finally:
            if self._book is not None:
                self._book.close()
            self.desk.is_closed = True
            self.crew.close()
            self.meter.ledger.close()
