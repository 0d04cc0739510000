"""AGENTS.md: read from the outermost folder inwards, within bounds, and never as nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from axil_agent import Scripted, SingleAgent
from axil_context import AgentsMd
from axil_models import ContextError, ContextQuery


@pytest.fixture
def project(tmp_path: Path) -> Path:
    inner = tmp_path / "web" / "page"
    inner.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    (inner / "AGENTS.md").write_text("Use spaces here.")
    return tmp_path


def texts(notes: AgentsMd) -> list[str]:
    return [block.text for block in notes.get_blocks(ContextQuery("q"))]


def test_files_are_read_from_the_outermost_folder_inwards(project: Path):
    inner = str(project / "web" / "page")
    assert texts(AgentsMd(folder=inner, root=str(project))) == ["Use tabs.", "Use spaces here."]
    assert texts(AgentsMd(folder=inner)) == ["Use spaces here."]


def test_they_are_a_part_of_the_prompt(project: Path):
    model = Scripted(['{"message": "Done."}'])
    notes = AgentsMd(folder=str(project))
    SingleAgent(model, retrievers=[notes], formatters="twins").invoke({"q": "?"})
    assert "Use tabs." in model.requests[0].messages[-1]["content"]


def test_another_name_is_taken_where_it_comes_first(project: Path):
    (project / "CLAUDE.md").write_text("Be brief.")
    names = ["CLAUDE.md", "AGENTS.md"]
    assert texts(AgentsMd(folder=str(project), names=names)) == ["Be brief."]


def test_a_file_that_is_missing_or_too_large_is_an_error(project: Path):
    with pytest.raises(ContextError, match=r"AX896.*has no AGENTS\.md"):
        texts(AgentsMd(folder=str(project / "web")))
    inner = str(project / "web" / "page")
    with pytest.raises(ContextError, match="more than 10 bytes"):
        texts(AgentsMd(folder=inner, root=str(project), max_bytes=10))
    with pytest.raises(ContextError, match="is not in"):
        texts(AgentsMd(folder=str(project), root=str(project / "web")))
    (project / "AGENTS.md").write_bytes(b"\xff\xfe")
    with pytest.raises(ContextError, match="not UTF-8"):
        texts(AgentsMd(folder=str(project)))
