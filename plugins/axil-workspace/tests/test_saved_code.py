"""Laws of ``code_save_and_run``: the processor of an edge that runs what comes on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from axil import NodeFailed, Workflow, run_sync
from axil.plugin import CompileOptions
from axil_files import load_spec
from axil_workspace.saved_code import files_in

PROGRAM = """Here it is.

main.py
```python
import part
print("sum", part.add(1, 2))
```
part.py
```python
def add(a, b):
    return a + b
```
"""


@pytest.fixture
def ran(tmp_path):
    """``ran(text, …)``: what the end of a small graph is given, of two sources."""

    def call(*texts: str, process: Any = None, allow: Any = ("code",)) -> str:
        process = process or {"type": "function", "config": {"name": "code_save_and_run"}}
        literals = [
            {"id": f"L{n}", "type": "literal", "config": {"content": text}}
            for n, text in enumerate(texts)
        ]
        last = {"id": "Z", "type": "passthrough", "config": {"only_last_message": False}}
        edges: list[dict[str, Any]] = [{"from": f"L{n}", "to": "Z"} for n in range(len(texts))]
        edges[-1]["process"] = process
        graph = {
            "id": "g",
            "start": [each["id"] for each in literals],
            "end": ["Z"],
            "nodes": [*literals, last],
            "edges": edges,
        }
        (tmp_path / "flow.json").write_text(json.dumps({"version": "0.4.0", "graph": graph}))
        flow = Workflow(load_spec(tmp_path / "flow.json"), CompileOptions())
        result = run_sync(flow.run("task", workspace=tmp_path / "run", allow=frozenset(allow)))
        assert result.status == "done"
        return "\n===\n".join(each["content"] for each in result.messages)

    return call


def test_files_are_saved_and_the_program_is_run(ran, tmp_path):
    said = ran(PROGRAM)
    assert said.startswith("main.py\n```python\nimport part")
    assert said.endswith("sum 3\n\nThe software run successfully without errors.")
    assert "Here it is" not in said
    assert (tmp_path / "run/part.py").read_text().startswith("def add")


def test_a_text_without_files_is_carried_as_it_is(ran, tmp_path):
    assert ran("no program") == "no program"
    assert not (tmp_path / "run").exists()


def test_only_what_comes_on_that_edge_is_run(ran):
    first, second = ran(PROGRAM, "main.py\n```\nprint('second')\n```").split("\n===\n")
    assert first == PROGRAM
    assert "second\n\nThe software" in second


def test_a_program_that_fails_is_reported_with_its_error(ran, tmp_path):
    said = ran("main.py\n```python\nraise ValueError('wrong')\n```")
    assert "ValueError: wrong" in said
    assert "successfully" not in said
    assert str(tmp_path) not in said


def test_the_files_of_the_program_before_are_gone_and_no_others(ran, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine.txt").write_text("mine")
    ran(PROGRAM)
    ran("main.py\n```\nprint(1)\n```")
    left = {each.name for each in (tmp_path / "run").iterdir()}
    assert left == {"mine.txt", "main.py", ".saved_code.json"}


def test_no_file_is_saved_outside_the_workspace(ran, tmp_path):
    said = ran("../away.py\n```\nprint(1)\n```")
    assert "Error: AX870" in said
    assert not (tmp_path / "away.py").exists()


def test_a_run_that_does_not_allow_code_runs_no_program(ran, tmp_path):
    with pytest.raises(NodeFailed, match="AX876"):
        ran(PROGRAM, allow=())
    assert not (tmp_path / "run/main.py").exists()


def test_of_two_files_of_one_name_the_last_counts():
    assert files_in("a.py\n```\n1\n```\na.py\n```python\n2\n```") == [("a.py", "2")]
