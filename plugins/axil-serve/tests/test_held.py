"""Laws of callers' own secrets: a run has those of its owner, and nothing keeps them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from axil import Context, RootGraph, Workflow
from axil.plugin import CallerSecrets, Secret, caller_secret
from axil_journals import MemoryJournal
from axil_serve import Caller, RunService, app_of
from axil_serve.audit import Audit
from axil_serve.command import _caller_secrets
from axil_serve.errors import Unserved
from axil_sqlite import SqliteJournal

from .conftest import ADA, BEN, PROTOCOLS, access, as_caller

NAMES = {"x-github-token": "GITHUB_TOKEN"}
OURS, THEIRS = "ghp-canary-of-ada-0001", "ghp-canary-of-ben-0002"


def acting(used: list[str]) -> Workflow:
    """Return a graph that asks, and then acts on behalf of its caller."""
    graph = RootGraph("acting")

    async def act(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        if inputs.get("asks"):
            await ctx.ask("Go on?")

        async def call() -> str:
            value = caller_secret("GITHUB_TOKEN").get_secret_value()
            used.append(value)
            return f"asked with {value}"

        return {"said": await ctx.step("call", call)}

    graph.create_node(act, name="act")
    graph.edge_from_entry("act", {"asks": ""})
    graph.edge_to_exit("act", {"said": ""})
    return graph.build()


def service_of(journal: Any, used: list[str], **options: Any) -> RunService:
    names = list(NAMES.values())
    ways: dict[str, Any] = {"poll_seconds": 0.01, "recheck_seconds": 0.05, **options}
    return RunService(journal, {"acting": acting(used)}, secrets=names, **ways)


def caller(name: str, value: str = "") -> Caller:
    values = {"GITHUB_TOKEN": value} if value else {}
    return Caller(name=name, secrets=CallerSecrets(NAMES.values(), values), sees_all=True)


def test_each_run_has_the_secret_of_its_own_caller(tmp_path):
    used: list[str] = []
    folder = tmp_path / "journal"
    journal = SqliteJournal(folder)
    audit = Audit(tmp_path / "audit.jsonl")
    app = app_of(
        service_of(journal, used, audit=audit), access(), protocols=PROTOCOLS, secrets=NAMES
    )
    with TestClient(app, base_url="http://127.0.0.1") as client:
        texts: list[str] = []
        for token, value in ((ADA, OURS), (BEN, THEIRS), (ADA, "")):
            headers = {**as_caller(token), **({"X-Github-Token": value} if value else {})}
            body = {"workflow": "acting", "input": {"asks": ""}}
            run_id = client.post("/v1/runs", json=body, headers=headers).json()["run_id"]
            path = f"/v1/runs/{run_id}"
            with client.stream("GET", f"{path}/events", headers=headers) as stream:
                texts.append("".join(stream.iter_text()))
            texts.append(client.get(path, headers=headers).text)
        assert json.loads(texts[1])["output"] == {"said": "asked with ${GITHUB_TOKEN}"}
        # what followers see live is what is stored: no step comes twice
        assert texts[0].count('"kind": "ended"') == texts[0].count('"kind": "done"') == 1
        assert "AX994" in texts[5]
        search = client.get(f"/v1/search?q={OURS}", headers=as_caller(ADA)).json()
        assert search["found"] == []
    journal.close()
    assert used == [OURS, THEIRS]
    kept = "".join(texts) + audit.path.read_text("utf-8")
    for file in folder.rglob("*"):
        kept += file.read_bytes().decode("latin-1") if file.is_file() else ""
    assert OURS not in kept
    assert THEIRS not in kept
    assert "GITHUB_TOKEN" in kept


async def paused(service: RunService, run_id: str) -> str:
    """Wait until a run asks; return the id of its question."""
    async with asyncio.timeout(60):
        while not (asked := service.look(caller("ada"), run_id)["questions"]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return str(asked[0]["id"])


async def done(service: RunService, run_id: str) -> Any:
    async with asyncio.timeout(60):
        while (  # noqa: ASYNC110  # whatever process executes it
            run := service.look(caller("ada"), run_id)
        )["status"] not in ("done", "failed"):
            await asyncio.sleep(0.01)
    return run


def test_who_answers_gives_a_run_nothing_and_its_owner_gives_it_anew():
    used: list[str] = []

    async def answered() -> None:
        service = service_of(MemoryJournal(), used)
        async with service.running():
            run_id = await service.start(caller("ada", OURS), "acting", {"asks": True})
            question = await paused(service, run_id)
            await service.answer(caller("ben", THEIRS), run_id, {question: "yes"})
            await done(service, run_id)
            again = await service.start(caller("ada", OURS), "acting", {"asks": True})
            question = await paused(service, again)
            await service.answer(caller("ada", "ghp-canary-renewed-3"), again, {question: "yes"})
            await done(service, again)

    asyncio.run(answered())
    assert used == [OURS, "ghp-canary-renewed-3"]


def test_another_process_leaves_the_run_open_until_its_owner_comes(tmp_path):
    used: list[str] = []

    async def over() -> None:
        first = SqliteJournal(tmp_path)
        service = service_of(first, used)
        async with service.running():
            run_id = await service.start(caller("ada", OURS), "acting", {"asks": True})
            question = await paused(service, run_id)
        first.close()
        second = SqliteJournal(tmp_path)  # as a server that was started again
        service = service_of(second, used)
        async with service.running():
            await service.answer(caller("ben", THEIRS), run_id, {question: "yes"})
            await asyncio.sleep(0.3)
            assert service.look(caller("ada"), run_id)["status"] in ("open", "queued")
            assert used == []
            await service.resume(caller("ben", THEIRS), run_id)
            await asyncio.sleep(0.3)
            assert used == []
            await service.resume(caller("ada", OURS), run_id)
            assert (await done(service, run_id))["status"] == "done"
        second.close()

    asyncio.run(over())
    assert used == [OURS]


def test_of_two_servers_the_one_that_has_the_secret_executes_the_run(tmp_path):
    used: list[str] = []

    async def shared() -> list[str]:
        journals = [SqliteJournal(tmp_path) for _ in range(2)]
        one, other = (service_of(journal, used) for journal in journals)
        async with one.running(), other.running():
            runs = [
                await one.start(caller("ada", OURS), "acting", {"asks": False}) for _ in range(5)
            ]
            found = [(await done(one, run_id))["status"] for run_id in runs]
        for journal in journals:
            journal.close()
        return found

    assert asyncio.run(shared()) == ["done"] * 5
    assert used == [OURS] * 5


def test_a_component_that_serves_all_callers_is_refused_the_secret_of_one():
    used: list[str] = []
    graph = RootGraph("keeping")

    def keep(inputs: dict[str, Any]) -> dict[str, Any]:
        used.append(Secret({"env": "GITHUB_TOKEN"}).resolve().get_secret_value())
        return inputs

    graph.create_node(keep, name="keep")
    graph.edge_from_entry("keep", {"x": ""})
    graph.edge_to_exit("keep", {"x": ""})

    async def kept() -> Any:
        service = RunService(
            MemoryJournal(),
            {"keeping": graph.build()},
            secrets=["GITHUB_TOKEN"],
            poll_seconds=0.01,
        )
        async with service.running():
            return await done(
                service, await service.start(caller("ada", OURS), "keeping", {"x": 1})
            )

    run = asyncio.run(kept())
    assert (run["status"], used) == ("failed", [])
    assert "AX994" in run["error"]


def test_a_secret_of_callers_is_never_that_of_the_server(monkeypatch):
    monkeypatch.setitem(os.environ, "GITHUB_TOKEN", "of-the-server-itself")
    used: list[str] = []

    async def started() -> Any:
        service = service_of(MemoryJournal(), used)
        async with service.running():
            return await done(
                service, await service.start(Caller(name="ada"), "acting", {"asks": 0})
            )

    assert asyncio.run(started())["status"] == "failed"
    assert used == []
    for wrong in ("X-A", "X A=B", "Authorization=B", "X-A=B C", "X-A=GITHUB_TOKEN", "cookie=A"):
        with pytest.raises(Unserved):
            _caller_secrets([wrong])
    assert _caller_secrets(["X-A=A_TOKEN"]) == {"x-a": "A_TOKEN"}


def test_no_text_of_them_shows_a_value(tmp_path: Path):
    secrets = CallerSecrets(NAMES.values(), {"GITHUB_TOKEN": OURS, "other": "x"})
    assert OURS not in repr(secrets) + repr(caller("ada", OURS)) + str(vars(type(secrets)))
    assert secrets.given == ("GITHUB_TOKEN",)
