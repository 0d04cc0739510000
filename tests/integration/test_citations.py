"""A workflow file whose agent cites what its retriever found: its record, and what is shown."""

from __future__ import annotations

import asyncio
import json

from tests.house import programs

from axil_files import load
from axil_journals import MemoryJournal

FILE = """
version: 1
graph:
  start: [a]
  end: [a]
  nodes:
    - id: a
      type: agent
      config:
        model: {type: scripted, default: "Daily [1]."}
        retrievers: [{type: keyword, paths: [moss.md]}]
        cite: true
  edges: []
"""


def test_a_files_record_has_citations_with_the_message(tmp_path):
    (tmp_path / "moss.md").write_text("Moss drinks daily.")
    (tmp_path / "w.yaml").write_text(FILE)
    journal, workflow = MemoryJournal(), load(tmp_path / "w.yaml")
    run = workflow.run("When does moss drink?", journal=journal, run_id="r")
    assert asyncio.run(run).output == "Daily [1]."
    record = str(list(journal.entries("r")))
    assert "'type': 'citation'" in record
    assert f"'url': '{(tmp_path / 'moss.md').as_posix()}'" in record


def test_the_command_shows_citations_as_parts(tmp_path):
    (tmp_path / "moss.md").write_text("Moss drinks daily.")
    (tmp_path / "w.yaml").write_text(FILE)
    asked = ["run", "w.yaml", "--input", "When does moss drink?", "--format", "events"]
    code, out, err = programs.axil(asked, tmp_path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert any("citation" in json.dumps(event) for event in events)
