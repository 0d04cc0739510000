"""Runs that ended at a limit, resumed by the command and over HTTP with a larger one."""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.house import programs

from axil_files import load
from axil_journals import ReplayIndex
from axil_serve import Access, Caller, RunService, app_of
from axil_sqlite import SqliteJournal

NODES = "abcd"
FLOW = {
    "graph": {
        "id": "letter",
        "limits": {
            "cost": 0.025,
            "seconds": 600,
            "pricing": {"unknown": {"input": 1000, "output": 1000}},
            "estimate": {"characters_per_token": 1e9},
        },
        "nodes": [
            {
                "id": name,
                "type": "agent",
                "config": {
                    "model": {
                        "type": "scripted",
                        "default": {"text": name, "usage": {"input_tokens": 10}},
                    },
                    "instructions": "Write.",
                    "model_settings": {"max_tokens": 1},
                },
            }
            for name in NODES
        ],
        "edges": [{"from": a, "to": b} for a, b in pairwise(NODES)],
        "start": ["a"],
        "end": ["d"],
    }
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.json").write_text(json.dumps(FLOW), "utf-8")
    return tmp_path


def axil(folder: Path, *words: str, code: int = 0) -> str:
    ended, out, err = programs.axil(words, folder)
    assert ended == code, out + err
    return out + err


def kept(folder: Path) -> ReplayIndex:
    journal = SqliteJournal(folder / ".axil")
    try:
        return ReplayIndex(journal.entries("r"))
    finally:
        journal.close()


def limited(folder: Path, *words: str) -> str:
    return axil(folder, "run", "flow.json", "--input", "x", "--run-id", "r", *words, code=4)


def test_a_run_that_ended_at_its_budget_goes_on_with_a_larger_one(folder):
    said = limited(folder)
    assert "The run is kept: axil runs resume r --limit cost=MORE" in said
    assert "AX414" in axil(folder, "runs", "resume", "r", code=4)
    assert axil(folder, "runs", "resume", "r", "--limit", "cost=1").startswith("d\n")
    replay = kept(folder)
    assert (replay.limits.cost, replay.limits.seconds) == (1, 600)
    assert len(replay.done) == len(NODES)  # none was done again


def test_a_run_that_is_given_a_limit_keeps_it_and_the_others_of_its_file(folder):
    assert "AX412" in limited(folder, "--limit", "firings=1", "--limit", "cost=null")
    assert kept(folder).limits.cost is None
    assert "AX412" in axil(folder, "runs", "resume", "r", code=4)
    again = ("run", "flow.json", "--run-id", "r", "--input", "x", "--limit", "firings=9")
    assert axil(folder, *again).startswith("d\n")
    assert kept(folder).limits.seconds == 600


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("costs=1", 'AX130 limits: unknown limit "costs". Did you mean "cost"?'),
        ("cost=much", "AX128 limits.cost: expected a number"),
        ("cost", 'expected name=value, found "cost". Write --limit cost=0.5.'),
    ],
)
def test_a_limit_that_there_is_not_is_refused_and_the_run_left(folder, given, says):
    limited(folder)
    before = len(kept(folder).done)
    assert says in axil(folder, "runs", "resume", "r", "--limit", given, code=2)
    assert len(kept(folder).done) == before


def test_a_server_resumes_a_limited_run_with_a_larger_limit(folder, monkeypatch):
    monkeypatch.chdir(folder)
    journal = SqliteJournal(folder / ".axil")
    may, may_not = "may-" * 8, "not-" * 8
    rights = frozenset(["look", "prompts", "run", "limits"])
    callers = [
        (sha256(may.encode()).hexdigest(), Caller(name="may", rights=rights, sees_all=True)),
        (sha256(may_not.encode()).hexdigest(), Caller(name="not", sees_all=True)),
    ]

    def client() -> TestClient:
        service = RunService(journal, {"letter": load("flow.json")}, poll_seconds=0.01)
        app = app_of(service, Access(callers))
        headers = {"authorization": f"Bearer {may}"}
        return TestClient(app, base_url="http://127.0.0.1", headers=headers)

    with client() as one:
        body = {"workflow": "letter", "input": "x"}
        run = f"/v1/runs/{one.post('/v1/runs', json=body).json()['run_id']}"
        one.get(f"{run}/events")
        assert one.get(run).json()["status"] == "limited"
        more = {"limits": {"cost": 1}}
        refused = one.post(
            f"{run}/resume", json=more, headers={"authorization": f"Bearer {may_not}"}
        )
        assert (refused.status_code, refused.json()["error"]["id"]) == (403, "AX962")
        wrong = one.post(f"{run}/resume", json={"limits": {"costs": 1}})
        assert (wrong.status_code, wrong.json()["error"]["id"]) == (422, "AX130")
        assert one.post(f"{run}/resume").status_code == 202
        one.get(f"{run}/events")
        assert "AX414" in one.get(run).json()["error"]
    with client() as two:  # after a restart
        assert two.post(f"{run}/resume", json=more).status_code == 202
        two.get(f"{run}/events")
        ended = two.get(run).json()
        assert (ended["status"], ended["error"]) == ("done", "")
        assert ReplayIndex(journal.entries(run.rpartition("/")[2])).limits.seconds == 600
    journal.close()
