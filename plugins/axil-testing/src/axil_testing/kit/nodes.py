"""The kit of node types: a node is run in a small graph, alone, often, at once, again, and against
its will.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from axil import (
    MISSING,
    AxilError,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    NodeFailed,
    NodeSpec,
    Result,
    SpecError,
    Workflow,
    hookimpl,
)
from axil.plugin import CompileOptions, hook_manager, make_component, thaw
from axil_journals import Entry, MemoryJournal, Recording
from axil_testing.clock import JumpingClock
from axil_testing.kit.base import CANARY, Kit, require, secrets_of
from axil_testing.kit.hostile import FIELDS, TEXTS, is_clumsy, shown
from axil_testing.kit.watch import Watch, watched

NODE: Final = "node under test"
_AT_ONCE: Final = 4
_TURNS: Final = 200


class StillClock:
    """A clock that wakes no sleeper: each sleeps until the run is cancelled."""

    def now(self) -> float:
        """Return the time in seconds."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()


class Unanswered:
    """A channel without a person."""

    async def ask(self, question: Any) -> Any:
        """No answer: the run pauses."""
        return MISSING


class Silence:
    """A channel at which somebody is, who says nothing."""

    async def ask(self, question: Any) -> Any:
        """Wait for ever."""
        await asyncio.Event().wait()


class Tape(Recording):
    """A journal that also keeps what others drop: each prefix of it is what a run that broke off
    there had left.
    """

    def __init__(self, journal: Any = None) -> None:
        """``journal``: where entries really go; None: into memory."""
        self.appended: list[Entry] = []
        self._journal = MemoryJournal() if journal is None else journal

    def open(self, run_id: str) -> Any:
        """Return a book that notes what is appended."""
        return _Noted(self._journal.open(run_id), self.appended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


class _Noted:
    def __init__(self, book: Any, appended: list[Entry]) -> None:
        self._book, self._appended = book, appended

    def append(self, entry: Entry) -> None:
        """Take it, and note it."""
        self._book.append(entry)
        self._appended.append(entry)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._book, name)


def left_behind(entries: Sequence[Entry], run_id: str) -> MemoryJournal:
    """Return a journal with what a run had left when it broke off."""
    journal = MemoryJournal()
    book = journal.open(run_id)
    for entry in entries:
        book.append(entry)
    book.close()
    return journal


class NodeKit(Kit):
    """The laws of every node type.

    It is put between the entry and the exit of a graph of messages, and once more into a cycle with
    itself. ``targets`` names nodes that it sends to, where its config does; ``graph`` makes any
    other graph around it.
    """

    kind = "nodes"
    inputs: ClassVar[Sequence[Any]] = ("hello", "a second text", "{}")
    """Texts (for ``payload="fields"``: fields) that it works on."""
    payload: ClassVar[str] = "messages"
    """The payload kind of the graph around it: ``messages`` or ``fields``."""
    targets: ClassVar[Sequence[str]] = ()
    """Nodes that it sends to; empty: what its class calls ``example_targets``."""
    runs_code: ClassVar[bool] = False
    """Claim: it runs code from files; its runs are allowed to."""
    varies: ClassVar[bool] = False
    """Claim: the same input may give another output; only how its runs end is compared."""

    def graph(self, node: NodeSpec) -> GraphSpec:
        """Return a graph with the node in it: entry, node, its targets if it has any, exit."""
        targets = tuple(self.targets or getattr(self.subject, "example_targets", ()))
        others = tuple(NodeSpec(id=name, body=_pass_on) for name in targets)
        last = targets or (NODE,)
        edges = [
            EdgeSpec(source="@entry", target=NODE),
            *(EdgeSpec(source=NODE, target=name) for name in targets),
        ]
        messages: Any = self.payload
        edges += [
            EdgeSpec(source=name, target="@exit", trigger=messages != "messages") for name in last
        ]
        return GraphSpec(
            id="kit",
            payload=messages,
            nodes=(node, *others),
            edges=tuple(edges),
            end=last if messages == "messages" else (),
        )

    def cycle(self, node: NodeSpec) -> GraphSpec:
        """Return the node in a cycle with itself, of three rounds."""
        spec = self.graph(node)
        edges = (
            *(replace(edge, trigger=edge.target != "@exit") for edge in spec.edges),
            EdgeSpec(source=NODE, target=NODE),
        )
        limits = {"": CycleLimit(rounds=3, at_limit="exit")}
        return GraphSpec(
            id="kit",
            payload=spec.payload,
            nodes=spec.nodes,
            edges=edges,
            end=spec.end,
            cycle_limits=limits,
        )

    # -- running it

    def workflow(
        self, *, cyclic: bool = False, hooks: Any = None, component: Any = None
    ) -> Workflow:
        """Return a workflow with a fresh component in it, or with ``component``.

        Raises: what compiling it raises.
        """
        node = NodeSpec(id=NODE, body=self.make() if component is None else component)
        return Workflow(
            (self.cycle if cyclic else self.graph)(node),
            CompileOptions(hooks=hook_manager(hooks) if hooks else None, allow_code=True),
        )

    def begin(self, workflow: Workflow, given: Any, **options: Any) -> Any:
        """Return a run, not yet begun."""
        ways: dict[str, Any] = {
            "channel": Unanswered(),
            "clock": JumpingClock(),
            "allow": frozenset({"code"} if self.runs_code else ()),
            **options,
        }
        return workflow.start(given, **ways)

    async def finish(self, workflow: Workflow, given: Any, **options: Any) -> Result:
        """Return the result of a run, however it ends."""
        async with workflow:
            return await self.begin(workflow, given, **options).result()

    def comparable(self, result: Result) -> Any:
        """Return the parts of a result that must be equal in a repetition."""
        if self.varies:
            return result.status
        error = str(result.error.__cause__ or result.error) if result.error is not None else ""
        return (
            result.status,
            thaw(result.output),
            thaw(result.attributes),
            error,
            [(q.text, q.options) for q in result.questions],
        )

    def ways(self) -> list[bool]:
        """In which graphs it can be: not every node may send to itself."""
        fitting: list[bool] = []
        for cyclic in (False, True):
            try:
                # compiled when it is first asked for
                self.workflow(cyclic=cyclic).plan  # noqa: B018
            except SpecError:
                if not cyclic:
                    raise
                continue
            fitting.append(cyclic)
        return fitting

    # -- laws

    def test_it_runs_on_its_examples(self) -> None:
        """Run each of ``inputs`` in a graph: done, paused with a question, or an error in words."""
        for given in self.inputs:
            result = self.wait(self.finish(self.workflow(), given))
            require(
                result.status in ("done", "paused"),
                f"on {shown(given)} it ends {result.status}: {result.error}",
            )

    def test_hostile_input_is_worked_on_or_refused_in_words(self) -> None:
        """No input makes it fail by accident."""
        workflow = self.workflow()
        hostile: Sequence[Any] = (
            TEXTS
            if self.payload == "messages"
            else (*FIELDS, *({"message": text} for text in TEXTS))
        )
        for given in hostile:
            before = copy.deepcopy(given)
            result = self.wait(self.finish(workflow, given))
            require(repr(given) == repr(before), f"it changes its input {shown(before)}")
            cause = result.error.__cause__ if isinstance(result.error, NodeFailed) else None
            if cause is not None:
                require(
                    not is_clumsy(cause),
                    f"{shown(given)} makes it fail by accident: {type(cause).__name__}: {cause}",
                )

    def test_runs_share_nothing(self) -> None:
        """Run one workflow, in turn and at the same time: each run gives what it gives alone."""
        for cyclic in self.ways():
            alone = [
                self.comparable(self.wait(self.finish(self.workflow(cyclic=cyclic), given)))
                for given in self.inputs
            ]
            shared = self.workflow(cyclic=cyclic)
            for given, expected in zip(self.inputs, alone, strict=True):
                found = self.comparable(self.wait(self.finish(shared, given)))
                require(
                    found == expected,
                    f"run again, {shown(given)} gives {shown(found)}; "
                    f"alone it gave {shown(expected)}",
                )
            together = self.wait(self._together(shared))
            for given, found, expected in zip(
                [*self.inputs] * _AT_ONCE, together, alone * _AT_ONCE, strict=True
            ):
                require(
                    found == expected,
                    f"beside others, {shown(given)} gives {shown(found)}; "
                    f"alone it gave {shown(expected)}",
                )

    async def _together(self, workflow: Workflow) -> list[Any]:
        async with workflow:
            runs = [self.begin(workflow, given) for _ in range(_AT_ONCE) for given in self.inputs]
            return [
                self.comparable(result)
                for result in await asyncio.gather(*(run.result() for run in runs))
            ]

    def test_a_run_that_broke_off_goes_on_as_if_it_had_not(self) -> None:
        """From every prefix of the journal, with a new component, to the same end.

        What it gives can be journaled.
        """
        for cyclic in self.ways():
            whole = Tape()
            given = self.inputs[0]
            result = self.wait(
                self.finish(self.workflow(cyclic=cyclic), given, journal=whole, run_id="r")
            )
            if result.status == "failed":
                raise AssertionError(f"with a journal, {shown(given)} fails: {result.error}")
            for cut in range(1, len(whole.appended)):
                journal = left_behind(whole.appended[:cut], "r")
                again = self.wait(
                    self.finish(
                        self.workflow(cyclic=cyclic),
                        given,
                        journal=journal,
                        run_id="r",
                        resuming=True,
                    )
                )
                report, expected = self.comparable(again), self.comparable(result)
                require(
                    report == expected,
                    f"resumed after {cut} entries it gives {shown(report)}; "
                    f"in one go it gave {shown(expected)}",
                )

    def test_cancelling_ends_it_at_once(self) -> None:
        """While it waits: it does not go on, does not turn the cancellation into something else,
        and leaves nothing running.
        """
        for given in self.inputs:
            body = Ending()
            status = self.wait(self._cancelled(self.workflow(hooks=[body]), given))
            if status == "finished":
                continue
            require(
                body.outcome in ("", "cancelled"),
                f"cancelled while it waits on {shown(given)}, it {body.outcome}",
            )
            require(
                status == "cancelled",
                f"cancelled while it waits on {shown(given)}, the run ends {status}",
            )

    async def _cancelled(self, workflow: Workflow, given: Any) -> str:
        async with workflow:
            run = self.begin(workflow, given, clock=StillClock(), channel=Silence())
            job = asyncio.ensure_future(run.result())
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                if job.done():
                    return "finished"
            run.cancel("the kit cancels it")
            return (await job).status

    def test_it_does_not_block_the_event_loop(self) -> None:
        """Expect no async or ``inline`` body to sleep, or to wait for a person or a process."""
        seen = Watch()
        for given in self.inputs:
            body = _OnLoop()
            with watched() as watch:
                self.wait(self.finish(self.workflow(hooks=[body]), given))
            if body.mode != "thread":
                seen.blocked += watch.blocked
        require(not seen.blocked, f"it blocks the event loop: {', '.join(seen.blocked)}")

    def test_a_secret_is_not_shown(self) -> None:
        """Neither in outputs and chunks, nor in the journal, in errors or in logs."""
        component = self.subject
        names = secrets_of(getattr(component, "Config", None))
        if not names:
            self.skip("it has no secrets")
        config: Mapping[str, Any] = {**self.config, **names}
        journal, chunks, lines = MemoryJournal(), _Chunks(), _Lines()
        logging.getLogger().addHandler(lines)
        try:
            workflow = self.workflow(component=make_component(component, config))
            result = self.wait(
                self.finish(
                    workflow, self.inputs[0], journal=journal, run_id="r", observers=[chunks]
                )
            )
        except AxilError as error:
            require(CANARY not in str(error), f"an error tells a secret: {error}")
            return
        finally:
            logging.getLogger().removeHandler(lines)
        cause = repr(result.error.__cause__) if result.error is not None else ""
        message = (
            f"{result!r} {cause} {chunks.seen!r} {list(journal.entries('r'))!r} {lines.messages!r}"
        )
        require(
            CANARY not in message,
            "a run tells a secret, in its output, its chunks, its journal, an error or a log.",
        )


def _pass_on(messages: Any) -> Any:
    return messages


class Ending:
    """A hook plugin that notes how async bodies ended; registered first, it is around others."""

    def __init__(self, node: str = NODE) -> None:
        self.node = node
        self.outcome = ""
        self.has_begun = False

    @hookimpl
    def wrap_body(self, spec: NodeSpec, body: Any) -> Any:
        """Around the node under test, if it is async."""
        return _Noting(body, self) if spec.id == self.node and body.mode == "async" else None


class _Noting:
    mode = "async"
    wants_ctx = True

    def __init__(self, body: Any, notes: Ending) -> None:
        self._body, self._notes = body, notes

    async def __call__(self, task: Any, ctx: Any, /) -> Any:
        notes = self._notes
        notes.has_begun = True
        try:
            out = await self._body(task, ctx)
        except asyncio.CancelledError:
            notes.outcome = "cancelled"
            raise
        except BaseException as error:
            notes.outcome = f"raises {type(error).__name__}"
            raise
        notes.outcome = "goes on and gives an output"
        return out


class _OnLoop:
    """A hook plugin that notes whether the body runs on the event loop."""

    mode = "thread"

    @hookimpl
    def wrap_body(self, spec: NodeSpec, body: Any) -> Any:
        """Look, and change nothing."""
        if spec.id == NODE:
            self.mode = body.mode


class _Chunks:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def chunk(self, activation: Any, chunk: Any) -> None:
        """Keep it."""
        self.seen.append(chunk)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.messages.append(record.getMessage())
