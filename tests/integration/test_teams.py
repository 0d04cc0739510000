"""The page of teams, where each drawing is axil's own of the file above it; and the examples."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import axil
from axil_agent import Scripted, models_through
from axil_cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/teams.md").read_text("utf-8")
SECTIONS = re.findall(
    r"^## `(\w+)`\n.*?^```yaml\n(.*?)^```\n\n```mermaid\n(.*?)^```\n",
    PAGE,
    re.MULTILINE | re.DOTALL,
)
PROJECT = tomllib.loads((ROOT / "plugins/axil-teams/pyproject.toml").read_text("utf-8"))["project"]


def written(folder: Path, name: str, text: str) -> Path:
    """Return a file with the node of a section."""
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


# ------------------------------------------------------------------------------- the applications

EXAMPLES = ROOT / "examples/teams"
ANSWERS = {
    "company": "primes.py prints the primes below 30. Ship it.",
    "debate": "Con was better: nobody answered the customers who visit. The office stays.",
    "plan": "Twelve lime trees would shade the yard.",
    "research": "Each leaf has a bud, which auxin from the tip keeps asleep [Buds]; "
    "without the tip it wakes [Pruning].",
}


def test_every_example_is_tried_and_short():
    files = {file.stem: file for file in EXAMPLES.iterdir() if file.is_file()}
    assert sorted(files) == sorted([*ANSWERS, "support"])
    assert [n for n, file in files.items() if len(file.read_text("utf-8").splitlines()) > 150] == []


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_gives_what_it_says(capsys: Any, tmp_path: Path, monkeypatch: Any, name: str):
    monkeypatch.chdir(tmp_path)  # where a run's files go
    arguments = ["--model-script", str(EXAMPLES / f"replies/{name}.yaml"), "--input", "The task."]
    more = {
        "company": ["--allow", "code"],
        "research": ["--set", f"FOLDER={EXAMPLES / 'sources'}"],
    }
    code = main(["run", str(EXAMPLES / f"{name}.yaml"), *arguments, *more.get(name, [])])
    printed = capsys.readouterr()
    assert (code, printed.out.strip()) == (0, ANSWERS[name]), printed.err


def test_researchers_are_sent_what_is_in_the_folder():
    model = Scripted.from_file(EXAMPLES / "replies/research.yaml")
    workflow = axil.load(EXAMPLES / "research.yaml", vars={"FOLDER": str(EXAMPLES / "sources")})
    with models_through(lambda *given: model):
        workflow.invoke("Why?")
    sent = ["\n".join(str(m["content"]) for m in r.messages) for r in model.requests]
    assert [text for text in sent if "# Buds" in text and "makes auxin, a hormone" in text]
    assert [text for text in sent if "# Pruning" in text and "Gardeners pinch out" in text]


def test_the_desk_refunds_what_a_person_allowed_and_remembers_it():
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "support.py"],
        capture_output=True,
        text=True,
        timeout=600,
        env={"PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert "a person is asked" in done.stdout
    assert done.stdout.splitlines()[-2:] == [
        "desk: The money is on its way. (refunded: 17)",
        "desk: Your order 17 was paid back.",
    ]
