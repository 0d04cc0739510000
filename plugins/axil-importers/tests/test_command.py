"""The command `axil import`."""

from __future__ import annotations

import json

import pytest

from axil_cli.main import main

from .dify_app import EVERYTHING, LLM, START, end, line


@pytest.fixture
def said(tmp_path, capsys):
    """Return the exit code, and what is said, of a source."""

    def run(text: str, *options: str) -> tuple[int, str, str]:
        file = tmp_path / "source.json"
        file.write_text(text, encoding="utf-8")
        code = main(["import", str(file), *options])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_exit_code_says_whether_something_was_left(said, tmp_path):
    out = tmp_path / "flow.yaml"
    code, told, _ = said(json.dumps(line(START, LLM, end("write", "text"))), "--out", str(out))
    assert (code, told.strip()) == (0, "3 parts: 3 taken, 0 approximated, 0 left")
    assert main(["check", str(out)]) == 0
    code, told, _ = said(json.dumps(EVERYTHING), "--out", str(out))
    assert code == 1
    assert 'left: workflow.graph.nodes[15] "strange" (quantum-leap)' in told
    assert main(["check", str(out), "--allow", "network"]) == 0


def test_the_list_is_data_and_the_workflow_with_it(said):
    code, told, _ = said(json.dumps(EVERYTHING), "--format", "json")
    whole = json.loads(told)
    assert (code, whole["counts"]["left"]) == (1, 2)
    assert {"place", "kind", "status", "became", "reason", "advice"} == set(whole["findings"][0])
    assert whole["workflow"]["graph"]["id"] == "sample"


@pytest.mark.parametrize(
    ("text", "options", "fault"),
    [
        ("{", (), "the file is neither JSON nor YAML"),
        ("{}", (), "the file is not what a system exports that is known here"),
        ("{}", ("--from", "n8"), 'there is no importer "n8"'),
        ("{}", ("--from", "dify"), "the file has no app"),
        ("a: &x [1]\nb: *x\n", (), "aliases are not read"),
        ('{"app": {"mode": "workflow"}, "workflow": {"graph": {"nodes": 3}}}', (), "is damaged"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_words(said, text, options, fault):
    code, _, told = said(text, *options)
    assert (code, fault in told, "AX988" in told) == (2, True, True), told


def test_a_folder_without_files_is_refused_with_the_way_to_them(capsys, tmp_path):
    (tmp_path / "crew" / "config").mkdir(parents=True)
    assert main(["import", str(tmp_path / "crew")]) == 2
    told = capsys.readouterr().err
    assert "holds no YAML or JSON files" in told
    assert "Name the folder that holds them" in told
