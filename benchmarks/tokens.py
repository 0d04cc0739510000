"""Tokens of the demo and of the example teams, and how many of them a provider's prompt cache
knows: no key and no network, the models follow their scripts.

python benchmarks/tokens.py [--write]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import axil
import axil_control
import axil_files
from axil_agent import Agent, HistoryMemory, Scripted
from axil_testing.stub import PromptCache, front, shared_front

if __name__ == "__main__":
    from bench.page import put
else:
    from .bench.page import put

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs/explanation/performance/tokens.md"
BEFORE = PAGE.with_suffix(".json")
"""The counts before prompts were laid out for caches: written once, and kept."""


@dataclass(kw_only=True)
class Tally:
    """The counts of one application."""

    calls: int = 0
    tokens: int = 0
    """Sent to models."""
    cached: int = 0
    """Of them those that were at the front of an earlier request of any agent."""
    again: int = 0
    """The part that an agent which is asked again had sent the time before."""
    kept: int = 0
    """Of that, what is at the front of its next request."""

    @property
    def share(self) -> float | None:
        """The share of a request that is at the front of the agent's next one."""
        return self.kept / self.again if self.again else None

    @property
    def cells(self) -> list[str]:
        share = "–" if self.share is None else f"{self.share:.0%}"
        return [f"{self.calls}", f"{self.tokens:,}", f"{self.cached:,}", share]


class Counted:
    """An observer of what models are asked: a provider's cache, and each agent's last request."""

    def __init__(self) -> None:
        self.cache, self.tally = PromptCache(), Tally()
        self._last: dict[str, str] = {}

    def step_started(self, activation: Any, step: str, request: Any, kind: str) -> None:
        """Count a call of a model."""
        if kind == "model":
            self.count(activation.path, request)

    def count(self, path: str, request: Any) -> None:
        """Count a request of the agent at ``path``."""
        found = front(request)
        text, (tokens, cached) = found.text, self.cache.asked(found)
        tally = self.tally
        tally.calls += 1
        tally.tokens += tokens
        tally.cached += cached
        before = self._last.get(path, "")
        tally.again += len(before)
        tally.kept += shared_front(before, text)
        self._last[path] = text


def scripted(name: str) -> Scripted:
    """Return the script of an application."""
    return Scripted.from_file(EXAMPLES / name)


async def newsroom(seen: Counted, folder: Path, is_before: bool) -> None:
    """Run the demo: two researchers, a writer and a critic in rounds, an editor."""
    with scripted("replies/newsroom.yaml").everywhere():
        workflow = axil_files.load(EXAMPLES / "newsroom.yaml")
        await done(workflow.run("Why do plants branch where they do?", observers=[seen]))


def team(name: str, task: str) -> Application:
    """Return one of the teams in examples/teams."""

    async def run(seen: Counted, folder: Path, is_before: bool) -> None:
        allow = ["program:python3"] if name == "company" else []
        with scripted(f"teams/replies/{name}.yaml").everywhere():
            workflow = axil_files.load(EXAMPLES / f"teams/{name}.yaml", allow=allow)
            ways: dict[str, Any] = {"workspace": folder, "allow": frozenset(allow)}
            await done(workflow.run(task, observers=[seen], **ways))

    return run


TURNS = 12
REPLY = "Reply {}, which is about as long as a reply is."
QUESTION = "Question {}, which is about as long as a question is?"
INSTRUCTIONS = "You answer what you are asked in a sentence or two, from what you are shown. " * 4


class Notes:
    """A retriever that finds something else each time."""

    context_label = "NOTES"

    def __init__(self) -> None:
        self.asked = 0

    def get_blocks(self, query: Any, top_k: int = 8) -> list[str]:
        """Return two notes."""
        self.asked += 1
        return [f"note {self.asked}.{i} about {query.query_text[:40]}" for i in range(2)]


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word}: the angle between a leaf and a stem"


def single(agent: Agent) -> axil.Workflow:
    """Return a graph of one agent, asked a question."""
    graph = axil.RootGraph("single")
    graph.create_node(agent, name="agent")
    graph.edge_from_entry("agent", ["question"])
    graph.edge_to_exit("agent", ["answer"])
    return graph.build()


async def loop(seen: Counted, folder: Path, is_before: bool) -> None:
    """Run an agent that calls its tool ten times."""
    calls = [
        {"tool_calls": [{"name": "look_up", "arguments": {"word": f"w{i}"}}]} for i in range(10)
    ]
    script = Scripted([*calls, {"json": {"answer": "An angle."}}])
    agent = Agent(script, INSTRUCTIONS, tools=[look_up])
    await done(single(agent).run({"question": "What is an axil?"}, observers=[seen]))


async def conversation(seen: Counted, folder: Path, is_before: bool) -> None:
    """Run a conversation of twelve turns, each with what a retriever finds."""
    script = Scripted([REPLY.format(i) for i in range(TURNS)])
    graph = axil.RootGraph("conversation", state="messages")
    graph.create_node(Agent(script, INSTRUCTIONS, retrievers=[Notes()]), name="agent")
    graph.edge_from_entry("agent")
    graph.edge_to_exit("agent")
    workflow, said = graph.build(), list[Any]()
    for i in range(TURNS):
        question = {"role": "user", "content": QUESTION.format(i)}
        result = await done(workflow.run({"messages": [*said, question]}, observers=[seen]))
        said = result.state["messages"]


async def history(seen: Counted, folder: Path, is_before: bool) -> None:
    """Run thirty rounds of an agent that is sent its last twenty messages."""
    rounds, drop = 30, {} if is_before else {"drop": 10}
    script = Scripted([{"json": {"answer": REPLY.format(i)}} for i in range(rounds)])
    graph = axil.RootGraph("rounds")
    again = graph.create_node(axil_control.Loop, name="again", max_iterations=rounds)
    memories = [HistoryMemory(top_k=20, **drop)]
    again.create_node(Agent, script, INSTRUCTIONS, name="agent", memories=memories)
    again.edge_from_controller("agent", ["answer"])
    again.edge_to_controller("agent", ["answer"])
    graph.edge_from_entry(again, ["answer"])
    graph.edge_to_exit(again, ["answer"])
    await done(graph.build().run({"answer": QUESTION.format(0)}, observers=[seen]))


async def branches(seen: Counted, folder: Path, is_before: bool) -> None:
    """Run five branches that ask the same: with the model ``cache``, and before without."""
    script: Any = Metered(Scripted([{"json": {"answer": "An angle."}}]), seen)
    if not is_before:
        from axil_agent import Cached

        Cached.memory.clear()
        script = Cached(script)
    graph = axil.RootGraph("branches")
    for name in "abcde":
        graph.create_node(Agent(script, INSTRUCTIONS, role_name="one"), name=name)
        graph.edge_from_entry(name, ["question"])
        graph.edge_to_exit(name, ["answer"])
    await done(graph.build().run({"question": "What is an axil?"}))


class Metered:
    """A model whose calls are counted where they are made."""

    name = "metered"

    def __init__(self, model: Any, seen: Counted) -> None:
        self.model, self.seen = model, seen

    async def reply(self, request: Any, emit: Any, /) -> Any:
        """Return the reply of the model."""
        self.seen.count("", request.plain())
        return await self.model.reply(request, emit)


async def done(run: Any) -> Any:
    """Return the result of a run that ended well."""
    result = await run
    assert result.status == "done", result
    return result


Application = Callable[["Counted", Path, bool], Awaitable[None]]

APPLICATIONS: dict[str, Application] = {
    "`make demo`: the newsroom": newsroom,
    "team: company": team("company", "Print the primes below 30."),
    "team: debate": team("debate", "Should the office move to the country?"),
    "team: plan": team("plan", "How many trees would shade our yard?"),
    "team: research": team("research", "Why do plants branch where they do?"),
    "an agent, ten calls of a tool": loop,
    "a conversation of twelve turns, with a retriever": conversation,
    "thirty rounds, the last twenty messages sent; `drop: 10`": history,
    "five branches that ask the same; model `cache`": branches,
}


async def counted(name: str, *, is_before: bool = False) -> Tally:
    """Return the counts of an application."""
    seen = Counted()
    with tempfile.TemporaryDirectory() as folder:
        await APPLICATIONS[name](seen, Path(folder), is_before)
    return seen.tally


def measured(*, is_before: bool = False) -> dict[str, Tally]:
    """Return the counts of all applications."""
    key = os.environ.pop("OPENAI_API_KEY", None)  # with one, a model would answer
    try:
        return {name: asyncio.run(counted(name, is_before=is_before)) for name in APPLICATIONS}
    finally:
        if key is not None:
            os.environ["OPENAI_API_KEY"] = key


def table(before: Mapping[str, Tally], now: Mapping[str, Tally]) -> str:
    """Return the counts of both as one table."""
    lines = [
        "| application | calls | tokens sent | of them cached | the same front |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, tally in now.items():
        pairs = zip(before[name].cells, tally.cells, strict=True)
        cells = (one if one == other else f"{one} → {other}" for one, other in pairs)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kept() -> dict[str, Tally]:
    """Return the counts from before, as they were kept."""
    data = json.loads(BEFORE.read_text("utf-8"))
    return {name: Tally(**counts) for name, counts in data.items()}


def main() -> None:
    """Print the table, or put it on the page."""
    parser = argparse.ArgumentParser(prog="tokens", description="Tokens of the demo and the teams.")
    parser.add_argument("--write", action="store_true", help="put the table on the page")
    parser.add_argument(
        "--keep", action="store_true", help="keep the counts as those from before a change"
    )
    said = parser.parse_args()
    if said.keep:
        data = {name: asdict(tally) for name, tally in measured(is_before=True).items()}
        BEFORE.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        return
    text = table(kept(), measured())
    if said.write:
        PAGE.write_text(put(PAGE.read_text("utf-8"), "tokens", text), "utf-8")
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
