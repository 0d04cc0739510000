"""The outputs ``compose`` and ``helm``: workers of the workflows, on the image of ``container``.

Compose starts PostgreSQL and workers on one machine. The chart starts workers in Kubernetes, on a
database that exists, and ``axil serve`` where it is in the build.
"""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Final

from axil_plugins.builds.outputs import package_of
from axil_plugins.builds.plan import Plan

_COMPOSE: Final = """\
# {name} {version}: a PostgreSQL database and workers.
#   AXIL_DATABASE_PASSWORD=... docker compose up --build --detach
#   docker compose up --detach --scale worker=8
#   docker compose run --rm worker {submit}
x-kept: &kept
  restart: unless-stopped
  security_opt: ["no-new-privileges:true"]
  cap_drop: [ALL]
  logging: {{driver: json-file, options: {{max-size: 10m, max-file: "5"}}}}
services:
  database:
    <<: *kept
    image: "postgres:17-alpine"
    # what its start needs to become the user postgres
    cap_add: [CHOWN, DAC_READ_SEARCH, FOWNER, SETGID, SETUID]
    environment:
      POSTGRES_USER: axil
      POSTGRES_DB: axil
      POSTGRES_PASSWORD: "${{AXIL_DATABASE_PASSWORD:?choose a password}}"
    volumes: ["database:/var/lib/postgresql/data"]
    healthcheck:
      test: ["CMD", "pg_isready", "--username", "axil"]
      interval: 2s
      timeout: 5s
      retries: 30
  worker:
    <<: *kept
    build: ./container
    image: {image}
    command: {command}
    environment:
      AXIL_JOURNAL: "postgresql://axil@database/axil"
      # runs that have ended are forgotten after so many days
      AXIL_JOURNAL_RETAIN_DAYS: "${{AXIL_RETAIN_DAYS:-30}}"
      PYTHONPATH: {flows}
      PGPASSWORD: "${{AXIL_DATABASE_PASSWORD:?choose a password}}"
    read_only: true
    tmpfs: ["/tmp:size=512m,mode=1777"]
    depends_on:
      database: {{condition: service_healthy}}
    healthcheck:
      test:
        - CMD
        - python
        - -c
        - import urllib.request as r; r.urlopen('http://127.0.0.1:9464/readyz')
      interval: 10s
      timeout: 6s
      start_period: 60s
    deploy: {{replicas: 3}}
    stop_grace_period: 30s
volumes:
  database: {{}}
"""

_CHART: Final = """\
apiVersion: v2
name: {name}
description: {about}
type: application
version: {version}
appVersion: {version}
"""

_VALUES: Final = """\
# The image: docker build --tag REGISTRY/{name}:{version} container
# Best by its digest: NAME@sha256:...
image: {image}
imagePullSecrets: []
# Workers, if they are not scaled.
replicas: 3
# The database, without its password: postgresql://user@host:5432/name
journal: ""
# Where journal is that of PgBouncer: the server itself.
directJournal: ""
# Days after which runs that have ended are forgotten; null: never.
retainDays: 30
# Secrets, and the keys in them; none of their values is in this chart.
passwordSecret: {{name: {name}-database, key: password}}
journalKeySecret: null
command: {command}
# The folder of the workflows in the image.
flows: {flows}
# Further variables, as for a container: [{{name: ..., valueFrom: ...}}]
env: []
# The folder /tmp, the only one that can be written.
workSize: 2Gi
resources: {{requests: {{cpu: 250m, memory: 256Mi}}, limits: {{memory: 1Gi}}}}
# By how long the first due run has waited. hpa: an adapter has the metric axil_oldest_due_seconds;
# keda: KEDA asks prometheus, an address.
autoscaling: {{kind: none, min: 2, max: 50, oldestDueSeconds: 10, prometheus: ""}}
# Requests over HTTP, with a deployment and a service of its own.
serve:
  enabled: {serves}
  replicas: 2
  command: {serve}
  tokenSecret: {{name: {name}-serve, key: token}}
  resources: {{requests: {{cpu: 250m, memory: 256Mi}}, limits: {{memory: 1Gi}}}}
networkPolicy:
  enabled: true
  # Peers, as of a NetworkPolicy; none: all in the cluster.
  metricsFrom: []
  serveFrom: []
  # Ports that may be reached outside: of the database, and of services.
  ports: [5432, 443]
"""

_TEMPLATES: Final = ("_helpers.tpl", "workers.yaml", "serve.yaml", "network.yaml")
_STATUS: Final = ("--status", "0.0.0.0:9464", "--log", "json")
_SERVE: Final = "axil-serve"


def flows_folder(plan: Plan, python: tuple[int, int]) -> str:
    """Return the folder of the workflows in the image."""
    return f"/app/lib/python{python[0]}.{python[1]}/site-packages/{package_of(plan)}/flows"


def worker_command(plan: Plan, flows: str, *, allow_code: bool) -> list[str]:
    """Return the arguments with which the image is a worker of all its workflows."""
    named = [plan.named(each) for each in plan.workflows]
    # a graph in a module is found by PYTHONPATH
    targets = [name if _is_module(name) else f"{flows}/{name}" for name in named]
    return ["axil", "worker", *targets, *(["--allow", "code"] if allow_code else [])]


def _is_module(name: str) -> bool:
    place, colon, _ = name.partition(":")
    return bool(colon) and not place.endswith(".py")


def compose(plan: Plan, python: tuple[int, int], into: Path, *, allow_code: bool) -> Path:
    """Write ``compose.yaml``, beside the folder ``container``."""
    path = into / "compose.yaml"
    path.write_text(_COMPOSE.format(**_data(plan, python, allow_code)), "utf-8")
    return path


def helm(plan: Plan, python: tuple[int, int], into: Path, *, allow_code: bool) -> Path:
    """Write a chart in the folder ``helm``."""
    folder, data = into / "helm", _data(plan, python, allow_code)
    (folder / "templates").mkdir(parents=True)
    about = json.dumps(f"Workers of {plan.named(plan.workflows[0])}")
    (folder / "Chart.yaml").write_text(_CHART.format(**data, about=about), "utf-8")
    (folder / "values.yaml").write_text(_VALUES.format(**data), "utf-8")
    kept = files("axil_plugins") / "templates" / "chart"
    for name in _TEMPLATES:
        (folder / "templates" / name).write_text((kept / name).read_text("utf-8"), "utf-8")
    schema = (kept / "values.schema.json").read_text("utf-8")
    (folder / "values.schema.json").write_text(schema, "utf-8")
    return folder


def _data(plan: Plan, python: tuple[int, int], allow_code: bool) -> dict[str, str]:
    """Return what the texts name; JSON is YAML."""
    flows = flows_folder(plan, python)
    command = worker_command(plan, flows, allow_code=allow_code)
    submit = ["axil", "submit", command[2], *command[2 + len(plan.workflows) :]]
    serve = ["axil", "serve", *command[2:], "--host", "0.0.0.0", "--port", "8000"]
    return {
        "name": plan.name,
        "version": plan.version,
        "image": json.dumps(f"{plan.name}:{plan.version}"),
        "command": json.dumps([*command, *_STATUS]),
        "serve": json.dumps([*serve, *_STATUS]),
        "serves": json.dumps(_SERVE in plan.distributions),
        "submit": shlex.join([*submit, "--input", "TEXT"]),
        "flows": json.dumps(flows),
    }


__all__ = ["compose", "flows_folder", "helm", "worker_command"]
