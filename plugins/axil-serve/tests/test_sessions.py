"""Laws of the page's own routes: conversations, a run as a page, evaluations compared, the forms of
workflows, and files that were saved with errors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil import RootGraph
from axil_evals import Case, Dataset, Plan, WorkflowTarget, evaluate
from axil_files import load
from axil_journals import MemoryJournal
from axil_serve import RunService, app_of
from axil_serve.files import RunFiles

from .conftest import ADA, ALL, BEN, EVE, access, as_caller, greeting, refund
from .test_editor import FLOW, edit_access, editor_of

DESK = """\
version: 1
graph:
  start: [clerk]
  end: [clerk]
  nodes:
    - id: clerk
      type: agent
      config:
        model:
          type: scripted
          rules: [{match: {user_contains: again}, replies: [You asked before.]}]
          default: Kettles cost 40.
"""


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def client(journal: MemoryJournal, tmp_path: Path) -> Iterator[TestClient]:
    (tmp_path / "desk.yaml").write_text(DESK, "utf-8")
    workflows: dict[str, Any] = {"greeting": greeting(), "refund": refund()}
    workflows["desk"] = load(tmp_path / "desk.yaml")
    files = RunFiles(tmp_path / "runs")
    service = RunService(journal, workflows, files=files, poll_seconds=0.01)
    headers = as_caller(ADA)
    app = app_of(service, access())
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def said(client: TestClient, session: str, workflow: str, text: str, **more: Any) -> Any:
    body = {"session": session, "workflow": workflow, "text": text, **more}
    answer = client.post("/v1/sessions/messages", json=body)
    assert answer.status_code in (201, 202), answer.text
    return answer.json()["run_id"]


def heard(client: TestClient, session: str, **query: str) -> Any:
    """Return a conversation when nothing of it is at work."""
    for _ in range(500):
        found = client.get("/v1/sessions/messages", params={"session": session, **query})
        if found.status_code != 200 or not found.json()["working"]:
            break
        time.sleep(0.01)
    return found


def test_a_conversation_receives_what_was_said_before_and_files(client):
    said(client, "s", "desk", "What do kettles cost?")
    assert heard(client, "s").json()["messages"][-1]["content"] == "Kettles cost 40."
    upload = client.post("/v1/files?name=a.png", content=b"x").json()
    run_id = said(client, "s", "desk", "again", files=[upload["file_id"]])
    messages = heard(client, "s").json()["messages"]
    assert [each["role"] for each in messages] == ["user", "assistant"] * 2
    part = {"type": "image", "path": "attachments/a.png", "media_type": "image/png"}
    assert messages[2]["content"] == [{"type": "text", "text": "again"}, part]
    assert messages[3] == {
        "role": "assistant",
        "content": "You asked before.",
        "run_id": run_id,
        "status": "done",
    }
    given = client.get(f"/v1/runs/{run_id}").json()["input"]
    assert [each["role"] for each in given] == ["user", "assistant", "user"]
    paths = [each["path"] for each in client.get(f"/v1/runs/{run_id}/files").json()["files"]]
    assert paths == ["attachments/a.png"]


def test_the_next_message_answers_what_a_conversation_asks(client):
    run_id = said(client, "s", "refund", "40")
    asked = heard(client, "s").json()["questions"]
    assert [(each["text"], each["run_id"]) for each in asked] == [("Refund 40?", run_id)]
    assert said(client, "s", "refund", "gladly") == run_id
    assert heard(client, "s").json()["messages"][-1]["content"] == "40: gladly"


def test_a_conversation_is_its_callers_own(client):
    said(client, "s", "greeting", "ada")
    heard(client, "s")
    ben, all_of_them = as_caller(BEN), as_caller(ALL)
    path = "/v1/sessions/messages"
    for query in ({"session": "s"}, {"session": "s", "owner": "ada"}):
        assert client.get(path, params=query, headers=ben).status_code == 404
    assert client.get("/v1/sessions", headers=ben).json()["sessions"] == []
    seen = client.get(path, params={"session": "s", "owner": "ada"}, headers=all_of_them)
    assert seen.json()["messages"][-1]["content"] == "Hello Ada"
    # who sees all writes in a session of its own
    body = {"session": "s", "workflow": "greeting", "text": "all"}
    assert client.post(path, json=body, headers=all_of_them).status_code == 201
    assert len(heard(client, "s").json()["messages"]) == 2
    assert client.post(path, json=body, headers=as_caller(EVE)).status_code == 403
    [own, other] = sorted(
        client.get("/v1/sessions", headers=all_of_them).json()["sessions"],
        key=lambda each: each["last"]["owner"],
    )
    assert (own["last"]["owner"], other["last"]["owner"]) == ("ada", "all")


def test_a_run_is_had_as_a_page_by_those_who_see_it(client):
    run_id = said(client, "s", "greeting", "ada")
    heard(client, "s")
    answer = client.get(f"/v1/runs/{run_id}/export")
    assert answer.headers["content-disposition"] == "attachment"
    assert "Hello Ada" in answer.text
    assert "default-src 'none'" in answer.text
    assert client.get(f"/v1/runs/{run_id}/export", headers=as_caller(BEN)).status_code == 404


def test_a_workflow_says_what_its_form_needs(client):
    found = {each["name"]: each for each in client.get("/v1/workflows").json()["workflows"]}
    assert found["greeting"]["inputs"]["required"] == ["name"]
    assert found["greeting"]["inputs"]["properties"] == {"name": {"description": "whom"}}
    assert (found["desk"]["payload"], found["desk"]["chat"]) == ("messages", True)


def test_evaluations_are_compared_for_those_who_see_them(client, journal):
    cases = tuple(
        Case(name=each, inputs={"name": each}, expected=f"Hello {each.title()}")
        for each in "abcdef"
    )
    dataset = Dataset(name="names", cases=cases)

    def wrong() -> Any:
        graph = RootGraph("wrong")
        graph.create_node(lambda inputs: {"text": "?"}, name="wrong")
        graph.edge_from_entry("wrong", {"name": ""})
        graph.edge_to_exit("wrong", {"text": ""})
        return graph.build()

    for run_id, workflow in (("first", greeting()), ("second", wrong())):
        own: dict[str, Any] = {"journal": journal, "run_id": run_id}
        asyncio.run(evaluate(dataset, WorkflowTarget(workflow), Plan(), **own))
    path, query = "/v1/evaluations/compare", {"first": "first", "second": "second"}
    answer = client.get(path, params=query, headers=as_caller(ALL))
    changes = {each["measure"]: each["verdict"] for each in answer.json()["changes"]}
    assert changes["exact"] == "worse"
    assert client.get(path, params=query).status_code == 404  # of no server: not all see it
    reports = {
        name: client.get(f"/v1/runs/{name}", headers=as_caller(ALL)).json()["output"]["report"]
        for name in ("first", "second")
    }
    assert client.post(path, json=reports).json() == answer.json()  # those of files
    for wrong in ({}, {"first": reports["first"]}, {**reports, "second": {"axil_evals": 1}}):
        assert client.post(path, json=wrong).status_code == 409
    run_id = said(client, "s", "greeting", "ada")
    heard(client, "s")
    refused = client.get(path, params={"first": run_id, "second": run_id})
    assert refused.status_code == 409
    assert "no evaluation" in refused.text


def test_a_file_that_was_saved_with_errors_does_nothing_to_others(tmp_path):
    good, asks = tmp_path / "good.yaml", tmp_path / "asks.yaml"
    good.write_text(FLOW + "  end: [a]\n", "utf-8")
    ask = FLOW.replace("type: passthrough", "type: human, config: {description: Go?}")
    asks.write_text(ask + "  end: [a]\n", "utf-8")
    service = RunService(MemoryJournal(), {"greeting": greeting()}, poll_seconds=0.01)
    app = app_of(service, edit_access(), editor=editor_of(tmp_path))
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as client:

        def run(name: str) -> Any:
            return client.post("/v1/edit/run", json={"name": name, "input": "x"})

        def until(run_id: str, status: str) -> Any:
            for _ in range(500):
                found = client.get(f"/v1/runs/{run_id}").json()
                if found["status"] == status:
                    return found
                time.sleep(0.01)
            raise AssertionError(found)

        waiting = run("asks.yaml").json()["run_id"]
        [question] = until(waiting, "paused")["questions"]
        for name in ("asks.yaml", "good.yaml"):
            digest = client.get(f"/v1/edit/file?name={name}").json()["digest"]
            saved = {"name": name, "text": "graph: {nodes: [", "digest": digest}
            assert client.put("/v1/edit/file", json=saved).status_code == 200
            if name == "asks.yaml":
                done = run("good.yaml").json()["run_id"]
                until(done, "done")
        refused = run("good.yaml")
        assert refused.status_code == 422
        assert "good.yaml" in refused.text
        # what began before goes on, and what is served elsewhere is served
        answers = {"answers": {question["id"]: "yes"}}
        assert client.post(f"/v1/runs/{waiting}/answers", json=answers).status_code == 202
        until(waiting, "done")
        body = {"workflow": "greeting", "input": {"name": "ada"}}
        until(client.post("/v1/runs", json=body).json()["run_id"], "done")
