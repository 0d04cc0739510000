"""Retrievers and memories together, by their names: in workflow files, one built on another, and as
a package somebody else wrote.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil_agent import Scripted
from axil_context import FactMemory, FileMemory, HybridRetriever
from axil_files import load
from axil_models import ContextQuery, Reply, Turn

ROOT = Path(__file__).parents[2]
FLOW = """
graph:
  id: ask
  nodes:
    - id: Answer
      type: agent
      config:
        model: {type: scripted, default: "{answer: fridays}"}
        memories: [history, {type: file_memory, path: "%(folder)s/.axil/memory.jsonl"}]
        retrievers:
          - type: hybrid
            context_label: DOCS
            providers:
              - {type: keyword, paths: ["%(folder)s/docs"]}
              - {type: vector, paths: ["%(folder)s/docs"]}
          - {type: skills, paths: ["%(folder)s/skills"]}
  edges: []
  start: [Answer]
  end: [Answer]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/ferns.md").write_text("# Ferns\n\n## Watering\nFerns drink every Friday.\n")
    (tmp_path / "skills/water").mkdir(parents=True)
    (tmp_path / "skills/water/SKILL.md").write_text(
        "---\nname: water\ndescription: How plants are watered.\n---\nSlowly.\n"
    )
    (tmp_path / "flow.yaml").write_text(FLOW % {"folder": tmp_path.as_posix()})
    return tmp_path


def test_a_file_names_its_retrievers_and_memories(folder):
    script = Scripted(["Fridays.", "As I said: Fridays."])
    with script.everywhere():
        for _ in range(2):
            load(folder / "flow.yaml").invoke("When do ferns drink?")
    first, second = (json.dumps(request.plain()) for request in script.requests)
    for request in (first, second):
        assert "(DOCS) ## Watering" in request
        assert "- water: How plants are watered." in request
        assert "read_skill_file" in request
    assert "(file_memory)" not in first
    assert "(file_memory) When do ferns drink?" in second


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ("{type: keyword, pathes: [docs]}", 'unknown key "pathes". Did you mean "paths"'),
        ("{type: file_memory}", 'the key "path" is missing'),
        ("{type: keywords}", 'unknown context provider "keywords". Did you mean "keyword"'),
    ],
)
def test_a_slip_in_a_file_is_found_before_it_runs(folder, wrong, reported):
    text = (folder / "flow.yaml").read_text()
    (folder / "flow.yaml").write_text(text.replace("memories: [history,", f"memories: [{wrong},"))
    with pytest.raises(Exception, match=re.escape(reported)):
        load(folder / "flow.yaml").invoke("?")


# --------------------------------------------------------------------------------------------------


def test_keyword_and_chroma_know_the_same_chunk_by_one_name(folder):
    pytest.importorskip("chromadb", reason="chromadb is not installed")
    docs = {"paths": [str(folder / "docs")]}
    hybrid = HybridRetriever(
        providers=[
            {"type": "keyword", **docs},
            {"type": "chroma", "path": str(folder / "chroma"), **docs},
        ]
    )

    async def go() -> Any:
        found = await hybrid.get_blocks(ContextQuery("watering ferns on Friday"))
        await hybrid.close()
        return found

    found = run_sync(go())
    assert found[0].metadata["found_by"] == {"keyword": 1, "chroma": 1}
    assert len({(block.uri, block.chunk_id) for block in found}) == len(found)


def test_facts_and_files_are_searched_by_chroma(folder):
    pytest.importorskip("chromadb", reason="chromadb is not installed")
    replies = iter(
        [
            {"facts": ["Ada grows ferns."]},
            {"decisions": [{"act": "add", "text": "Ada grows ferns."}]},
        ]
    )

    async def ask(request: Any) -> Reply:
        return Reply(text=json.dumps(next(replies)))

    chroma = {"type": "chroma_memory", "path": str(folder / "chroma")}

    async def go() -> tuple[Any, Any]:
        facts = FactMemory(index={**chroma, "collection": "facts"}, namespace=["user"])
        turn = Turn(query=ContextQuery("I am Ada", {"user": "ada"}), reply="Hello", ask=ask)
        await facts.learn(turn)
        await facts.close()
        again = FactMemory(index={**chroma, "collection": "facts"}, namespace=["user"])
        known = await again.get_blocks(ContextQuery("who grows ferns?", {"user": "ada"}))
        assert await again.get_blocks(ContextQuery("who grows ferns?", {"user": "bob"})) == []
        await again.close()
        memory = FileMemory(path=str(folder / "m.jsonl"), index={**chroma, "collection": "said"})
        await memory.learn(turn)
        said = await memory.get_blocks(ContextQuery("Ada"))
        await memory.close()
        return known, said

    known, said = run_sync(go())
    assert [block.text for block in known] == ["Ada grows ferns."]
    assert [block.text for block in said] == ["I am Ada\nHello"]
    assert (known[0].metadata["provider"], said[0].metadata["provider"]) == ("facts", "file_memory")


# --------------------------------------------------------------------------------------------------

ASKS = """
from axil_files import load
from axil_agent import Scripted

script = Scripted(["above the leaf"])
with script.everywhere():
    load("flow.yaml").invoke("what is an axil?")
print(script.requests[0].messages[-1]["content"])
"""


def test_the_provider_of_the_tutorial_becomes_a_package(tmp_path):
    page = (ROOT / "docs/tutorials/write-a-context-provider.md").read_text("utf-8")
    code = next(
        block
        for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        if "class FileGlossary:" in block
    )
    toml = next(
        block for block in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    )
    home = tmp_path / "acme"
    home.mkdir()
    (home / "acme_glossary.py").write_text(code.partition('Path("words.txt")')[0])
    (home / "pyproject.toml").write_text(toml)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        tmp_path / "site",
        home,
    ]
    subprocess.run([*map(str, pip)], check=True, capture_output=True, timeout=300)
    (tmp_path / "words.txt").write_text("axil = The angle between a stem and a leaf.\n")
    agent = (
        "{id: A, type: agent, config: {model: scripted, retrievers: [{type: acme.glossary, "
        "path: "
        "words.txt}]}}"
    )
    (tmp_path / "flow.yaml").write_text(
        f"graph: {{id: g, nodes: [{agent}], edges: [], start: [A], end: [A]}}\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{ASKS}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "(glossary) axil: The angle between a stem and a leaf." in done.stdout
