"""Models that stand in for one another within a conversation, over stops, forks and processes: what
each is sent, that nothing is done or paid twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil import Limits, RootGraph
from axil_agent import Agent
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_journals import fork
from axil_models import Prices
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_sqlite import SqliteJournal
from axil_testing.stub import Act, Call, Stub
from axil_wrappers import FallbackModel

SEALED = "c2VhbGVk"
PRICES = Prices(input=1_000_000, output=0, cached=1_000_000)
"""One for each token of the input: 11 for each reply of the stub."""
RETRY = {"max_tries": 1}


def without(field: str) -> Callable[[Any], str]:
    """Return what refuses a conversation with calls whose replies lack a field, or have it empty,
    as Kimi does.
    """

    def refuses(body: Any) -> str:
        messages = [each for each in body["messages"] if each["role"] == "assistant"]
        called = any(each.get("tool_calls") for each in messages)
        lacks = called and not all(str(each.get(field) or "").strip() for each in messages)
        return f"thinking is enabled but {field} is missing" if lacks else ""

    return refuses


def unsigned(body: Any) -> str:
    """Refuse steps whose first call is not signed, as Gemini 3 does."""
    for each in body.get("messages", ()):
        calls = each.get("tool_calls") or ()
        if calls and not (calls[0].get("extra_content") or {}).get("google"):
            return "Function call is missing a thought_signature"
    for each in body.get("contents", ()):
        calls = [part for part in each["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return "Function call is missing a thought_signature"
    return ""


def stranger(body: Any) -> str:
    """Refuse the thoughts of others."""
    text = json.dumps(body)
    names = ("Hm", SEALED, "reasoning_content", "extra_content", "not kept", "skip_thought")
    found = [each for each in names if each in text]
    return f"Unrecognized request argument: {found}" if found else ""


SERVICES: dict[str, tuple[str, Any, Callable[[Any], str], dict[str, Any]]] = {
    "deepseek": ("chat", OpenAIModel, without("reasoning_content"), {"profile": "deepseek"}),
    "kimi": ("chat", OpenAIModel, without("reasoning_content"), {"profile": "kimi"}),
    "gemini": ("chat", OpenAIModel, unsigned, {"profile": "gemini"}),
    "gemini_native": ("generate", GeminiModel, unsigned, {}),
    "openai": ("chat", OpenAIModel, stranger, {}),
    "openai_responses": ("responses", OpenAIResponsesModel, stranger, {}),
    "anthropic": ("messages", AnthropicModel, stranger, {}),
}


def served(name: str) -> Stub:
    dialect, _, refuses, _ = SERVICES[name]
    server = Stub(dialect)
    server.refuses = refuses
    return server


def model_of(name: str, url: str, key: str) -> Any:
    _, kind, _, more = SERVICES[name]
    return kind("m", key, url, retry=RETRY, prices=PRICES, **more)


def graph_of(model: Any, folder: Path, limits: Limits | None = None) -> Any:
    """Return a graph of one agent with a tool, whose calls are counted in a file."""

    def add(a: int, b: int) -> int:
        """Add numbers."""
        with (folder / "calls").open("a") as file:
            file.write(f"{a}+{b}\n")
        return a + b

    graph = RootGraph("g", limits=limits or Limits(cost=1000.0))
    graph.create_node(Agent(model, tools=[add], max_turns=9), name="a")
    graph.edge_from_entry("a", ["q"])
    graph.edge_to_exit("a", ["answer"])
    return graph.build()


def called(number: int, **more: Any) -> Act:
    return Act(calls=(Call(name="add", arguments={"a": number, "b": 1}, id=f"c{number}"),), **more)


DOWN = Act(status=503)
THOUGHT = {"thought": "Hm."}


WANTING = ("deepseek", "kimi", "gemini", "gemini_native")


@pytest.mark.third
@pytest.mark.parametrize(
    ("name", "other"),
    [(name, other) for name in WANTING for other in SERVICES if name != other],
)
def test_a_model_that_wants_thoughts_takes_over_from_one_without_and_again(name, other, tmp_path):
    """It calls, is away while the other calls, and ends: over a stop and in a fork of it."""
    own = THOUGHT if name in ("deepseek", "kimi") else {"sealed": SEALED}
    own = {} if name == "gemini" else own
    with served(name) as first, served(other) as second:
        first.say(called(1, **own), DOWN, Act(text="A", stall_at=0.5), "done", "done")
        second.say(called(2, **({"thought": "Ha."} if other == "anthropic" else {})))
        if name == "gemini":
            first.refuses = None  # its own first call would have a signature
        model = FallbackModel(
            [model_of(name, first.url, first.key), model_of(other, second.url, second.key)]
        )
        built, journal = graph_of(model, tmp_path), SqliteJournal(tmp_path / "runs.db")

        async def thrice() -> list[Any]:
            task = asyncio.create_task(built.run({"q": "?"}, run_id="r", journal=journal))
            await asyncio.to_thread(until, lambda: len(first.requests) == 3)
            first.refuses = SERVICES[name][2]
            task.cancel()
            await asyncio.wait({task})
            await fork(journal, "r", "f")
            return [await built.resume(run_id, journal=journal) for run_id in ("r", "f")]

        results = asyncio.run(thrice())
        last = first.requests[-1].text
    assert [each.output for each in results] == [{"answer": "done"}] * 2
    assert (tmp_path / "calls").read_text("utf-8") == "1+1\n2+1\n"
    assert [each.usage.cost for each in results] == [pytest.approx(33)] * 2
    assert "Ha." not in last
    for value in own.values():
        assert value in last


def until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not is_so() and time.monotonic() < ends:
        time.sleep(0.01)


PROGRAM = """
import asyncio, sys
from pathlib import Path
from axil_sqlite import SqliteJournal
from axil_wrappers import FallbackModel
from tests.integration.test_joined_models import graph_of, model_of

folder, key, *urls = Path(sys.argv[1]), *sys.argv[2:]
model = FallbackModel([model_of(name, url, key) for name, url in zip(("deepseek", "openai"), urls)])
journal = SqliteJournal(folder / "runs.db")
asyncio.run(graph_of(model, folder).run({"q": "?"}, run_id="r", journal=journal))
"""


def test_a_killed_process_is_taken_over_and_each_call_is_made_and_paid_once(tmp_path):
    with served("deepseek") as first, served("openai") as second:
        first.say(called(1, **THOUGHT), DOWN, Act(text="A", stall_at=0.5), "done")
        second.say(called(2))
        given = [sys.executable, "-c", PROGRAM, str(tmp_path), first.key, first.url, second.url]
        with subprocess.Popen(given, env={**os.environ, "PYTHONPATH": os.getcwd()}) as process:
            until(lambda: len(first.requests) == 3)
            process.kill()
        models = [
            model_of(name, each.url, each.key)
            for name, each in (("deepseek", first), ("openai", second))
        ]
        journal = SqliteJournal(tmp_path / "runs.db")
        built = graph_of(FallbackModel(models), tmp_path)
        result = asyncio.run(built.resume("r", journal=journal))
        assert (len(first.requests), len(second.requests)) == (4, 1)
    assert result.output == {"answer": "done"}
    assert result.usage.cost == pytest.approx(33)
    assert (tmp_path / "calls").read_text("utf-8") == "1+1\n2+1\n"


def test_what_was_paid_before_a_stop_counts_behind_it(tmp_path):
    """The third reply passes the limit, though each process alone would not."""
    with served("deepseek") as first, served("openai") as second:
        first.say(called(1, **THOUGHT), DOWN, Act(text="A", stall_at=0.5), called(3, **THOUGHT))
        second.say(called(2))
        models = [
            model_of(name, each.url, each.key)
            for name, each in (("deepseek", first), ("openai", second))
        ]
        limits, journal = Limits(cost=30.0), SqliteJournal(tmp_path / "runs.db")

        async def twice() -> Any:
            built = graph_of(FallbackModel(models), tmp_path, limits)
            task = asyncio.create_task(built.run({"q": "?"}, run_id="r", journal=journal))
            await asyncio.to_thread(until, lambda: len(first.requests) == 3)
            task.cancel()
            await asyncio.wait({task})
            again = graph_of(FallbackModel(models), tmp_path, limits)
            return await again.resume("r", journal=journal)

        result = asyncio.run(twice())
        assert (len(first.requests), len(second.requests)) == (4, 1)
    assert result.status == "limited"
    assert result.usage.cost == pytest.approx(33)


def test_a_fallback_keeps_its_models_connections_and_has_the_tools_that_all_have(tmp_path):
    with served("deepseek") as first, served("openai_responses") as second:
        first.say(called(1, **THOUGHT), called(2, **THOUGHT))
        models = [
            model_of("deepseek", first.url, first.key),
            model_of("openai_responses", second.url, second.key),
        ]
        result = graph_of(FallbackModel(models), tmp_path).invoke({"q": "?"})
        assert (len(first.requests), first.connections) == (3, 1)
    assert result.output == {"answer": "OK"}
    assert FallbackModel(models).provider_tools == frozenset()
    assert FallbackModel(models[1:] * 2).provider_tools == set(models[1].provider_tools)
