"""Laws of unlucky moments: several at once with one component, and what fails, ends or is cancelled
in between.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest

from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_agent.models import Chosen, models_through
from axil_models import Clients, Reply, Request


class Gated:
    """A model that answers when it is let."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.asked, self.let = threading.Event(), threading.Event()

    async def reply(self, request: Request, emit: Any, /) -> Reply:
        self.requests.append(request)
        self.asked.set()
        while not self.let.is_set():  # noqa: ASYNC110  # it is let from any thread
            await asyncio.sleep(0)
        return Reply(text='{"o": 1}')


def reported(request: Request) -> str:
    return str([message["content"] for message in request.messages])


# --------------------------------------------------------------------------------------------------


def test_turns_of_one_conversation_wait_for_one_another_and_none_is_lost():
    async def main() -> None:
        model = Gated()
        agent = SingleAgent(model, output_keys=["o"], memories=[HistoryMemory()])
        turns = [
            asyncio.ensure_future(agent.run({"message": text}, thread="t"))
            for text in ("one", "two", "three")
        ]
        other = asyncio.ensure_future(agent.run({"message": "elsewhere"}, thread="u"))
        while len(model.requests) < 2:  # noqa: ASYNC110  # both, and no third
            await asyncio.sleep(0)
        assert [("one" in reported(r), "elsewhere" in reported(r)) for r in model.requests] == [
            (True, False),
            (False, True),
        ]
        model.let.set()
        await asyncio.gather(*turns, other)
        assert [word in reported(model.requests[-1]) for word in ("one", "two", "three")] == [
            True
        ] * 3

    asyncio.run(main())


def test_turns_of_one_conversation_in_several_threads_wait_for_one_another():
    model = Gated()
    agent = SingleAgent(model, output_keys=["o"], memories=[HistoryMemory()])
    one = threading.Thread(target=lambda: agent.invoke({"message": "one"}, thread="t"))
    one.start()
    assert model.asked.wait(60)

    async def two() -> None:
        turn = asyncio.ensure_future(agent.run({"message": "two"}, thread="t"))
        await asyncio.sleep(0)
        model.let.set()
        await turn

    asyncio.run(two())
    one.join()
    assert "one" in reported(model.requests[-1])


def test_a_cancelled_waiter_keeps_the_order_of_the_others():
    async def main() -> int:
        model = Gated()
        agent = SingleAgent(model, output_keys=["o"], memories=[HistoryMemory()])
        turns = [
            asyncio.ensure_future(agent.run({"message": text}, thread="t"))
            for text in ("one", "two", "three")
        ]
        await asyncio.sleep(0)
        turns[1].cancel()
        await asyncio.wait({turns[1]})
        for _ in range(20):
            await asyncio.sleep(0)
        at_once = len(model.requests)
        model.let.set()
        await asyncio.gather(turns[0], turns[2])
        assert "one" in reported(model.requests[-1])
        assert "two" not in reported(model.requests[-1])
        return at_once

    assert asyncio.run(main()) == 1


def test_a_conversation_that_was_ended_in_the_middle_of_a_turn_does_not_come_back():
    async def main() -> None:
        model = Gated()
        agent = SingleAgent(model, output_keys=["o"], memories=[HistoryMemory()])
        turn = asyncio.ensure_future(agent.run({"message": "my secret"}, thread="t"))
        while not model.requests:  # noqa: ASYNC110  # until it is asked
            await asyncio.sleep(0)
        agent.forget("t")
        model.let.set()
        await turn
        await agent.run({"message": "again"}, thread="t")
        assert "secret" not in reported(model.requests[-1])

    asyncio.run(main())


def test_a_tool_may_continue_with_the_conversation_that_it_is_called_in():
    def aside(question: str) -> str:
        return str(agent.invoke({"message": question}, thread="t")["o"])

    calls = [{"name": "aside", "arguments": {"question": "why?"}}]
    agent = SingleAgent(
        Scripted([{"tool_calls": calls}, '{"o": 2}', '{"o": 1}']), output_keys=["o"], tools=[aside]
    )

    async def main() -> dict[str, Any]:
        return await asyncio.wait_for(agent.run({"message": "what?"}, thread="t"), 60)

    assert asyncio.run(main()) == {"o": 1}


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [1, 2])
def test_a_tool_whose_own_work_was_cancelled_has_failed_and_is_not_taken_for_silence(calls):
    async def lost(n: int) -> int:
        work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        work.cancel()
        return await work

    model = Scripted(
        [
            {"tool_calls": [{"name": "lost", "arguments": {"n": n}} for n in range(calls)]},
            '{"o": 1}',
        ]
    )
    assert SingleAgent(model, output_keys=["o"], tools=[lost]).invoke({}) == {"o": 1}
    results = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert results == ["Error: what the tool waited for was cancelled."] * calls


# --------------------------------------------------------------------------------------------------


class Line:
    """A model with a connection that takes a while, and fails ``fails`` times."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.entered, self.is_open = fails, 0, False

    async def __aenter__(self) -> Line:
        self.entered += 1
        await asyncio.sleep(0)
        if self.entered <= self.fails:
            raise ConnectionError("no line")
        self.is_open = True
        return self

    async def __aexit__(self, *error: object) -> None:
        self.entered, self.is_open = 0, False

    async def reply(self, request: Request, emit: Any, /) -> Reply:
        assert self.is_open
        return Reply(text='{"o": 1}')


def test_no_run_asks_a_model_whose_connection_another_run_is_still_opening():
    async def main() -> int:
        line = Line()
        agent = SingleAgent(line, output_keys=["o"])
        await asyncio.gather(*(agent.run({}) for _ in range(3)))
        return line.entered

    assert asyncio.run(main()) == 1


def test_a_connection_that_could_not_be_opened_is_opened_with_the_next_run():
    async def main() -> None:
        line = Line(fails=1)
        agent = SingleAgent(line, output_keys=["o"])
        with pytest.raises(ConnectionError):
            await agent.run({})
        assert await agent.run({}) == {"o": 1}
        await agent.close()
        assert not line.is_open

    asyncio.run(main())


def test_what_fails_to_close_keeps_nothing_else_open(registry):
    closed: list[str] = []

    class Second:
        async def tools(self) -> list[Any]:
            return []

        async def close(self) -> None:
            closed.append(type(self).__name__)

    class First(Second):
        async def close(self) -> None:
            raise OSError("first does not close")

    class Model(Second):
        async def reply(self, request: Request, emit: Any, /) -> Reply:
            return Reply()

    registry.register("tools", "first", First)
    registry.register("tools", "second", Second)
    registry.register("models", "model", Model)
    agent = Agent("model", tools=["first", "second"])
    agent.known_tools()
    agent._model.now()
    with pytest.raises(OSError, match="first does not close"):
        asyncio.run(agent.close())
    assert closed == ["Second", "Model"]


def test_a_model_whose_connections_fail_to_close_is_closed():
    async def main() -> list[str]:
        closed: list[str] = []

        class Broken(Line):
            async def __aexit__(self, *error: object) -> None:
                closed.append("left")
                raise OSError("broken")

            async def close(self) -> None:
                closed.append("closed")

        chosen = Chosen("by its name")
        chosen._made = Broken()
        await chosen.ready()
        with pytest.raises(OSError, match="broken"):
            await chosen.close()
        return closed

    assert asyncio.run(main()) == ["left", "closed"]


# --------------------------------------------------------------------------------------------------


def test_an_answer_is_not_lost_because_its_connection_does_not_close():
    async def broken(client: object) -> None:
        raise OSError("reset by peer")

    async def main() -> str:
        async with Clients(object, broken).lease():
            return "answer"

    assert asyncio.run(main()) == "answer"


def test_an_event_loop_whose_calls_shared_a_client_is_not_kept():
    async def close(client: object) -> None:
        pass

    clients = Clients(object, close)

    async def call() -> None:
        async with clients.lease():
            pass

    async def main() -> weakref.ref[Any]:
        await asyncio.gather(call(), call())
        return weakref.ref(asyncio.get_running_loop())

    loop, until = asyncio.run(main()), time.monotonic() + 30
    while loop() is not None and time.monotonic() < until:
        gc.collect()  # it does nothing while another thread collects
    assert loop() is None


# --------------------------------------------------------------------------------------------------


def test_threads_in_which_different_models_stand_in_ask_each_its_own():
    models = {threading.main_thread(): Scripted(["mine"]), None: Scripted(["the other's"])}

    class Watched(Chosen):
        """Another thread asks as soon as this one has noted what stands in."""

        @property
        def _changed(self) -> Any:
            return self.__dict__.get("changed")

        @_changed.setter
        def _changed(self, noted: Any) -> None:
            self.__dict__["changed"] = noted
            if noted is not None and threading.current_thread() is threading.main_thread():
                other = threading.Thread(target=asks, args=(None,))
                other.start()
                other.join()

    asked: dict[Any, Any] = {}
    chosen = Watched("by its name")

    def asks(who: Any) -> None:
        with models_through(lambda meant, written: models[who]):
            asked[who] = chosen.now()

    asks(threading.main_thread())
    assert asked == models
