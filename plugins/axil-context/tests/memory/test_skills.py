"""Skills: named in the prompt, read on demand, and nothing outside their folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil_agent import Scripted, SingleAgent
from axil_context import Skills
from axil_context.memory.skills import read_skills
from axil_models import ContextError, ContextQuery, Refused


def skill(
    folder: Path,
    name: str = "notes",
    front: str = "description: How notes\n  are written.",
    body: str = "Be {brief}. See more.md.",
) -> Path:
    home = folder / name
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text(f"---\nname: {name}\n{front}\n---\n{body}", "utf-8")
    return home


def tool(skills: Skills, name: str) -> Any:
    return {each.name: each for each in run_sync(skills.tools())}[name]


def read(skills: Skills, **arguments: str) -> str:
    return run_sync(tool(skills, "read_skill_file")(arguments))


def test_the_prompt_has_names_and_the_body_comes_on_demand(tmp_path):
    home = skill(tmp_path)
    (home / "more.md").write_text("even more")
    skill(tmp_path, "tests", "description: How tests are written.", "One law each.")
    script = Scripted(
        [
            {"tool_calls": [{"name": "read_skill", "arguments": {"name": "notes"}}]},
            {
                "tool_calls": [
                    {"name": "read_skill_file", "arguments": {"name": "notes", "path": "more.md"}}
                ]
            },
            "done",
        ]
    )
    agent = SingleAgent(
        script,
        retrievers=[Skills(paths=[str(tmp_path)])],
        formatters="twins",
        output_keys=["answer"],
    )
    agent.invoke({"task": "write"})
    prompt = script.requests[0].messages[-1]["content"]
    assert "- notes: How notes are written.\n- tests: How tests are written." in prompt
    assert "Be {brief}" not in prompt
    assert (
        script.requests[1].messages[-1]["content"]
        == "Be {brief}. See more.md.\n\nFiles of this skill, for read_skill_file: more.md"
    )
    assert script.requests[2].messages[-1]["content"] == "even more"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "../../secret.txt",
        "/etc/passwd",
        "link.txt",
        "folder",
        "",
        "a\0b",
        "no.md",
        "x" * 5000,
    ],
)
def test_nothing_outside_the_folder_is_read(tmp_path, path):
    home = skill(tmp_path / "skills")
    (tmp_path / "skills/secret.txt").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    (home / "folder").mkdir()
    os.symlink(tmp_path / "secret.txt", home / "link.txt")
    with pytest.raises(Refused) as refused:
        read(Skills(paths=[str(tmp_path / "skills")]), name="notes", path=path)
    assert "secret\n" not in str(refused.value)
    assert "link.txt" not in run_sync(
        tool(Skills(paths=[str(tmp_path / "skills")]), "read_skill")({"name": "notes"})
    )


def test_files_are_bounded_and_text(tmp_path):
    home = skill(tmp_path)
    (home / "deep").mkdir()
    (home / "deep/fits.txt").write_text("x" * 300)
    (home / "large.txt").write_text("x" * 301)
    (home / "image.png").write_bytes(b"\x89PNG\xff")
    skills = Skills(paths=[str(tmp_path)], max_file_bytes=300)
    assert read(skills, name="notes", path="deep/fits.txt") == "x" * 300
    with pytest.raises(Refused, match="larger than 300 bytes"):
        read(skills, name="notes", path="large.txt")
    with pytest.raises(Refused, match="is not text"):
        read(skills, name="notes", path="image.png")


def test_a_skill_that_is_not_there_is_proposed(tmp_path):
    skill(tmp_path)
    for name, arguments in (
        ("read_skill", {"name": "note"}),
        ("read_skill_file", {"name": "note", "path": "x"}),
    ):
        with pytest.raises(Refused, match=r'there is no skill "note"\. Did you mean "notes"'):
            run_sync(tool(Skills(paths=[str(tmp_path)]), name)(arguments))
    with pytest.raises(Refused, match="expected name, each a text"):
        run_sync(tool(Skills(paths=[str(tmp_path)]), "read_skill")({"name": 3}))


def test_only_those_that_are_allowed_are_there(tmp_path):
    skill(tmp_path)
    skill(tmp_path, "tests")
    assert list(Skills(paths=[str(tmp_path)], allow=["tests"]).skills()) == ["tests"]
    with pytest.raises(
        ContextError, match=r'AX896 there is no skill "test"\. Did you mean "tests"'
    ):
        Skills(paths=[str(tmp_path)], allow=["test"]).skills()


MERGED = "".join(f"k{i + 1}: &k{i + 1} {{<<: [{', '.join([f'*k{i}'] * 9)}]}}\n" for i in range(9))
BOMB = f"---\nname: x\ndescription: d\nk0: &k0 {{a: 1}}\n{MERGED}---\n"
"""A few hundred bytes that stand for 400 million merges."""


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("no front matter", "it does not begin with front matter"),
        ("---\nname: x\n", "it does not begin with front matter"),
        ("---\n- a\n---\n", "its front matter is no mapping"),
        ("---\nname: [a\n---\n", "cannot be read: while parsing"),
        (
            "---\nname: ../up\ndescription: d\n---\n",
            "expected a name of letters, digits, - and _, found '../up'",
        ),
        ("---\ndescription: d\n---\n", "expected a name of letters, digits, - and _, found None"),
        ("---\nname: x\ndescription: ''\n---\n", "it has no description"),
        (
            "---\nname: !!python/object/apply:os.system [id]\ndescription: d\n---\n",
            "could not determine a constructor",
        ),
        (BOMB, "its front matter has aliases (*name); write them out"),
        (f"---\nname: {'[' * 500}\n---\n", "its front matter is nested deeper than 20 levels"),
        ("---\nname: x\n---\n" + "y" * 200_000, "it is larger than 131072 bytes"),
    ],
)
def test_a_skill_that_cannot_be_read_is_named(tmp_path, text, reported):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/SKILL.md").write_text(text)
    with pytest.raises(ContextError) as error:
        Skills(paths=[str(tmp_path)]).get_blocks(ContextQuery(""))
    assert error.value.id == "AX896"
    assert reported in str(error.value)
    assert "one/SKILL.md" in str(error.value)


def test_two_of_one_name_are_refused(tmp_path):
    first, second = skill(tmp_path / "a"), skill(tmp_path / "b")
    with pytest.raises(ContextError, match='AX896 two skills are called "notes"'):
        Skills(paths=[str(first), str(second)]).skills()


def test_front_matter_is_kept_and_windows_lines_are_read(tmp_path):
    (tmp_path / "SKILL.md").write_bytes(
        b"\xef\xbb\xbf---\r\nname: x\r\ndescription: d\r\nallowed-tools: [a]\r\n---\r\nbody\r\n"
    )
    (found,) = read_skills(tmp_path)
    assert (found.name, found.description, found.body.strip()) == ("x", "d", "body")
    assert found.front["allowed-tools"] == ["a"]


def test_no_skill_is_no_tool_and_no_block(tmp_path):
    skills = Skills(paths=[str(tmp_path)])
    assert run_sync(skills.tools()) == []
    assert skills.get_blocks(ContextQuery("")) == []


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
def test_a_folder_whose_name_none_can_have_is_said_so(path):
    with pytest.raises(ContextError, match=r"AX896.*no folder can have this name"):
        Skills(paths=[path]).get_blocks(ContextQuery(""))
