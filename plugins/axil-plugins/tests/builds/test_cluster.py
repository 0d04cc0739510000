"""The compose file and the chart are what their readers take, and start workers of the workflows.

Nothing is assembled here: what they hold is made of the plan alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from axil import ConfigError
from axil.plugin import Policy, Registry
from axil_cli import Submit, Worker
from axil_plugins.builds import cluster
from axil_plugins.builds.outputs import dockerfile
from axil_plugins.builds.plan import Plan, plan
from axil_plugins.builds.settings import read

PYTHON = (sys.version_info.major, sys.version_info.minor)
FLOW = {
    "graph": {
        "nodes": [{"id": "a", "type": "passthrough"}],
        "edges": [],
        "start": ["a"],
        "end": ["a"],
    }
}


def planned(folder: Path, text: str) -> Plan:
    (folder / "flows").mkdir()
    for name in ("one", "two"):
        (folder / f"flows/{name}.json").write_text(json.dumps(FLOW))
    (folder / "axil-build.toml").write_text(f'[workflows]\nfiles = ["flows/*.json"]\n{text}')
    return plan(read([str(folder / "axil-build.toml")]), Registry(Policy()))


@pytest.fixture
def acme(tmp_path: Path) -> Plan:
    return planned(tmp_path, '[dist]\nname = "acme-flow"\noutputs = ["compose", "helm"]\n')


def parsed(command: Any, words: list[str]) -> argparse.Namespace:
    """Return what the command reads from its arguments."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    command().configure(parser)
    return parser.parse_args(words)


def test_a_compose_file_starts_a_database_and_workers(acme: Plan, tmp_path: Path):
    assert {"axil-journals", "axil-postgres", "psycopg"} <= set(acme.distributions)
    path = cluster.compose(acme, PYTHON, tmp_path, allow_code=False)
    made = yaml.safe_load(path.read_text())
    assert set(made) == {"services", "volumes"}
    worker, database = made["services"]["worker"], made["services"]["database"]
    assert database["volumes"] == ["database:/var/lib/postgresql/data"]
    assert worker["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert (worker["build"], worker["deploy"]) == ("./container", {"replicas": 3})
    assert worker["environment"]["AXIL_JOURNAL"] == "postgresql://axil@database/axil"
    assert "axil@database" in worker["environment"]["AXIL_JOURNAL"]
    program, verb, *words = worker["command"]
    assert (program, verb) == ("axil", "worker")
    # the program of the image hands what follows "axil" to the command
    assert 'ENTRYPOINT ["acme-flow"]' in dockerfile(acme, acme.workflows[0], PYTHON)
    flows = f"/app/lib/python{PYTHON[0]}.{PYTHON[1]}/site-packages/acme_flow_flow/flows"
    assert parsed(Worker, words).targets == [f"{flows}/one.json", f"{flows}/two.json"]
    (submit,) = re.findall("run --rm worker axil submit (.*)", path.read_text())
    assert parsed(Submit, submit.split()).target == f"{flows}/one.json"


def test_a_chart_starts_workers(acme: Plan, tmp_path: Path):
    folder = cluster.helm(acme, PYTHON, tmp_path, allow_code=True)
    chart = yaml.safe_load((folder / "Chart.yaml").read_text())
    assert (chart["name"], chart["apiVersion"], chart["version"]) == ("acme-flow", "v2", "0.1.0")
    values = yaml.safe_load((folder / "values.yaml").read_text())
    assert parsed(Worker, values["command"][2:]).allow == ["code"]
    template = (folder / "templates/workers.yaml").read_text()
    named = set(re.findall(r"\.Values\.(\w+)", template))
    assert named == set(values)
    # as Helm would, without its functions
    values |= {"journal": "postgresql://axil@db/axil"}
    plain = re.sub(r"\{\{-? (with|toYaml|end).*\}\}", "", template)
    plain = plain.replace("{{ .Release.Name }}", "acme")
    plain = re.sub(r"\{\{.*\.Values\.(\w+).*?\}\}", lambda m: json.dumps(values[m[1]]), plain)
    (container,) = yaml.safe_load(plain)["spec"]["template"]["spec"]["containers"]
    assert container["args"] == values["command"]
    variables = {each["name"]: each for each in container["env"]}
    assert variables["AXIL_JOURNAL"]["value"] == "postgresql://axil@db/axil"
    assert variables["PGPASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == "acme-flow-database"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[dist]\noutputs = ["compose"]\ncommand = false\n', "need command = true"),
        ('functions = "flows"\n[dist]\noutputs = ["helm"]\n', "AX740.*read no functions"),
    ],
)
def test_workers_need_the_command_and_no_functions(tmp_path: Path, text: str, problem: str):
    with pytest.raises(ConfigError, match=problem):
        planned(tmp_path, text)
