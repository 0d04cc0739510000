"""The kit of journals: what is appended is there, in order, exactly, for each run alone; and a run goes on from it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

from axil import EdgeSpec, GraphSpec, NodeSpec, Workflow
from axil.context import Context
from axil.journal import Entry, MemoryJournal, decode, encode
from axil.result import Result
from axil.spec import CycleLimit
from axil.values import thaw
from axil_testing.kit.base import Kit, claimed, require
from axil_testing.kit.hostile import JSON, TEXTS, shown
from axil_testing.kit.nodes import MovingClock, Tape


class JournalKit(Kit):
    """What every journal promises: ``append(run_id, entry)`` and ``entries(run_id)``.

    A durable one gives ``reopen(journal)``: another journal on the same store, as another process would have it.
    """

    kind = "journals"
    durable: ClassVar[bool] = False
    """Claim: what it holds outlives it; ``reopen`` is given."""

    def reopen(self, journal: Any) -> Any:
        """Another journal on the same store. Raises: NotImplementedError."""
        raise NotImplementedError("A durable journal's kit gives reopen(self, journal).")

    # -- what tests use

    async def opened(self) -> Any:
        """A fresh journal, provisioned."""
        journal = self.make()
        if hasattr(journal, "provision"):
            await _awaited(journal.provision())
        return journal

    async def append(self, journal: Any, run_id: str, *entries: Entry) -> None:
        """Append, and wait until it is kept."""
        for entry in entries:
            await _awaited(journal.append(run_id, entry))

    async def kept(self, journal: Any, run_id: str) -> list[Entry]:
        """Everything kept of a run."""
        found = await _awaited(journal.entries(run_id))
        return list(found)

    async def _closed(self, journal: Any) -> None:
        if hasattr(journal, "close"):
            await _awaited(journal.close())

    def samples(self) -> list[Entry]:
        """Entries that none of the others supersedes."""
        values = [Entry("step", ("g", 0, "c", n), f"n{n}", (n,), {"name": "s", "value": encode(v)}) for n, v in enumerate(JSON)]
        texts = [Entry("asked", (), "n", (), {"id": f"{n}", "text": text}) for n, text in enumerate(TEXTS)]
        names = [Entry("clock", ("a b", "#1.2", 3), name, (0, 1), {"call": 1, "value": 0.1}) for name in ("n", "ünï", "a'b", 'a"b', "a%b")]
        return [Entry("run", data={"digest": "d", "at": 0.0}), *values, *texts, *names]

    # -- laws

    def test_what_is_appended_is_kept_in_order(self) -> None:
        """Exactly: kinds, frames, nodes, ordinals and data, whatever is in them."""

        async def law() -> None:
            journal = await self.opened()
            samples = self.samples()
            await self.append(journal, "r", *samples)
            found = await self.kept(journal, "r")
            require(len(found) == len(samples), f"of {len(samples)} entries {len(found)} are kept")
            for given, kept in zip(samples, found, strict=True):
                require(_plain(kept) == _plain(given), f"{shown(given)} is kept as {shown(kept)}")
            values = [repr(decode(each.data["value"])) for each in found if each.kind == "step"]
            require(values == list(map(repr, JSON)), "values come back as others")
            await self._closed(journal)

        self.wait(law())

    def test_runs_do_not_mix(self) -> None:
        """Each run has its own entries; one that was never begun has none."""

        async def law() -> None:
            journal = await self.opened()
            ids = ["r", "R", "r ", "r/1", "r'; --", "ünï", "r%"]
            for n, run_id in enumerate(ids):
                await self.append(journal, run_id, Entry("run", data={"n": n}))
            for n, run_id in enumerate(ids):
                found = [entry.data for entry in await self.kept(journal, run_id)]
                require(found == [{"n": n}], f"the run {run_id!r} has {found}")
            require(await self.kept(journal, "never begun") == [], "a run that was never begun has entries")
            await self._closed(journal)

        self.wait(law())

    def test_what_was_read_does_not_grow(self) -> None:
        """Entries that were given out stay those that they were."""

        async def law() -> None:
            journal = await self.opened()
            await self.append(journal, "r", Entry("run"))
            found = await _awaited(journal.entries("r"))
            first = list(found)
            await self.append(journal, "r", Entry("clock", data={"call": 1, "value": 1.0}))
            require(first == [Entry("run")], "entries that were read have changed")
            require(len(await self.kept(journal, "r")) == 2, "an entry that was appended later is missing")
            await self._closed(journal)

        self.wait(law())

    def test_runs_may_append_at_the_same_time(self) -> None:
        """Nothing is lost, and each run's entries stay in their order."""

        async def law() -> None:
            journal = await self.opened()

            async def run(name: str) -> None:
                for n in range(20):
                    await self.append(journal, name, Entry("clock", (), "n", (), {"call": n, "value": 0.0}))
                    await asyncio.sleep(0)

            names = [f"r{n}" for n in range(5)]
            await asyncio.gather(*map(run, names))
            for name in names:
                calls = [entry.data["call"] for entry in await self.kept(journal, name)]
                require(calls == list(range(20)), f"of {name} it keeps {calls}")
            await self._closed(journal)

        self.wait(law())

    def test_a_run_goes_on_from_what_is_kept(self) -> None:
        """From every cut, to the same result; what was done is not done again."""

        async def law() -> None:
            first = await self.opened()
            tape = Tape(first)
            whole = await _run(tape, [])
            entries = tape.entries_in_order
            require(await self.kept(first, "r"), "it keeps nothing of a run")
            done = [entry.kind for entry in entries].count("done")
            for cut in range(1, len(entries)):
                journal = await self.opened()
                await self.append(journal, "cut", Entry("run"))  # another run in the same store
                await self.append(journal, "r", *entries[:cut])
                repeated: list[str] = []
                again = await _run(journal, repeated, resuming=True)
                known = {str(entry.activation) for entry in await self.kept(journal, "r") if entry.kind == "done"}
                finished = {str(entry.activation) for entry in entries[:cut] if entry.kind == "done"} & known
                require(not finished & set(repeated), f"after {cut} entries it does again what was done: {finished & set(repeated)}")
                require(_told(again) == _told(whole), f"after {cut} of {len(entries)} entries ({done} done): {shown(_told(again))}")
                await self._closed(journal)
            fired: list[str] = []
            await _run(first, fired, resuming=True)
            require(not fired, f"a run that was over does its work again: {fired}")
            await self._closed(first)

        self.wait(law())

    def test_it_keeps_what_the_kernels_own_journal_keeps(self) -> None:
        """Whoever reads either comes to the same; superseded entries may be missing from both."""

        async def law() -> None:
            journal, memory = await self.opened(), MemoryJournal()
            await _run(journal, [])
            await _run(memory, [])
            ours = {(e.kind, e.frame, e.node, e.ordinal) for e in memory.entries("r")}
            theirs = {(e.kind, e.frame, e.node, e.ordinal) for e in await self.kept(journal, "r")}
            require(ours <= theirs, f"it lacks {sorted(map(repr, ours - theirs))}")
            await self._closed(journal)

        self.wait(law())

    @claimed("durable")
    def test_what_is_kept_outlives_the_journal(self) -> None:
        """Another journal on the same store has all of it, also where nobody closed the first one."""

        async def law() -> None:
            for closes in (True, False):
                journal = await self.opened()
                samples = self.samples()
                await self.append(journal, "r", *samples)
                if closes:
                    await self._closed(journal)
                other = self.reopen(journal)
                if hasattr(other, "provision"):
                    await _awaited(other.provision())
                found = await self.kept(other, "r")
                require(list(map(_plain, found)) == list(map(_plain, samples)), f"of {len(samples)} entries {len(found)} are there again")
                await self._closed(other)
                if not closes:
                    await self._closed(journal)

        self.wait(law())


async def _awaited(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


def _plain(entry: Entry) -> tuple[Any, ...]:
    return entry.kind, tuple(entry.frame), entry.node, tuple(entry.ordinal), repr(dict(entry.data))


def _told(result: Result) -> Any:
    return result.status, thaw(result.output), thaw(result.attributes)


async def _run(journal: Any, fired: list[str], *, resuming: bool = False) -> Result:
    async def work(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        fired.append(str(ctx.activation))
        now = ctx.now()
        step = await ctx.step("read", _read)
        await ctx.sleep(1.0)
        ctx.local["n"] = ctx.local.get("n", 0) + 1
        return {"n": inputs["n"] + ctx.local["n"] + step + int(now)}

    def least(payload: Any) -> bool:
        return payload["n"] < 20

    def most(payload: Any) -> bool:
        return payload["n"] >= 20

    nodes: Sequence[NodeSpec] = (NodeSpec(id="work", body=work), NodeSpec(id="last", body=work))
    edges = (
        EdgeSpec(source="@entry", target="work", keys={"n": ""}),
        EdgeSpec(source="work", target="work", keys={"n": ""}, condition=least),
        EdgeSpec(source="work", target="last", keys={"n": ""}, condition=most),
        EdgeSpec(source="last", target="@exit", keys={"n": ""}),
    )
    spec = GraphSpec(id="kit", nodes=tuple(nodes), edges=edges, attributes={"n": 0}, cycle_limits={"": CycleLimit(rounds=50)})
    workflow = Workflow(spec)
    async with workflow:
        return await workflow.start({"n": 0}, journal=journal, run_id="r", resuming=resuming, clock=MovingClock()).result()


async def _read() -> int:
    return 3
