"""The compose file and the chart are what their readers take, and start workers of the workflows.

Nothing is assembled here: what they hold is made of the plan alone.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
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
    assert set(made) == {"services", "volumes", "x-kept"}
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


def test_the_processes_of_a_compose_file_may_do_little(acme: Plan, tmp_path: Path):
    path = cluster.compose(acme, PYTHON, tmp_path, allow_code=False)
    services = yaml.safe_load(path.read_text())["services"]
    for each in services.values():
        assert (each["cap_drop"], each["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    worker = services["worker"]
    assert worker["read_only"] is True
    assert worker["environment"]["AXIL_JOURNAL_RETAIN_DAYS"] == "${AXIL_RETAIN_DAYS:-30}"
    assert ":9464/readyz" in worker["healthcheck"]["test"][-1]
    assert parsed(Worker, worker["command"][2:]).status == "0.0.0.0:9464"


SET: dict[str, Any] = {
    "journal": "postgresql://axil@pooler:6432/axil",
    "directJournal": "postgresql://axil@db/axil",
    "journalKeySecret": {"name": "keys", "key": "journal"},
}


def test_the_values_of_a_chart_are_as_its_schema_says(acme: Plan, tmp_path: Path):
    folder = cluster.helm(acme, PYTHON, tmp_path, allow_code=True)
    chart = yaml.safe_load((folder / "Chart.yaml").read_text())
    assert (chart["name"], chart["apiVersion"], chart["version"]) == ("acme-flow", "v2", "0.1.0")
    values = yaml.safe_load((folder / "values.yaml").read_text())
    assert parsed(Worker, values["command"][2:]).allow == ["code"]
    assert values["serve"]["command"][:2] == ["axil", "serve"]
    schema = json.loads((folder / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(values)
    for part in ("autoscaling", "serve", "networkPolicy"):
        assert set(schema["properties"][part]["properties"]) == set(values[part])
    jsonschema.validate({**values, **SET}, schema)
    for wrong in (
        {"journal": "postgresql://axil:secret@db/axil"},  # a password in the chart
        {"replica": 3},
        {"autoscaling": {"kind": "cron"}},
        {"passwordSecret": {"name": "x"}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**values, **wrong}, schema)


def rendered(folder: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that Helm makes of a chart, by its program or its library."""
    if (program := shutil.which("helm")) is not None:
        given = folder.parent / "given.yaml"
        given.write_text(json.dumps(values))
        words = [program, "template", "acme", str(folder), "--values", str(given)]
        made = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return [each for each in yaml.safe_load_all(made) if each]
    library = pytest.importorskip("helm_python")
    assert library.lint(str(folder), values, strict=True)["errors"] == []
    found = library.Chart.load(str(folder)).render(values, name="acme")
    return [each for text in found.values() for each in yaml.safe_load_all(text) if each]


@pytest.mark.parametrize("kind", ["none", "hpa", "keda"])
def test_helm_makes_objects_that_kubernetes_takes(acme: Plan, tmp_path: Path, kind: str):
    """With libraries of 350 MB, which ``make alone`` installs."""
    kubernetes = pytest.importorskip("kubernetes_validate")
    folder = cluster.helm(acme, PYTHON, tmp_path, allow_code=False)
    scaling = {"kind": kind, "prometheus": "http://prometheus"}
    made = rendered(folder, {**SET, "autoscaling": scaling, "serve": {"enabled": True}})
    kinds = sorted(f"{each['kind']} {each['metadata']['name']}" for each in made)
    more = {"none": [], "hpa": ["HorizontalPodAutoscaler"], "keda": ["ScaledObject"]}[kind]
    assert kinds == sorted(
        [
            *(
                f"{each} acme-{part}"
                for part in ("worker", "serve")
                for each in ("Deployment", "NetworkPolicy", "PodDisruptionBudget")
            ),
            "Service acme-serve",
            *(f"{each} acme-worker" for each in more),
        ]
    )
    for each in made:
        if each["kind"] != "ScaledObject":  # of KEDA
            kubernetes.validate(each, "1.33", strict=True)
    for each in made:
        if each["kind"] != "Deployment":
            continue
        pod = each["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "status"}
        assert len(pod["topologySpreadConstraints"]) == 2
        variables = {one["name"]: one for one in container["env"]}
        assert variables["AXIL_JOURNAL"]["value"] == SET["journal"]
        secrets = [
            one["valueFrom"]["secretKeyRef"]["name"]
            for one in container["env"][-3:]
            if "valueFrom" in one
        ]
        assert "keys" in secrets
        assert ("replicas" in each["spec"]) == (
            kind == "none" or each["metadata"]["name"] == "acme-serve"
        )


def test_an_image_is_made_of_files_that_are_the_same_each_time(acme: Plan):
    """Its base can be named by a digest, and nothing in it depends on when it was built."""
    made = dockerfile(acme, acme.workflows[0], PYTHON)
    assert "ARG BASE=" in made
    assert made.count("FROM ${BASE}") == 2
    assert "--no-compile" in made
    assert "--invalidation-mode unchecked-hash" in made
    assert "useradd" not in made  # /etc/shadow has the day of it
    assert "USER 10001:10001" in made


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
