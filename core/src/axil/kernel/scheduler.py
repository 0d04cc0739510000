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
from operator import itemgetter
from typing import Any, cast

from axil.errors import AxilError, BodyError, KernelBug, LimitReached, NodeFailed, RunPaused
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
)
from axil.kernel.machine import FrameResult, Machine, Transition, entry_tokens
from axil.kernel.scopes import (
    CycleBody,
    CycleRun,
    ScopeRun,
    SubgraphBody,
    SubgraphRun,
    machine_type,
)
from axil.kernel.tokens import (
    ENTRY,
    EXIT,
    Activation,
    Ordinal,
    Out,
    Task,
    Token,
    inner_frame,
    new_tuple,
    path_of,
)
from axil.kernel.values import EMPTY, MAX_SIZE, MAX_STATES, MAX_WAITING, Log, check_size


class RunningFrame:
    """A frame that is running: its machine, and its place among others."""

    __slots__ = (
        "contained", "depth", "dropped", "machine", "over", "parent", "queued", "resting",
        "short_cycle", "task", "visit",
    )  # fmt: skip

    def __init__(
        self,
        machine: Machine,
        task: Task | None = None,
        *,
        visit: ScopeRun | None = None,
        contained: bool = False,
    ) -> None:
        """Args:
        task: the firing that opened it; None: it is the run itself.
        visit: its scope; None: it is the run, or a sub-run of a body.
        contained: a failure inside is returned to the body that waits for it.
        """
        self.machine, self.task, self.visit, self.contained = machine, task, visit, contained
        machine.running = self
        self.parent: RunningFrame | None = None if task is None else task.owner.running
        self.depth: int = self.parent.depth + 1 if self.parent else 0
        self.short_cycle: CycleRun | None = None
        """Its visit, where a round may end the short way."""
        self.resting: dict[Task, tuple[object, ...]] = {}
        """Tasks that ended with open questions, and these."""
        self.queued = False
        self.over = False
        """Its machine has ended; its visit, or the body that waits, has what it gave."""
        self.dropped = False
        """Nothing waits for it any more."""

    def close(self) -> None:
        """Release the machine, which holds this frame."""
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

    def order(self) -> tuple[object, ...]:
        """Return its place in plan order: the nodes, ordinals and rounds around it."""
        parts: list[tuple[object, ...]] = []
        for running in self.around():
            if running.task is not None:
                part = running.machine.frame[-1]
                place = part if isinstance(part, int) else -1
                parts.append((running.task.node.index, running.task.ordinal, place))
        return tuple(reversed(parts))


class Scheduler:
    """One run. Every event returns the next command, or None: ``next`` has it, if there is one."""

    __slots__ = (
        "_asks_limits", "_commands", "_dropped", "_ended", "_failures", "_has_dropped",
        "_known", "_limited", "_made", "_open", "_pending", "_queue", "_records", "_reports",
        "_reports_sent", "_reports_skipped", "_root", "_stop", "_subs", "_took", "cycles",
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
        """Args:
        root: the machine of the whole run, not started.
        known: recorded facts; None: none.
        records: outcomes take effect only when they are recorded.
        reports: the kinds of ``Report`` that are wanted.
        asks_limits: a cycle's limit is put to the driver before it ends the run.
        """
        wanted = frozenset(reports)
        self._root = RunningFrame(root)
        self._known = known
        self._took = root.took = None if known is None else known.took
        self._records, self._asks_limits = records, asks_limits
        self._reports, self._reports_skipped = bool(wanted), "skipped" in wanted
        self._reports_sent = "sent" in wanted
        self.reports: list[Report] = []
        """The reports since the driver last emptied this list."""
        self.cycles: dict[str, CycleTally] = {}
        """The ends of cycles so far, by path."""
        self._queue: deque[RunningFrame] = deque()
        self._commands: list[Command] = []  # to be returned before anything else is done
        self._limited: tuple[LimitReached, RunningFrame] | None = None
        # the firing whose fact is being recorded, and what follows
        self._pending: tuple[Task, Callable[..., Command | None], tuple[object, ...]] | None = None
        self._open: dict[Task, RunningFrame] = {}  # scopes under way, by the task that opened them
        # sub-runs under way, in order, by the task whose body began them
        self._subs: dict[Task, dict[RunningFrame, None]] = {}
        self._made: int = 0  # the size of what firings gave since what waits was looked at
        self._has_dropped = False
        self._dropped: frozenset[Task] = EMPTY  # firings that an early join cancelled
        self._failures: tuple[tuple[tuple[object, ...], NodeFailed], ...] = ()
        self._stop: AxilError | None = None
        self._ended: FrameResult | None = None

    # -- events

    def begin(self, inputs: object) -> None:
        """Put what ``@entry`` carries of ``inputs``."""
        machine = self._root.machine
        try:
            tokens = entry_tokens(machine.plan, inputs, machine.root)
        except Exception as error:  # noqa: BLE001  # the input does not fit the graph
            self._fail_at(self._root, ENTRY, error)
            return
        machine.start(tokens)
        if self._reports_sent:
            self._report_entry(machine, tokens)
        self._notice(self._root)

    def finish(self, task: Task, out: Any) -> Command | None:
        """Take in the outcome of a body."""
        machine: Machine = task.owner
        if self._subs:
            self._leave_subs(task)
        if self._stop is not None or (self._has_dropped and self.is_dropped(task)):
            return None
        try:
            if type(out) is not Out:
                given = type(out).__name__
                raise BodyError(f"the body gave {given}; a body gives an Out.")
            if out.output is not None:
                self._made += check_size(out.output)
            if out.delta:
                self._made += check_size(out.delta)
            if self._made > MAX_SIZE:
                self._check_waiting()
            is_direct = task.node.spreads and not self._records
            after: Any = machine.follow(task, out) if is_direct else machine.prepare(task, out)
        except Exception as error:  # noqa: BLE001
            # an edge or the state may refuse what the body gave
            self._fail(task, error)
            return None
        if type(after) is not Task:
            if type(after) is list:  # in effect
                if self._reports:
                    both = zip(task.node.out, cast("list[Any]", after), strict=True)
                    self._report_outcome(task, [(arc.id, payload) for arc, payload in both])
                self._notice(machine.running)
                return None
            if self._records:
                record = new_tuple(RecordFiring, (machine, task, after))
                return self._pend(task, record, self._conclude, task, after)
            if (visit := self._short_round(task, after)) is None:
                return self._commit(task, after)
            after = visit.again(after)
        if self._reports:
            self._report_outcome(task, after.tokens)
        if self._known is None and after.node.mode != "scope":
            return after
        return self._started(after)

    def fail(self, task: Task, error: BaseException) -> None:
        """Take in that a body raised."""
        self._leave_subs(task)
        if not (self._has_dropped and self.is_dropped(task)):
            self._fail(task, error)

    def wait(self, task: Task, questions: Sequence[object]) -> None:
        """Take in that a body ended with open questions."""
        self._leave_subs(task)
        if not (self._has_dropped and self.is_dropped(task)):
            self._rest(task, questions)

    def try_again(self, task: Task) -> None:
        """Take in that a body raised and is started again: sub-runs that it began are dropped."""
        self._leave_subs(task)

    def decide(self, exits: bool) -> Command | None:
        """Take in what becomes of a cycle's limit: the cycle ends, or the run does."""
        if self._limited is None:
            raise KernelBug("no limit was to be decided.")
        limit, running = self._limited
        self._limited = None
        if exits:
            return self._ended_round(running)
        self.stop(limit)
        return None

    def put_back(self, task: Task) -> None:
        """Take back the firing that was given out last: it is the next one due."""
        machine: Machine = task.owner
        machine.put_back(task)
        self._notice(machine.running)

    def recorded(self) -> Command | None:
        """Put into effect what has been recorded."""
        _, follow_up, given = self._settled()
        return follow_up(*given)

    def refuse(self, error: BaseException) -> None:
        """Fail the node whose fact cannot be recorded."""
        self._fail(self._settled()[0], error)

    def enter(self, task: Task, sub: SubRun) -> RunningFrame:
        """Begin a sub-run of a body at work. Raises: what an entry edge's function raises."""
        root = (task.state if sub.state is None else sub.state).rooted()
        name = task.node.name
        frame = (*inner_frame(task.frame, name, task.ordinal), *sub.name)
        machine = machine_type(sub.plan, frame, root, keeps=True, took=self._took)
        tokens = entry_tokens(sub.plan, sub.inputs, root)
        machine.start(tokens)
        if self._reports_sent:
            self._report_entry(machine, tokens)
        running = RunningFrame(machine, task, contained=sub.contained)
        self._subs.setdefault(task, {})[running] = None
        self._notice(running)
        return running

    def drop(self, runs: Iterable[RunningFrame]) -> None:
        """End sub-runs for which nothing waits."""
        runs = [running for running in runs if not running.over]
        for running in runs:
            running.dropped = self._has_dropped = True
        if runs:
            self._commands.append(DropBodies())

    def stop(self, error: AxilError) -> None:
        """Start nothing more. The first reason counts. May be called from any thread."""
        if self._stop is None:
            self._stop = error

    # -- commands

    def next(self) -> Command | None:
        """Return the next command; None: nothing can be done before the next event."""
        queue = self._queue
        while True:
            if self._commands:
                return self._commands.pop(0)
            if self._stop is not None:
                return END
            if not queue:
                return END if self._ended is not None else None
            running = queue[0]
            machine = running.machine
            if self._has_dropped and any(each.dropped for each in running.around()):
                queue.popleft()
                continue
            if not machine.due:
                queue.popleft()
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
                    self._fail_at(running, machine.failed_node, error)
                    continue
                if task is None:
                    continue
                if self._known is None and task.node.mode != "scope":
                    return task
                command = self._started(task)
            if command is not None:
                return command

    @property
    def is_due(self) -> bool:
        """True if ``next`` has something to do, or the run is stopped."""
        return bool(self._queue or self._commands or self._stop)

    @property
    def is_stopped(self) -> bool:
        """True if no further firing starts."""
        return self._stop is not None

    def is_dropped(self, task: Task) -> bool:
        """Return whether nothing waits for a task, for its frame, or for one around it."""
        return task in self._dropped or any(
            running.dropped or running.task in self._dropped
            for running in task.owner.running.around()
        )

    @staticmethod
    def depth(task: Task) -> int:
        """Return how many frames are around that of a task; 0 if its frame has ended without it."""
        running: RunningFrame | None = task.owner.running
        return 0 if running is None else running.depth

    # -- ends

    def ending(self) -> Ending:
        """Return how the run ended: with the first failure in plan order, why it was stopped, or
        what it waits for.

        Raises: KernelBug: it has not ended, and waits for no answer.
        """
        if self._failures:
            first, *others = (failure for _, failure in sorted(self._failures, key=itemgetter(0)))
            first.others = tuple(others)
            return Ending("failed", first)
        if self._stop is not None:
            limited = isinstance(self._stop, LimitReached)
            return Ending("limited" if limited else "cancelled", self._stop)
        if self._ended is not None:
            return Ending("done")
        if not (questions := self._root.questions):
            raise KernelBug("the run has nothing to do, has not ended, and waits for no answer.")
        hint = "Run with a journal, and `resume(run_id, answers={question id: answer})`."
        paused = RunPaused(f"{len(questions)} open question(s): {questions[0].text}", hint=hint)
        return Ending("paused", paused, questions)

    def ended(self) -> FrameResult:
        """Return what the run leaves behind, the writes of open scopes included."""
        if self._ended is not None:
            return self._ended
        machine = self._root.machine
        try:
            for running in sorted(self._open.values(), key=lambda running: -running.depth):
                task, visit = running.task, running.visit
                assert task is not None
                assert visit is not None
                so_far = visit.so_far(None if running.over else running.machine.end())
                task.owner.abandon(task, so_far)
            return machine.end()
        except Exception:  # noqa: BLE001  # a reducer may raise anything
            # its paths cannot be joined: that has been reported, or another failure came first
            return FrameResult(machine.root, {}, tuple(machine.exits), (), (), True)

    def close(self) -> None:
        """Release all frames: the run is over."""
        for running in self._running():
            running.close()

    def _running(self) -> list[RunningFrame]:
        subs = (sub for subs in self._subs.values() for sub in subs)
        return [self._root, *self._open.values(), *subs]

    def count_made(self, size: int) -> None:
        """Count what an edge made; what waits is looked at with the next outcome."""
        self._made += size

    def _check_waiting(self) -> None:
        """Raises: InvalidValue (AX639): too much waits on edges, or is in the states."""
        self._made, running = 0, self._running()
        waiting = {id(each): each for one in running for each in one.machine.waiting()}
        cycles = (one.visit for one in running if isinstance(one.visit, CycleRun))
        waiting |= {id(e.payload): e.payload for cycle in cycles for e in cycle.data_exits}
        check_size([*waiting.values()], MAX_WAITING, seen=set())
        parts = {id(p): p for one in running for state in one.machine.states() for p in state.parts}
        kept = {id(each): each for part in parts.values() for each in part.values()}
        values = [each.raw() if type(each) is Log else each for each in kept.values()]
        check_size(values, MAX_STATES, seen=set())

    # -- firings and facts

    def _started(self, task: Task) -> Command | None:
        """Start the body of a firing, enter its scope, or apply what is known of it."""
        machine: Machine = task.owner
        node = task.node
        if self._known is not None:
            fact = self._known.done.get(task.activation)
            if fact is not None:
                self._commit(task, self._known.step(machine, task, fact))
                return None
        return self._enter(task) if node.mode == "scope" else task

    def _pend(
        self, task: Task, command: Command, follow_up: Callable[..., Command | None], *given: object
    ) -> Command:
        """Let ``follow_up`` happen when ``command``, a fact of ``task``, is recorded."""
        self._pending = task, follow_up, given
        return command

    def _settled(self) -> tuple[Task, Callable[..., Command | None], tuple[object, ...]]:
        pending, self._pending = self._pending, None
        if pending is None:
            raise KernelBug("nothing was to be recorded.")
        return pending

    def _record(self, task: Task, step: Transition) -> Command | None:
        """Put the outcome of a scope into effect, recorded first."""
        if self._records:
            return self._pend(task, RecordFiring(task.owner, task, step), self._commit, task, step)
        return self._commit(task, step)

    def _conclude(self, task: Task, step: Transition) -> Command | None:
        """Put the recorded outcome of a body into effect, or record the round that it ends."""
        if (visit := self._short_round(task, step)) is None:
            return self._commit(task, step)
        record = new_tuple(RecordRound, (visit, visit.short_round(step)))
        return self._pend(task, record, self._again, task, visit, step)

    def _short_round(self, task: Task, step: Transition) -> CycleRun | None:
        """Return the cycle of which ``step`` ends a round the short way, if it does."""
        machine: Machine = task.owner
        visit: CycleRun | None = machine.running.short_cycle
        if visit is None or (self._reports_skipped and 0 in machine.fired):
            return None
        return visit if visit.takes_short(step) else None

    def _again(self, task: Task, visit: CycleRun, step: Transition) -> Command | None:
        after = visit.again(step)
        if self._reports:
            self._report_outcome(task, after.tokens)
        return self._started(after)

    def _commit(self, task: Task, step: Transition) -> None:
        task.owner.commit(task, step)

        if self._reports:
            self._report_outcome(task, [(send.arc.id, send.payload) for send in step.sends])
        self._notice(task.owner.running)

    def _notice(self, running: RunningFrame) -> None:
        """Report what a machine skipped; queue its frame if something is due or nothing is left."""
        machine = running.machine
        if machine.skips:
            if self._reports_skipped:
                for index in machine.skips:
                    node = machine.plan.nodes[index]
                    activation = Activation(machine.frame, node.name)
                    self.reports.append(("skipped", activation, node.kind, None))
            machine.skips.clear()
        if machine.unneeded:
            self._cancel_unneeded(running)
        if not running.queued and (machine.due or len(machine.taken) == len(running.resting)):
            running.queued = True
            self._queue.append(running)

    def _cancel_unneeded(self, running: RunningFrame) -> None:
        given_up = running.machine.give_up_unneeded()
        for task in given_up:
            running.resting.pop(task, None)
            for each in (self._open.pop(task, None), *self._subs.pop(task, ())):
                if each is not None:
                    each.dropped = True
        if given_up:
            self._dropped |= frozenset(given_up)
            self._has_dropped = True
            self._commands.append(DropBodies())

    def _report_outcome(self, task: Task, carried: Sequence[tuple[Any, ...]]) -> None:
        node = task.node
        activation = new_tuple(Activation, (task.frame, node.name, task.ordinal))
        self.reports.append(("finished", activation, node.kind, carried[0][1] if carried else None))
        if self._reports_sent:
            data = task.owner.plan.graph, carried
            self.reports.append(("sent", activation, node.kind, data))

    def _report_entry(self, machine: Machine, tokens: Sequence[Token]) -> None:
        data = machine.plan.graph, tokens
        self.reports.append(("sent", Activation(machine.frame, ENTRY), "node", data))

    # -- scopes

    def _enter(self, task: Task) -> Command | None:
        node = task.node
        body, short_cycle = node.body, None
        if self._reports:
            self.reports.append(("started", task.activation, node.kind, task))
        try:
            if isinstance(body, CycleBody):
                activation = task.activation
                known = () if self._known is None else self._known.rounds(body, task, activation)
                visit: ScopeRun = CycleRun(body, task, node.name, known=known, took=self._took)
                if not visit.enters(task):
                    return self._record(task, Transition({}, task.state, ()))
                if visit.end:
                    step = visit.result()
                    assert isinstance(step, Transition)
                    return self._leave(task, visit, step)
                if self._known is None or not self._known.done:
                    short_cycle = visit
            else:
                assert isinstance(body, SubgraphBody)
                visit = SubgraphRun(body, task, node.name, self._took)
        except Exception as error:  # noqa: BLE001  # entering failed: the node has failed
            self._fail(task, error)
            return None
        running = self._open[task] = RunningFrame(visit.machine, task, visit=visit)
        running.short_cycle = short_cycle
        if self._reports_sent and isinstance(visit, SubgraphRun):
            self._report_entry(visit.machine, visit.entered)
        self._notice(running)
        return None

    def _settle(self, running: RunningFrame) -> Command | None:
        """Settle a frame with nothing due: it ended, rests on questions, or waits for bodies."""
        machine, task, visit = running.machine, running.task, running.visit
        if machine.taken:
            if task is not None and len(machine.taken) == len(running.resting):
                if visit is None:
                    return Return(running, None, None, running.questions)
                self._rest(task, running.questions)
            return None
        try:
            ended = machine.end()
        except Exception as error:  # noqa: BLE001
            # what its paths wrote cannot be joined: the frame has failed
            if task is None:
                self._fail_at(running, EXIT, error)
            elif visit is None:
                return Return(running, None, error)
            else:
                self._fail(task, error)
            return None
        if task is None:
            self._ended = ended
            return None
        running.over = True
        if visit is None:
            del self._subs[task][running]
            running.close()
            return new_tuple(Return, (running, ended, None, ()))
        try:
            visit.next(ended)
        except LimitReached as limit:
            if self._asks_limits:
                self._limited = limit, running
                return DecideLimit(limit)
            self.stop(limit)
            return None
        except Exception as error:  # noqa: BLE001
            # what a round left cannot be taken in: the cycle has failed
            self._fail(task, error)
            return None
        return self._ended_round(running)

    def _ended_round(self, running: RunningFrame) -> Command | None:
        task, visit = running.task, running.visit
        assert task is not None
        if self._records and isinstance(visit, CycleRun) and visit.last is not None:
            return self._pend(task, RecordRound(visit, visit.last), self._continue, running)
        return self._continue(running)

    def _continue(self, running: RunningFrame) -> Command | None:
        """Open the next round of a scope, or apply the scope's result."""
        task, visit = running.task, running.visit
        assert task is not None
        assert visit is not None
        try:
            after = visit.result()
        except LimitReached as limit:
            self.stop(limit)
            return None
        except Exception as error:  # noqa: BLE001
            # what a scope hands back was refused: its node has failed
            self._fail(task, error)
            return None
        if isinstance(after, Machine):
            running.machine, running.over = after, False  # the next round
            after.running = running
            self._notice(running)
            return None
        del self._open[task]
        running.close()
        return self._leave(task, visit, after)

    def _leave(self, task: Task, visit: ScopeRun, step: Transition) -> Command | None:
        if isinstance(visit, CycleRun):
            path = path_of(task.frame, visit.name)
            self.cycles.setdefault(path, CycleTally()).count(visit.end, visit.rounds)
        return self._record(task, step)

    # -- questions and failures

    def _rest(self, task: Task, questions: Sequence[Any]) -> None:
        running: RunningFrame = task.owner.running
        running.resting[task] = tuple(questions)
        self._notice(running)

    def _leave_subs(self, task: Task) -> None:
        if task in self._subs:
            self.drop(self._subs.pop(task))

    def _fail(self, task: Task, error: BaseException) -> None:
        self._fail_at(task.owner.running, task.node.index, error, task.ordinal)

    def _fail_at(
        self, running: RunningFrame, at: int | str, error: BaseException, ordinal: Ordinal = ()
    ) -> None:
        """Handle the failure of a node, or of an end of the graph."""
        if error is self._stop:  # what stopped the run ended its work
            return
        node = None if isinstance(at, str) else running.machine.plan.nodes[at]
        place, name, kind = (-1, at, "node") if node is None else (at, node.name, node.kind)
        activation = Activation(running.machine.frame, str(name), ordinal)
        failed = error if isinstance(error, NodeFailed) else NodeFailed(activation.path, error)
        if self._reports:
            self.reports.append(("failed", activation, kind, error))
        container = next((each for each in running.around() if each.contained), None)
        if container is not None:
            self._commands.append(Return(container, None, failed))
            self.drop([container])
            return
        self._failures += (((*running.order(), (place, ordinal, -1)), failed),)
        self.stop(failed)


END = End()
