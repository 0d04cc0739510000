"""Schemathesis against ``axil serve``: what it sends of the OpenAPI document is answered as that
says. ``make check`` runs it, with the program that AXIL_SCHEMATHESIS names; beside it
AXIL_SCHEMATHESIS_SECONDS and AXIL_SCHEMATHESIS_SEED say how long and with which seed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = os.environ.get("AXIL_SCHEMATHESIS", "")
SECONDS = int(os.environ.get("AXIL_SCHEMATHESIS_SECONDS", "30"))
SEED = os.environ.get("AXIL_SCHEMATHESIS_SEED", "1")
TOKEN = "a token of at least sixteen characters"
FLOWS = {
    "asking.yaml": """\
version: 1
graph:
  start: [approve]
  end: [approve]
  nodes:
    - {id: approve, type: human, config: {description: May this be sent?}}
  edges: []
""",
    "talking.yaml": """\
version: 1
graph:
  start: [write]
  end: [write]
  nodes:
    - {id: write, type: agent, config: {model: {type: scripted, default: a text}, instructions: W}}
  edges: []
""",
}


@pytest.mark.skipif(not PROGRAM, reason="AXIL_SCHEMATHESIS names no program")
def test_the_routes_are_as_the_document_says(tmp_path: Path):
    for name, text in FLOWS.items():
        (tmp_path / name).write_text(text, "utf-8")
    serve = [sys.executable, "-m", "axil_cli.main", "serve", *FLOWS, "--port", "0"]
    environment = {**os.environ, "AXIL_SERVE_TOKEN": TOKEN}
    options = ["--requests-per-minute", "1000000", "--prompts", "whole"]
    log = tmp_path / "log"
    with (
        open(log, "w", encoding="utf-8") as lines,
        subprocess.Popen([*serve, *options], cwd=tmp_path, env=environment, stderr=lines) as server,
    ):
        try:
            while (found := re.search(r"Page: (http://\S+?)/", log.read_text("utf-8"))) is None:
                assert server.poll() is None, log.read_text("utf-8")
                time.sleep(0.1)
            ways = ["--checks", "all", "--seed", SEED, "--max-time", str(SECONDS)]
            ways += ["--header", f"Authorization: Bearer {TOKEN}", "--no-color"]
            run = subprocess.run(
                [PROGRAM, "run", f"{found[1]}/v1/openapi.json", *ways, "--request-timeout", "20"],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=SECONDS + 300,
            )
        finally:
            server.terminate()
    assert run.returncode == 0, run.stdout[-8_000:]
