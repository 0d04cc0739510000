"""The workflow of make demo: the workflow file, its twin in Python, and what becomes of them when
models talk nonsense.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from axil.plugin import Registry, install_advice, use_registry
from axil_agent import Scripted, models_through
from axil_cli.main import main
from axil_models import Reply, ToolCall

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPT = EXAMPLES / "replies/newsroom.yaml"
DEMO = ("run", str(EXAMPLES / "newsroom.yaml"), "--model-script", str(SCRIPT))
ROLE = re.compile(r"You are the (\w+)")


@pytest.fixture(scope="module")
def program():
    spec = importlib.util.spec_from_file_location("newsroom_example", EXAMPLES / "newsroom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def roles(requests: list[Any]) -> list[str]:
    """Return the agents that were asked, in order; the two concurrent researchers by name."""
    named = [ROLE.search(request.messages[0]["content"])[1] for request in requests]
    return [*sorted(named[:2]), *named[2:]]


def from_file(capsys, *arguments: str) -> dict[str, Any]:
    main(
        [
            "run",
            str(EXAMPLES / "newsroom.yaml"),
            "--input",
            "Why do plants branch?",
            "--format",
            "json",
            *arguments,
        ]
    )
    return json.loads(capsys.readouterr().out)


def test_file_and_python_say_the_same(capsys, program):
    script = Scripted.from_file(SCRIPT)
    output, _ = program.newsroom(script).invoke({"question": "Why do plants branch?"})
    asked = Scripted.from_file(SCRIPT)
    with asked.everywhere():
        data = from_file(capsys)
    assert data["output"] == output["article"]
    assert data["output"].startswith("# Where new growth waits\n\nPlants branch")
    assert (
        roles(asked.requests)
        == roles(script.requests)
        == [
            *(
                "botanist",
                "historian",
                "writer",
                "critic",
                "critic",
                "writer",
                "critic",
                "critic",
                "editor",
            )
        ]
    )
    results = [
        [m["content"] for m in each.requests[-2].messages if m["role"] == "tool"]
        for each in (asked, script)
    ]
    assert results[0] == results[1] == ['{"words": 42, "sentences": 4, "longest_sentence": 17}']
    assert data["cycles"]["cycle(writer,critic,+2)"] == {
        "entries": 1,
        "rounds": 2,
        "ends": {"exit": 1},
    }


def test_the_writer_remembers_its_notes(capsys):
    asked = Scripted.from_file(SCRIPT)
    with asked.everywhere():
        from_file(capsys)
    again = [
        request
        for request in asked.requests
        if "You are the writer" in request.messages[0]["content"]
    ][1]
    said = "\n".join(str(m["content"]) for m in again.messages)
    assert "axilla, the armpit" in said
    assert "Gardeners have always known" in said
    assert again.messages[-1]["content"].startswith("REVISE")


class Babbler:
    """Says anything, and calls tools with anything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    async def reply(self, request, emit):
        words = ["ACCEPTED", "REVISE", "axil", "{}", "\n", "```", "!", "<think>", "42", "leaf"]
        if request.tools and self.random.random() < 0.3:
            arguments = self.random.choice([{}, {"text": "x"}, {"text": 3}, {"other": None}])
            return Reply(
                tool_calls=(
                    ToolCall(
                        id="1",
                        name=self.random.choice(["measure_text", "nothing"]),
                        arguments=arguments,
                    ),
                )
            )
        return Reply(
            text=" ".join(self.random.choice(words) for _ in range(self.random.randrange(1, 8)))
        )


@pytest.mark.parametrize("seed", range(5))
def test_nonsense_comes_to_an_end_too(capsys, program, seed):
    babbler = Babbler(seed)
    with models_through(lambda meant, written: babbler):
        data = from_file(capsys)
        output, _ = program.newsroom(None).invoke({"question": "Why do plants branch?"})
    assert data["status"] == "done"
    assert data["cycles"]["cycle(writer,critic,+2)"]["rounds"] <= 3
    assert isinstance(output["article"], str)


def test_a_critic_who_never_accepts_is_not_heard_for_ever(capsys, program):
    never = {
        "rules": [
            {"match": {"system_contains": "You are the editor"}, "replies": [{"echo_user": True}]}
        ],
        "default": "REVISE it",
    }
    with Scripted(never).everywhere():
        data = from_file(capsys)
        once = from_file(capsys, "--set", "ROUNDS=1")
        output, _ = program.newsroom(None).invoke({"question": "Why do plants branch?"})
    assert data["cycles"]["cycle(writer,critic,+2)"] == {
        "entries": 1,
        "rounds": 3,
        "ends": {"exit": 1},
    }
    assert once["cycles"]["cycle(writer,critic,+2)"]["rounds"] == 1
    assert "no time left" in data["output"]
    assert "REVISE it" in output["article"]


def test_without_the_adapter_the_real_way_says_what_to_install(capsys, program, monkeypatch):
    others = [
        each
        for distribution in metadata.distributions()
        if distribution.name != "axil-openai"
        for each in distribution.entry_points
    ]
    with use_registry(Registry(entry_points=others)):
        assert (
            main(
                [
                    "run",
                    str(EXAMPLES / "newsroom.yaml"),
                    "--set",
                    'MODEL={"type": "openai", "name": "m"}',
                ]
            )
            == 2
        )
    reported = capsys.readouterr().err
    assert reported.count(install_advice("axil-openai")) == 1
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("AXIL_MODEL", "mine")
    assert program.chosen_model() == {"type": "openai", "name": "mine"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, "--model-script examples/replies/newsroom.yaml"),
        ({"OPENAI_API_KEY": "x"}, """--set 'MODEL={"type": "openai", "name": "gpt-4.1-mini"}'"""),
        ({"OPENAI_API_KEY": "x", "OPENAI_MODEL": "b"}, '"name": "b"'),
        ({"OPENAI_API_KEY": "x", "OPENAI_MODEL": "b", "AXIL_MODEL": "a"}, '"name": "a"'),
    ],
)
def test_make_demo_chooses_who_answers(environment, wanted):
    done = subprocess.run(
        ["make", "-n", "-o", ".venv/installed", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    assert done.returncode == 0, done.stderr
    assert wanted in done.stdout


@pytest.mark.parametrize("width", [80, 120])
def test_the_demo_can_be_read(capsys, monkeypatch, width):
    """Every line fits, everybody is named, the tool's result is whole, the output and what it took
    come last.
    """
    monkeypatch.setenv("COLUMNS", str(width))
    # on no machine does anything here take so long
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 1000)
    assert main([*DEMO, "--input", "Why do plants branch?", "--progress"]) == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert max(map(len, lines)) <= width
    headings = [
        line.split(" ")[1:3] for line in lines if line.startswith("── ") and line.endswith("──")
    ]
    assert [" ".join(each).rstrip(" ─") for each in headings] == [
        "newsroom",
        "research",
        "round 1",
        "round 2",
        "newsroom",
        "output",
    ]
    names = [line.split()[0] for line in lines if not line.startswith((" ", "──"))]
    assert names[0] == "input"
    assert sorted(names[1:3]) == ["botanist", "historian"]
    assert names[3:] == [
        "notes",
        "writer",
        "critic",
        "verdict",
        "rounds",
        "writer",
        "critic",
        "verdict",
        "rounds",
        "editor",
    ]
    assert sum("→ words 58, sentences 3, longest_sentence 34" in line for line in lines) == 1
    assert "── done: 11 firings ·" in printed.err
    assert "output tokens" in printed.err
    assert printed.out.startswith("# Where new growth waits\n")


def test_the_readme_shows_what_the_demo_prints(capsys, monkeypatch, tmp_path):
    readme = (ROOT / "README.md").read_text("utf-8")
    monkeypatch.setenv("COLUMNS", "80")
    # on no machine does anything here take so long
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 1000)
    question = re.search(
        r"^QUESTION +\?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )[1]
    assert main([*DEMO, "--input", question, "--progress"]) == 0
    shown = re.search(r"^```console\n\$ make demo\n(.*?)^…\n```", readme, re.MULTILINE | re.DOTALL)[
        1
    ]
    assert capsys.readouterr().err.startswith(shown)
    brief = tmp_path / "brief.yaml"
    brief.write_text(re.search(r"^```yaml\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)[1])
    assert main(["run", str(brief), "--input", "axils"]) == 0
    assert capsys.readouterr().out == "a text\n"


def test_the_script_says_that_it_knows_nothing_of_another_question(capsys):
    assert main([*DEMO, "--input", "Who was Ada Lovelace?", "--no-progress"]) == 0
    assert "one question: why plants branch" in capsys.readouterr().out
