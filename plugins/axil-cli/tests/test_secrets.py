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
