"""Laws of a run that kills its process: it is parked, is seen to be, and holds up no other run."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.databases import postgres_server
from tests.house import programs

from axil_cli.main import main
from axil_postgres import PostgresJournal
from axil_serve import Access, Caller, RunService, app_of, token_digest
from axil_sqlite import SqliteJournal

ROOT = Path(__file__).parents[2]
HEALTHY = [f"r{number}" for number in range(20)]
DEATHS = 13
"""The first one, those of trials beside others, one for each worker, five alone, and to spare."""
TOKEN = "ada-" * 8

GRAPH = """
import os
import signal
import time
from pathlib import Path

from axil import RootGraph

graph = RootGraph("trials")


def first(inputs):
    if inputs["run"] == "poison" and not Path("mended").exists():
        os.kill(os.getpid(), signal.SIGKILL) if os.environ["DEATH"] == "SIGKILL" else os._exit(9)
    time.sleep(0.05)
    return {"run": inputs["run"]}


def second(inputs):
    return {"run": inputs["run"]}


one, two = graph.create_node(first, name="one"), graph.create_node(second, name="two")
graph.edge_from_entry(one, {"run": ""})
graph.create_edge(one, two, {"run": ""})
graph.edge_to_exit(two, {"run": ""})
graph.build()
"""
WORKER = """
import sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from axil_cli.main import main
from axil_postgres import PostgresJournal

Settings = PostgresJournal.Config
Settings.model_fields["lease_seconds"].default = 1.0  # or each death would take six seconds more
Settings.model_rebuild(force=True)
reader = PeriodicExportingMetricReader(ConsoleMetricExporter(), 60_000)
metrics.set_meter_provider(MeterProvider([reader]))
sys.exit(main(sys.argv[1:]))
"""
"""``axil worker``, with its metrics on standard output when it ends."""


class Workers:
    """Two workers, each of which is replaced when it dies."""

    def __init__(self, said: Path) -> None:
        self._said = said
        self.alive = [self._begun(), self._begun()]
        self.deaths: list[int] = []

    def _begun(self) -> programs.Popen:
        words = ["--hook", "otel", "worker", "trials.py:graph", "--allow", "code"]
        with self._said.open("ab") as said:
            return programs.Popen([sys.executable, "-c", WORKER, *words], stdout=said)

    def tend(self) -> None:
        """Replace those that died."""
        for each in [each for each in self.alive if each.poll() is not None]:
            self.deaths.append(each.returncode)
            assert len(self.deaths) <= DEATHS
            self.alive[self.alive.index(each)] = self._begun()

    def end(self) -> None:
        """Ask all to end."""
        for each in self.alive:
            each.terminate()
        for each in self.alive:
            # one may have been starting still
            assert each.wait(60) in (0, -signal.SIGTERM)

    def close(self) -> None:
        for each in self.alive:
            each.kill()
            each.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("kind", "death"), [("sqlite", "exit"), ("postgresql", "SIGKILL")])
def test_a_run_that_kills_its_workers_is_parked_seen_everywhere_and_resumed(
    kind: str,
    death: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DEATH", death)
    Path("trials.py").write_text(GRAPH, "utf-8")

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main(words) == 0
        return capsys.readouterr().out

    with ExitStack() as stack:
        place = str(tmp_path / "runs")
        if kind != "sqlite":
            place = stack.enter_context(postgres_server()).url
        monkeypatch.setenv("AXIL_JOURNAL", place)
        for run in (*HEALTHY[:7], "poison", *HEALTHY[7:]):
            given = json.dumps({"run": run})
            said("submit", "trials.py:graph", "--allow", "code", "--input", given, "--run-id", run)
        journal: Any = SqliteJournal(place) if kind == "sqlite" else PostgresJournal(place)
        stack.enter_context(closing(journal))
        workers = Workers(tmp_path / "said")
        stack.enter_context(closing(workers))
        wanted = {**dict.fromkeys(HEALTHY, "done"), "poison": "parked"}
        ends = time.monotonic() + 300.0
        while (found := {info.run_id: info.status for info in journal.runs()}) != wanted:
            assert time.monotonic() < ends, found
            workers.tend()
            time.sleep(0.05)
        workers.tend()  # one may have died since it was looked at
        workers.end()
        code = -signal.SIGKILL if death == "SIGKILL" else 9
        assert set(workers.deaths) == {code}
        assert 6 <= len(workers.deaths) <= DEATHS

        listed = json.loads(said("runs", "list", "--status", "parked", "--format", "json"))
        assert [each["run_id"] for each in listed] == ["poison"]
        shown = said("runs", "show", "poison")
        assert "parked" in shown
        assert "AX543 the process died 5 times" in shown
        assert '"axil.run.status": "parked"' in (tmp_path / "said").read_text("utf-8")

        access = Access([(token_digest(TOKEN, "ada"), Caller(name="ada", sees_all=True))])
        app = app_of(RunService(journal, watch_only=True), access)
        headers = {"authorization": f"Bearer {TOKEN}"}
        with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
            [run] = client.get("/v1/runs", params={"status": "parked"}).json()["runs"]
            assert run["run_id"] == "poison"
            run = client.get("/v1/runs/poison").json()
            assert run["status"] == "parked"
            assert run["error"].startswith("AX543 the process died 5 times")

        Path("mended").touch()
        said("runs", "resume", "poison", "--allow", "code")
        assert '"status": "done"' in said("runs", "show", "poison", "--format", "json")
        assert journal.examine() == []
