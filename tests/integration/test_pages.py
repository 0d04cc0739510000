"""Tests of what the pages say of files and of the command."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from axil_cli.main import main
from axil_files import load_spec

from ..internals import internal

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text("utf-8")) if language == kind]


def keys_of_files() -> set[str]:
    """Return all keys that files may have, however deep."""
    models = internal("file_models")
    parts = [each for each in vars(models).values() if isinstance(each, type(models.Part))]
    keys = {key for part in parts for key in models.names_of(part)}
    assert {"graph", "from", "firings", "strategy"} <= keys
    return keys


def test_every_key_of_a_file_is_on_its_page():
    text = (DOCS / "reference/workflow-files.md").read_text("utf-8")
    words = set(
        re.findall(
            r"[\w]+",
            " ".join(re.findall(r"`([^`]+)`", text.replace("```", ""))),
        )
    )
    assert keys_of_files() - words == set()


def files() -> list[Any]:
    found = [
        (page, text)
        for page in sorted(DOCS.rglob("*.md"))
        for text in blocks(page, "yaml")
        if "graph:" in text and "nodes:" in text
    ]
    return [pytest.param(text, id=f"{page.stem}-{i}") for i, (page, text) in enumerate(found)]


@pytest.mark.parametrize("text", files())
def test_a_whole_file_on_a_page_can_be_loaded(text, tmp_path):
    (tmp_path / "flow.yaml").write_text(text)
    assert not load_spec(tmp_path / "flow.yaml").extras.get("warnings")


def test_the_tutorial_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    """The second check is of the file with two slips of the pen, which the page describes."""
    page = DOCS / "tutorials/from-yaml.md"
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "triage.yaml"
    fine = blocks(page, "yaml")[0]
    file.write_text(fine)
    checked = 0
    for session in blocks(page, "console"):
        for command, shown in re.findall(
            r"^\$ axil (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE
        ):
            is_second = command.startswith("check") and checked == 1
            checked += command.startswith("check")
            if is_second:
                file.write_text(
                    fine.replace("{id: urgent, type:", "{id: urgent, typ:").replace(
                        "normal, to: reply", "normal, to: replay"
                    )
                )
            code = main(shlex.split(command))
            file.write_text(fine)
            printed = capsys.readouterr()
            assert code == (2 if is_second else 0), printed
            expected = shown.partition("  …")[0]
            assert printed.out[: len(expected)] == expected
            assert printed.out == expected or "  …" in shown
    assert checked == 2


def test_the_tutorial_of_agents_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    page = DOCS / "tutorials/first-agents.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # on no machine does anything here take so long
    monkeypatch.setattr("axil_cli.progress._NOTICE_SECONDS", 1000)
    for name, text in zip(("desk.yaml", "replies.yaml"), blocks(page, "yaml"), strict=True):
        (tmp_path / name).write_text(text)
    command, _, shown = blocks(page, "console")[0].partition("\n")
    assert main(shlex.split(command.removeprefix("$ axil "))) == 0
    printed = capsys.readouterr()
    reported, _, used = printed.err.partition("── done: ")
    assert reported + printed.out == shown
    assert used.startswith("5 firings")
