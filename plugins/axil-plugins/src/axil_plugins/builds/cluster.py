"""The outputs ``compose`` and ``helm``: workers of the workflows, on the image of ``container``.

Compose starts PostgreSQL and workers on one machine. The chart starts workers in Kubernetes, on a
database that exists.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Final

from axil_plugins.builds.outputs import package_of
from axil_plugins.builds.plan import Plan

_COMPOSE: Final = """\
# {name} {version}: a PostgreSQL database and workers.
#   AXIL_DATABASE_PASSWORD=... docker compose up --build --detach
#   docker compose up --detach --scale worker=8
#   docker compose run --rm worker {submit}
services:
  database:
    image: "postgres:17-alpine"
    restart: unless-stopped
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
    build: ./container
    image: {image}
    restart: unless-stopped
    command: {command}
    environment:
      AXIL_JOURNAL: "postgresql://axil@database/axil"
      PYTHONPATH: {flows}
      PGPASSWORD: "${{AXIL_DATABASE_PASSWORD:?choose a password}}"
    depends_on:
      database: {{condition: service_healthy}}
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
image: {image}
replicas: 3
# The database, without its password: postgresql://user@host:5432/name
journal: ""
# A secret with the password, and the key in it.
passwordSecret: {{name: {name}-database, key: password}}
command: {command}
# The folder of the workflows in the image.
flows: {flows}
# Further variables, as for a container: [{{name: ..., valueFrom: ...}}]
env: []
resources: {{requests: {{cpu: 250m, memory: 256Mi}}, limits: {{memory: 1Gi}}}}
"""

_WORKERS: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-worker
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {app: {{ .Release.Name }}-worker}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}-worker}
    spec:
      terminationGracePeriodSeconds: 30
      securityContext: {runAsNonRoot: true, runAsUser: 10001}
      containers:
        - name: worker
          image: {{ .Values.image | quote }}
          args: {{ .Values.command | toJson }}
          env:
            - name: AXIL_JOURNAL
              value: {{ required "journal is not set" .Values.journal | quote }}
            - {name: PYTHONPATH, value: {{ .Values.flows | quote }}}
            - name: PGPASSWORD
              valueFrom:
                secretKeyRef: {{ .Values.passwordSecret | toJson }}
            {{- with .Values.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          resources: {{ .Values.resources | toJson }}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""


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
    (folder / "templates" / "workers.yaml").write_text(_WORKERS, "utf-8")
    return folder


def _data(plan: Plan, python: tuple[int, int], allow_code: bool) -> dict[str, str]:
    """Return what the texts name; JSON is YAML."""
    flows = flows_folder(plan, python)
    command = worker_command(plan, flows, allow_code=allow_code)
    submit = ["axil", "submit", command[2], *command[2 + len(plan.workflows) :]]
    return {
        "name": plan.name,
        "version": plan.version,
        "image": json.dumps(f"{plan.name}:{plan.version}"),
        "command": json.dumps(command),
        "submit": shlex.join([*submit, "--input", "TEXT"]),
        "flows": json.dumps(flows),
    }


__all__ = ["compose", "flows_folder", "helm", "worker_command"]
