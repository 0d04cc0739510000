"""The share of Temporal in a run: its history, its schedules, its death and that of a worker."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from axil import ConfigError, RootGraph
from axil.plugin import EngineError
from axil_cli.main import main
from axil_control import Loop
from axil_journals import LocalEngine, MemoryJournal
from axil_sqlite import SqliteJournal
from axil_temporal import TemporalEngine
from axil_temporal.activities import Version
from axil_temporal.coordinator import Coordinator

from . import chain
from .conftest import Server

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
RECORDED = Path(__file__).with_name("history.json")
_COUNT = itertools.count()


def letters() -> RootGraph:
    async def sign(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"letter": f"Dear {inputs['to']}, {await ctx.ask('Sign as?', name='name')}"}

    graph = RootGraph("letters")
    node = graph.create_node(sign, name="sign")
    graph.edge_from_entry(node, {"to": ""})
    graph.edge_to_exit(node, {"letter": ""})
    return graph.build()


@pytest.fixture
def engine_of(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TemporalEngine]:
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)

    def make(*workflows: RootGraph, **more: Any) -> TemporalEngine:
        given = {"queue": f"t{next(_COUNT)}", "recheck_seconds": 0.5, **more}
        return TemporalEngine(MemoryJournal(), workflows, **given)

    return make


async def asked(engine: TemporalEngine, run_id: str) -> None:
    """Wait until a run asks."""
    async with asyncio.timeout(60):
        since = 0
        while not engine.get(run_id).questions:
            since = await engine.journal.changed(since, 0.05)


def texts(history: Any) -> str:
    """Return everything in a history, with the values in it as they are read."""
    found = list[str]()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                if key == "data" and isinstance(each, str):
                    found.append(base64.b64decode(each).decode())
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        else:
            found.append(str(value))

    walk(history)
    return "\n".join(found)


# ----------------------------------------------------------------------------- without a server


def test_the_coordinator_does_what_it_did_when_its_history_was_recorded():
    """A worker of a later version continues the coordinators of an earlier one."""

    async def replay() -> None:
        replayer = Replayer(workflows=[Coordinator], workflow_runner=UnsandboxedWorkflowRunner())
        await replayer.replay_workflow(WorkflowHistory.from_json("axil/r", RECORDED.read_text()))

    asyncio.run(replay())


def test_an_activity_shows_that_it_is_alive_and_lets_the_journal_decide():
    flow = letters()

    async def go() -> None:
        journal, environment, beats = MemoryJournal(), ActivityEnvironment(), list[Any]()
        environment.on_heartbeat = lambda *given: beats.append(given)
        engine = TemporalEngine(journal, [flow])
        execute = Version(engine, flow).execute
        async with LocalEngine(journal, loaded=0) as client, flow:
            run_id = await client.start(flow, {"to": "Ada"})
            assert await environment.run(execute, run_id, False) == ["paused", None]
            assert beats
            # not due: the body is not begun again, though Temporal asks
            assert await environment.run(execute, run_id, False) == ["paused", None]
            await client.answer(run_id, {"sign?name": "B."})
            assert await environment.run(execute, run_id, False) == ["done", None]
            assert (await client.result(run_id)).output == {"letter": "Dear Ada, B."}
            with pytest.raises(ApplicationError, match="AX503") as caught:
                await environment.run(execute, "unknown", False)
            assert caught.value.non_retryable

    asyncio.run(go())


def test_a_server_that_is_not_there_is_an_error_with_its_address(monkeypatch):
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")

    async def go() -> None:
        async with TemporalEngine(MemoryJournal(), []):
            pass

    with pytest.raises(EngineError, match=r"AX549.*127\.0\.0\.1:1"):
        asyncio.run(go())


def test_an_option_that_there_is_not_is_refused_before_a_run():
    with pytest.raises(ConfigError, match=r'AX130.*TemporalEngine takes no "que".*"queue"'):
        TemporalEngine(que="axil")
    with pytest.raises(TypeError, match="limits: expected Limits"):
        TemporalEngine(limits={"firings": 3})


# -------------------------------------------------------------------------------- with a server


def test_temporal_has_ids_and_times_and_no_values(engine_of):
    flow = letters()

    async def go() -> Any:
        async with engine_of(flow) as engine:
            await engine.start(flow, {"to": "Ada"}, run_id="r")
            await asked(engine, "r")
            await engine.answer("r", {"sign?name": "a secret answer"})
            assert (await engine.result("r")).output == {"letter": "Dear Ada, a secret answer"}
            handle = engine._handle("r")
            assert await handle.result() == "done"
            return json.loads((await handle.fetch_history()).to_json())

    history = asyncio.run(go())
    if "AXIL_RECORD" in os.environ:
        RECORDED.write_text(json.dumps(history, indent=1) + "\n")
    text = texts(history)
    assert '"r"' in text
    assert flow.plan.graph.digest in text
    assert not any(word in text for word in ("Ada", "secret", "Dear", "Sign as"))


def test_temporal_shows_the_graph_and_the_nodes_at_work(engine_of):
    async def go() -> None:
        gate = asyncio.Event()

        async def wait(inputs: dict[str, Any]) -> dict[str, Any]:
            await gate.wait()
            return inputs

        flow = RootGraph("waiting")
        flow.edge_from_entry(flow.create_node(wait, name="slow"), {"n": ""})
        flow.edge_to_exit(flow.nodes["slow"], {"n": ""})
        flow.build()
        async with asyncio.timeout(60), engine_of(flow) as engine:
            run_id = await engine.start(flow, {"n": 1})
            handle, details = engine._handle(run_id), None
            while not details:  # a heartbeat comes each two seconds
                found = await handle.describe()
                for each in found.raw_description.pending_activities:
                    details = [json.loads(one.data) for one in each.heartbeat_details.payloads]
                if details and not details[0]["at_work"]:
                    details = None
                await asyncio.sleep(0.1)
            assert details[0]["at_work"][0].startswith("slow (")
            digest = flow.plan.graph.digest
            assert await found.memo() == {"run": run_id, "graph": "waiting", "digest": digest}
            assert await found.static_summary() == "waiting"
            gate.set()
            assert (await engine.result(run_id)).status == "done"

    asyncio.run(go())


def test_a_loop_of_many_rounds_costs_temporal_nothing(engine_of):
    """A history is bounded; the rounds are in the journal, where each supersedes the one before."""
    rounds = 200_000 if LONG else 1000

    async def turn(attributes: dict[str, Any]) -> dict[str, Any]:
        attributes["n"] += 1
        return {"n": attributes["n"]}

    flow = RootGraph("turning", attributes={"n": 0})
    given = {"pull_keys": {"n": ""}, "push_keys": {"n": ""}}
    loop = flow.create_node(Loop, name="loop", max_iterations=rounds, **given)
    node = loop.create_node(turn, name="turn", **given)
    loop.edge_from_controller(node, {})
    loop.edge_to_controller(node, {"n": ""})
    flow.edge_from_entry(loop, {})
    flow.edge_to_exit(loop, {"n": ""})
    flow.build()

    async def go() -> None:
        async with asyncio.timeout(600), engine_of(flow) as engine:
            run_id = await engine.start(flow, {})
            assert (await engine.result(run_id)).output["n"] == rounds
            handle = engine._handle(run_id)
            await handle.result()
            # some for each time that the machine was too slow to give a sign of life
            assert len((await handle.fetch_history()).events) <= rounds // 50

    asyncio.run(go())


def test_a_run_that_is_cancelled_in_temporal_ends_in_the_journal(engine_of):
    flow = letters()

    async def go() -> None:
        async with engine_of(flow) as engine, asyncio.timeout(60):
            run_id = await engine.start(flow, {"to": "Ada"})
            await asked(engine, run_id)
            await engine._handle(run_id).cancel()
            result = await engine.result(run_id)
            assert (result.status, str(result.error)) == (
                "cancelled",
                "AX400 cancelled in Temporal",
            )

    asyncio.run(go())


def test_a_schedule_starts_runs_with_its_input_which_temporal_never_sees(engine_of):
    sent = list[str]()

    async def send(inputs: dict[str, Any]) -> dict[str, Any]:
        sent.append(inputs["to"])
        return {}

    graph = RootGraph("sends")
    node = graph.create_node(send, name="send")
    graph.edge_from_entry(node, {"to": ""})
    graph.edge_to_exit(node, {})
    graph.build()

    async def go() -> None:
        async with engine_of(graph) as engine, asyncio.timeout(60):
            await engine.schedule("daily", graph, {"to": "Ada"}, cron=["0 9 * * *"])
            await engine.schedule("daily", graph, {"to": "Bob"}, cron=["30 8 * * MON-FRI"])
            handle = engine._connected.get_schedule_handle(f"{engine.queue}/daily")
            (calendar,) = (await handle.describe()).schedule.spec.calendars
            assert (calendar.hour[0].start, calendar.minute[0].start) == (8, 30)
            await engine.trigger("daily")
            since = 0
            while not any(info.status == "done" for info in engine.list()):
                since = await engine.journal.changed(since, 0.05)
            (done,) = [info for info in engine.list() if info.status == "done"]
            assert done.run_id.startswith("daily-")
            assert sent == ["Bob"]
            assert "Bob" not in texts(
                json.loads((await engine._handle(done.run_id).fetch_history()).to_json())
            )
            await engine.schedule("often", graph, {"to": "Cy"}, every_seconds=1)
            while sent.count("Cy") < 2:
                since = await engine.journal.changed(since, 0.05)
            for name in ("often", "daily"):
                await engine.unschedule(name)
            with pytest.raises(EngineError, match="AX548"):
                await engine.schedule("never", graph, {"to": "Di"})

    asyncio.run(go())


def test_a_run_that_is_started_while_temporal_is_away_begins_when_it_answers(engine_of):
    graph = letters()

    async def go() -> None:
        async with asyncio.timeout(60), engine_of(graph) as engine:
            signal, refused = engine._signal, list[str]()

            async def away(run_id: str, digest: str = "", **more: Any) -> None:
                if not refused:
                    refused.append(run_id)
                    raise RPCError("no answer", RPCStatusCode.UNAVAILABLE, b"")
                await signal(run_id, digest, **more)

            engine._signal = away
            run_id = await engine.start(graph, {"to": "Ada"})
            assert refused == [run_id]
            await asked(engine, run_id)
            refused.clear()
            await engine.answer(run_id, {"sign?name": "B."})
            assert (await engine.result(run_id)).output == {"letter": "Dear Ada, B."}

    asyncio.run(go())


def test_the_command_works_off_what_was_submitted_without_temporal_and_by_triggers(
    server: Server, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    (tmp_path / "app.py").write_text(
        "import os\nfrom chain import chain as made\n"
        "chain = made(os.open('log', os.O_WRONLY | os.O_APPEND | os.O_CREAT))\n"
    )
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    target = ("app.py:chain", "--allow", "code", "--journal", str(tmp_path / "runs"))
    assert main(["submit", *target, "--input", '{"run": "r", "n": 0}', "--run-id", "one"]) == 0
    assert main(["worker", *target, "--engine", "temporal", "--drain"]) == 0
    capsys.readouterr()
    assert main(["runs", "list", "--format", "json", "--journal", str(tmp_path / "runs")]) == 0
    (info,) = json.loads(capsys.readouterr().out)
    assert (info["run_id"], info["status"]) == ("one", "done")
    assert len((tmp_path / "log").read_text().splitlines()) == chain.STEPS
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a")
    (tmp_path / "triggers.toml").write_text(
        '[minute]\nworkflow = "app.py:chain"\ncron = "* * * * *"\ninput = {run = "m", n = 0}\n'
        '[hour]\nworkflow = "app.py:chain"\nevery_seconds = 3600\ninput = {run = "h", n = 0}\n'
        '[files]\nworkflow = "app.py:chain"\nfolder = "in"\ninput = {run = "{path}", n = 0}\n'
    )
    triggers = ("--triggers", "triggers.toml", "--engine", "temporal", "--drain")
    assert main(["worker", "--allow", "code", *target[3:], *triggers]) == 0
    capsys.readouterr()
    assert main(["runs", "list", "--format", "json", "--journal", str(tmp_path / "runs")]) == 0
    infos = json.loads(capsys.readouterr().out)
    assert {info["status"] for info in infos} == {"done"}
    names = {info["run_id"].partition("-")[0] for info in infos}
    assert names >= {"one", "minute", "hour", "files"}


@pytest.mark.parametrize("option", ["--objects", "--queues"])
def test_a_worker_is_refused_options_of_the_local_engine(tmp_path, monkeypatch, capsys, option):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    (tmp_path / "queues.toml").write_text("[small]\nconcurrency = 1\n")
    given = {"--objects": tmp_path.as_uri(), "--queues": "queues.toml"}[option]
    run = ["worker", "--engine", "temporal", "--journal", "j", option, given, "--drain"]
    assert main(run) == 2
    assert f'AX700 {option}: the engine "temporal" has no' in capsys.readouterr().err


@pytest.mark.skipif(not LONG, reason="a server that is killed takes a while: make thorough")
def test_a_killed_server_and_a_killed_worker_lose_nothing_and_repeat_nothing_completed(
    server: Server, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    log, folder, count = tmp_path / "log", tmp_path / "runs", 20
    graph = chain.chain(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    words = [sys.executable, chain.__file__, str(folder), str(log)]

    def begin() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    def end(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def done() -> list[list[str]]:
        return [line.split() for line in log.read_text().splitlines()]

    async def until(steps: int) -> None:
        while len(done()) < steps:  # noqa: ASYNC110  # other processes write it
            await asyncio.sleep(0.02)

    async def go(workers: list[subprocess.Popen[bytes]], killed: set[int]) -> list[Any]:
        journal = SqliteJournal(folder)
        engine = TemporalEngine(journal, [graph], queue="chain", loaded=0)
        async with asyncio.timeout(240), engine:
            ids = [await engine.start(graph, {"run": f"r{n}", "n": 0}) for n in range(count)]
            results = [asyncio.ensure_future(engine.result(run_id)) for run_id in ids]
            await until(count * chain.STEPS // 4)
            victim = workers.pop(0)
            killed.add(victim.pid)
            end(victim)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.begin)
            workers.append(await asyncio.to_thread(begin))
            ended = await asyncio.gather(*results)
        journal.close()
        return ended

    workers, killed = [begin(), begin()], set[int]()
    try:
        ended = asyncio.run(go(workers, killed))
    finally:
        for each in workers:
            end(each)
    assert [result.output["n"] for result in ended] == [chain.STEPS] * count
    steps = Counter((run, step) for run, step, _ in done())
    assert len(steps) == count * chain.STEPS
    # what was done twice was at work when its worker was killed, before it was recorded
    for run, step in (each for each, times in steps.items() if times > 1):
        first = next(int(pid) for name, number, pid in done() if (name, number) == (run, step))
        assert first in killed
