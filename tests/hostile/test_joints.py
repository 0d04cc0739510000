"""Ways into a run that meet: what is drafted, edited, tuned, evaluated, run in batches, or sent to
a page has no more than the file that it is about, wherever it comes from.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.internals import internal

from axil import AxilError, Result, Workflow, run_sync
from axil.plugin import default_registry
from axil_cli import Session, draft_of
from axil_files import load
from axil_journals import MemoryJournal
from axil_serve import Access, Caller, RunService, app_of, token_digest
from axil_testing.stub import Stub

from .harness import CANARY, Scene, observing, tree
from .test_beside import attacked
from .test_widening import WANTED, whole

pytestmark = pytest.mark.third
OUT, ENV = "../outside/secret.txt", "${PRIVATE_TOKEN}"
KEPT = ("--journal", ".axil/kept")
TOKEN = "ada-" * 8
MCP = {"type": "mcp", "command": ["touch", "taken"]}


def asking(server: Stub, **more: Any) -> dict[str, Any]:
    """Return an agent that asks a model at the server."""
    model = {"type": "openai", "name": "m", "base_url": server.url, "api_key": "none"}
    return {"type": "agent", "config": {"model": {**model, "retry": {"max_tries": 1}}, **more}}


def sent(server: Stub) -> str:
    return "\n".join(f"{each.headers} {each.text}" for each in server.requests)


# ------------------------------------------------------------------------- drafts, and the page


@pytest.mark.parametrize("wanted", [*WANTED, "server"])
def test_a_drafted_file_does_nothing_that_it_lacks_leave_for(scene: Scene, wanted: str):
    node = {"type": "agent", "config": {"model": "${MODEL}", "tools": [MCP]}}
    reply = json.dumps(whole(WANTED.get(wanted, node), requires={"axil": ">=0"}, allow=["code"]))
    before = tree(scene.flows)
    with observing(scene.outside) as seen:
        found = draft_of(
            f"```json\n{reply}\n```", name="f.yaml", model="scripted", registry=default_registry()
        )
    assert seen == []
    assert tree(scene.flows) == before
    assert not found.is_fine
    assert CANARY not in found.report() + found.repair() + repr(found)


def opened(place: Path) -> Any:
    """Return the editor that ``axil serve --edit`` opens."""
    streams = {"stdin": sys.stdin, "stdout": io.StringIO(), "stderr": io.StringIO()}
    session = Session(registry=default_registry(), **streams)
    return internal("serve_command")._editor(
        argparse.Namespace(edit=str(place)), session, {"allow": frozenset()}
    )


@pytest.mark.parametrize("wanted", [*WANTED, "server"])
def test_the_editor_checks_and_runs_nothing_that_a_file_lacks_leave_for(scene: Scene, wanted: str):
    node = {"type": "agent", "config": {"model": "scripted", "tools": [MCP]}}
    text = json.dumps(whole(WANTED.get(wanted, node)))
    editor, before = opened(scene.flows), tree(scene.outside)
    with observing(scene.outside) as seen:
        found = editor.check("flow.json", text)
        scene.write(text)
        with pytest.raises(AxilError):
            editor.workflow("flow.json")[0].invoke("Hello")
    assert seen == []
    assert tree(scene.outside) == before
    assert not (scene.flows / "taken").exists()
    assert {each["severity"] for each in found["problems"]} >= {"error"}
    assert CANARY not in json.dumps(found)


FORMS: tuple[Any, ...] = (
    ENV,
    {"message": ENV},
    {"message": "x", "vars": {"K": ENV}, "K": ENV},
    [{"role": "user", "content": ENV}],
    [{"role": "system", "content": [{"type": "text", "text": ENV}], "source": ENV}],
)


@pytest.mark.parametrize("given", FORMS)
def test_what_a_form_of_the_page_says_fills_no_variable(scene: Scene, given: Any):
    """The words are those of a user of the server; its environment is its owner's."""
    with Stub("chat") as server:
        server.say("fine")
        node = asking(server, instructions="Be ${K}.")
        flow = load(scene.write(whole(node, vars={"K": "kind"})))
        access = Access([(token_digest(TOKEN, "ada"), Caller(name="ada"))])
        app = app_of(RunService(MemoryJournal(), {"f": flow}, poll_seconds=0.01), access)
        head = {"authorization": f"Bearer {TOKEN}"}
        with TestClient(app, base_url="http://127.0.0.1", headers=head) as client:
            begun = client.post("/v1/runs", json={"workflow": "f", "input": given})
            told = begun.text
            if begun.status_code < 300:
                path = f"/v1/runs/{begun.json()['run_id']}"
                told += client.get(f"{path}/events").text + client.get(path).text
        assert CANARY not in told + sent(server)
        assert not server.requests or "Be kind." in sent(server)


# ------------------------------------------------------------------ inputs that name files


PARTS = (
    {"path": OUT}, {"path": "OUTSIDE/secret.txt"}, {"path": "link/secret.txt"},
    {"path": "docs/../../outside/secret.txt"}, {"path": "/proc/self/environ"},
    {"path": ".axil/runs.db"}, {"path": "./docs/../.axil/runs.db"}, {"path": ".axil/lock"},
    {"url": "file://OUTSIDE/secret.txt"}, {"url": OUT}, {"data": OUT}, {"file_id": OUT},
)  # fmt: skip
"""Parts of messages that want a file outside, or recorded runs."""


async def _ended(flow: Workflow, given: Any, workspace: Path) -> Result:
    async with flow:
        return await flow.start(given, workspace=workspace).result()


@pytest.mark.parametrize("kind", ["file", "image"])
@pytest.mark.parametrize("part", PARTS, ids=json.dumps)
def test_an_input_gets_no_file_but_those_of_its_workspace(
    scene: Scene, kind: str, part: dict[str, str]
):
    (scene.flows / "link").symlink_to(scene.outside)
    (scene.flows / ".axil/runs.db").write_text(CANARY)
    (scene.flows / ".axil/lock").write_text(CANARY)
    named = {key: text.replace("OUTSIDE", str(scene.outside)) for key, text in part.items()}
    said = {"type": kind, "media_type": "text/plain" if kind == "file" else "image/png", **named}
    row = [{"role": "user", "content": [{"type": "text", "text": "look"}, said]}]
    with Stub("chat") as server:
        server.say("fine")
        flow = load(scene.write(whole(asking(server))))
        with observing(scene.outside) as seen:
            result = run_sync(_ended(flow, row, scene.flows))
        assert not any("secret" in each for each in seen)
        assert CANARY not in sent(server) + repr(result)


@pytest.mark.parametrize("column", [OUT, ENV, f"file://{OUT}", '{"path": "../outside/secret"}'])
def test_the_rows_of_a_batch_name_no_files(scene: Scene, column: str):
    flow = scene.node({"type": "passthrough"})
    rows = scene.write(json.dumps({"message": column, "path": column}) + "\n", "rows.jsonl")
    attacked(scene, ["batch", str(flow), str(rows), "--column", "message", *KEPT])
    [result] = map(json.loads, (scene.flows / "rows.results.jsonl").read_text().splitlines())
    assert result["output"] == column
    assert CANARY not in json.dumps(result)


# -------------------------------------------------------------- evaluations, tuning, golden files


def judged(**model: Any) -> dict[str, Any]:
    scorer = {"type": "judge", "rubric": "Is it?", "model": model}
    return {"scorers": [scorer], "cases": [{"name": "a", "inputs": "x", "expected": "fine"}]}


JUDGES = {
    "a key of the environment": {"api_key": {"env": "PRIVATE_TOKEN"}},
    "a key by a placeholder": {"api_key": ENV},
    "a header": {"api_key": "none", "headers": {"x": ENV}},
    "a name": {"api_key": "none", "name": ENV},
    "settings": {"api_key": "none", "settings": {"user": ENV}},
}


@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_of_a_dataset_gets_no_variable(scene: Scene, name: str):
    with Stub("chat") as server:
        server.say(*["1"] * 4)
        model = {"type": "openai", "name": "m", "base_url": server.url, **JUDGES[name]}
        cases = scene.write(json.dumps(judged(**model)), "cases.json")
        out = ["--out", ".axil/report.json"]
        said = attacked(scene, ["eval", "run", str(scene.agent()), str(cases), *out], sends=True)
        assert CANARY not in sent(server) + said


def tries(key: str, value: Any) -> str:
    return json.dumps({"tries": [{"node": "A", "key": key, "values": [value]}]})


TRIES: dict[str, tuple[str, Any]] = {
    "a file outside": ("retrievers", [{"type": "keyword", "paths": [OUT]}]),
    "a memory outside": ("memories", [{"type": "file_memory", "path": "../outside/new"}]),
    "a program": ("tools", [MCP]),
    "code": ("tools", [{"type": "strange_module:node"}]),
    "a variable": ("instructions", f"Say {ENV}."),
    "a model of its own": ("model", {"type": "openai", "name": "m", "api_key": ENV}),
    "a cassette outside": ("model", {"type": "replay", "path": OUT}),
}


@pytest.mark.parametrize("name", TRIES)
def test_a_value_that_is_tried_has_no_more_than_the_file(scene: Scene, name: str):
    flow = scene.agent(instructions="Be kind.")
    rows = [{"name": f"c{n}", "inputs": "x", "expected": "fine"} for n in range(4)]
    cases = scene.write(json.dumps({"scorers": ["exact"], "cases": rows}), "cases.json")
    file = scene.write(tries(*TRIES[name]), "tries.json")
    more = ["--tries", str(file), "--budget", "1", "--proposals", "0", *KEPT]
    said = attacked(scene, ["tune", str(flow), str(cases), *more])
    assert "AX" in said
