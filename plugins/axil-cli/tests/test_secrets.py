"""Values of secret variables are in nothing that a run leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("axil_sqlite", reason="runs are kept by axil-sqlite")


def left(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())


@pytest.mark.parametrize("name", ["API_KEY", "MY_TOKEN", "DB_PASSWORD", "api_key"])
def test_a_secret_that_is_set_is_in_no_journal(axil, flow, tmp_path, monkeypatch, name):
    file, kept = flow(["a askt"], description="${" + name + "}"), tmp_path / "kept"
    ways = ("--journal", kept)
    done = axil("run", file, "--set", f"{name}=sk-hidden", *ways, "--run-id", "r")
    shown = axil("runs", "show", "r", *ways, "--format", "json")
    assert done.code == 3
    assert left(kept)
    assert b"sk-hidden" not in left(kept)
    assert "sk-hidden" not in f"{done}{shown}"


def test_a_plain_variable_that_is_set_is_kept(axil, flow, tmp_path):
    file, kept = flow(["a askt"], description="${TONE}"), tmp_path / "kept"
    axil("run", file, "--set", "TONE=very-dry", "--journal", kept, "--run-id", "r")
    assert b"very-dry" in left(kept)


def test_a_run_that_goes_on_takes_a_secret_from_the_environment(axil, flow, tmp_path, monkeypatch):
    file, kept = flow(["a askt"], description="${API_KEY}"), tmp_path / "kept"
    ways = ("--journal", kept)
    monkeypatch.delenv("API_KEY", raising=False)
    axil("run", file, "--set", "API_KEY=sk-hidden", *ways, "--run-id", "r")
    reported = axil("runs", "answer", "r", "ten", *ways)
    assert reported.code == 2
    assert "Set the environment variable API_KEY" in reported.err
    monkeypatch.setenv("API_KEY", "sk-hidden")
    assert axil("runs", "answer", "r", "ten", *ways).code == 0
    assert b"sk-hidden" not in left(kept)


SECRET = "canary-77-of-the-user"
FILE = """
graph:
  id: f
  nodes:
    - {id: said, type: literal, config: {content: "It was: Bearer ${FILL}, and ${FILL}."}}
    - id: base
      type: literal
      config: {content: "see postgresql://me:${FILL}@host/name"}
    - {id: bare, type: literal, config: {content: "${FILL}"}}
    - {id: asks, type: agent, config: {model: {type: scripted, default: "They said ${FILL}."}}}
    - {id: wait, type: human, config: {description: "Is ${FILL} right?"}}
  start: [said]
  edges:
    - {from: said, to: base}
    - {from: base, to: bare}
    - {from: bare, to: asks}
    - {from: asks, to: wait}
"""


@pytest.mark.parametrize("name", ["fill", "AUTH", "API_KEY"])
@pytest.mark.parametrize("way", ["--set", "environment"])
@pytest.mark.parametrize("prompts", ["off", "whole"])
def test_a_secret_is_nowhere_in_what_a_run_leaves(
    axil, tmp_path, monkeypatch, caplog, name, way, prompts
):
    """It fills texts of all kinds in part: in the journal's bytes, its log of writes among them, in
    what is exported and shown, and in what is logged, its name stands in its place.
    """
    caplog.set_level("DEBUG")
    file, kept = tmp_path / "flow.yaml", tmp_path / "kept"
    file.write_text(FILE.replace("FILL", name))
    given = ["--set", f"{name}={SECRET}"] if way == "--set" else ["--allow", f"env:{name}"]
    monkeypatch.setenv(name, SECRET)
    ways = ("--journal", kept)
    more = ("--run-id", "r", "--prompts", prompts, "--input", f"ask {SECRET} about")
    begun = axil("run", file, *given, *ways, *more)
    assert begun.code == 3, begun
    assert len(left(kept)) > 1000
    assert SECRET.encode() not in left(kept)
    export = tmp_path / "r.jsonl"
    exported = axil("runs", "export", "r", *ways)
    listed = [axil("runs", "show", "r", *ways, "--format", form) for form in ("text", "json")]
    listed += [axil("runs", "list", *ways, "--format", "json")]
    assert exported.code == 0, exported
    assert all(each.code == 0 for each in listed), listed
    shown = f"{exported}{listed}{export.read_text() if export.exists() else ''}"
    assert "${" + name + "}" in shown
    assert SECRET not in shown
    assert SECRET not in caplog.text
    allowed = ["--allow", f"env:{name}"] if way != "--set" else []
    ended = axil("runs", "answer", "r", f"yes, {SECRET}", *ways, *allowed)
    assert ended.code == 0, ended
    assert SECRET.encode() not in left(kept)
    assert SECRET not in f"{axil('runs', 'export', 'r', *ways)}{caplog.text}"


@pytest.mark.parametrize(
    "setting",
    [
        "headers: {X-Team: '${fill}'}",
        "headers: {Authorization: 'Basic ${fill}'}",
        "base_url: 'https://me:${fill}@127.0.0.1:9/v1'",
        "api_key: '${fill}'",
    ],
)
@pytest.mark.parametrize("is_included", [False, True])
def test_what_fills_a_header_or_a_secret_is_in_no_journal(axil, tmp_path, setting, is_included):
    kept, inner = tmp_path / "kept", tmp_path / "inner.yaml"
    node = "{id: a, type: agent, config: {model: {type: openai, name: m, retry: {max_tries: 1}, "
    node += setting if "base_url" in setting else f"base_url: 'http://127.0.0.1:9', {setting}"
    if "api_key" not in setting:
        node += ", api_key: none-given"
    text = f"graph:\n  id: g\n  nodes:\n    - {node}}}}}}}\n  start: [a]\n"
    inner.write_text(text)
    outer = tmp_path / "outer.yaml"
    body = "{id: i, type: subgraph, config: {type: file, config: {path: inner.yaml}}}"
    outer.write_text(f"graph:\n  id: o\n  nodes:\n    - {body}\n  start: [i]\n")
    file = outer if is_included else inner
    given = ["--set", f"fill={SECRET}", "--input", "x"]
    done = axil("run", file, *given, "--journal", kept, "--run-id", "r")
    assert "AX660" in done.err, done
    shown = axil("runs", "show", "r", "--journal", kept, "--format", "json")
    assert len(left(kept)) > 1000
    assert SECRET.encode() not in left(kept)
    assert SECRET not in f"{done}{shown}{axil('runs', 'export', 'r', '--journal', kept)}"


def test_a_variable_beside_a_secret_is_kept(axil, flow, tmp_path):
    file, kept = flow(["a askt"], description="${API_KEY} ${TONE}"), tmp_path / "kept"
    given = ("--set", f"API_KEY={SECRET}", "--set", "TONE=very-dry")
    axil("run", file, *given, "--journal", kept, "--run-id", "r")
    assert b"very-dry" in left(kept)
    assert SECRET.encode() not in left(kept)
