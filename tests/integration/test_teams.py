"""The page of teams: each drawing is axil's own of the file above it, which is fine and runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import axil
from axil_cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/teams.md").read_text("utf-8")
SECTIONS = re.findall(
    r"^## `(\w+)`\n.*?^```yaml\n(.*?)^```\n\n```mermaid\n(.*?)^```\n", PAGE, re.MULTILINE | re.DOTALL
)
PROJECT = tomllib.loads((ROOT / "plugins/axil-teams/pyproject.toml").read_text("utf-8"))["project"]


def written(folder: Path, name: str, text: str) -> Path:
    """The node of a section as a whole file."""
    node = "".join(f"      {line}\n" for line in text.splitlines())
    file = folder / "team.yaml"
    file.write_text(
        "version: 1\ngraph:\n  id: team\n"
        f"  start: [{name}]\n  nodes:\n    - id: {name}\n{node}  edges: []\n",
        "utf-8",
    )
    return file


def test_every_team_is_on_the_page():
    assert sorted(name for name, _, _ in SECTIONS) == sorted(PROJECT["entry-points"]["axil.nodes"])


@pytest.mark.parametrize(("name", "text", "drawing"), SECTIONS, ids=[s[0] for s in SECTIONS])
def test_the_drawing_of_a_team_is_that_of_its_file_which_runs(
    capsys: Any, tmp_path: Path, name: str, text: str, drawing: str
) -> None:
    file = written(tmp_path, name, text)
    workflow = axil.load(file)
    assert workflow.draw("mermaid").rstrip() == drawing.rstrip()
    assert workflow.invoke("The task.").status == "done"
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert ("rounds" in said) == ("turns: " in drawing)
