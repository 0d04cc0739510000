"""The scheduler of one run: events in, commands out.

``events`` lists both, and is all that a driver needs to know.

Theory of operation
-------------------
A run is a tree of *running frames*. Each has a ``Machine``: the tokens of one scope, run once. A
node that holds a scope (a cycle, a graph) opens a frame below, and a body at work may ask for one
(a sub-run). A frame with something due stands in a queue; ``next`` works the queue: it takes the
next firing of the frame in front, or settles a frame that has nothing due. So depth is a chain of
objects, never a stack of calls.

A frame that is settled has ended, or waits for bodies at work, or rests on open questions. What an
ended frame comes to is the outcome of the firing that opened it; a cycle's visit may open another
round instead.

Where outcomes are recorded, each takes effect in two events: ``finish`` works it out and returns
``RecordFiring``, and ``recorded`` puts it into effect. In between the scheduler does nothing else.
What has been recorded before (``Known``) is applied where it is met, and no body starts for it.

The first failure in plan order is the run's; frames that contain failures return the failure to the
body that waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from axil.errors import AxilError, KernelBug, LimitReached, NodeFailed
from axil.kernel.cycles import CycleBody
from axil.kernel.events import (
    Command,
    CycleTally,
    DecideLimit,
    DropBodies,
    End,
    Ending,
    Known,
    RecordFiring,
    RecordRound,
    Report,
    Return,
    SubRun,
    ending_of,
)
from axil.kernel.machine import Machine
from axil.kernel.outcomes import FrameResult, Transition
from axil.kernel.plan import PlanNode, no_outcome
from axil.kernel.scopes import (
    CycleResult,
    CycleRun,
    ScopeRun,
    SubgraphBody,
    SubgraphRun,
    entry_tokens,
    leaving,
    machine_type,
)
from axil.kernel.tokens import ENTRY, EXIT, Activation, Out, Task, inner_frame, new_tuple

T = TypeVar("T")


class RunningFrame:
    """A frame that is running: its machine, and its place among the others."""

    __slots__ = (
        "contained", "depth", "dropped", "is_sub", "machine", "over", "parent", "queued", "resting",
        "task", "turning", "visit",
    )  # fmt: skip

    def __init__(
        self, machine: Machine, parent: RunningFrame | None = None, task: Task | None = None
    ) -> None:
        self.parent, self.task = parent, task
        self.machine = machine
        machine.running = self
        self.visit: ScopeRun | None = None
        """The scope this is a part of; None for the run itself and for sub-runs of bodies."""
        self.turning: CycleRun | None = None
        """The same, where a round may end the short way."""
        self.is_sub = False
        """Whether a body waits for it."""
        self.contained = False
        """Whether a failure inside is returned to that body, and does not end the run."""
        self.resting: dict[Task, tuple[Any, ...]] = {}
        """Tasks that ended with open questions, and these."""
        self.queued = False
        self.over = False
        """Its machine has ended; its visit, or the body that waits, has what it gave."""
        self.dropped = False
        """Nothing waits for it any more."""
        self.depth: int = parent.depth + 1 if parent else 0

    def go_on_with(self, machine: Machine) -> None:
        """Run another machine: the next round."""
        self.machine = machine
        machine.running = self

    def close(self) -> None:
        """Let go of the machine, which holds this frame: both are freed with whatever held them
        last.
        """
        self.machine.running = None

    def around(self) -> Iterable[RunningFrame]:
        """Yield this frame and those around it, innermost first."""
        running: RunningFrame | None = self
        while running is not None:
            yield running
            running = running.parent

    @property
    def questions(self) -> tuple[Any, ...]:
        """The open questions of all that rests in it."""
        return tuple(each for questions in self.resting.values() for each in questions)

    @property
    def is_dropped(self) -> bool:
        """Whether nothing waits any more for this frame, or for one around it."""
        return any(running.dropped for running in self.around())

    def order(self) -> tuple[Any, ...]:
        """Return the place of this frame in plan order: the nodes, ordinals and rounds that lead to
        it.
        """
        parts: list[tuple[Any, ...]] = []
        for running in self.around():
            if running.task is not None:
                part = running.machine.frame[-1]
                place = part if isinstance(part, int) else -1
                parts.append((running.task.node, running.task.ordinal, place))
        return tuple(reversed(parts))


class Queue(Generic[T]):
    """First come, first served; a list each for those in front and those behind, so that it is
    small where few wait.
    """

    __slots__ = ("_behind", "front")

    def __init__(self) -> None:
        self.front: list[T] = []
        """The next one last; not empty as long as there are any."""
        self._behind: list[T] | None = None  # the next one first; None: there were never two

    def __len__(self) -> int:
        return len(self.front) + len(self._behind or ())

    def put(self, item: T) -> None:
        """Put ``item`` behind all others."""
        if not self.front:
            self.front.append(item)
        elif self._behind is None:
            self._behind = [item]
        else:
            self._behind.append(item)

    def take(self) -> T:
        """Return the next one, which waits no more."""
        item = self.front.pop()
        if not self.front and self._behind:
            self._behind.reverse()
            self.front, self._behind = self._behind, self.front
        return item


class Scheduler:
    """One run. Every event returns the next command, or None: ``next`` has it, if there is one."""

    __slots__ = (
        "_asks_limits", "_commands", "_dropped", "_ended", "_failures", "_has_dropped",
        "_is_plain", "_known", "_limited", "_open", "_pending", "_queue", "_records",
        "_reports_finished", "_reports_skipped", "_root", "_stop", "_subs", "_took", "cycles",
        "reports",
    )  # fmt: skip

    def __init__(
        self,
        root: Machine,
        *,
        known: Known | None = None,
        records: bool = False,
        reports: Iterable[str] = (),
        asks_limits: bool = False,
    ) -> None:
        """
        Args:
            root: the machine of the whole run, not started.
            known: facts that have been recorded; None: none.
            records: whether outcomes take effect only when they are recorded.
            reports: the kinds of ``Report`` that are made.
            asks_limits: whether a cycle's limit is put to the driver before it ends the run.
        """
        wanted = frozenset(reports)
        self._root = RunningFrame(root)
        self._known = known
        self._took = None if known is None else known.took
        root.took = self._took
        self._records = records
        self._asks_limits = asks_limits
        self._limited: tuple[LimitReached, tuple[Any, ...]] | None = None
        self._reports_finished = bool(wanted)
        self._reports_skipped = "skipped" in wanted
        self._is_plain = not records and "finished" not in wanted
        self.reports: list[Report] = []
        """What happened since the driver last emptied this."""
        self.cycles: dict[str, CycleTally] = {}
        """How cycles ended so far, by path."""
        self._queue: Queue[RunningFrame] = Queue()
        self._commands: deque[Command] = deque()  # to be returned before anything else is done
        self._pending: (
            tuple[RunningFrame, Task, Callable[..., Command | None], tuple[Any, ...]] | None
        ) = None
        self._open: dict[Task, RunningFrame] = {}  # scopes under way, by the task that opened them
        self._subs: dict[Task, list[RunningFrame]] = {}
        self._has_dropped = False
        self._dropped: set[Task] = set()  # firings that an early join cancelled
        self._failures: tuple[tuple[tuple[Any, ...], NodeFailed], ...] = ()
        self._stop: AxilError | None = None
        self._ended: FrameResult | None = None

    # ------------------------------------------------------------------------------- events

    def begin(self, inputs: Any) -> None:
        """Put what ``@entry`` carries of ``inputs``."""
        machine = self._root.machine
        try:
            tokens = entry_tokens(machine.plan, inputs, machine.root)
        except Exception as error:  # noqa: BLE001
            # an entry edge's function raised: the input does not fit the graph
            self._fail(self._root, -1, (), ENTRY, error)
            return
        machine.start(tokens)
        self._notice(self._root)

    def finish(self, task: Task, out: Any) -> Command | None:
        """Take in the outcome of a body."""
        machine: Machine = task.owner
        running: RunningFrame = machine.running
        if self._subs:
            self._leave_subs(task)
        if self._stop is not None or (self._has_dropped and self.is_dropped(task)):
            return None
        node = machine.plan.nodes[task.node]
        try:
            if type(out) is not Out:
                raise no_outcome(out)
            if self._is_plain and node.spreads and machine.spread(task, out):
                self._notice(running)
                return None
            after: Any = machine.prepare(task, out) if self._records else machine.follow(task, out)
        except Exception as error:  # noqa: BLE001
            # an edge or the state may refuse what the body gave
            self._fail(running, task.node, task.ordinal, node.name, error)
            return None
        if type(after) is not Task:
            if self._records:
                record = RecordFiring(machine, task, after)
                return self._pend(running, task, record, self._conclude, running, task, node, after)
            visit = running.turning
            if (
                visit is None
                or (self._reports_skipped and 0 in machine.fired)
                or not visit.turns(after)
            ):
                self._commit(running, task, node, after)
                return None
            after = visit.again(after)
        if self._reports_finished:
            activation = new_tuple(Activation, (task.frame, node.name, task.ordinal))
            self.reports.append(
                new_tuple(Report, ("finished", activation, node.kind, after.tokens[0].payload))
            )
        if self._known is None and machine.plan.nodes[after.node].mode != "scope":
            return after
        return self._started(running, after)

    def fail(self, task: Task, error: BaseException) -> None:
        """Take in that a body raised."""
        machine: Machine = task.owner
        running: RunningFrame = machine.running
        self._leave_subs(task)
        if not (self._has_dropped and self.is_dropped(task)):
            self._fail(running, task.node, task.ordinal, machine.plan.nodes[task.node].name, error)

    def wait(self, task: Task, questions: Sequence[Any]) -> None:
        """Take in that a body ended with questions that nothing answers yet."""
        running: RunningFrame = task.owner.running
        self._leave_subs(task)
        if not (self._has_dropped and self.is_dropped(task)):
            self._rest(running, task, questions)

    def try_again(self, task: Task) -> None:
        """Take in that a body raised and is started again: sub-runs that it began are dropped."""
        self._leave_subs(task)

    def decide(self, exits: bool) -> Command | None:
        """Take in what becomes of a cycle's limit: the cycle ends, or the run does."""
        if self._limited is None:
            raise KernelBug("no limit was to be decided.")
        limit, where = self._limited
        self._limited = None
        if not exits:
            self.stop(limit)
            return None
        return self._ended_round(*where)

    def put_back(self, task: Task) -> None:
        """Take back a firing that was given out last and not started: it is the next that is
        due.
        """
        machine: Machine = task.owner
        machine.put_back(task)
        self._notice(machine.running)

    def recorded(self) -> Command | None:
        """Put into effect what has been recorded."""
        if self._pending is None:
            raise KernelBug("nothing was to be recorded.")
        *_, go_on, given = self._pending
        self._pending = None
        return go_on(*given)

    def refuse(self, error: BaseException) -> None:
        """Fail the node whose fact cannot be recorded."""
        if self._pending is None:
            raise KernelBug("nothing was to be recorded.")
        running, task, *_ = self._pending
        self._pending = None
        self._fail(
            running, task.node, task.ordinal, running.machine.plan.nodes[task.node].name, error
        )

    def enter(self, task: Task, sub: SubRun) -> RunningFrame:
        """Begin a sub-run of a body at work; ``Return`` has its result.

        Raises: what an entry edge's function raises.
        """
        parent: RunningFrame = task.owner.running
        node = parent.machine.plan.nodes[task.node]
        root = (task.state if sub.state is None else sub.state).rooted()
        frame = (*inner_frame(task.frame, node.name, task.ordinal), *sub.name)
        machine = machine_type(sub.plan, frame, root, keeps=True, took=self._took)
        machine.start(entry_tokens(sub.plan, sub.inputs, root))
        running = RunningFrame(machine, parent, task)
        running.is_sub, running.contained = True, sub.contained
        self._subs.setdefault(task, []).append(running)
        self._notice(running)
        return running

    def drop(self, runs: Sequence[RunningFrame]) -> None:
        """End sub-runs for which nothing waits: nothing in them starts, and what is at work is
        cancelled.
        """
        runs = [running for running in runs if not running.over]
        for running in runs:
            running.dropped = self._has_dropped = True
        if runs:
            self._commands.append(DropBodies())

    def stop(self, error: AxilError) -> None:
        """Start nothing more. The first reason counts. May be called from any thread."""
        if self._stop is None:
            self._stop = error

    # ----------------------------------------------------------------------------- commands

    def next(self) -> Command | None:
        """Return the next command; None: nothing can be done before the next event."""
        queue = self._queue
        while True:
            if self._commands:
                return self._commands.popleft()
            if self._stop is not None:
                return END
            if not queue.front:
                return END if self._ended is not None else None
            running = queue.front[-1]
            machine = running.machine
            if self._has_dropped and running.is_dropped:
                queue.take()
                continue
            if not machine.ready:
                queue.take()
                running.queued = False
                command = self._settle(running)
            else:
                try:
                    task = machine.take()
                except LimitReached as limit:
                    self.stop(limit)
                    continue
                except Exception as error:  # noqa: BLE001
                    # a join or a merge failed: so has the node it is for
                    node = machine.failed_node
                    self._fail(running, node, (), machine.plan.nodes[node].name, error)
                    continue
                command = self._started(running, task) if task is not None else None
            if command is not None:
                return command

    @property
    def is_due(self) -> bool:
        """Whether ``next`` has something to do."""
        return bool(self._queue.front or self._commands)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing starts any more."""
        return self._stop is not None

    def is_dropped(self, task: Task) -> bool:
        """Return whether nothing waits for a task, for its frame, or for one around it."""
        if task in self._dropped:
            return True
        running: RunningFrame = task.owner.running
        return running.is_dropped or any(
            each.task in self._dropped for each in running.around() if each.task is not None
        )

    @staticmethod
    def depth(task: Task) -> int:
        """Return how many frames are around that of a task."""
        return task.owner.running.depth

    # --------------------------------------------------------------------------------- ends

    def ending(self) -> Ending:
        """Return how the run ended. Raises: KernelBug: it has not, and waits for no answer."""
        return ending_of(self._failures, self._stop, self._ended is not None, self._root.questions)

    def ended(self) -> FrameResult:
        """Return what the run leaves behind; of one that did not end by itself, what there is.

        The writes of open scopes go to those around them, innermost first.
        """
        if self._ended is not None:
            return self._ended
        machine = self._root.machine
        try:
            for running in sorted(self._open.values(), key=lambda running: -running.depth):
                if (
                    running.parent is not None
                    and running.task is not None
                    and running.visit is not None
                ):
                    so_far = running.visit.so_far(None if running.over else running.machine.end())
                    running.parent.machine.abandon(running.task, so_far)
            return machine.end()
        except AxilError:
            # its paths cannot be joined: that has been reported, or another failure came first
            return FrameResult(machine.root, {}, tuple(machine.exits), (), (), True)

    def close(self) -> None:
        """Let go of all frames: the run is over."""
        for running in [
            self._root,
            *self._open.values(),
            *(sub for subs in self._subs.values() for sub in subs),
        ]:
            running.close()

    # ------------------------------------------------------------------------------ inside

    def _started(self, running: RunningFrame, task: Task) -> Command | None:
        """What follows from a firing that was taken: its body starts, its scope is entered, or it
        is known.
        """
        node = running.machine.plan.nodes[task.node]
        if self._known is not None:
            fact = self._known.done.get(Activation(task.frame, node.name, task.ordinal))
            if fact is not None:
                step = self._known.step(running.machine, task, fact)
                self._commit(running, task, node, step)
                return None
        return self._enter(running, task, node) if node.mode == "scope" else task

    def _pend(
        self,
        running: RunningFrame,
        task: Task,
        command: Command,
        go_on: Callable[..., Command | None],
        *given: Any,
    ) -> Command:
        self._pending = running, task, go_on, given
        return command

    def _record(
        self, running: RunningFrame, task: Task, node: PlanNode, step: Transition
    ) -> Command | None:
        """Put the outcome of a scope into effect, recorded first."""
        if self._records:
            record = RecordFiring(running.machine, task, step)
            return self._pend(running, task, record, self._commit, running, task, node, step)
        self._commit(running, task, node, step)
        return None

    def _conclude(
        self, running: RunningFrame, task: Task, node: PlanNode, step: Transition
    ) -> Command | None:
        """Put the recorded outcome of a body into effect; it may end a round the short way, which
        is recorded, too.
        """
        visit = running.turning
        if (
            visit is None
            or (self._reports_skipped and 0 in running.machine.fired)
            or not visit.turns(step)
        ):
            self._commit(running, task, node, step)
            return None
        record = RecordRound(visit, visit.turned(step))
        return self._pend(running, task, record, self._again, running, task, node, visit, step)

    def _again(
        self, running: RunningFrame, task: Task, node: PlanNode, visit: CycleRun, step: Transition
    ) -> Command | None:
        after = visit.again(step)
        if self._reports_finished:
            self._report("finished", task, node, after.tokens[0].payload)
        return self._started(running, after)

    def _commit(self, running: RunningFrame, task: Task, node: PlanNode, step: Transition) -> None:
        running.machine.commit(task, step)
        if self._reports_finished:
            payload = step.sends[0].payload if step.sends else None
            self._report("finished", task, node, payload)
        self._notice(running)

    def _notice(self, running: RunningFrame) -> None:
        """A machine moved: report what it skipped, and queue its frame if something is due or
        nothing is left.
        """
        machine = running.machine
        if machine.skips:
            if self._reports_skipped:
                for index in machine.skips:
                    node = machine.plan.nodes[index]
                    activation = Activation(machine.frame, node.name)
                    self.reports.append(Report("skipped", activation, node.kind))
            machine.skips.clear()
        if machine.unneeded:
            self._cancel_unneeded(running)
        if not running.queued and (machine.ready or len(machine.taken) == len(running.resting)):
            running.queued = True
            self._queue.put(running)

    def _cancel_unneeded(self, running: RunningFrame) -> None:
        """Drop firings under way that an early join fired without."""
        given_up = running.machine.give_up_unneeded()
        for task in given_up:
            running.resting.pop(task, None)
            inner = [self._open.pop(task, None), *self._subs.pop(task, ())]
            for each in inner:
                if each is not None:
                    each.dropped = True
        if given_up:
            self._dropped.update(given_up)
            self._has_dropped = True
            self._commands.append(DropBodies())

    def _report(self, kind: Any, task: Task, node: PlanNode, data: Any = None) -> None:
        activation = new_tuple(Activation, (task.frame, node.name, task.ordinal))
        self.reports.append(new_tuple(Report, (kind, activation, node.kind, data)))

    # ------------------------------------------------------------------------------ scopes

    def _enter(self, running: RunningFrame, task: Task, node: PlanNode) -> Command | None:
        """Open the frame of a node that holds a scope."""
        body = node.body
        if self._reports_finished:
            self._report("started", task, node)
        try:
            if isinstance(body, CycleBody):
                activation = Activation(task.frame, node.name, task.ordinal)
                known = () if self._known is None else self._known.rounds(body, task, activation)
                visit: ScopeRun = CycleRun(body, task, node.name, known=known, took=self._took)
                if not visit.enters(task):
                    return self._record(running, task, node, Transition({}, task.state, ()))
                if visit.is_over:
                    left = visit.result()
                    assert isinstance(left, CycleResult)
                    return self._leave(running, task, node, left)
            else:
                assert isinstance(body, SubgraphBody)
                visit = SubgraphRun(body, task, node.name, self._took)
        except Exception as error:  # noqa: BLE001  # entering failed: the node has failed
            self._fail(running, task.node, task.ordinal, node.name, error)
            return None
        inner = self._open[task] = RunningFrame(visit.machine, running, task)
        inner.visit = visit
        if isinstance(visit, CycleRun) and (self._known is None or not self._known.done):
            inner.turning = visit
        self._notice(inner)
        return None

    def _settle(self, running: RunningFrame) -> Command | None:
        """A frame has nothing due: it has ended, or it rests on open questions, or it waits for
        bodies at work.
        """
        machine, parent, task = running.machine, running.parent, running.task
        if machine.taken:
            if len(machine.taken) == len(
                running.resting
            ):  # all in it has ended or waits for answers
                if running.is_sub:
                    return Return(running, None, None, running.questions)
                if parent is not None and task is not None:
                    self._rest(parent, task, running.questions)
            return None
        try:
            ended = machine.end()
        except Exception as error:  # noqa: BLE001
            # what its paths wrote cannot be joined: the frame has failed
            if running.is_sub:
                return Return(running, None, error)
            if parent is not None and task is not None:
                name = parent.machine.plan.nodes[task.node].name
                self._fail(parent, task.node, task.ordinal, name, error)
            else:
                self._fail(running, -1, (), EXIT, error)
            return None
        if parent is None or task is None:
            self._ended = ended
            return None
        if running.is_sub:
            running.over = True
            running.close()
            return Return(running, ended, None)
        visit = running.visit
        assert visit is not None
        running.over = True  # what it came to is with its visit
        try:
            visit.next(ended)
        except LimitReached as limit:
            if self._asks_limits:
                self._limited = limit, (running, parent, task, visit)
                return DecideLimit(limit)
            self.stop(limit)
            return None
        except Exception as error:  # noqa: BLE001
            # what a round left cannot be taken in: the cycle has failed
            self._fail(
                parent, task.node, task.ordinal, parent.machine.plan.nodes[task.node].name, error
            )
            return None
        return self._ended_round(running, parent, task, visit)

    def _ended_round(
        self, running: RunningFrame, parent: RunningFrame, task: Task, visit: ScopeRun
    ) -> Command | None:
        """Record how a round ended, and go on."""
        if self._records and isinstance(visit, CycleRun) and (fact := visit.fact()) is not None:
            return self._pend(
                parent, task, RecordRound(visit, fact), self._go_on, running, parent, task, visit
            )
        return self._go_on(running, parent, task, visit)

    def _go_on(
        self, running: RunningFrame, parent: RunningFrame, task: Task, visit: ScopeRun
    ) -> Command | None:
        """Open the next round of a scope, or put into effect what it came to."""
        node = parent.machine.plan.nodes[task.node]
        try:
            outcome = visit.result()
            step = parent.machine.prepare(task, outcome) if isinstance(outcome, Out) else None
        except LimitReached as limit:
            self.stop(limit)
            return None
        except Exception as error:  # noqa: BLE001
            # what a scope hands back was refused: its node has failed
            self._fail(parent, task.node, task.ordinal, node.name, error)
            return None
        if isinstance(outcome, Machine):
            running.go_on_with(outcome)
            running.over = False
            self._notice(running)
            return None
        del self._open[task]
        running.close()
        if isinstance(outcome, CycleResult):
            return self._leave(parent, task, node, outcome)
        return self._record(
            parent, task, node, step or Transition({}, parent.machine.advance(task, {}), ())
        )

    def _leave(
        self, running: RunningFrame, task: Task, node: PlanNode, left: CycleResult
    ) -> Command | None:
        path = Activation(task.frame, node.name).path
        self.cycles.setdefault(path, CycleTally()).count(left.reason, left.rounds)
        return self._record(running, task, node, leaving(running.machine, task, left))

    # ------------------------------------------------------------- questions and failures

    def _rest(self, running: RunningFrame, task: Task, questions: Sequence[Any]) -> None:
        running.resting[task] = tuple(questions)
        self._notice(running)

    def _leave_subs(self, task: Task) -> None:
        """A body has ended: nothing waits any more for the sub-runs that it began."""
        if task in self._subs:
            self.drop(self._subs.pop(task))

    def _fail(
        self,
        running: RunningFrame,
        node: int,
        ordinal: tuple[int, ...],
        name: str,
        error: BaseException,
    ) -> None:
        """A firing raised, or what it gave was refused."""
        activation = Activation(running.machine.frame, name, ordinal)
        failed = error if isinstance(error, NodeFailed) else NodeFailed(activation.path, error)
        if self._reports_finished:
            kind = running.machine.plan.nodes[node].kind if node >= 0 else "node"
            self.reports.append(Report("failed", activation, kind, error))
        container = next((each for each in running.around() if each.contained), None)
        if container is not None:
            self._commands.append(Return(container, None, failed))
            self.drop([container])
            return
        self._failures = (*self._failures, ((*running.order(), (node, ordinal, -1)), failed))
        self.stop(failed)


END = End()
