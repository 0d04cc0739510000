"""Laws of the check on workflows that work: it proves nothing against them."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.integration.sound_graphs import GRAPHS
from tests.integration.test_planted_faults import PROOFS

from axil.plugin import default_registry
from axil_agent import Scripted
from axil_files import load
from axil_journals import check_workflow

ROOT = Path(__file__).parents[2]
SOUND = Path(__file__).parent / "sound"
CORPUS = next((p for up in ROOT.parents if (p := up / "shared/chatdev_yaml").is_dir()), ROOT / "no")
FENCE = re.compile(r"^```yaml[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
OTHERS = {"replies", "operate", "evals"}
"""Folders of examples without workflows."""
GIVEN: Any = {
    "allow": ["code", "network", "env", "read", "write", "program", "mcp"],
    "vars": {"BASE_URL": "http://127.0.0.1", "API_KEY": "key", "LIMIT": 3, "MAX_TOKENS": 99},
}


def examples() -> list[Path]:
    files = [*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "examples").rglob("*.json")]
    return sorted(file for file in files if OTHERS.isdisjoint(file.parts))


def blocks() -> list[tuple[Path, str]]:
    """Return the workflows in the pages, with the file each would be."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "README.md"]
    return [
        (page.with_name(f"{page.stem}-{number}.yaml"), text)
        for page in sorted(pages)
        if "zh" not in page.parts and page.name != "check-before-running.md"
        for number, text in enumerate(FENCE.findall(page.read_text("utf-8")))
        if "graph:" in text and "nodes:" in text
    ]


def checked(make: Any) -> tuple[bool, list[str]]:
    """Return whether a workflow has a plan here, and what is proved against it."""
    result = check_workflow(make, default_registry())
    return result.plan is not None, [str(p) for p in result.problems if p.id in PROOFS]


def programs(folder: Path) -> dict[str, Any]:
    """Return the graphs that examples make in Python."""

    def of(name: str) -> dict[str, Any]:
        return runpy.run_path(str(ROOT / f"examples/{name}.py"))

    return {
        "newsroom": lambda: of("newsroom")["newsroom"](Scripted(["x"])).build(),
        "review_loop": lambda: of("review_loop")["review"](),
        "budget": lambda: of("budget")["build"](1.0),
        "support": lambda: of("teams/support")["support"](folder / "notes"),
    }


def test_nothing_is_proved_against_examples_and_pages(tmp_path):
    found = {str(file): checked(lambda file=file: load(file, **GIVEN)) for file in examples()}
    for file, text in blocks():
        texts = {file.name: text}
        found[str(file)] = checked(lambda f=file, t=texts: load(f, texts=t, **GIVEN))
    for name, make in programs(tmp_path).items():
        found[name] = checked(make)
    assert {name: alarms for name, (_, alarms) in found.items() if alarms} == {}
    assert sum(is_made for is_made, _ in found.values()) >= 36


@pytest.mark.parametrize("file", sorted(SOUND.glob("*.yaml")), ids=lambda file: file.stem)
def test_nothing_is_said_against_loops_maps_joins_and_teams_that_work(file):
    result = check_workflow(lambda: load(file), default_registry())
    assert result.plan is not None
    assert [str(each) for each in result.problems] == []


@pytest.mark.parametrize("name", GRAPHS)
def test_nothing_is_said_against_graphs_of_odd_shapes_that_work(name):
    result = check_workflow(lambda: GRAPHS[name]().build(), default_registry())
    assert result.plan is not None
    assert [str(each) for each in result.problems] == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the files of others are not here")
def test_nothing_is_proved_against_files_of_others():
    files = sorted(CORPUS.rglob("*.yaml"))
    found = {str(file): checked(lambda file=file: load(file, **GIVEN)) for file in files}
    assert {name: alarms for name, (_, alarms) in found.items() if alarms} == {}
    assert sum(is_made for is_made, _ in found.values()) >= 20


UNREADABLE = """
from __future__ import annotations
from typing import TypedDict
from axil import RootGraph

class Given(TypedDict):
    n: Unheard

def give(inputs: dict) -> Given:
    given: Given = dict(inputs)
    return given

graph = RootGraph("g")
graph.create_node(give, name="give")
graph.edge_from_entry("give", ["n"])
graph.edge_to_exit("give", ["n"])
"""


def test_nothing_is_said_of_a_function_whose_annotations_only_type_checkers_can_read(tmp_path):
    (tmp_path / "flow.py").write_text(UNREADABLE)
    graph = runpy.run_path(str(tmp_path / "flow.py"))["graph"]
    assert check_workflow(graph.build, default_registry()).problems == ()
