"""The page of teams, where each drawing is axil's own of the file above it; and the examples."""

from __future__ import annotations

import asyncio
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.integration.team_pages import (
    EXAMPLES,
    PAGES,
    TEAMS,
    filled,
    parts_of,
    sections,
    support,
    written,
)

import axil_files
from axil_agent import Scripted, models_through
from axil_cli.main import main
from axil_testing.stub import Stub

ROOT = Path(__file__).parents[2]
SECTIONS = sections()
PROJECT = tomllib.loads((ROOT / "plugins/axil-teams/pyproject.toml").read_text("utf-8"))["project"]


def test_every_team_is_on_the_page():
    assert sorted(name for name, _ in SECTIONS) == sorted(PROJECT["entry-points"]["axil.nodes"])


@pytest.mark.parametrize(("name", "text"), SECTIONS, ids=[s[0] for s in SECTIONS])
def test_the_drawing_of_a_team_is_that_of_its_file_which_runs(
    capsys: Any, tmp_path: Path, name: str, text: str
) -> None:
    file = written(tmp_path, name, text)
    workflow = axil_files.load(file)
    drawing = (TEAMS.parent / f"pictures/{name}.svg").read_text("utf-8")
    assert workflow.draw("svg") == drawing, "make manifests writes it anew"
    assert workflow.invoke("The task.").status == "done"
    assert main(["check", str(file)]) == 0
    said = capsys.readouterr().out
    assert ("rounds" in said) == ("turns: " in drawing)


# ------------------------------------------------------------------------------- the applications

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


@pytest.mark.parametrize("name", [*ANSWERS, "support"])
def test_the_page_of_an_example_shows_its_drawing_its_cost_and_its_run(name: str, tmp_path: Path):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    parts, answers = parts_of(name, tmp_path)
    assert filled(page, parts) == page, "make manifests writes it anew"
    assert answers[0] == ANSWERS.get(name, "The money is on its way.")
    assert answers[0] in page
    assert (PAGES / f"pictures/{name}.svg").read_text("utf-8") == parts["svg"]
    assert f"(pictures/{name}.svg)" in page
    assert all(parts[kind].strip() in page for kind in ("text", "table"))


@pytest.mark.skipif(
    os.environ.get("AXIL_HYPOTHESIS") != "thorough",
    reason="part of make thorough: it opens a server",
)
def test_an_example_runs_with_the_model_of_a_service(capsys: Any, monkeypatch: Any):
    with Stub("chat") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        server.say(*"abcde")
        model = json.dumps({"type": "openai", "name": "small"})
        file = str(EXAMPLES / "debate.yaml")
        code = main(["run", file, "--set", f"MODEL={model}", "--input", "Buy?", "--journal", "off"])
    assert (code, capsys.readouterr().out) == (0, "e\n")
    assert "pro: a" in server.requests[1].text


def test_researchers_are_sent_what_is_in_the_folder():
    model = Scripted.from_file(EXAMPLES / "replies/research.yaml")
    workflow = axil_files.load(EXAMPLES / "research.yaml")
    with models_through(lambda *given: model):
        workflow.invoke("Why?")
    sent = ["\n".join(str(m["content"]) for m in r.messages) for r in model.requests]
    assert [text for text in sent if "# Buds" in text and "makes auxin, a hormone" in text]
    assert [text for text in sent if "# Pruning" in text and "Gardeners pinch out" in text]


def test_the_desk_refunds_what_a_person_allowed_and_remembers_it(
    capsys: Any, monkeypatch: Any, tmp_path: Path
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asyncio.run(support().day(tmp_path / "customers.jsonl"))
    said = capsys.readouterr().out
    assert "a person is asked" in said
    assert said.splitlines()[-2:] == [
        "desk: The money is on its way. (refunded: 17)",
        "desk: Your order 17 was paid back.",
    ]
