"""The laws of queues, which every shared journal keeps."""

from __future__ import annotations

from typing import Any

from axil_journals import Entry, Queue
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
