"""Servers on one journal, of which some are killed: what people answer at another one counts once,
and a client that follows a run loses no event and hears none twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.journeys.person import Server, Terminal, eventually

ITEMS = 50
ASKS = """
import asyncio, os
from pathlib import Path
from axil import Question, RootGraph

graph = RootGraph("asks")


async def ask(inputs, ctx):
    item = inputs["item"]
    answer = await ctx.ask(Question(text=f"{item}?"))
    with open("answered", "a") as file:
        file.write(f"{item}={answer}\\n")
    return {"answers": f"{item}={answer}"}


async def slow(inputs):
    if not Path("begun").exists():
        Path("begun").write_text(str(os.getpid()))
        await asyncio.Event().wait()
    return {"slow": "done"}


every = [{"type": "map", "over": "items", "item": "item", "max_parallel": 50}]
graph.create_node(ask, name="ask", wrappers=every)
graph.create_node(slow, name="slow")
for name in ("ask", "slow"):
    graph.edge_from_entry(name, {"items": ""})
graph.edge_to_exit("ask", {"answers": ""})
graph.edge_to_exit("slow", {"slow": ""})
"""
TALKS = """
import asyncio
from axil import Graph, RootGraph

graph = RootGraph("talks")


async def say(inputs, ctx):
    for word in ("one ", "two ", "three"):
        ctx.emit({"kind": "text", "text": word})
        await asyncio.sleep(0.03)
    return {"items": inputs["item"]}


every = [{"type": "map", "over": "items", "item": "item", "max_parallel": 3}]
before = "@entry"
for name in ("first", "second"):
    inner = graph.create_node(Graph, name=name)
    inner.create_node(say, name="say", wrappers=every)
    inner.edge_from_entry("say", {"items": ""})
    inner.edge_to_exit("say", {"items": ""})
graph.edge_from_entry("first", {"items": ""})
graph.create_edge("first", "second", {"items": ""})
graph.edge_to_exit("second", {"items": ""})
"""


def answered(server: Server, run_id: str, answers: dict[str, str]) -> int:
    return server.http.post(f"/v1/runs/{run_id}/answers", json={"answers": answers}).status_code


def test_what_is_answered_at_another_server_than_the_one_that_was_killed_counts_once(
    terminal: Terminal,
) -> None:
    terminal.write("asks.py", ASKS)
    servers = [Server(terminal, "axil serve asks.py:graph") for _ in range(2)]
    given = {"workflow": "asks", "input": {"items": list(range(ITEMS))}}
    run_id = servers[0].post("/v1/runs", given)["run_id"]

    def asked() -> Any:
        found = servers[1].get(f"/v1/runs/{run_id}")["questions"]
        return found if len(found) == ITEMS else None

    questions = eventually(asked)
    pid = eventually(lambda: (terminal.folder / "begun").exists()) and int(
        (terminal.folder / "begun").read_text()
    )
    # the one that executes the run: what was answered while it lived counts, too
    [lost] = [each for each in servers if each.program.process.pid == pid]
    [other] = [each for each in servers if each is not lost]
    assert answered(other, run_id, {questions[0]["id"]: "0"}) == 202
    lost.kill()
    every = [{questions[n]["id"]: f"{n}"} for n in range(1, 10) for _ in range(2)]
    with ThreadPoolExecutor(6) as several:
        codes = list(several.map(lambda each: answered(other, run_id, each), every))
    assert sorted(codes) == [202] * 9 + [409] * 9
    assert (
        answered(other, run_id, {q["id"]: f"{n}" for n, q in enumerate(questions[10:], 10)}) == 202
    )
    run = other.ended(run_id)
    assert run["output"] == {"answers": [f"{n}={n}" for n in range(ITEMS)], "slow": "done"}
    assert answered(other, run_id, {questions[0]["id"]: "again"}) == 409


def events(server: Server, run_id: str, after: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the kind, the id and the data of each event, as they arrive."""
    headers = {"last-event-id": after} if after else {}
    with server.http.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as answer:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                yield fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
                fields = {}


@pytest.mark.parametrize("most", [3, 9])
def test_a_client_that_follows_a_run_past_a_killed_server_has_each_step_once(
    terminal: Terminal, most: int
) -> None:
    import httpx

    terminal.write("talks.py", TALKS)
    server = Server(terminal, "axil serve talks.py:graph")
    given = {"workflow": "talks", "input": {"items": list(range(12))}}
    run_id = server.post("/v1/runs", given)["run_id"]
    heard: list[tuple[str, Any]] = []
    last = ""
    try:
        for kind, id, data in events(server, run_id):
            last = id or last
            heard += [(id, data)] if kind == "step" else []
            if len(heard) == most:
                server.program.kill()
    except httpx.HTTPError:
        pass  # it was killed
    server = Server(terminal, "axil serve talks.py:graph")
    for kind, id, data in events(server, run_id, last):
        if kind == "reset":  # what it was shown last was not safe yet: it hears all of it anew
            heard.clear()
        heard += [(id, data)] if kind == "step" else []
    whole = [(id, data) for kind, id, data in events(server, run_id) if kind == "step"]
    assert heard == whole
    assert server.ended(run_id)["output"] == {"items": list(range(12))}


SPEAKS = """
import asyncio
from pathlib import Path
from axil import RootGraph

graph = RootGraph("speaks")


async def say(inputs, ctx):
    ctx.emit({"kind": "text", "text": "one "})
    if not Path("begun").exists():
        Path("begun").touch()
        await asyncio.Event().wait()
    ctx.emit({"kind": "text", "text": "two"})
    return {"text": "one two"}


graph.create_node(say, name="say")
graph.edge_from_entry("say", {"message": ""})
graph.edge_to_exit("say", {"text": ""})
"""


def agent_events(server: Server, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of AG-UI, as they arrive."""
    with server.http.stream("POST", "/ag-ui/speaks", json=body) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def test_a_front_end_whose_server_is_killed_goes_on_with_the_same_request(
    terminal: Terminal,
) -> None:
    import httpx

    terminal.write("speaks.py", SPEAKS)
    server = Server(terminal, "axil serve speaks.py:graph")
    message = {"id": "m", "role": "user", "content": "speak"}
    body: dict[str, Any] = {"threadId": "t", "runId": "r", "messages": [message]}
    heard: list[dict[str, Any]] = []
    try:
        for event in agent_events(server, body):
            heard.append(event)
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                server.program.kill()
    except httpx.HTTPError:
        pass  # it was killed
    assert heard[-1]["delta"] == "one "
    server = Server(terminal, "axil serve speaks.py:graph")
    # a front end sends what it has
    part = {"id": heard[-1]["messageId"], "role": "assistant", "content": "one "}
    again = list(agent_events(server, {**body, "messages": [message, part]}))
    assert (again[1]["type"], again[1]["messages"]) == ("MESSAGES_SNAPSHOT", [message])
    said = [each["delta"] for each in again if each["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(said) == "one two"
    assert (again[-1]["type"], again[-1]["result"]) == ("RUN_FINISHED", {"text": "one two"})
    assert len(server.get("/v1/runs")["runs"]) == 1
