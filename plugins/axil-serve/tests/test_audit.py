"""Laws of the audit: each act is written down before it is done, and no line is changed unseen."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil.plugin import is_axils, keep_secret
from axil_journals import MemoryJournal
from axil_serve import Caller, RunService, app_of
from axil_serve.audit import AUDIT, Audit
from axil_serve.command import AuditTrail
from axil_serve.errors import Unserved
from axil_serve.files import RunFiles
from axil_serve.sessions import SESSIONS

from .conftest import ADA, BEN, PROTOCOLS, access, as_caller, greeting, refund

ADA_HERSELF = Caller(name="ada", place="127.0.0.1")


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    return Audit(tmp_path / "runs" / AUDIT)


def service_of(audit: Audit) -> RunService:
    return RunService(
        MemoryJournal(),
        {"greeting": greeting(), "refund": refund()},
        files=RunFiles(audit.path.parents[1]),
        poll_seconds=0.01,
        audit=audit,
    )


def acts_of(audit: Audit, **wanted: str) -> list[tuple[str, str]]:
    """Return who did what, the first act first."""
    return [(act["who"], act["action"]) for act in audit.read(**wanted)[0]][::-1]


def waits(client: TestClient, run_id: str) -> Any:
    while not (asked := client.get(f"/v1/runs/{run_id}").json()["questions"]):
        pass
    return asked[0]["id"]


def test_each_act_is_written_with_who_when_from_where_and_which_run(audit):
    app = app_of(service_of(audit), access(), protocols=PROTOCOLS)
    headers = as_caller(ADA)
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        body = {"workflow": "refund", "input": {"amount": 1}}
        run_id = client.post("/v1/runs", json=body).json()["run_id"]
        question = waits(client, run_id)
        path = f"/v1/runs/{run_id}"
        client.post(f"{path}/answers", json={"answers": {question: "the answer itself"}})
        with client.stream("GET", f"{path}/events") as stream:
            stream.read()
        assert client.post(f"{path}/answers", json={"answers": {"x": 1}}).status_code == 409
        fork = client.post(f"{path}/fork", json={"input": {"amount": 2}}).json()["run_id"]
        client.post(f"/v1/runs/{fork}/cancel")
        client.delete(path)
        client.post("/v1/files?name=a.txt", content=b"x", headers={"content-type": "text/plain"})
        assert client.get("/v1/audit").status_code == 403
    kinds = ["start", "answer", "answer", "answer", "fork", "cancel", "remove", "upload", "refused"]
    found = audit.read()[0][::-1]
    assert [act["action"] for act in found] == kinds
    assert {(act["who"], act["way"], act["from"]) for act in found} == {
        ("ada", "token", "testclient")
    }
    assert [act["run"] for act in found[:7]] == [run_id] * 4 + [fork, fork, run_id]
    assert (found[3]["failed"], found[1]["questions"]) == ("AX541", [question])
    assert "the answer itself" not in audit.path.read_text("utf-8")
    assert audit.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("path", "body", "version"),
    [
        (
            "/a2a/refund",
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {
                    "message": {
                        "messageId": "m",
                        "role": "ROLE_USER",
                        "taskId": "RUN",
                        "parts": [{"text": "yes"}],
                    }
                },
            },
            "1.0",
        ),
        (
            "/v1/chat/completions",
            {
                "model": "refund",
                "messages": [{"role": "user", "content": "yes"}],
                "metadata": {"run_id": "RUN"},
            },
            "",
        ),
        (
            "/ag-ui/refund",
            {"resume": [{"interruptId": "RUN:ASKED", "status": "resolved", "payload": "yes"}]},
            "",
        ),
    ],
)
def test_an_answer_by_a_protocol_is_an_act_of_its_caller(audit, path, body, version):
    app = app_of(service_of(audit), access(), protocols=PROTOCOLS)
    with TestClient(app, base_url="http://127.0.0.1", headers=as_caller(ADA)) as client:
        sent = {"workflow": "refund", "input": {"amount": 1}}
        run_id = client.post("/v1/runs", json=sent).json()["run_id"]
        question = waits(client, run_id)
        text = json.dumps(body).replace("RUN", run_id).replace("ASKED", question)
        headers = {"content-type": "application/json"}
        headers |= {"a2a-version": version} if version else {}
        other = client.post(path, content=text, headers={**headers, **as_caller(BEN)})
        assert other.status_code in (200, 404)  # of a2a an error has 200
        assert client.get(f"/v1/runs/{run_id}").json()["questions"]
        assert client.post(path, content=text, headers=headers).status_code == 200
    assert acts_of(audit) == [("ada", "start"), ("ada", "answer")]
    assert audit.read(action="answer")[0][0]["run"] == run_id


def test_what_cannot_be_written_down_is_not_done(audit):
    audit.path.parent.mkdir(parents=True)
    audit.path.mkdir()
    service = service_of(audit)

    async def refused() -> None:
        async with service.running():
            with pytest.raises(Unserved):
                await service.start(ADA_HERSELF, "greeting", {"name": "x"})
            assert list(service.list(ADA_HERSELF)) == []

    asyncio.run(refused())


def test_an_admin_reads_it_page_by_page(audit):
    for number in range(5):
        audit.add(ADA_HERSELF, "start" if number % 2 else "answer", f"r{number}")
    reader = Caller(name="boss", rights=frozenset(["audit"]))

    async def pages() -> list[list[int]]:
        service, found, before = service_of(audit), list[list[int]](), 0
        while not found or before:
            acts, before = await service.acts(reader, before=before, limit=2)
            found.append([act["n"] for act in acts])
        return found

    assert asyncio.run(pages()) == [[5, 4], [3, 2], [1]]
    assert acts_of(audit, action="start") == [("ada", "start")] * 2
    assert acts_of(audit, run="r4") == [("ada", "answer")]


def test_a_line_that_was_changed_or_taken_out_is_seen(audit):
    for number in range(4):
        audit.add(ADA_HERSELF, "start", f"r{number}")
    lines = audit.path.read_text("utf-8").splitlines(keepends=True)
    assert audit.check()[::2] == (4, [])
    audit.path.write_text("".join([lines[0], lines[1].replace("r1", "r9"), *lines[2:]]), "utf-8")
    assert audit.check()[2] == [3]
    audit.path.write_text("".join([lines[0], *lines[2:]]), "utf-8")
    assert audit.check()[2] == [2, 3]
    audit.path.write_text("".join(lines[:2]) + '{"n": 3, "at', "utf-8")  # a process was killed
    audit.add(ADA_HERSELF, "start", "r9")
    audit.add(ADA_HERSELF, "start", "r10")
    found = [(act["n"], act["run"]) for act in audit.read()[0]]
    assert found == [(5, "r10"), (4, "r9"), (2, "r1"), (1, "r0")]
    assert audit.check()[2] == [3]


def test_an_act_of_which_a_full_disk_takes_a_half_leaves_no_line(audit, monkeypatch):
    write, tries = os.write, list[int]()

    def full(file: int, content: bytes) -> int:
        tries.append(file)
        if len(tries) == 2:
            raise OSError(errno.ENOSPC, "full")
        return write(file, content[:20])

    audit.add(ADA_HERSELF, "start", "r0")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(Unserved, match="full"):
            audit.add(ADA_HERSELF, "start", "r1")
    audit.add(ADA_HERSELF, "start", "r2")
    assert audit.check()[::2] == (2, [])


def test_several_processes_write_one_chain(audit):
    program = (
        "import sys\n"
        "from axil_serve.access import Caller\n"
        "from axil_serve.audit import Audit\n"
        "for number in range(50):\n"
        "    Audit(sys.argv[1]).add(Caller(name=sys.argv[2]), 'start', 'x' * number)\n"
    )
    every = [
        subprocess.Popen([sys.executable, "-c", program, str(audit.path), name]) for name in "abc"
    ]
    assert [each.wait(60) for each in every] == [0, 0, 0]
    assert audit.check()[::2] == (150, [])
    assert len(audit.read(limit=1000, who="b")[0]) == 50


def test_it_has_no_secret_and_no_workflow_file_is_granted_it(audit):
    keep_secret("sk-canary-of-the-audit", "${KEY}")
    audit.add(ADA_HERSELF, "upload", file="sk-canary-of-the-audit.txt")
    assert "sk-canary" not in audit.path.read_text("utf-8")
    assert is_axils(audit.path)
    assert is_axils(audit.path.parents[1] / SESSIONS / "x")


def test_the_command_shows_it_and_says_whether_it_is_whole(audit):
    audit.add(ADA_HERSELF, "answer", "r1", questions=["a"])
    said: list[str] = []
    session = SimpleNamespace(say=said.append)
    parser, command = argparse.ArgumentParser(), AuditTrail()
    command.configure(parser)
    files = ["--files", str(audit.path.parents[1])]
    assert command.run(parser.parse_args(files), session) == 0
    assert said[0].split() == ["WHEN", "WHO", "DID", "RUN", "FROM", "MORE"]
    assert "ada" in said[1]
    assert "r1" in said[1]
    assert command.run(parser.parse_args([*files, "--check"]), session) == 0
    audit.path.write_text(audit.path.read_text("utf-8").replace("}", "}}"), "utf-8")
    assert command.run(parser.parse_args([*files, "--check"]), session) == 1
    with pytest.raises(Unserved):
        command.run(parser.parse_args(["--files", "nowhere"]), session)
