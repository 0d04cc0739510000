"""Every mistake is reported at once: where it is, what was found, and what to do.

The commands run in this process, with what is installed and with a service that refuses.
"""

from __future__ import annotations

import http.server
import json
import os
import runpy
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axil.plugin import Registry, use_registry
from axil_cli.main import main
from tests.journeys import mistakes_in_files, mistakes_on_lines
from tests.journeys.mistakes import CODE, FLOW, MISTAKES, Mistake

assert mistakes_in_files
assert mistakes_on_lines


class Service(http.server.BaseHTTPRequestHandler):
    """A service of models that refuses, as the first part of the path says."""

    answers: ClassVar = {
        "401": "Incorrect API key provided.",
        "404": "The model `large` does not exist.",
        "429": "Rate limit reached.",
        "400": "This model's maximum context length is 8192 tokens.",
    }

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        status = self.path.split("/")[1]
        is_page = status == "page"
        body = json.dumps({"error": {"message": self.answers.get(status)}})
        data = ("<!doctype html><title>Welcome</title>" if is_page else body).encode()
        self.send_response(200 if is_page else int(status))
        self.send_header("content-type", "text/html" if is_page else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """The port of the service."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield str(server.server_port)
    server.shutdown()
    server.server_close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with nothing in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("AXIL_", "OPENAI_", "COLUMNS"))]:
        monkeypatch.delenv(name)
    return tmp_path


def done(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    """Do what a line says; return the exit code and all that was printed."""
    words = shlex.split(line)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    if words[0] == "python":
        try:
            runpy.run_path(words[1])
        except Exception as error:  # noqa: BLE001  # of any kind
            return 1, f"{type(error).__name__}: {error}"
        return 0, ""
    code = main(words[1:])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.mark.third
@pytest.mark.parametrize("name", list(MISTAKES))
def test_a_mistake_is_reported_with_its_place_and_an_advice(
    name: str,
    here: Path,
    port: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake: Mistake = MISTAKES[name]
    for file, text in mistake.files.items():
        path = here / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.replace("PORT", port).encode())
    is_plugin = any("dist-info" in file for file in mistake.files)
    with use_registry(Registry() if is_plugin else None):
        if mistake.first:
            assert done(mistake.first, capsys, monkeypatch)[0] == 0
        code, said = done(mistake.line.replace("PORT", port), capsys, monkeypatch)
    assert code == mistake.code, said
    seen = " ".join(said.split())
    for each in mistake.says:
        assert each.replace("PORT", port) in seen, said
    assert "Traceback (most recent call last)" not in said or name == "code with a slip"
    if mistake.mended:
        code, said = done(mistake.mended, capsys, monkeypatch)
        assert code == 0, said


def test_what_the_mistakes_are_made_of_is_fine(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (FLOW, CODE):
        (here / "flow.yaml").write_text(text)
        line = "axil run flow.yaml --input x --allow code"
        code, said = done(line, capsys, monkeypatch)
        assert code == 0, said
