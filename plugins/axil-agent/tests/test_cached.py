"""The model ``cache``: equal requests of branches make one call."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent, Cached
from axil_models import Emit, ModelError, Reply, Request, Usage

HELLO = Request(messages=[{"role": "user", "content": "hello"}])


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No reply is known from other tests."""
    Cached.memory.clear()
    yield
    Cached.memory.clear()


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test on an event loop, for half a minute at most."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        async def go() -> None:
            async with asyncio.timeout(30):
                await test(*args, **named)

        asyncio.run(go())

    return run


class Slow:
    """A model that replies when it is let."""

    name = "slow"

    def __init__(self, *errors: Exception) -> None:
        self.calls = self.ended = 0
        self.errors = list(errors)
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        self.calls += 1
        emit({"kind": "text", "text": "Hel"})
        self.asked.set()
        try:
            await self.may.wait()
        finally:
            self.ended += 1
        if self.errors:
            raise self.errors.pop(0)
        emit({"kind": "text", "text": "lo."})
        return Reply(text="Hello.", usage=Usage(input_tokens=5, output_tokens=2))


async def waiting(model: Cached, count: int = 2) -> tuple[list[asyncio.Task[Reply]], list[Any]]:
    """Return requests that wait for one call, and what each of them is shown."""
    shown: list[list[Any]] = [[] for _ in range(count)]
    tasks = [asyncio.create_task(model.reply(HELLO, each.append)) for each in shown]
    await model.model.asked.wait()  # type: ignore[attr-defined]  # a Slow
    await asyncio.sleep(0)  # the others are asked in the same turn
    return tasks, shown


def texts(shown: list[Any]) -> list[str]:
    return [chunk["text"] for chunk in shown if chunk["kind"] == "text"]


@on_a_loop
async def test_requests_at_the_same_time_make_one_call_that_is_paid_once():
    model = Cached(slow := Slow(), keep=False)
    tasks, shown = await waiting(model, 3)
    slow.may.set()
    replies = await asyncio.gather(*tasks)
    assert slow.calls == 1
    assert {reply.text for reply in replies} == {"Hello."}
    assert sum(reply.usage.input_tokens for reply in replies) == 5
    assert [texts(each) for each in shown] == [["Hel", "lo."]] * 3
    assert [each[0] for each in shown[1:]] == [{"kind": "cache", "hit": True, "shared": True}] * 2
    await model.reply(HELLO, lambda chunk: None)
    assert slow.calls == 2  # nothing was kept


@pytest.mark.parametrize("gone", [0, 1])
@on_a_loop
async def test_a_branch_that_is_cancelled_takes_nothing_from_another(gone: int):
    model = Cached(slow := Slow())
    tasks, _ = await waiting(model)
    tasks[gone].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[gone]
    assert slow.ended == 0
    slow.may.set()
    assert (await tasks[1 - gone]).text == "Hello."
    assert slow.calls == 1


@on_a_loop
async def test_a_call_that_is_waited_for_no_more_is_given_up():
    model = Cached(slow := Slow())
    tasks, _ = await waiting(model)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert slow.ended == 1
    slow.may.set()
    assert (await model.reply(HELLO, lambda chunk: None)).text == "Hello."
    assert slow.calls == 2


@on_a_loop
async def test_an_error_is_shared_and_not_kept():
    model = Cached(slow := Slow(ModelError("busy", transient=True)))
    tasks, _ = await waiting(model)
    slow.may.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, ModelError) for each in outcomes)
    assert slow.calls == 1
    assert (await model.reply(HELLO, lambda chunk: None)).text == "Hello."
    assert slow.calls == 2


@on_a_loop
async def test_what_is_kept_answers_later_requests_to_the_same_model_alone():
    model, other = Cached(slow := Slow(), ttl_seconds=3600), Cached(second := Slow())
    slow.may.set()
    second.may.set()
    shown: list[Any] = []
    await model.reply(HELLO, shown.append)
    again = await model.reply(HELLO, shown.append)
    assert (again.text, again.usage, shown[-1]) == (
        "Hello.",
        Usage(),
        {"kind": "cache", "hit": True},
    )
    assert model.names == ("slow",)
    await other.reply(HELLO, shown.append)
    await model.reply(Request(messages=HELLO.messages, settings={"temperature": 1}), shown.append)
    assert (slow.calls, second.calls) == (2, 1)


class Started:
    """An observer that lets a model reply when so many calls of models have begun."""

    def __init__(self, model: Slow, count: int) -> None:
        self.model, self.left = model, count

    def step_started(self, activation: Any, step: str, request: Any, kind: str) -> None:
        self.left -= kind == "model"
        if not self.left:
            self.model.may.set()


@on_a_loop
async def test_branches_of_a_run_share_a_call_and_the_run_pays_once():
    slow = Slow()
    graph = RootGraph("fan")
    for name in ("a", "b", "c"):
        model = Cached(slow, keep=False)
        agent = Agent(model, "Be brief.", "Greet {who}.", formatters="twins", role_name="r")
        graph.create_node(agent, name=name)
        graph.edge_from_entry(name, ["who"])
        graph.edge_to_exit(name, ["greeting"])
    result = await graph.build().run({"who": "axil"}, observers=[Started(slow, 3)])
    assert slow.calls == 1
    assert result.usage.tokens == {"input_tokens": 5, "output_tokens": 2}
