"""Probes, metrics and JSON logs of a worker, and ``axil top``."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from axil import ConfigError, Result, RootGraph
from axil.plugin import JournalError, RunUsage, keep_secret
from axil_cli import answered_probes
from axil_cli.logs import JsonLines
from axil_cli.main import main
from axil_journals import (
    METRICS,
    EngineTally,
    LocalEngine,
    MemoryJournal,
    Place,
    process_metrics,
)
from axil_sqlite import SqliteJournal

log = logging.getLogger("test_probes")


def asking() -> RootGraph:
    async def ask(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        log.warning("asks")
        return {"n": await ctx.ask("n?", name="q")}

    graph = RootGraph("asks")
    node = graph.create_node(ask, name="ask")
    graph.edge_from_entry(node, {})
    graph.edge_to_exit(node, {"n": ""})
    return graph.build()


async def got(port: int, request: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request} HTTP/1.1\r\nhost: worker\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


def test_a_worker_answers_probes_and_counts_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, graph = MemoryJournal(), asking()

    async def go() -> None:
        async with (
            LocalEngine(journal, [graph]) as engine,
            answered_probes(engine, "127.0.0.1:0") as port,
        ):
            await engine.start(graph, {}, run_id="r", place=Place(queue='a"b'))
            await engine.idle()
            assert await got(port, "GET /healthz") == (200, "ok\n")
            assert await got(port, "GET /readyz") == (200, "ok\n")
            assert (await got(port, "GET /v1/runs"))[0] == 404
            assert (await got(port, "POST /healthz"))[0] == 405
            _, own = await got(port, "GET /metrics")
            lines = own.splitlines()
            assert "axil_takes_total 1" in lines
            assert 'axil_run_ends_total{queue="a\\"b",workflow="asks",status="paused"} 1' in lines
            _, whole = await got(port, "GET /metrics/journal")
            waiting = 'axil_runs{queue="a\\"b",workflow="asks",state="waiting"} 1'
            assert waiting in whole.splitlines()
            names = {line.split()[2] for line in (own + whole).splitlines() if line[0] == "#"}
            assert names <= METRICS.keys()

            def away(now: float) -> float:
                raise JournalError("it is away.", id="AX510")

            monkeypatch.setattr(journal, "next_due", away)
            status, text = await got(port, "GET /readyz")
            assert (status, "it is away" in text) == (503, True)
            assert (await got(port, "GET /healthz"))[0] == 200
            monkeypatch.undo()

    asyncio.run(go())


@pytest.mark.parametrize("address", ["x", "host:", "1:99999"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    async def go() -> None:
        async with LocalEngine() as engine, answered_probes(engine, address):
            pass

    with pytest.raises(ConfigError, match="AX700"):
        asyncio.run(go())


def test_tokens_and_money_are_counted_by_queue_and_workflow_and_once() -> None:
    """Not again what a run had used before it was loaded."""
    tally, usage = EngineTally(), RunUsage(tokens={"input": 12, "output": 3}, cost=0.75)
    of = {"queue": "q", "workflow": "w"}
    used = {"tokens": {"input": 5}, "cost": 0.25}
    tally.ended(Result(status="done", run_id="r", usage=usage), of, used)
    lines = process_metrics(tally, loaded=0, commits=0).splitlines()
    assert 'axil_tokens_total{queue="q",workflow="w",kind="input"} 7' in lines
    assert 'axil_tokens_total{queue="q",workflow="w",kind="output"} 3' in lines
    assert 'axil_cost_total{queue="q",workflow="w"} 0.5' in lines


def test_a_log_line_is_json_and_has_the_run_in_which_it_was_written() -> None:
    keep_secret("canary-of-the-log", "${KEY}")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    log.addHandler(handler)

    async def go() -> None:
        graph = asking()
        async with LocalEngine(MemoryJournal(), [graph]) as engine:
            await engine.start(graph, {}, run_id="r1")
            await engine.idle()
        log.error("it is canary-of-the-log\nand %s", "more")

    try:
        asyncio.run(go())
    finally:
        log.removeHandler(handler)
    inside, outside = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (inside["run_id"], inside["message"], inside["level"]) == ("r1", "asks", "warning")
    assert outside["message"] == "it is ${KEY}\nand more"
    assert "run_id" not in outside


def test_top_shows_once_what_waits_and_what_is_parked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = SqliteJournal(tmp_path)
    graph = asking()

    async def go() -> None:
        async with LocalEngine(journal, loaded=0) as engine:
            for name in ("one", "two"):
                await engine.start(graph, {}, run_id=name, place=Place(queue="mail"))

    asyncio.run(go())
    with journal.writer.store.writing() as connection:
        connection.execute("update runs set status = 'parked', due = null where run = 'two'")
    journal.close()
    assert main(["top", "--once", "--journal", str(tmp_path)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "due 1  held 0  waiting 0  parked 1"
    assert next(line.split() for line in shown if line.startswith("mail"))[2:6] == list("1001")
    assert any(line.split()[:2] == ["two", "parked"] for line in shown)
