"""The tests that docs/how-to/test-without-a-model.md shows pass as it says, in a project of their
own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from axil_agent import Scripted
from axil_cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/how-to/test-without-a-model.md").read_text("utf-8")


def block(kind: str, first: str) -> str:
    return next(
        text
        for text in re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        if text.startswith(first)
    )


def test_the_tests_on_the_page_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # plugins of others start slowly
    agent = {
        "id": "sort",
        "type": "agent",
        "config": {"model": "echoing", "instructions": "You sort mail."},
    }
    (tmp_path / "triage.json").write_text(
        json.dumps({"graph": {"start": ["sort"], "nodes": [agent], "edges": []}})
    )
    line = re.search(r"^pytest_plugins = .*$", PAGE, re.MULTILINE)[0]
    model = "default_registry().register('models', 'echoing', Scripted)"
    (tmp_path / "conftest.py").write_text(
        "from axil.plugin import default_registry\nfrom axil_agent import "
        f"Scripted\n\n{line}\n{model}\n"
    )
    (tmp_path / "test_triage.py").write_text(block("python", "# test_triage.py"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    recorded = subprocess.run(
        [*command, "--axil-record"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert "3 passed" in recorded.stdout, recorded.stdout
    replayed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert "3 passed" in replayed.stdout, replayed.stdout
    assert (tmp_path / "tapes/triage.jsonl").exists()


def test_the_script_on_the_page_is_one(tmp_path, capsys):
    file = tmp_path / "replies.yaml"
    file.write_text(block("yaml", "# replies.yaml"))
    assert len(Scripted.from_file(file).script.rules) == 2
    agent = {
        "id": "a",
        "type": "agent",
        "config": {"instructions": "You plan.", "tools": ["measure_text"]},
    }
    (tmp_path / "flow.json").write_text(
        json.dumps({"graph": {"start": ["a"], "nodes": [agent], "edges": []}})
    )
    ways = ["--input", "axils", "--model-script", str(file)]
    assert main(["run", str(tmp_path / "flow.json"), *ways]) == 0
    assert capsys.readouterr().out == "Three steps.\n"
