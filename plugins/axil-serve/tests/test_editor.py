"""Laws of the editor's files and routes: its right, its folder, its findings, and changed files."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil.plugin import default_registry
from axil_cli import Session
from axil_journals import MemoryJournal
from axil_serve import Access, Caller, RunService, app_of
from axil_serve.access import token_digest
from axil_serve.command import _editor

from .conftest import ADA, EVE, as_caller

FLOW = "version: 1\ngraph:\n  start: [a]\n  nodes:\n    - {id: a, type: passthrough} # it\n"


def editor_of(place: Path) -> Any:
    """Return the editor that ``--edit`` opens."""
    session = Session(
        registry=default_registry(), stdin=sys.stdin, stdout=io.StringIO(), stderr=io.StringIO()
    )
    return _editor(argparse.Namespace(edit=str(place)), session, {"allow": frozenset()})


def edit_access() -> Access:
    """Two callers with the right to edit, and one that may look and run."""
    edits = frozenset(["look", "run", "answer", "edit"])
    return Access(
        [
            (token_digest(ADA, "ada"), Caller(name="ada", rights=edits)),
            (token_digest(EVE, "eve"), Caller(name="eve")),
        ]
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "flow.yaml").write_text(FLOW, "utf-8")
    (tmp_path / "in" / "sub" / "other.json").write_text("{}", "utf-8")
    (tmp_path / "out.yaml").write_text("secret: 1", "utf-8")
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "out.yaml")
    (tmp_path / "in" / ".hidden.yaml").write_text("secret: 1", "utf-8")
    (tmp_path / "in" / "keys.txt").write_text("secret", "utf-8")
    return tmp_path / "in"


@pytest.fixture
def client(folder):
    service = RunService(MemoryJournal(), poll_seconds=0.01)
    app = app_of(service, edit_access(), editor=editor_of(folder))
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as client:
        yield client


def test_files_need_the_right_and_lie_in_the_folder(client, folder):
    assert client.get("/v1/edit/files").json() == {"files": ["flow.yaml", "sub/other.json"]}
    assert client.get("/v1/me").json()["files"]
    assert not client.get("/v1/me", headers=as_caller(EVE)).json()["files"]
    for method, path in (("get", "files"), ("get", "schema"), ("get", "file?name=flow.yaml")):
        answer = client.request(method, f"/v1/edit/{path}", headers=as_caller(EVE))
        assert answer.status_code == 403, path
    for path, body in (("check", {}), ("change", {}), ("run", {})):
        answer = client.post(f"/v1/edit/{path}", json=body, headers=as_caller(EVE))
        assert answer.status_code == 403, path
    names = ["../out.yaml", "link.yaml", ".hidden.yaml", "keys.txt", "/etc/x.yaml", "a\0.yaml", ""]
    for name in [*names, str(folder / "flow.yaml"), "sub/../flow.yaml"]:
        assert client.get("/v1/edit/file", params={"name": name}).status_code == 404, name
        body = {"name": name, "text": "x: 1", "digest": ""}
        assert client.put("/v1/edit/file", json=body).status_code == 404, name
    assert (folder.parent / "out.yaml").read_text("utf-8") == "secret: 1"


def test_a_file_that_changed_meanwhile_is_not_overwritten(client, folder):
    file = client.get("/v1/edit/file", params={"name": "flow.yaml"}).json()
    assert file["text"] == FLOW
    body = {"name": "flow.yaml", "text": FLOW + "# mine\n", "digest": file["digest"]}
    (folder / "flow.yaml").write_text(FLOW + "# theirs\n", "utf-8")
    assert client.put("/v1/edit/file", json=body).json()["error"]["id"] == "AX969"
    assert (folder / "flow.yaml").read_text("utf-8").endswith("# theirs\n")
    again = client.get("/v1/edit/file", params={"name": "flow.yaml"}).json()
    written = client.put("/v1/edit/file", json={**body, "digest": again["digest"]}).json()
    assert (folder / "flow.yaml").read_text("utf-8") == FLOW + "# mine\n"
    assert client.put("/v1/edit/file", json={**body, **written}).status_code == 200
    new = {"name": "sub/new.yaml", "text": FLOW, "digest": ""}
    assert client.put("/v1/edit/file", json=new).status_code == 200
    assert client.put("/v1/edit/file", json=new).status_code == 409
    assert client.put("/v1/edit/file", json={**new, "name": "none/x.yaml"}).status_code == 400
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".axil")) == []


def test_line_ends_of_a_file_stay(client, folder):
    (folder / "flow.yaml").write_bytes(FLOW.replace("\n", "\r\n").encode())
    file = client.get("/v1/edit/file", params={"name": "flow.yaml"}).json()
    body = {"name": "flow.yaml", "text": file["text"] + "# more\n", "digest": file["digest"]}
    assert client.put("/v1/edit/file", json=body).status_code == 200
    expected = (FLOW + "# more\n").replace("\n", "\r\n").encode()
    assert (folder / "flow.yaml").read_bytes() == expected


def test_findings_have_their_places_and_the_graph_is_drawn_as_far_as_it_can_be_read(client):
    text = FLOW.replace("passthrough", "passthrogh") + "  edges: [{from: a, to: c}]\n"
    found = client.post("/v1/edit/check", json={"name": "flow.yaml", "text": text}).json()
    places = {(each["id"], each["line"], each["path"]) for each in found["problems"]}
    assert {("AX301", 5, "nodes[0]"), ("AX104", 6, "edges[0].to")} <= places
    assert [node["name"] for node in found["graph"]["nodes"]] == ["a"]
    broken = client.post("/v1/edit/check", json={"name": "flow.yaml", "text": "a: [\n"}).json()
    assert broken["graph"] is None
    assert [each["id"] for each in broken["problems"]] == ["AX140"]
    assert broken["most"] is None


def test_a_check_says_what_a_run_may_use_at_most(client):
    found = client.post("/v1/edit/check", json={"name": "flow.yaml", "text": FLOW}).json()
    assert found["most"]["firings"]["most"] >= 1
    assert found["most"]["model_calls"] == {"most": 0, "why": ""}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "f.toml",
            '[graph]\nstart = ["a"]\n[[graph.nodes]]\nid = "a"\ntype = "passthrough"\n',
            "TOML",
        ),
        ("f.yaml", FLOW.replace("type: pass", "type: &t pass").replace("\n", "\n# *t\n"), ""),
        (
            "f.yaml",
            FLOW.replace("}", ", description: &d it}")
            + "    - {id: b, type: passthrough, description: *d}\n",
            "",
        ),
    ],
)
def test_a_file_that_can_only_be_edited_as_text_is_drawn_with_the_reason(
    client, name, text, reason
):
    found = client.post("/v1/edit/check", json={"name": name, "text": text}).json()
    assert found["graph"]["nodes"][0]["name"] == "a"
    assert (reason in found["fixed"], bool(found["fixed"])) == (True, bool(reason))
    edit = {"do": "append", "path": ["graph", "end"], "value": "a"}
    answer = client.post("/v1/edit/change", json={"text": text, "edit": edit})
    assert answer.status_code == (400 if reason else 200)


def test_a_file_is_run_from_the_editor_with_the_right_to_run(client):
    answer = client.post("/v1/edit/run", json={"name": "flow.yaml", "input": "Hello"})
    run_id = answer.json()["run_id"]
    client.get(f"/v1/runs/{run_id}/events")
    run = client.get(f"/v1/runs/{run_id}").json()
    assert (run["status"], run["workflow"]) == ("done", "flow.yaml")
    assert "Hello" in str(run["output"])
