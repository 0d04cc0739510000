"""Laws of the commands: a server that is killed is taken over, and a run is exported as a page."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from typing import Any

import httpx2
import pytest

from axil_cli.main import main
from axil_serve import Access, Caller, RunService, app_of
from axil_serve.access import token_digest
from axil_serve.command import _targets
from axil_serve.errors import Unserved
from axil_sqlite import SqliteJournal

PYTHON = """
from axil import RootGraph

graph = RootGraph("asks")


async def ask(inputs, ctx):
    return {"said": await ctx.ask("Is it good?")}


graph.create_node(ask, name="ask")
graph.edge_from_entry("ask", {"x": ""})
graph.edge_to_exit("ask", {"said": ""})
graph.build()
"""


def test_a_server_that_is_killed_is_taken_over_by_another_on_its_journal(tmp_path):
    from starlette.testclient import TestClient

    file = tmp_path / "app.py"
    file.write_text(PYTHON, "utf-8")
    environment = {name: v for name, v in os.environ.items() if name != "AXIL_SERVE_TOKEN"}
    start = [sys.executable, "-c", "from axil_cli.main import script; script()", "serve"]
    with subprocess.Popen(
        [
            *(*start, f"{file}:graph", "--port", "0", "--journal", str(tmp_path / "j")),
            *("--keep-days", "1", "--prompts", "whole", "--push-url", "https://a.example/hooks"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stderr is not None
        token = re.search(r"once: (\S+)", server.stderr.readline())[1]
        address = re.search(r"(http://\S+)/#", server.stderr.readline())[1]
        headers = {"authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=address, headers=headers, trust_env=False) as client:
            assert client.get("/v1/runs", headers={"authorization": ""}).status_code == 401
            card = client.get("/a2a/asks/.well-known/agent-card.json").json()
            assert card["capabilities"]["pushNotifications"]
            body = {"workflow": "asks", "input": {"x": 1}}
            run_id = client.post("/v1/runs", json=body).json()["run_id"]
            while not (found := client.get(f"/v1/runs/{run_id}").json())["questions"]:
                pass
        server.kill()
    namespace: dict[str, Any] = {}
    exec(compile(PYTHON, "app.py", "exec"), namespace)  # noqa: S102  # the text is above
    journal = SqliteJournal(tmp_path / "j")
    service = RunService(journal, {"asks": namespace["graph"]})
    access = Access([(token_digest(token, "local"), Caller(name="local"))])
    with TestClient(app_of(service, access), base_url="http://localhost", headers=headers) as two:
        answers = {"answers": {found["questions"][0]["id"]: "it is"}}
        assert two.post(f"/v1/runs/{run_id}/answers", json=answers).status_code == 202
        two.get(f"/v1/runs/{run_id}/events")
        run = two.get(f"/v1/runs/{run_id}").json()
        assert run["output"] == {"said": "it is"}, run
    journal.close()


def test_a_kept_run_is_exported_as_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(
        PYTHON.replace('await ctx.ask("Is it good?")', '"yes"'), "utf-8"
    )
    with redirect_stdout(io.StringIO()):
        assert main(["run", "app.py:graph", "--input", '{"x": 1}', "--run-id", "one"]) == 0
    for allowed in ([], ["--allow-code"]):
        page = io.StringIO()
        with redirect_stdout(page):
            assert main(["runs", "export", "one", "--html", *allowed]) == 0
        assert page.getvalue().startswith("<!doctype html>")
        assert ('"plan": null' in page.getvalue()) == (not allowed)


def test_a_folder_stands_for_its_workflow_files(tmp_path):
    for name in ("b.yaml", "a.yml", "notes.txt"):
        (tmp_path / name).write_text("", "utf-8")
    folder = str(tmp_path)
    assert _targets([folder, "app:graph"]) == [f"{folder}/a.yml", f"{folder}/b.yaml", "app:graph"]
    (tmp_path / "none").mkdir()
    with pytest.raises(Unserved, match="no workflow files"):
        _targets([f"{folder}/none"])


def test_a_broken_file_of_a_folder_is_listed_and_keeps_no_other_from_being_served(tmp_path):
    flows = tmp_path / "flows"
    flows.mkdir()
    nodes = "nodes: [{id: a, type: literal, config: {content: hi}}], start: [a], end: [a]"
    (flows / "good.yaml").write_text(f"graph: {{id: good, {nodes}}}", "utf-8")
    bad = nodes.replace("literal", "litteral")
    (flows / "draft.yaml").write_text(f"graph: {{id: draft, {bad}}}", "utf-8")
    start = [sys.executable, "-c", "from axil_cli.main import script; script()", "serve"]
    options = ["--port", "0", "--journal", str(tmp_path / "j")]
    with subprocess.Popen(
        [*start, str(flows), *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "AXIL_SERVE_TOKEN": "t" * 32},
    ) as server:
        assert server.stderr is not None
        said = [server.stderr.readline() for _ in range(3)]
        address = re.search(r"(http://[^/]+)", said[2])[1]
        headers = {"authorization": f"Bearer {'t' * 32}"}
        with httpx2.Client(base_url=address, headers=headers, trust_env=False) as client:
            listed = client.get("/v1/workflows").json()
            begun = client.post("/v1/runs", json={"workflow": "draft"})
        server.terminate()
    assert "draft.yaml" in said[0]
    assert [each["name"] for each in listed["workflows"]] == ["good"]
    [broken] = listed["broken"]
    assert broken["name"] == "draft"
    assert "litteral" in broken["problems"][0]
    assert begun.status_code == 404
    assert "litteral" in begun.text
    named = [*start, str(flows / "draft.yaml"), *options]
    refused = subprocess.run(named, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 2
    assert "litteral" in refused.stderr
