"""The kit of hook plugins: they watch, wrap and check, and change nothing that they do not say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import pluggy

from axil import (
    Activation,
    Context,
    CycleLimit,
    EdgeSpec,
    GraphSpec,
    LimitReached,
    Limits,
    NodeSpec,
    Result,
    Workflow,
)
from axil.plugin import (
    DECIDING_HOOKS,
    CompileOptions,
    Fail,
    Firing,
    Hooks,
    Replace,
    Retry,
    Skip,
    hook_manager,
    thaw,
)
from axil_testing.clock import JumpingClock
from axil_testing.kit.base import Kit, claimed, require
from axil_testing.kit.hostile import shown
from axil_testing.kit.nodes import Ending, StillClock, Tape, left_behind
from axil_testing.kit.watch import watched

_HOOKS = frozenset(name for name in vars(Hooks) if not name.startswith("_"))
_SEEDS: Final = range(12)
"""Of random graphs."""
_PATIENCE: Final = 20_000
"""So many waits of a run that takes no time are for ever."""


class HookKit(Kit):
    """The laws of hook plugins: a module, object or class with ``axil.hookimpl`` functions."""

    kind = "hooks"
    changes_results: ClassVar[bool] = False
    """Claim: bodies that it wraps give something else; only how runs end is compared."""
    changes_timing_only: ClassVar[bool] = False
    """Claim: it decides when firings start, and nothing else: results of runs are the same."""

    def make(self) -> Any:
        """Return the plugin: a class is made, a module or an object is what it is."""
        component = type(self).component
        if component is None:
            raise NotImplementedError("Give make(self), or component.")
        return component() if isinstance(component, type) else component

    # -- running it

    def implemented(self) -> dict[str, Any]:
        """Return the hooks that it implements."""
        hooks = hook_manager([self.made()])
        return {
            name: caller for name in _HOOKS if (caller := getattr(hooks.hook, name)).get_hookimpls()
        }

    def made(self) -> Any:
        """See ``make``."""
        return self.make()

    async def _run(self, hooks: pluggy.PluginManager | None, **options: Any) -> Result:
        workflow = Workflow(_graph(), CompileOptions(hooks=hooks))
        async with workflow:
            given: dict[str, Any] = {"clock": JumpingClock(), "hooks": hooks, "run_id": "kit"}
            return await workflow.start({"n": 0}, **{**given, **options}).result()

    def comparable(self, result: Result) -> Any:
        """Return the parts of a result that must be the same with the hook and without it."""
        if self.changes_results:
            return result.status
        return result.status, thaw(result.output), thaw(result.attributes), result.usage.firings

    # -- laws

    def test_it_implements_hooks_that_there_are(self) -> None:
        """Each marked function is one of axil's hooks, and asks for arguments that the hook has."""
        try:
            hooks = hook_manager([self.made()])
            hooks.check_pending()
        except pluggy.PluginValidationError as error:
            raise AssertionError(f"it does not fit the hooks: {error}") from error
        require(self.implemented(), "it implements no hook. Mark functions with axil.hookimpl.")

    def test_a_run_has_the_same_result_with_it(self) -> None:
        """Status, output, state and what was counted; done, failed, resumed and limited."""
        for fails in (False, True):
            bare = self.comparable(self.wait(self._run(None, deps={"fails": fails})))
            with_it = self.comparable(
                self.wait(self._run(hook_manager([self.made()]), deps={"fails": fails}))
            )
            require(
                bare == with_it,
                f"with it a run gives {shown(with_it)}; without it to {shown(bare)}",
            )

    def test_it_raises_nothing(self) -> None:
        """An observer that fails is logged and dropped; this one does not fail."""
        lines = _Dropped()
        logger = logging.getLogger("axil.hooks")
        logger.addHandler(lines)
        before, logger.propagate = logger.propagate, False
        try:
            for fails in (False, True):
                self.wait(self._run(hook_manager([self.made()]), deps={"fails": fails}))
        finally:
            logger.propagate = before
            logger.removeHandler(lines)
        require(not lines.messages, f"it fails: {'; '.join(lines.messages)}")

    def test_it_does_not_block_the_event_loop(self) -> None:
        """Hooks are called on the loop, between firings: what waits there stops every run."""
        hooks = hook_manager([self.made()])
        self.wait(self._run(hooks, deps={}))
        with watched() as seen:
            self.wait(self._run(hooks, deps={}))
        require(not seen.blocked, f"it blocks the event loop: {', '.join(seen.blocked)}")

    def test_runs_at_once_are_distinguished(self) -> None:
        """One plugin is there for all runs of the process."""
        hooks = hook_manager([self.made()])

        async def several() -> list[Any]:
            runs = (self._run(hooks, deps={}, run_id=f"kit-{n}") for n in range(4))
            return [self.comparable(result) for result in await asyncio.gather(*runs)]

        together = self.wait(several())
        alone = self.comparable(self.wait(self._run(hook_manager([self.made()]), deps={})))
        require(
            all(each == alone for each in together),
            f"beside others a run gives {shown(together)}; alone to {shown(alone)}",
        )

    def test_a_run_with_it_can_be_cancelled(self) -> None:
        """Let a cancellation pass through the code around a body."""

        ending = Ending("waits")

        async def cancelled() -> str:
            hooks = hook_manager([ending, self.made()])
            workflow = Workflow(_graph(), CompileOptions(hooks=hooks))
            async with workflow:
                run = workflow.start({"n": 0}, clock=StillClock(), hooks=hooks, deps={})
                job = asyncio.ensure_future(run.result())
                for _ in range(100):
                    await asyncio.sleep(0)
                run.cancel("the kit cancels it")
                return (await job).status

        status = self.wait(cancelled())
        require(status == "cancelled", f"a run that is cancelled ends {status}")
        if not ending.has_begun and "admit_firing" in self.implemented():
            return  # it held the body back
        require(
            ending.outcome == "cancelled",
            f"a body that is cancelled with it around {ending.outcome or 'does not end'}",
        )

    def test_a_run_with_it_can_be_resumed(self) -> None:
        """Give values around a body that a journal can hold."""
        journal = Tape()
        bare = self.comparable(self.wait(self._run(None, deps={})))
        whole = self.comparable(
            self.wait(self._run(hook_manager([self.made()]), deps={}, journal=journal))
        )
        require(
            whole == bare,
            f"with a journal a run gives {shown(whole)}; "
            f"without it and the plugin to {shown(bare)}",
        )
        for cut in range(1, len(journal.appended)):
            part = left_behind(journal.appended[:cut], "kit")
            again = self.comparable(
                self.wait(
                    self._run(hook_manager([self.made()]), deps={}, journal=part, resuming=True)
                )
            )
            same: bool = again == whole if self.changes_results else again[0] == whole[0]
            require(
                same,
                f"resumed after {cut} entries: {shown(again)}",
            )

    # -- laws of those that decide

    def deciding(self) -> list[str]:
        """Return the hooks of it that decide; none skips the law."""
        found = [name for name in DECIDING_HOOKS if name in self.implemented()]
        if not found:
            self.skip("it decides nothing")
        return found

    def test_what_it_decides_are_answers(self) -> None:
        """Each deciding hook gives what axil can act on, or None."""
        names = self.deciding()
        call = hook_manager([self.made()]).hook
        firings = list(_firings())
        if "admit_firing" in names:
            for firing in firings:
                answer = call.admit_firing(firing=firing)
                fits = answer is None or _is_outcome(answer) or _are_seconds(answer)
                require(
                    fits,
                    f"admit_firing gives {shown(answer)}; "
                    "expected True, False, seconds from 0, Replace, Skip, Fail or None.",
                )
        if "choose_firing" in names:
            for number in range(1, len(firings) + 1):
                due = firings[:number]
                answer = call.choose_firing(due=due)
                require(
                    answer is None or answer in due,
                    f"choose_firing gives {shown(answer)}; expected one of those that are due.",
                )
        if "firing_failure" in names:
            for firing in firings:
                for error in (ValueError("the kit makes it fail"), ConnectionError("no line")):
                    answer = call.firing_failure(firing=firing, error=error)
                    fits = isinstance(answer, Retry) and _are_seconds(answer.after)
                    require(
                        answer is None or fits or _is_outcome(answer),
                        f"firing_failure gives {shown(answer)}; "
                        "expected Retry, Replace, Skip, Fail or None.",
                    )
        if "limit_reached" in names:
            limit = LimitReached("the kit's limit.", id="AX411")
            answer = call.limit_reached(limit=limit, of="cycle")
            require(
                answer in (None, "exit"),
                f'about a cycle, limit_reached gives {shown(answer)}; expected "exit" or None.',
            )
            answer = call.limit_reached(limit=limit, of="firings")
            require(
                answer is None or (type(answer) is int and answer > 0),
                f"about firings, limit_reached gives {shown(answer)}; expected a number or None.",
            )

    def test_a_run_with_it_ends(self) -> None:
        """Let every random graph end, whatever is held back, tried again or lifted."""
        self.deciding()
        for seed in _SEEDS:
            for most in (None, 1):
                result = self.wait(self._random(seed, most, self.made()))
                require(
                    result.status != "cancelled",
                    f"the random graph {seed} does not end: firings are held back for ever.",
                )

    @claimed("changes_timing_only")
    def test_it_changes_only_when_firings_start(self) -> None:
        """A random graph has the same result with it, also where few may be at work at once."""
        for seed in _SEEDS:
            for most in (None, 1, 3):
                bare = _whole(self.wait(self._random(seed, most, None)))
                with_it = _whole(self.wait(self._random(seed, most, self.made())))
                require(
                    with_it == bare,
                    f"with it the random graph {seed} gives {shown(with_it)}; "
                    f"without it to {shown(bare)}",
                )

    async def _random(self, seed: int, most: int | None, plugin: Any) -> Result:
        """Run a random graph; it is cancelled if it waits for ever."""
        from axil_testing.graphs import random_graph

        hooks = None if plugin is None else hook_manager([plugin])
        spec = random_graph(seed, cyclic=bool(seed % 2)).spec(mode="async")
        workflow = Workflow(spec, CompileOptions(hooks=hooks))
        clock = _Counting()
        async with workflow:
            limits = Limits(concurrency=most, firings=5000)
            run = workflow.start({}, clock=clock, hooks=hooks, limits=limits, run_id="kit")
            clock.give_up = lambda: run.cancel("it waits for ever")
            return await run.result()


class _Counting(JumpingClock):
    """A clock that gives up on who sleeps too often."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.give_up: Any = None

    async def sleep(self, seconds: float) -> None:
        """Let the others run, some thousand times."""
        self.count += 1
        if self.count == _PATIENCE:
            self.give_up()
        await super().sleep(seconds)


def _whole(result: Result) -> tuple[Any, ...]:
    """Return all that a run comes to."""
    cause = None if result.error is None else type(result.error.__cause__ or result.error)
    return result.status, thaw(result.output), thaw(result.attributes), cause


def _firings() -> Iterator[Firing]:
    """Yield firings of several nodes, types, lanes, runs and times."""
    for number, (node, lane) in enumerate(
        [("a", None), ("b", "slow"), ("waits", ""), ("ä ö", "x")]
    ):
        for tries in (0, 1, 50):
            yield Firing(
                run_id=f"kit-{number % 2}",
                activation=Activation(("sub",) * (number % 3), node, (number,)),
                type=f"type-{number % 3}",
                lane=lane,
                effects="idempotent",
                tries=tries,
                now=float(number * 10 + tries),
            )


def _is_outcome(answer: Any) -> bool:
    error: Any = answer.error if isinstance(answer, Fail) else None
    return isinstance(answer, (Replace, Skip)) or isinstance(error, Exception)


def _are_seconds(answer: Any) -> bool:
    """Return whether one can wait for so long; True and False are numbers, too."""
    return isinstance(answer, (int, float)) and 0 <= answer < float("inf")


async def _wait(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.emit("a chunk")
    await ctx.sleep(1.0)
    return {"n": inputs["n"] + 1}


def _count(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    deps: Mapping[str, Any] = ctx.deps or {}
    if deps.get("fails"):
        raise ValueError("the kit makes it fail")
    return {"n": inputs["n"] + 1}


_count.inline = True  # type: ignore[attr-defined]  # a function's own attribute


def _graph() -> GraphSpec:
    """Return two nodes that turn three times, and one that is skipped."""
    nodes = (
        NodeSpec(id="waits", body=_wait),
        NodeSpec(id="counts", body=_count),
        NodeSpec(id="skipped", body=_count),
    )
    edges = (
        EdgeSpec(source="@entry", target="waits", keys={"n": ""}),
        EdgeSpec(source="waits", target="counts"),
        EdgeSpec(source="counts", target="waits", keys={"n": ""}, condition=_again),
        EdgeSpec(source="counts", target="skipped", keys={"n": ""}, condition=_never),
        EdgeSpec(source="counts", target="@exit", keys={"n": ""}, condition=_over),
    )
    return GraphSpec(
        id="kit",
        nodes=nodes,
        edges=edges,
        attributes={"n": 0},
        cycle_limits={"": CycleLimit(rounds=10)},
    )


def _again(payload: Any) -> bool:
    return payload["n"] < 6


def _over(payload: Any) -> bool:
    return payload["n"] >= 6


def _never(payload: Any) -> bool:
    return False


class _Dropped(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is logged about observers."""
        error = record.exc_info[1] if record.exc_info else None
        self.messages.append(
            f"{type(error).__name__}: {error}" if error is not None else record.getMessage()
        )
