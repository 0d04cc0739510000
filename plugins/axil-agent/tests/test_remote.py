"""Laws of what adapters share: asking again, and clients of event loops."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given, strategies as st

from axil import RootGraph
from axil_agent import Agent, SingleAgent
from axil_agent.errors import ReplyError
from axil_models import (
    Clients,
    ModelError,
    Reply,
    Request,
    Retry,
    on_clock,
    persevere,
    retry_after_seconds,
)
from axil_testing import JumpingClock


class Broken(Exception):
    pass


def reported(error: Exception) -> ModelError | None:
    if isinstance(error, ModelError):
        return error
    return ModelError("broken", transient=True) if isinstance(error, Broken) else None


def tried(
    *outcomes: Any, retry: Retry | None = None, shows: int = 0
) -> tuple[Any, JumpingClock, list[Any]]:
    """Return what comes of tries that end in ``outcomes``, after showing ``shows`` chunks each."""
    clock, chunks, left = JumpingClock(), list[Any](), list(outcomes)

    async def attempt(show: Any) -> Any:
        for number in range(shows):
            show(number)
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def run() -> Any:
        with on_clock(clock):
            return await persevere(attempt, retry or Retry(), chunks.append, reported)

    try:
        result: Any = asyncio.run(run())
    except Exception as error:  # noqa: BLE001  # whatever it is, the test looks at it
        result = error
    return result, clock, chunks


def busy(status: int = 429, after: float | None = None) -> ModelError:
    return ModelError(f"status {status}", status=status, retry_after_seconds=after)


# -- asking again


def test_what_may_pass_is_tried_again_until_it_succeeds():
    result, clock, chunks = tried(busy(), busy(500), Broken(), "done")
    assert result == "done"
    assert len(clock.waits) == 3
    assert [(c["kind"], c["try"], c["of"], c["status"]) for c in chunks] == [
        ("retry", 2, 5, 429),
        ("retry", 3, 5, 500),
        ("retry", 4, 5, None),
    ]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_mistake_is_never_tried_again(status):
    result, clock, chunks = tried(busy(status), "done")
    assert isinstance(result, ModelError)
    assert result.status == status
    assert (clock.waits, chunks) == ([], [])


def test_the_number_of_tries_is_bounded_and_reported():
    result, clock, _ = tried(*[busy(503)] * 9, retry=Retry(max_tries=3))
    assert "after 3 tries" in str(result)
    assert (result.status, result.transient, len(clock.waits)) == (503, True, 2)


def test_the_total_time_is_bounded():
    result, clock, _ = tried(*[busy(503)] * 99, retry=Retry(max_tries=99, total_seconds=10))
    assert isinstance(result, ModelError)
    assert sum(clock.waits) < 10


def test_a_server_that_asks_for_longer_than_there_is_gets_no_wait():
    result, clock, _ = tried(busy(429, after=3600), "done", retry=Retry(total_seconds=60))
    assert (result.status, result.retry_after_seconds, clock.waits) == (429, 3600, [])


@given(st.integers(1, 80), st.floats(0, 1), st.none() | st.floats(0, 100))
def test_a_wait_is_never_shorter_than_asked_for_and_bounded_otherwise(tries, chance, after):
    wait = Retry().wait_seconds(tries, busy(429, after=after), lambda: chance)
    most = min(30, 0.5 * 2 ** (tries - 1))
    assert wait >= max(after or 0, most / 2)
    assert wait <= max((after or 0) * 1.05, most)


def test_what_was_shown_of_a_broken_reply_is_taken_back():
    _, _, chunks = tried(Broken(), "done", shows=2)
    assert [c if isinstance(c, int) else c["kind"] for c in chunks] == [
        0,
        1,
        "reset",
        "retry",
        0,
        1,
    ]
    assert chunks[2] == {"kind": "reset", "chunks": 2}


def test_what_is_no_failure_of_the_model_is_raised_as_it_is():
    result, _, _ = tried(KeyError("mine"), "done")
    assert isinstance(result, KeyError)


def test_a_try_that_takes_longer_than_all_may_take_is_ended():
    async def attempt(show: Any) -> None:
        await asyncio.sleep(3600)

    with pytest.raises(ModelError, match="total_seconds"):
        asyncio.run(
            asyncio.wait_for(
                persevere(attempt, Retry(total_seconds=0.05), lambda chunk: None, reported), 60
            )
        )


def test_a_server_says_how_long_to_wait_in_several_ways():
    assert retry_after_seconds({"retry-after": "7"}) == 7
    assert retry_after_seconds({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    date = retry_after_seconds({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert date is not None
    assert 50 < date <= 101
    assert [retry_after_seconds({"retry-after": odd}) for odd in ("soon", "-3", "inf", "nan")] == [
        None
    ] * 4


def test_a_model_waits_on_the_runs_clock():
    waited: list[Any] = []

    class Slow:
        async def reply(self, request: Request, emit: Any, /) -> Reply:
            tries = iter([busy(), busy(), Reply(text="done")])

            async def attempt(show: Any) -> Reply:
                outcome = next(tries)
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome

            return await persevere(
                attempt,
                Retry(first_wait_seconds=3600, longest_wait_seconds=3600, total_seconds=9e9),
                emit,
                reported,
            )

    class Far(JumpingClock):
        async def sleep(self, seconds: float) -> None:
            waited.append(seconds)
            await super().sleep(seconds)

    g = RootGraph("slow")
    node = g.create_node(Agent, name="slow", model=Slow(), formatters="twins")
    g.edge_from_entry(node, ["message"])
    g.edge_to_exit(node, ["message"])
    assert g.build().invoke({"message": "x"}, clock=Far())[0] == {"message": "done"}
    assert len(waited) == 2


def test_a_refusal_is_not_asked_to_be_repaired():
    class Refusing:
        asked = 0

        async def reply(self, request: Request, emit: Any, /) -> Reply:
            self.asked += 1
            return Reply(text="I cannot help with that.", finish="refusal")

    model = Refusing()
    with pytest.raises(ReplyError, match=r"AX805.*I cannot help"):
        SingleAgent(model, output_keys=["answer"]).invoke({"question": "?"})
    assert model.asked == 1


# -- clients


class Line:
    """A client."""

    def __init__(self) -> None:
        self.is_open = True


class Office:
    """A component with clients; it counts them."""

    def __init__(self) -> None:
        self.made: list[Line] = []
        self.clients = Clients(self._make, self._close)

    def _make(self) -> Line:
        self.made.append(Line())
        return self.made[-1]

    async def _close(self, line: Line) -> None:
        line.is_open = False

    async def reply(self, request: Request, emit: Any, /) -> Reply:
        async with self.clients.lease() as line:
            await asyncio.sleep(0.001)
            assert line.is_open
        return Reply(text="ok")

    async def __aenter__(self) -> Office:
        self.clients.hold()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.clients.let_go()

    @property
    def open(self) -> int:
        return sum(line.is_open for line in self.made)


async def call(office: Office) -> None:
    await office.reply(Request(messages=[]), lambda chunk: None)


def test_calls_side_by_side_share_a_client_and_leave_none():
    office = Office()

    async def many() -> None:
        await asyncio.gather(*(call(office) for _ in range(20)))

    asyncio.run(many())
    assert (len(office.made), office.open) == (1, 0)


def test_who_holds_a_model_keeps_its_client():
    office = Office()

    async def twice() -> None:
        async with office, office:
            await call(office)
            await call(office)
        assert office.open == 0

    asyncio.run(twice())
    assert len(office.made) == 1


def test_close_waits_for_calls_under_way_and_the_next_call_opens_another():
    office = Office()

    async def run() -> None:
        async with office:
            await call(office)
            under_way = asyncio.ensure_future(call(office))
            await asyncio.sleep(0)
            await office.clients.close()
            assert office.open == 1
            await under_way
            assert office.open == 0
            await call(office)
            assert (len(office.made), office.open) == (2, 1)
        assert office.open == 0
        await office.clients.close()

    asyncio.run(run())


def test_each_event_loop_has_a_client_of_its_own():
    office = Office()
    for _ in range(3):
        asyncio.run(call(office))
    assert (len(office.made), office.open) == (3, 0)


def test_a_call_that_is_cancelled_leaves_nothing():
    office = Office()

    async def run() -> None:
        async with office.clients.lease():
            under_way = asyncio.ensure_future(call(office))
            await asyncio.sleep(0)
            under_way.cancel()
            with pytest.raises(asyncio.CancelledError):
                await under_way
            assert office.open == 1
        assert office.open == 0

    asyncio.run(run())


def test_a_run_holds_the_model_of_its_agents_until_it_ends():
    office = Office()
    g = RootGraph("line")
    one = g.create_node(Agent, name="one", model=office, formatters="twins")
    two = g.create_node(Agent, name="two", model=office, formatters="twins")
    g.edge_from_entry(one, ["message"])
    g.create_edge(one, two, ["message"])
    g.edge_to_exit(two, ["message"])
    flow = g.build()
    flow.invoke({"message": "x"})
    assert (len(office.made), office.open) == (1, 0)

    async def side_by_side() -> None:
        await asyncio.gather(*(flow.run({"message": "x"}) for _ in range(5)))

    asyncio.run(side_by_side())
    assert (len(office.made), office.open) == (2, 0)


def test_an_agent_alone_lets_go_when_it_was_invoked():
    office = Office()
    one = SingleAgent(office, formatters="twins", output_keys=["answer"])
    one.invoke({"q": "x"})
    one.invoke({"q": "y"})
    assert (len(office.made), office.open) == (2, 0)
