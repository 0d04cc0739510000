"""Values that exist once for each event loop."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from axil.plugin import LoopLocal


class Thing:
    """A value that knows its event loop, as locks and clients do."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()


async def got(local: LoopLocal[Thing]) -> Thing:
    return local.get()


def test_one_event_loop_has_one_value():
    local = LoopLocal(Thing)

    async def twice() -> bool:
        first = local.get()
        await asyncio.sleep(0)
        return local.get() is first and local.peek() is first

    assert asyncio.run(twice())


def test_another_event_loop_has_another_value():
    local = LoopLocal(Thing)
    assert asyncio.run(got(local)) is not asyncio.run(got(local))


def test_the_value_of_a_closed_event_loop_is_forgotten_though_it_knows_its_loop():
    local = LoopLocal(Thing)
    for _ in range(3):
        asyncio.run(got(local))
        gc.collect()
    assert len(local) == 1


def test_event_loops_side_by_side_keep_their_values():
    local = LoopLocal(Thing)
    met = threading.Barrier(2, timeout=60)
    kept: list[bool] = []

    async def hold() -> None:
        first = local.get()
        met.wait()  # the other loop has a value, too
        kept.append(local.get() is first)
        met.wait()

    threads = [threading.Thread(target=lambda: asyncio.run(hold())) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert kept == [True, True]


def test_event_loops_of_other_threads_come_and_go_while_values_are_looked_up():
    local = LoopLocal(Thing)
    own: list[bool] = []

    async def look() -> bool:
        return local.get().loop is asyncio.get_running_loop()

    def come_and_go() -> None:
        own.extend(asyncio.run(look()) for _ in range(20))

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert own == [True] * 80


def test_a_value_that_was_popped_is_made_anew():
    local = LoopLocal(Thing)

    async def go() -> None:
        first = local.get()
        assert local.pop() is first
        assert (local.pop(), local.peek(), len(local)) == (None, None, 0)
        assert local.get() is not first

    asyncio.run(go())


def test_peeking_makes_nothing():
    made: list[int] = []
    local = LoopLocal(lambda: made.append(1))

    async def peek() -> object:
        return local.peek()

    assert asyncio.run(peek()) is None
    assert made == []


def test_without_a_running_event_loop_there_is_no_value():
    with pytest.raises(RuntimeError, match="no running event loop"):
        LoopLocal(Thing).get()


def test_what_making_raises_is_raised_and_asked_again_the_next_time():
    answers = iter([ValueError("not yet"), None])

    def make() -> int:
        error = next(answers)
        if error is not None:
            raise error
        return 7

    async def go() -> int:
        with pytest.raises(ValueError, match="not yet"):
            local.get()
        return local.get()

    local = LoopLocal(make)
    assert asyncio.run(go()) == 7
