"""The kit of journals: what is appended is there, in order, exactly, for each run alone; and a run
continues from it.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from axil import Context, CycleLimit, EdgeSpec, GraphSpec, NodeSpec, Result, Workflow
from axil.plugin import JournalError, thaw
from axil_journals import Entry, MemoryJournal, decode_value, encode_value
from axil_testing.clock import JumpingClock
from axil_testing.kit.base import Kit, claimed, require
from axil_testing.kit.hostile import JSON, TEXTS, shown
from axil_testing.kit.nodes import Tape
from axil_testing.kit.queues import QueueLaws

SOON = 500
"""Looks, one each 20 ms, until an entry that no caller waits for has become safe."""


class JournalKit(QueueLaws, Kit):
    """The laws of every journal: ``open(run_id)`` gives the writer of a run; ``entries``,
    ``thread``, ``runs`` and ``forget`` look at all.
    """

    kind = "journals"
    durable: ClassVar[bool] = False
    """Claim: what it holds outlives it; ``reopen`` is given."""
    shared: ClassVar[bool] = False
    """Claim: it is an ``axil_journals.SharedJournal``, the queue of engines."""

    def reopen(self, journal: Any) -> Any:
        """Return another journal on the same store. Raises: NotImplementedError."""
        raise NotImplementedError("A durable journal's kit gives reopen(self, journal).")

    # -- what tests use

    async def opened(self) -> Any:
        """Return a fresh journal, provisioned."""
        journal = self.make()
        if hasattr(journal, "provision"):
            await _awaited(journal.provision())
        return journal

    async def append(self, journal: Any, run_id: str, *entries: Entry) -> None:
        """Open the run's writer, append, wait until it is safe, and let go."""
        writer = journal.open(run_id)
        try:
            for entry in entries:
                writer.append(entry)
            await _kept(writer)
        finally:
            writer.close()

    async def kept(self, journal: Any, run_id: str) -> list[Entry]:
        """Everything kept of a run."""
        return list(journal.entries(run_id))

    def own(self, *names: str) -> list[str]:
        """Return unused names: the store may be shared, and may hold what earlier
        laws left in it.
        """
        mark = secrets.token_hex(4)
        return [f"{mark}-{name}" for name in names]

    async def _closed(self, journal: Any) -> None:
        if hasattr(journal, "close"):
            await _awaited(journal.close())

    def samples(self) -> list[Entry]:
        """Return entries that none of the others supersedes."""
        values = [
            Entry("step", ("g", 0, "c", n), f"n{n}", (n,), {"name": "s", "value": encode_value(v)})
            for n, v in enumerate(JSON)
        ]
        texts = [
            Entry("asked", (), "n", (), {"id": f"{n}", "text": text})
            for n, text in enumerate(TEXTS)
        ]
        names = [
            Entry("clock", ("a b", "#1.2", 3), name, (0, 1), {"call": 1, "value": 0.1})
            for name in ("n", "ünï", "a'b", 'a"b', "a%b")
        ]
        return [Entry("run", data={"digest": "d", "at": 0.0}), *values, *texts, *names]

    # -- laws

    def test_what_is_appended_is_kept_in_order(self) -> None:
        """Exactly: kinds, frames, nodes, ordinals and data, whatever is in them."""

        async def law() -> None:
            journal = await self.opened()
            samples = self.samples()
            (run,) = self.own("r")
            await self.append(journal, run, *samples)
            found = await self.kept(journal, run)
            writer = journal.open(run)
            require(
                list(map(_plain, writer.entries)) == list(map(_plain, found)),
                "a writer knows something else than entries gives",
            )
            writer.close()
            require(len(found) == len(samples), f"of {len(samples)} entries {len(found)} are kept")
            for given, kept in zip(samples, found, strict=True):
                require(_plain(kept) == _plain(given), f"{shown(given)} is kept as {shown(kept)}")
            values = [
                repr(decode_value(each.data["value"])) for each in found if each.kind == "step"
            ]
            require(values == list(map(repr, JSON)), "values come back as others")
            await self._closed(journal)

        self.wait(law())

    def test_runs_do_not_mix(self) -> None:
        """Each run has its own entries; one that was never begun has none."""

        async def law() -> None:
            journal = await self.opened()
            ids = self.own("r", "R", "r ", "r/1", "r'; --", "ünï", "r%")
            for n, run_id in enumerate(ids):
                await self.append(journal, run_id, Entry("run", data={"n": n}))
            for n, run_id in enumerate(ids):
                found = [entry.data for entry in await self.kept(journal, run_id)]
                require(found == [{"n": n}], f"the run {run_id!r} has {found}")
            require(
                await self.kept(journal, "never begun") == [],
                "a run that was never begun has entries",
            )
            await self._closed(journal)

        self.wait(law())

    def test_what_was_read_does_not_grow(self) -> None:
        """Entries that were given out stay those that they were, in a writer as well."""

        async def law() -> None:
            journal, (run,) = await self.opened(), self.own("r")
            await self.append(journal, run, Entry("run"))
            first, writer = list(journal.entries(run)), journal.open(run)
            before = list(writer.entries)
            await self.append(journal, run, Entry("clock", data={"call": 1, "value": 1.0}))
            require(
                list(map(_plain, first)) == [_plain(Entry("run"))],
                "entries that were read have changed",
            )
            require(list(writer.entries) == before, "a writer's entries change while it is open")
            writer.close()
            require(
                len(await self.kept(journal, run)) == 2,
                "an entry that was appended later is missing",
            )
            await self._closed(journal)

        self.wait(law())

    def test_runs_may_be_at_work_at_the_same_time(self) -> None:
        """Nothing is lost, and each run's entries stay in their order."""

        async def law() -> None:
            journal = await self.opened()

            async def run(name: str) -> None:
                writer = journal.open(name)
                for n in range(20):
                    writer.append(Entry("clock", (), "n", (), {"call": n, "value": 0.0}))
                    if n % 3 == 0:
                        await _kept(writer)
                    await asyncio.sleep(0)
                await _kept(writer)
                writer.close()

            names = self.own(*(f"r{n}" for n in range(5)))
            await asyncio.gather(*map(run, names))
            for name in names:
                calls = [entry.data["call"] for entry in await self.kept(journal, name)]
                require(calls == list(range(20)), f"of {name} it keeps {calls}")
            await self._closed(journal)

        self.wait(law())

    def test_a_run_is_held_by_one(self) -> None:
        """The first append claims it; other writers are refused (AX506), and so is one that was
        overtaken, or has let go.
        """

        async def law() -> None:
            journal, (run,) = await self.opened(), self.own("r")
            first, second = journal.open(run), journal.open(run)
            first.append(Entry("run"))
            await _kept(first)
            await _refused(second, "AX506", "a run that is at work is claimed again")
            await _kept(first)
            first.close()
            first.close()
            await _refused(first, "AX506", "a closed writer still appends")
            late = journal.open(run)
            await self.append(journal, run, Entry("clock", data={"call": 1, "value": 1.0}))
            await _refused(late, "AX506", "a writer that was overtaken still appends")
            for writer in (second, late):
                writer.close()
            await self.append(journal, run, Entry("clock", data={"call": 2, "value": 1.0}))
            require(
                len(await self.kept(journal, run)) == 3,
                "what was refused is kept, or what was not is lost",
            )
            await self._closed(journal)

        self.wait(law())

    def test_threads_keep_their_order(self) -> None:
        """A run is put behind the one that it says it follows; who is second is refused (AX508)."""

        async def law() -> None:
            journal = await self.opened()
            a, b, c, x, last, thread, other, none = self.own(
                "a", "b", "c", "x", "late", "t", "other", "none"
            )
            for run_id, after in ((a, ""), (b, a), (c, b)):
                await self.append(
                    journal, run_id, Entry("run", data={"thread": thread, "after": after})
                )
            await self.append(journal, x, Entry("run", data={"thread": other, "after": ""}))
            late = journal.open(last)
            await _refused(
                late,
                "AX508",
                "two runs follow the same one",
                Entry("run", data={"thread": thread, "after": b}),
            )
            late.close()
            found = list(journal.thread(thread))
            require(found == [a, b, c], f"of the runs {a}, {b}, {c} of a thread it says {found}")
            require(list(journal.thread(none)) == [], "a thread without a beginning has runs")
            ended = journal.open(b)
            await _refused(ended, "AX529", "a run is resumed that is not the last of its thread")
            ended.close()
            again = journal.open(x)
            again.append(Entry("resumed"))
            await _kept(again)
            late = journal.open(last)
            await _refused(
                late,
                "AX508",
                "a run begins while one is at work",
                Entry("run", data={"thread": other, "after": x}),
            )
            late.close()
            again.close()
            await self._closed(journal)

        self.wait(law())

    def test_runs_are_listed_and_forgotten(self) -> None:
        """With how they ended; what is forgotten is gone, what is at work is not forgotten."""

        async def law() -> None:
            journal = await self.opened()
            a, b, c, thread = self.own("a", "b", "c", "t")
            for run_id in (a, b, c):
                await self.append(
                    journal,
                    run_id,
                    Entry(
                        "run",
                        data={"graph": "g", "thread": thread if run_id == a else "", "after": ""},
                    ),
                )
            await self.append(journal, c, Entry("ended", data={"status": "done"}))
            infos = {info.run_id: info for info in journal.runs() if info.run_id in (a, b, c)}
            require(len(infos) == 3, f"of the runs {a}, {b}, {c} it lists {sorted(infos)}")
            require(
                (infos[a].status, infos[c].status) == ("open", "done"),
                "it lists runs with a status that they do not have",
            )
            writer = journal.open(b)

            def revision() -> object:
                listed = journal.infos([b]) if self.shared else journal.runs()
                return next(info.revision for info in listed if info.run_id == b)

            seen = {revision()}
            for call in (1, 2):
                writer.append(Entry("clock", data={"call": call, "value": 1.0}))
                await _kept(writer)
                seen.add(revision())
            require(len(seen) == 3, "the facts about a run do not tell of each of its entries")
            _raises(lambda: journal.forget(b), "AX506", "a run that is at work is forgotten")
            writer.close()
            journal.forget(a)
            require(
                await self.kept(journal, a) == [] and list(journal.thread(thread)) == [],
                "a run that was forgotten is still known",
            )
            require(
                len(await self.kept(journal, b)) == 3, "forgetting one run takes entries of another"
            )
            _raises(
                lambda: journal.forget(a),
                "AX503",
                "a run that is not known is forgotten without a word",
            )
            await self._closed(journal)

        self.wait(law())

    def test_a_forgotten_run_is_not_resumed(self) -> None:
        """Refuse an earlier writer of a forgotten run (AX506), also if a run of its name, of as
        many entries, has begun since.
        """

        async def law() -> None:
            journal = await self.opened()
            for again in (False, True):
                (run,) = self.own("r")
                await self.append(journal, run, Entry("run", data={"n": 1}))
                late = journal.open(run)
                journal.forget(run)
                if again:
                    await self.append(journal, run, Entry("run", data={"n": 2}))
                message = "has begun anew" if again else "was forgotten"
                await _refused(
                    late, "AX506", f"a writer continues a run that {message} since it was opened"
                )
                late.close()
                found = [entry.data for entry in await self.kept(journal, run)]
                require(
                    found == ([{"n": 2}] if again else []),
                    f"of a run that {message} it keeps {found}",
                )
            await self._closed(journal)

        self.wait(law())

    def test_what_is_refused_leaves_what_was_before(self) -> None:
        """An entry that cannot be kept is refused by itself, or never was there: those before it
        and behind it are kept.
        """

        async def law() -> None:
            journal = await self.opened()
            first, late, thread = self.own("first", "late", "t")
            await self.append(journal, first, Entry("run", data={"thread": thread, "after": ""}))
            writer = journal.open(late)
            await _refused(
                writer,
                "AX508",
                "two runs begin one thread",
                Entry("run", data={"thread": thread, "after": ""}),
            )
            writer.close()
            require(await self.kept(journal, late) == [], "a run that was refused has entries")
            require(
                late not in [info.run_id for info in journal.runs()],
                "a run that was refused is listed",
            )
            require(
                list(journal.thread(thread)) == [first], "a run that was refused is in its thread"
            )
            await self.append(journal, late, Entry("run", data={"thread": thread, "after": first}))
            require(
                list(journal.thread(thread)) == [first, late],
                "a run that was refused cannot begin when it is its turn",
            )
            await self._closed(journal)

        self.wait(law())

    def test_a_run_continues_from_what_is_kept(self) -> None:
        """From every cut, to the same result; what was done is not done again."""

        async def law() -> None:
            first, (run,) = await self.opened(), self.own("r")
            tape = Tape(first)
            whole = await _run(tape, run, [])
            entries = tape.appended
            require(await self.kept(first, run), "it keeps nothing of a run")
            done = [entry.kind for entry in entries].count("done")
            for cut in range(1, len(entries)):
                journal, (part, beside) = await self.opened(), self.own("part", "beside")
                await self.append(journal, beside, Entry("run"))
                await self.append(journal, part, *entries[:cut])
                repeated: list[str] = []
                again = await _run(journal, part, repeated, resuming=True)
                known = {
                    str(entry.activation)
                    for entry in await self.kept(journal, part)
                    if entry.kind == "done"
                }
                finished = {
                    str(entry.activation) for entry in entries[:cut] if entry.kind == "done"
                } & known
                require(
                    not finished & set(repeated),
                    f"after {cut} entries it does again what was done: {finished & set(repeated)}",
                )
                require(
                    _facts(again) == _facts(whole),
                    f"after {cut} of {len(entries)} entries ({done} done): {shown(_facts(again))}",
                )
                await self._closed(journal)
            fired: list[str] = []
            await _run(first, run, fired, resuming=True)
            require(not fired, f"a run that was over does its work again: {fired}")
            await self._closed(first)

        self.wait(law())

    def test_it_keeps_what_the_kernels_own_journal_keeps(self) -> None:
        """Keep the entries that the kernel's own journal keeps; superseded entries may be missing
        from both.
        """

        async def law() -> None:
            journal, memory = await self.opened(), MemoryJournal()
            (run,) = self.own("r")
            await _run(journal, run, [])
            await _run(memory, run, [])
            ours = {(e.kind, e.frame, e.node, e.ordinal) for e in memory.entries(run)}
            theirs = {(e.kind, e.frame, e.node, e.ordinal) for e in await self.kept(journal, run)}
            require(ours <= theirs, f"it lacks {sorted(map(repr, ours - theirs))}")
            await self._closed(journal)

        self.wait(law())

    @claimed("durable")
    def test_what_is_kept_outlives_the_journal(self) -> None:
        """Find all of it in another journal on the same store, also if the first was not closed."""

        async def law() -> None:
            for closes in (True, False):
                journal = await self.opened()
                samples, (run,) = self.samples(), self.own("r")
                await self.append(journal, run, *samples)
                if closes:
                    await self._closed(journal)
                other = self.reopen(journal)
                if hasattr(other, "provision"):
                    await _awaited(other.provision())
                found = await self.kept(other, run)
                require(
                    list(map(_plain, found)) == list(map(_plain, samples)),
                    f"of {len(samples)} entries {len(found)} are there again",
                )
                await self._closed(other)
                if not closes:
                    await self._closed(journal)

        self.wait(law())

    @claimed("durable")
    def test_a_crash_loses_an_end_at_most(self) -> None:
        """Show another journal the beginning of a run at work: all safe entries, in order, and none
        left out.
        """

        async def law() -> None:
            journal, (run,) = await self.opened(), self.own("r")
            other = self.reopen(journal)
            if hasattr(other, "provision"):
                await _awaited(other.provision())
            writer, safe = journal.open(run), 0
            for n in range(24):
                writer.append(Entry("clock", (), "n", (), {"call": n, "value": 0.0}))
                if n % 5 == 4:
                    await _kept(writer)
                    safe = n + 1
                calls = [entry.data["call"] for entry in await self.kept(other, run)]
                require(
                    calls == list(range(len(calls))),
                    f"of {n + 1} entries it holds {calls}, which is no beginning",
                )
                require(
                    len(calls) >= safe, f"of {safe} entries that are safe it holds {len(calls)}"
                )
            await _kept(writer)
            writer.close()
            await self._closed(other)
            await self._closed(journal)

        self.wait(law())

    @claimed("durable")
    def test_what_no_caller_waits_for_is_kept_soon(self) -> None:
        """Show another journal an entry whose writer no caller asked, while the run is at work."""

        async def law() -> None:
            journal, (run,) = await self.opened(), self.own("r")
            other = self.reopen(journal)
            if hasattr(other, "provision"):
                await _awaited(other.provision())
            writer = journal.open(run)
            writer.append(Entry("clock", (), "n", (), {"call": 0, "value": 0.0}))
            for _ in range(SOON):
                if await self.kept(other, run):
                    break
                await asyncio.sleep(0.02)
            else:
                require(False, f"in {SOON * 0.02:.0f} seconds the entry has not become safe")
            writer.close()
            await self._closed(other)
            await self._closed(journal)

        self.wait(law())

    # -- laws of shared journals

    async def submitted(self, journal: Any, *names: str) -> None:
        """Store runs that are due; all others of the store are taken before."""
        journal.take(10_000, 1.0)
        for name in names:
            await self.append(journal, name, Entry("run", data={"graph": "g", "digest": name}))

    @claimed("shared")
    def test_a_due_run_is_taken_by_one(self) -> None:
        """In the order in which they were submitted, as many as are asked for, and only those that
        an engine knows; what is released is taken again, what is at work or has ended is not.
        """

        async def law() -> None:
            journal = await self.opened()
            a, b, c, d, late = self.own("a", "b", "c", "d", "late")
            await self.submitted(journal, a, b, c)
            require(
                list(journal.take(9, 1.0, digests=[b, c], without=[c])) == [b]
                and not journal.take(9, 1.0, digests=[b, c], without=[c], unknown=[b])
                and not journal.take(9, 1.0, unknown=[a, b, c]),
                "it gives an engine runs of graphs that the engine does not know",
            )
            journal.release(b)
            require(not journal.take(9, 1.0, lost=True), "a run that was released is lost")
            taken = list(journal.take(2, 1.0))
            require(taken == [a, b], f"of the runs {a}, {b}, {c} it gives {taken} first")
            require(list(journal.take(2, 1.0)) == [c], "a run that was taken is taken again")
            statuses = {info.status for info in journal.infos([a, b, c])}
            require(statuses == {"running"}, f"runs that were taken are {statuses}")
            _raises(lambda: journal.forget(a), "AX506", "a run that was taken is forgotten")
            for name, status in ((a, "done"), (b, "paused")):
                await self.append(journal, name, Entry("ended", data={"status": status}))
            writer = journal.open(c)
            writer.append(Entry("resumed"))
            await _kept(writer)
            require(not journal.take(9, 1.0), "a run at work, or one that waits or ended, is due")
            writer.close()
            require(not journal.take(9, 1.0, lost=True), "a run that broke off in order is lost")
            taken = list(journal.take(9, 1.0))
            require(taken == [c], f"of the run {c}, which broke off, it gives {taken}")
            journal.release(c)
            asked = [{"id": "a?", "due": 500.0}, {"id": "b?", "data": {"due": 400.0}}]
            await self.append(
                journal, c, Entry("ended", data={"status": "paused", "questions": asked})
            )
            require(journal.next_due(300.0) == 400.0, "it does not say when a run is due by itself")
            require(not journal.take(9, 399.0), "a run is due before its time")
            await self.append(journal, d, Entry("run", data={"graph": "g", "digest": d}))
            taken = list(journal.take(1, 400.0))
            require(taken == [c], "a run is not due at its time, or a later submission is first")
            require(list(journal.take(9, 400.0)) == [d], "a later submission is not taken")
            journal.release(c)
            journal.wake(a)
            require(list(journal.take(9, 1.0)) == [a], "a run that was woken is not due")
            _raises(lambda: journal.wake(late), "AX503", "a run that is not there is woken")
            await self._closed(journal)

        self.wait(law())

    @claimed("shared")
    def test_mail_reaches_the_holder_of_a_run(self) -> None:
        """An answer is posted once; a run without a holder is due then; what is discarded is not
        given again, and its question stays answered.
        """

        async def law() -> None:
            journal = await self.opened()
            run, none = self.own("r", "none")
            await self.submitted(journal, run)
            writer = journal.open(run)
            writer.append(Entry("resumed"))
            await _kept(writer)
            answer = Entry("answer", data={"id": "a?", "value": 1})
            require(journal.post(run, answer) is True, "an answer is not taken")
            require(journal.post(run, answer) is False, "a question is answered twice")
            letters = list(journal.mail([run, none]))
            require(
                [(letter.run_id, _plain(letter.entry)) for letter in letters]
                == [(run, _plain(answer))],
                "mail is not what was posted",
            )
            writer.append(Entry("ended", data={"status": "paused", "questions": []}))
            await _kept(writer)
            writer.close()
            taken = list(journal.take(9, 1.0))
            require(taken == [run], "a run that paused with mail unread is not due")
            journal.discard([letter.number for letter in letters])
            require(not journal.mail([run]), "mail that was discarded is given again")
            require(journal.post(run, answer) is False, "a discarded answer is given once more")
            await self.append(journal, run, Entry("ended", data={"status": "paused"}))
            require(not journal.take(9, 1.0), "a run that paused with its mail read is due")
            journal.post(run, Entry("ended", data={"status": "cancelled", "error": "enough"}))
            require(list(journal.take(9, 1.0)) == [run], "a run with mail and no holder is not due")
            _raises(lambda: journal.post(none, answer), "AX503", "mail for no run is kept")
            await self._closed(journal)

        self.wait(law())

    @claimed("shared")
    def test_a_change_wakes_those_who_wait_for_it(self) -> None:
        """Within a second, also those that wait for work; without a change the wait ends after its
        time.
        """

        async def law() -> None:
            journal = await self.opened()
            (run,) = self.own("r")
            await self.submitted(journal, run)
            since = await journal.changed(0, 5.0)
            while (now := await journal.changed(since, 0.2)) != since:
                since = now  # what was told of the beginning arrives
            work = await journal.changed(0, 5.0, is_work=True)
            waits = asyncio.ensure_future(journal.changed(since, 60.0))
            works = asyncio.ensure_future(journal.changed(work, 60.0, is_work=True))
            await asyncio.sleep(0)
            journal.wake(run)
            require(await asyncio.wait_for(waits, 10.0) != since, "a change is not reported")
            is_found = await asyncio.wait_for(works, 10.0) != work
            require(is_found, "a run that became due is not reported to those that wait for work")
            await self._closed(journal)

        self.wait(law())

    @claimed("shared")
    def test_pages_of_runs_follow_each_other(self) -> None:
        """Without gaps, the last touched first; also of one status alone."""

        async def law() -> None:
            journal = await self.opened()
            names = self.own(*(f"r{n}" for n in range(5)))
            for n, name in enumerate(names):
                await self.append(journal, name, Entry("run"))
                status = "failed" if n % 2 else "limited"
                await self.append(journal, name, Entry("ended", data={"status": status}))
            found = [info.run_id for info in journal.runs(limit=2)]
            require(found == [names[4], names[3]], f"the first page is {found}")
            found = [info.run_id for info in journal.runs(after=names[3], limit=2)]
            require(found == [names[2], names[1]], f"the second page is {found}")
            found = [info.run_id for info in journal.runs(status=["failed"])]
            require(found[:2] == [names[3], names[1]], f"of one status it lists {found}")
            found = list(journal.named(names[0][:-1], 3))
            require(found == list(names[:3]), f"the first three that begin so are {found}")
            require(not journal.named(f"{names[0]}-", 3), "a longer id than there is is found")
            (third,) = journal.infos([names[2]])
            found = [info.run_id for info in journal.runs(before=third.touched, limit=2)]
            require(found == [names[1], names[0]], f"touched before the third were {found}")
            await self._closed(journal)

        self.wait(law())

    @claimed("shared")
    def test_runs_are_forgotten_in_batches_the_oldest_first(self) -> None:
        """None of another status, none that is held, none that was touched later."""

        async def law() -> None:
            journal = await self.opened()
            names = self.own(*(f"p{n}" for n in range(6)))
            for n, name in enumerate(names):
                await self.append(journal, name, Entry("run"))
                status = "paused" if n == 1 else "failed"
                await self.append(journal, name, Entry("ended", data={"status": status}))
            journal.post(names[0], Entry("answer", data={"id": "q", "value": 1}))
            held = journal.open(names[2])
            held.append(Entry("resumed"))
            await _kept(held)
            (last,) = journal.infos([names[5]])
            batches = list[list[str]]()
            while found := journal.prune(last.touched, status=["failed"], limit=2):
                batches.append([info.run_id for info in found])
                require(len(batches) < 100, "it forgets without an end")
            forgotten = [name for batch in batches for name in batch if name in names]
            wanted = [names[0], names[3], names[4]]
            require(forgotten == wanted, f"it forgot {forgotten}")
            require(max(map(len, batches)) <= 2, "a batch is larger than it was to be")
            left = {info.run_id for info in journal.infos(names)}
            require(left == {names[1], names[2], names[5]}, f"it kept {sorted(left)}")
            held.close()
            await self._closed(journal)

        self.wait(law())


async def _awaited(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given


async def _kept(writer: Any) -> None:
    waiting = writer.kept()
    if waiting is not None:
        await waiting


async def _refused(writer: Any, id: str, otherwise: str, entry: Entry | None = None) -> None:
    """Nothing, if the writer refuses an entry, at once or when it is to be safe.

    Raises: AssertionError.
    """
    try:
        writer.append(entry or Entry("clock", data={"call": 9, "value": 1.0}))
        await _kept(writer)
    except JournalError as error:
        require(error.id == id, f"it refuses with {error.id}; expected {id}: {error}")
        return
    raise AssertionError(otherwise)


def _raises(act: Callable[[], Any], id: str, otherwise: str) -> None:
    try:
        act()
    except JournalError as error:
        require(error.id == id, f"it refuses with {error.id}; expected {id}: {error}")
        return
    raise AssertionError(otherwise)


def _plain(entry: Entry) -> tuple[Any, ...]:
    return entry.kind, tuple(entry.frame), entry.node, tuple(entry.ordinal), repr(dict(entry.data))


def _facts(result: Result) -> Any:
    return result.status, thaw(result.output), thaw(result.attributes)


async def _run(journal: Any, run_id: str, fired: list[str], *, resuming: bool = False) -> Result:
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
    spec = GraphSpec(
        id="kit",
        nodes=tuple(nodes),
        edges=edges,
        attributes={"n": 0},
        cycle_limits={"": CycleLimit(rounds=50)},
    )
    workflow = Workflow(spec)
    async with workflow:
        return await workflow.start(
            {"n": 0}, journal=journal, run_id=run_id, resuming=resuming, clock=JumpingClock()
        ).result()


async def _read() -> int:
    return 3
