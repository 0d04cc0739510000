"""The kit of hook plugins: they watch, wrap and check, and change nothing that they do not say."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar

import pluggy

from axil import EdgeSpec, GraphSpec, NodeSpec, Workflow
from axil.context import Context
from axil.hooks import Hooks, manager
from axil.planner import Setting
from axil.result import Result
from axil.spec import CycleLimit
from axil.values import thaw
from axil_testing.kit.base import Kit, require
from axil_testing.kit.hostile import shown
from axil_testing.kit.nodes import Ending, MovingClock, StillClock, Tape, left_behind
from axil_testing.kit.watch import watched

_HOOKS = frozenset(name for name in vars(Hooks) if not name.startswith("_"))


class HookKit(Kit):
    """What every hook plugin promises: a module, an object or a class with functions marked by ``axil.hookimpl``."""

    kind = "hooks"
    changes_results: ClassVar[bool] = False
    """Claim: bodies that it wraps give something else; only how runs end is compared."""

    def make(self) -> Any:
        """The plugin: a class is made, a module or an object is what it is."""
        component = type(self).component
        if component is None:
            raise NotImplementedError("Give make(self), or component.")
        return component() if isinstance(component, type) else component

    # -- running it

    def implemented(self) -> dict[str, Any]:
        """The hooks that it implements."""
        hooks = manager([self.made()])
        return {name: caller for name in _HOOKS if (caller := getattr(hooks.hook, name)).get_hookimpls()}

    def made(self) -> Any:
        """See ``make``."""
        return self.make()

    async def _run(self, hooks: pluggy.PluginManager | None, **options: Any) -> Result:
        workflow = Workflow(_graph(), Setting(hooks=hooks))
        async with workflow:
            return await workflow.start({"n": 0}, **{"clock": MovingClock(), "hooks": hooks, "run_id": "kit", **options}).result()

    def told(self, result: Result) -> Any:
        """What of a result has to be the same with it and without it."""
        if self.changes_results:
            return result.status
        return result.status, thaw(result.output), thaw(result.attributes), result.usage.firings

    # -- laws

    def test_it_implements_hooks_that_there_are(self) -> None:
        """Each marked function is one of axil's hooks, and asks for arguments that the hook has."""
        try:
            hooks = manager([self.made()])
            hooks.check_pending()
        except pluggy.PluginValidationError as error:
            raise AssertionError(f"it does not fit the hooks: {error}") from error
        require(self.implemented(), "it implements no hook. Mark functions with axil.hookimpl.")

    def test_a_run_comes_to_the_same_with_it(self) -> None:
        """Status, output, state and what was counted; done, failed, resumed and limited."""
        for fails in (False, True):
            bare = self.told(self.wait(self._run(None, deps={"fails": fails})))
            with_it = self.told(self.wait(self._run(manager([self.made()]), deps={"fails": fails})))
            require(bare == with_it, f"with it a run comes to {shown(with_it)}; without it to {shown(bare)}")

    def test_it_raises_nothing(self) -> None:
        """An observer that fails is logged and dropped; this one does not fail."""
        lines = _Dropped()
        logger = logging.getLogger("axil.hooks")
        logger.addHandler(lines)
        before, logger.propagate = logger.propagate, False
        try:
            for fails in (False, True):
                self.wait(self._run(manager([self.made()]), deps={"fails": fails}))
        finally:
            logger.propagate = before
            logger.removeHandler(lines)
        require(not lines.told, f"it fails: {'; '.join(lines.told)}")

    def test_it_does_not_block_the_event_loop(self) -> None:
        """Hooks are called on the loop, between firings: what waits there stops every run."""
        hooks = manager([self.made()])
        self.wait(self._run(hooks, deps={}))
        with watched() as seen:
            self.wait(self._run(hooks, deps={}))
        require(not seen.blocked, f"it blocks the event loop: {', '.join(seen.blocked)}")

    def test_runs_at_once_are_told_apart(self) -> None:
        """One plugin is there for all runs of the process."""
        hooks = manager([self.made()])

        async def several() -> list[Any]:
            runs = (self._run(hooks, deps={}, run_id=f"kit-{n}") for n in range(4))
            return [self.told(result) for result in await asyncio.gather(*runs)]

        together = self.wait(several())
        alone = self.told(self.wait(self._run(manager([self.made()]), deps={})))
        require(all(each == alone for each in together), f"beside others a run comes to {shown(together)}; alone to {shown(alone)}")

    def test_a_run_with_it_can_be_cancelled(self) -> None:
        """What it puts around a body lets the cancellation through."""

        ending = Ending("waits")

        async def cancelled() -> str:
            hooks = manager([ending, self.made()])
            workflow = Workflow(_graph(), Setting(hooks=hooks))
            async with workflow:
                run = workflow.start({"n": 0}, clock=StillClock(), hooks=hooks, deps={})
                job = asyncio.ensure_future(run.result())
                for _ in range(100):
                    await asyncio.sleep(0)
                run.cancel("the kit cancels it")
                return (await job).status

        status = self.wait(cancelled())
        require(status == "cancelled", f"a run that is cancelled ends {status}")
        require(ending.outcome == "cancelled", f"a body that is cancelled with it around {ending.outcome or 'does not end'}")

    def test_a_run_with_it_can_be_resumed(self) -> None:
        """What it puts around a body gives what a journal can hold."""
        journal = Tape()
        bare = self.told(self.wait(self._run(None, deps={})))
        whole = self.told(self.wait(self._run(manager([self.made()]), deps={}, journal=journal)))
        require(whole == bare, f"with a journal a run comes to {shown(whole)}; without it and the plugin to {shown(bare)}")
        for cut in range(1, len(journal.appended)):
            part = left_behind(journal.appended[:cut], "kit")
            again = self.told(self.wait(self._run(manager([self.made()]), deps={}, journal=part, resuming=True)))
            require(again[0] == whole[0] if isinstance(whole, tuple) else again == whole, f"resumed after {cut} entries: {shown(again)}")


async def _wait(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.emit("a chunk")
    await ctx.sleep(1.0)
    return {"n": inputs["n"] + 1}


def _count(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    if (ctx.deps or {}).get("fails"):
        raise ValueError("the kit makes it fail")
    return {"n": inputs["n"] + 1}


_count.inline = True  # type: ignore[attr-defined]  # a function's own attribute


def _graph() -> GraphSpec:
    """Two nodes that turn three times, and one that is skipped."""
    nodes = (NodeSpec(id="waits", body=_wait), NodeSpec(id="counts", body=_count), NodeSpec(id="skipped", body=_count))
    edges = (
        EdgeSpec(source="@entry", target="waits", keys={"n": ""}),
        EdgeSpec(source="waits", target="counts"),
        EdgeSpec(source="counts", target="waits", keys={"n": ""}, condition=_again),
        EdgeSpec(source="counts", target="skipped", keys={"n": ""}, condition=_never),
        EdgeSpec(source="counts", target="@exit", keys={"n": ""}, condition=_over),
    )
    return GraphSpec(id="kit", nodes=nodes, edges=edges, attributes={"n": 0}, cycle_limits={"": CycleLimit(rounds=10)})


def _again(payload: Any) -> bool:
    return payload["n"] < 6


def _over(payload: Any) -> bool:
    return payload["n"] >= 6


def _never(payload: Any) -> bool:
    return False


class _Dropped(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what is logged about observers."""
        error = record.exc_info[1] if record.exc_info else None
        self.told.append(f"{type(error).__name__}: {error}" if error is not None else record.getMessage())
