"""The laws of queues, which every shared journal keeps."""

from __future__ import annotations

from typing import Any

from axil_journals import Entry, Queue, RunExists, Spent
from axil_testing.kit.base import claimed, require


class QueueLaws:
    """The laws of the queues of a ``SharedJournal``; a part of ``JournalKit``."""

    async def queued(self: Any, journal: Any, queue: str, *names: str) -> dict[str, str]:
        """Submit runs to a queue, and return their ids; the key of each is its first letter."""
        journal.take(10_000, 1.0)
        own = dict(zip(names, self.own(*names), strict=True))
        for name, run_id in own.items():
            place = {"queue": queue, "key": name[0]} if queue else {}
            header = {"graph": "g", "digest": "", "place": place}
            await self.append(journal, run_id, Entry("run", data=header))
        return own

    async def _forgotten(self: Any, journal: Any, run_ids: Any) -> None:
        for run_id in run_ids:
            journal.release(run_id)
            journal.forget(run_id)
        await self._closed(journal)

    @claimed("shared")
    def test_the_keys_of_a_queue_take_turns(self: Any) -> None:
        """A key with many runs does not delay the one of another."""

        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("turns")
            own = await self.queued(journal, name, "a1", "a2", "a3", "a4", "b1")
            found = list(journal.take(2, 1.0))
            require(set(found) == {own["a1"], own["b1"]}, f"it took {found} of {own}")
            found = list(journal.take(9, 1.0))
            wanted = [own["a2"], own["a3"], own["a4"]]
            require(sorted(found) == sorted(wanted), f"then it took {found} of {own}")
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_queue_has_no_more_runs_at_work_than_its_rules_allow(self: Any) -> None:
        """In all, and of each key; for all journal objects on one store."""

        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("full")
            journal.set_queues([Queue(name=name, concurrency=3, key_concurrency=2)])
            (kept,) = (queue for queue in journal.queues() if queue.name == name)
            require((kept.concurrency, kept.key_concurrency) == (3, 2), f"it kept {kept}")
            own = await self.queued(journal, name, "a1", "a2", "a3", "b1", "b2")
            found = list(journal.take(9, 1.0))
            keys = sorted(key[0] for key, run_id in own.items() if run_id in found)
            require(len(found) == 3, f"it took {found}, of which three may be at work")
            require(keys in (["a", "a", "b"], ["a", "b", "b"]), f"it took runs of {keys}")
            other = self.reopen(journal) if self.durable else journal
            require(not other.take(9, 1.0), "another journal object took a run of a full queue")
            if other is not journal:
                await self._closed(other)
            journal.release(found[0])
            more = list(journal.take(9, 1.0))
            require(len(more) == 1, f"one has ended, and it took {more}")
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_queue_passes_so_many_runs_in_a_period(self: Any) -> None:
        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("paced")
            journal.set_queues([Queue(name=name, calls=2, period_seconds=10.0)])
            own = await self.queued(journal, name, "a1", "a2", "a3", "a4")
            require(len(journal.take(9, 100.0)) == 2, "two may be taken at once")
            due = journal.next_due(100.0)
            require(due == 105.0, f"the next one may be taken at 105; it says {due}")
            require(not journal.take(9, 104.0), "one was taken too soon")
            require(len(journal.take(9, 105.0)) == 1, "one may be taken after five seconds")
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_queue_passes_so_many_runs_of_each_key_in_a_period(self: Any) -> None:
        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("keyed")
            journal.set_queues([Queue(name=name, key_calls=1, period_seconds=10.0)])
            own = await self.queued(journal, name, "a1", "a2", "b1")
            first = journal.take(9, 100.0)
            found = sorted(key[0] for key in own if own[key] in first)
            require(found == ["a", "b"], f"one of each key may be taken at once, not {found}")
            other = self.reopen(journal) if self.durable else journal
            require(not other.take(9, 109.0), "one was taken too soon")
            due = other.next_due(109.0)
            require(due == 110.0, f"the next one may be taken at 110; it says {due}")
            more = other.take(9, 110.0)
            require(len(more) == 1, f"one may be taken after ten seconds, not {more}")
            other.release(more[0])
            if other is not journal:
                await self._closed(other)
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_queue_passes_no_run_while_its_provider_has_no_room(self: Any) -> None:
        """It is open again when a minute allows more, and the provider does not ask to wait."""

        async def law() -> None:
            journal = await self.opened()
            name, free = self.own("metered", "free")
            journal.set_queues([Queue(name=name, tokens_per_minute=600, requests_per_minute=60)])
            own = await self.queued(journal, name, "a1", "a2", "a3", "a4")
            require(len(journal.take(1, 100.0)) == 1, "nothing was used yet")
            used = [Spent(queue=name, requests=1, tokens=700), Spent(queue=free, tokens=9)]
            limited = journal.spend(used, 100.0)
            require(list(limited) == [name], f"it says that {limited} limit what is used")
            require(not journal.take(9, 109.0), "a run was taken while tokens were owed")
            due = journal.next_due(100.0)
            require(due is not None and abs(due - 110.1) < 1e-6, f"it is open at 110.1, not {due}")
            require(len(journal.take(1, 110.2)) == 1, "as many tokens have come as were owed")
            journal.spend([Spent(queue=name, closed_until=150.0)], 111.0)
            require(not journal.take(9, 149.0), "the provider had asked to wait")
            require(journal.next_due(149.0) == 150.0, "it is not known when it does no more")
            require(len(journal.take(1, 150.0)) == 1, "the provider asks to wait no more")
            journal.spend([Spent(queue=name, requests=61)], 150.0)
            require(not journal.take(9, 150.5), "a run was taken while requests were owed")
            require(len(journal.take(9, 152.1)) == 1, "requests may be made again")
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_queue_has_one_run_of_a_name_at_a_time(self: Any) -> None:
        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("single")
            first, second, other, third = self.own("first", "second", "other", "third")

            async def begin(run_id: str, once: str) -> str:
                header = {"graph": "g", "digest": "", "place": {"queue": name, "once": once}}
                try:
                    await self.append(journal, run_id, Entry("run", data=header))
                except RunExists as error:
                    return error.run_id
                return run_id

            require(await begin(first, "report") == first, "the first one was refused")
            require(await begin(second, "report") == first, "the second one was not refused")
            require(not journal.infos([second]), "the second one is there")
            require(await begin(other, "mail") == other, "one of another name was refused")
            await self.append(journal, first, Entry("ended", data={"status": "done"}))
            require(await begin(third, "report") == third, "it was refused by one that has ended")
            await self._forgotten(journal, [first, other, third])

        self.wait(law())

    @claimed("shared")
    def test_a_run_that_is_debounced_gets_the_input_of_the_last_one(self: Any) -> None:
        """As long as it has not begun; and it begins when no other has come for a while."""

        async def law() -> None:
            journal = await self.opened()
            journal.take(10_000, 1.0)
            (name,) = self.own("calm")
            first, second, third, last = self.own("first", "second", "third", "last")

            async def begin(run_id: str, n: int, start_at: float) -> str:
                place = {"queue": name, "once": "save", "debounce_seconds": 5.0}
                place |= {"start_at": start_at, "longest_seconds": 1e9}
                header = {"graph": "g", "digest": "", "input": n, "place": place}
                try:
                    await self.append(journal, run_id, Entry("run", data=header))
                except RunExists as error:
                    return error.run_id
                return run_id

            require(await begin(first, 1, 50.0) == first, "the first one was refused")
            require(await begin(second, 2, 55.0) == first, "the second one is a run of its own")
            found = journal.entries(first)
            require([each.data["input"] for each in found] == [2], f"it has {found}")
            require(not journal.take(9, 54.0), "it began too soon")
            require(list(journal.take(9, 55.0)) == [first], "it did not begin in time")
            require(await begin(third, 3, 60.0) == third, "one that has begun got another input")
            place = {"queue": name, "once": "save", "debounce_seconds": 5.0, "longest_seconds": 1.0}
            header = {"graph": "g", "digest": "", "place": {**place, "start_at": 1e12}}
            try:
                await self.append(journal, last, Entry("run", data=header))
            except RunExists as error:
                require(error.run_id == third, f"it is {error.run_id}")
            (info,) = journal.infos([third])
            require(info.due < 1e11, "it waits for longer than it may")
            await self._forgotten(journal, [first, third])

        self.wait(law())

    @claimed("shared")
    def test_a_queue_of_a_higher_priority_comes_first(self: Any) -> None:
        """Before the runs of no queue, which come before those of a lower one."""

        async def law() -> None:
            journal = await self.opened()
            high, low = self.own("high", "low")
            rules = [Queue(name=high, priority=1), Queue(name=low, priority=-1)]
            journal.set_queues(rules)
            own = dict[str, str]()
            for queue, names in ((low, ("l1",)), ("", ("n1",)), (high, ("h1", "h2"))):
                own |= await self.queued(journal, queue, *names)
                for run_id in own.values():
                    journal.release(run_id)
            found = [*journal.take(3, 1.0), *journal.take(3, 1.0)]
            order = [key for run_id in found for key in own if own[key] == run_id]
            require(order[2:] == ["n1", "l1"], f"they were taken as {order}")
            await self._forgotten(journal, own.values())

        self.wait(law())

    @claimed("shared")
    def test_a_run_is_not_due_before_the_time_at_which_it_may_begin(self: Any) -> None:
        async def law() -> None:
            journal = await self.opened()
            journal.take(10_000, 1.0)
            (late,) = self.own("late")
            header = {"graph": "g", "digest": "", "place": {"start_at": 50.0}}
            await self.append(journal, late, Entry("run", data=header))
            require(not journal.take(9, 49.0), "it was taken too soon")
            require(journal.next_due(49.0) == 50.0, "it is not known when it is due")
            require(list(journal.take(9, 50.0)) == [late], "it is due, and was not taken")
            await self._forgotten(journal, [late])

        self.wait(law())

    @claimed("shared")
    def test_the_runs_that_have_not_ended_are_counted_by_state(self: Any) -> None:
        async def law() -> None:
            journal = await self.opened()
            (name,) = self.own("counted")
            own = await self.queued(journal, name, "due1", "due2", "held", "asks", "later", "over")
            for key, data in (
                ("asks", {"status": "paused"}),
                ("later", {"status": "paused", "questions": [{"id": "t", "due": 1e12}]}),
                ("over", {"status": "done"}),
                ("due2", {"status": "parked"}),
            ):
                await self.append(journal, own[key], Entry("ended", data=data))
            holder = journal.open(own["held"])
            holder.append(Entry("resumed"))
            if (waiting := holder.kept()) is not None:
                await waiting
            found = {
                each.state: (each.graph, each.runs)
                for each in journal.counts(1e11)
                if each.queue == name
            }
            wanted = {"due": 1, "held": 1, "waiting": 2, "parked": 1}
            require(found == {state: ("g", runs) for state, runs in wanted.items()}, f"{found}")
            holder.close()
            await self._forgotten(journal, own.values())

        self.wait(law())
