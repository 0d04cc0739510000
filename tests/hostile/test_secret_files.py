"""Files that want secrets do not get them, and do not have them said."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from axil_cli.main import main
from axil_testing.stub import Stub

from .secret_files import ENVIRONMENT, FILES, HostileFile

pytestmark = pytest.mark.third

WANTED, MAKERS = "cnrywanted0001/x", "sk-cnrymakers0001x"
GIVEN = 'cnrygiven00001"%/x'


def left(folder: Path) -> str:
    """Return all bytes of a folder as text."""
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return "\n".join(each.read_bytes().decode("utf-8", "replace") for each in files)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_hostile_file_has_no_secret_said(
    file: HostileFile, tmp_path, monkeypatch, capsys, caplog
):
    caplog.set_level("DEBUG")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setenv("WANTED", WANTED)
    monkeypatch.setenv("OPENAI_API_KEY", MAKERS)
    with Stub("chat") as server:
        server.say(*["said"] * 20)
        for name, text in {"flow.yaml": file.text, **file.others}.items():
            Path(name).write_text(text.replace("URL", server.url))
        given = file.given if file.promise == ENVIRONMENT else ("--set", f"API_KEY={GIVEN}")
        began = time.process_time()
        commands: list[list[Any]] = [
            ["check", "flow.yaml", *given],
            ["check", "flow.yaml", *given, "--format", "json"],
            ["show", "flow.yaml", *given],
            ["run", "flow.yaml", *given, "--input", "hi", "--journal", "kept", "--run-id", "r"],
            ["run", "flow.yaml", *given, "--input", "hi", "--format", "json"],
            ["run", "flow.yaml", *given, "--input", "hi", "--format", "events"],
            ["runs", "show", "r", "--journal", "kept", "--format", "json"],
            ["runs", "export", "r", "--journal", "kept"],
            ["runs", "list", "--journal", "kept"],
        ]
        codes = [main(each) for each in commands]
        seconds = time.process_time() - began
        sent = "\n".join(f"{each.headers} {each.text}" for each in server.requests)
    told = "\n".join([*capsys.readouterr(), caplog.text])
    assert file.seen in told
    assert file.code is None or codes[3] == file.code, told
    assert "Traceback" not in told
    for secret in ("cnrywanted0001", "cnrymakers0001"):
        assert secret not in f"{told}{left(tmp_path)}{sent}"
    assert "cnrygiven00001" not in f"{told}{left(tmp_path)}"
    assert seconds < 30
