"""CrewAI's crews."""

from __future__ import annotations

import yaml

from axil_agent import Scripted
from axil_cli.main import main
from axil_files import load

CREW = {
    "agents": {
        "finder": {"role": "Finder of {topic}", "goal": "Find.", "backstory": "Curious."},
        "writer": {"role": "Writer", "goal": "Write.", "backstory": "Dry.", "llm": "openai/gpt-4o"},
    },
    "tasks": {
        "find": {"description": "Find {topic}.", "expected_output": "A list", "agent": "finder"},
        "write": {"description": "Write it.", "expected_output": "A page", "agent": "writer"},
    },
}


def test_tasks_follow_each_other_and_know_what_came_before(tmp_path):
    folder, out = tmp_path / "config", tmp_path / "crew.yaml"
    folder.mkdir()
    for name, data in CREW.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    assert main(["import", str(folder), "--out", str(out)]) == 0
    script = Scripted(["fern, moss", "The page."])
    with script.everywhere():
        output, _ = load(out).invoke({"topic": "plants"})
    assert output == {"write": "The page."}
    assert "You are Finder of plants." in script.requests[0].messages[0]["content"]
    assert "fern, moss" in script.requests[1].messages[1]["content"]
