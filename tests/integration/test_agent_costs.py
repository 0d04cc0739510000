"""The costs of agents, in counts: tokens that a provider's cache knows, by a service that reports
what a request shares with earlier ones; what goes on at the same time; commits of a journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph
from axil_agent import Agent, HistoryMemory, Scripted, SingleAgent
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_models import ContextBlock
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_sqlite import SqliteJournal
from axil_testing.stub import Act, Call, PromptCache, Stub, front

ADAPTERS = {
    "chat": OpenAIModel,
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
}
CALLS = 6


def known(counted: Sequence[tuple[int, int]]) -> float:
    """Return how much of what a loop had sent was at the front of its next request, and cached."""
    return sum(cached for _, cached in counted[1:]) / sum(tokens for tokens, _ in counted[:-1])


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word}: the angle between a leaf and a stem"


@pytest.mark.parametrize("dialect", ADAPTERS)
def test_a_loop_of_tool_calls_sends_what_it_sent_before_at_the_front(dialect: str):
    with Stub(dialect, caches=True) as server:
        for number in range(CALLS):
            call = Call(name="look_up", arguments={"word": f"w{number}"})
            server.say(Act(calls=(call,)))
        server.say('{"answer": "an angle"}')
        model = ADAPTERS[dialect]("m", api_key=server.key, base_url=server.url)
        agent = SingleAgent(
            model,
            instructions="You look every word up, and answer in one sentence. " * 4,
            tools=[look_up],
            output_keys=["answer"],
        )
        assert agent.invoke({"question": "What is an axil?"}) == {"answer": "an angle"}
        assert len(server.counted) == CALLS + 1
        assert known(server.counted) >= 0.9


# ------------------------------------------------------------------------------------- in a process


def counted(script: Scripted, start: str = "") -> list[tuple[int, int]]:
    """Return the tokens and cached tokens of the requests whose system's text begins so."""
    cache = PromptCache()
    requests = [r for r in script.requests if r.messages[0]["content"].startswith(start)]
    return [cache.asked(front(request.plain())) for request in requests]


class Notes:
    """A retriever that finds something else each time."""

    context_label = "NOTES"

    def __init__(self) -> None:
        self.asked = 0

    def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        self.asked += 1
        return [ContextBlock(f"note {self.asked} about {query.query_text[:20]}")]


def test_turns_with_history_and_a_retriever_go_on_from_the_last_one():
    """Blocks found for a turn stand behind what is said, so the next turn begins the same."""
    script = Scripted([f"Reply {i}, which is about as long as a reply is." for i in range(8)])
    agent = SingleAgent(
        script,
        instructions="You answer from the notes. " * 8,
        memories=[HistoryMemory(top_k=0)],
        retrievers=[Notes()],
        formatters="twins",
        output_keys=["answer"],
    )
    for i in range(8):
        agent.invoke({"question": f"Question {i}, which is about as long as one is?"}, thread="t")
    assert known(counted(script)) == 1


def talk(**history: Any) -> Scripted:
    """Return what a model of a conversation in messages was asked in twelve turns."""
    script = Scripted([f"Reply {i}, which is about as long as a reply is." for i in range(12)])
    graph = RootGraph("talk", state="messages")
    agent = Agent(
        script,
        "You answer from the notes. " * 8,
        retrievers=[Notes()],
        memories=[HistoryMemory(**history)] if history else [],
    )
    graph.create_node(agent, name="ann")
    graph.edge_from_entry("ann")
    graph.edge_to_exit("ann")
    graph.build()
    said: list[Any] = []
    for i in range(12):
        question = {"role": "user", "content": f"Question {i}, which is about as long as one is?"}
        said = graph.invoke({"messages": [*said, question]}).state["messages"]
    return script


def test_in_a_conversation_only_what_was_found_last_is_sent_anew():
    script = talk()
    found = len('{"role": "user"}\n"[Context]\\n(NOTES) note 1 about Question 1, which is"\n') // 4
    for (tokens, _), (_, cached) in zip(counted(script), counted(script)[1:], strict=False):
        assert tokens - cached <= found + 2
    assert [m["content"].startswith("[Context]") for m in script.requests[-1].messages[-2:]] == [
        False,
        True,
    ]


def test_a_history_that_drops_several_at_once_keeps_the_front_of_the_prompt():
    def shares(**settings: Any) -> tuple[float, int]:
        script = Scripted([f"Reply {i}, which is about as long as a reply is." for i in range(40)])
        agent = SingleAgent(
            script,
            instructions="You are brief.",
            memories=[HistoryMemory(top_k=20, **settings)],
            formatters="twins",
            output_keys=["answer"],
        )
        for i in range(40):
            agent.invoke({"question": f"Question {i}, which is as long as one is?"}, thread="t")
        most = max(len(request.messages) for request in script.requests)
        return known(counted(script)), most

    each, several = shares(), shares(drop=10)
    assert each[0] < 0.35
    assert several[0] > 0.75
    assert each[1] == several[1] == 22  # the system's, twenty, and the new one


def test_members_of_a_debate_hear_what_they_heard_at_the_front():
    from axil_teams import Debate

    script = Scripted([f"Argument {i}, which is about as long as one is." for i in range(12)])
    graph = RootGraph("debate")
    members = {name: Agent(script, f"You are {name}. " * 6) for name in ("pro", "con")}
    graph.create_node(Debate, name="team", members=members, judge=Agent(script), rounds=5)
    graph.edge_from_entry("team")
    graph.edge_to_exit("team")
    graph.build().invoke({"message": "Buy a car?"})
    assert known(counted(script, "You are pro")) == 1
    assert known(counted(script, "You are con")) == 1


# --------------------------------------------------------------------------------- at the same time


class Meeting:
    """Lets those who come go on when all are there."""

    def __init__(self, count: int) -> None:
        self.barrier = asyncio.Barrier(count)

    async def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
        return [ContextBlock(f"note {await self.come()}")]

    async def come(self) -> int:
        """Return the place in which this one came; never, unless all come."""
        async with asyncio.timeout(30):
            return await self.barrier.wait()


def test_retrievals_and_calls_of_tools_of_one_reply_go_on_at_the_same_time():
    """Each of them waits for the others, so one after another they would never end."""

    async def run() -> tuple[Scripted, dict[str, Any]]:
        notes, calls = Meeting(3), Meeting(4)

        async def look(word: str) -> str:
            """Look up a word."""
            await calls.come()
            return word

        words = [{"name": "look", "arguments": {"word": word}} for word in "abcd"]
        script = Scripted([{"tool_calls": words}, "Done."])
        agent = SingleAgent(
            script,
            retrievers=[notes, notes, notes],
            tools=[look],
            formatters="twins",
            output_keys=["answer"],
        )
        return script, await agent.run({"question": "Why?"})

    script, fields = asyncio.run(run())
    assert fields == {"answer": "Done."}
    assert script.requests[0].messages[-1]["content"].count("(Meeting) note") == 3
    results = [m["content"] for m in script.requests[1].messages if m["role"] == "tool"]
    assert results == ["a", "b", "c", "d"]


def test_providers_that_take_the_context_are_asked_one_after_another_behind_the_others():
    order: list[str] = []

    class Given(Notes):
        async def get_blocks(  # type: ignore[override]  # it takes more
            self, query: Any, top_k: int = 8, ctx: Any = None
        ) -> list[ContextBlock]:
            order.append("begin")
            await asyncio.sleep(0)
            order.append("end")
            return [ContextBlock(f"note {len(order)}")]

    class Free(Notes):
        async def get_blocks(  # type: ignore[override]  # it is awaited
            self, query: Any, top_k: int = 8
        ) -> list[ContextBlock]:
            order.append("free")
            return [ContextBlock("free")]

    script = Scripted(["Done."])
    retrievers = [Given(), Free(), Given()]
    agent = SingleAgent(script, retrievers=retrievers, formatters="twins", output_keys=["a"])
    agent.invoke({"question": "Why?"})
    assert order == ["free", "begin", "end", "begin", "end"]
    blocks = script.requests[0].messages[-1]["content"].split("[Context]")[1]
    assert [line.split(") ")[1] for line in blocks.strip().splitlines()] == [
        "note 3",
        "free",
        "note 5",
    ]


# ---------------------------------------------------------------------------------------- a journal


@pytest.mark.parametrize(("effects", "commits"), [("idempotent", 13), ("external", 18)])
def test_a_call_of_a_tool_takes_one_commit_and_with_effects_outside_two(
    tmp_path: Path, effects: str, commits: int, monkeypatch: pytest.MonkeyPatch
):
    """Besides: a commit for the beginning, for six replies of the model, and for the end, which
    also releases the run; none because time has passed, as on a busy machine.
    """

    def count(n: int) -> int:
        """Count."""
        return n + 1

    count.effects = effects  # type: ignore[attr-defined]  # as tools say it
    call = [{"tool_calls": [{"name": "count", "arguments": {"n": n}}]} for n in range(5)]
    graph = RootGraph("count")
    agent = Agent(Scripted([*call, "Five."]), "", "Count.", tools=[count], formatters="twins")
    graph.create_node(agent, name="ann")
    graph.edge_from_entry("ann", {})
    graph.edge_to_exit("ann", ["said"])
    journal = SqliteJournal(tmp_path, sync="normal")
    monkeypatch.setattr(journal.writer, "keep_later", lambda *_: None)
    before = journal.writer.commits
    assert graph.build().invoke({}, journal=journal, run_id="r").output == {"said": "Five."}
    assert journal.writer.commits - before == commits
    journal.close()
