"""Laws of ``axil mcp``: what a file names is sent where it says with leave only."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from axil_cli.main import main


@pytest.fixture
def heard():
    """Return a server's address, and the headers that it is sent."""
    sent: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(str(self.headers))
            self.send_response(500)
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Server)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mcp", sent
    server.shutdown()
    thread.join()
    server.server_close()


def written(tmp_path: Path, server: dict[str, object]) -> str:
    tools = [{"type": "mcp", "config": server}]
    config = {"model": {"type": "scripted", "default": "ok"}, "tools": tools}
    graph = {"start": ["a"], "nodes": [{"id": "a", "type": "agent", "config": config}]}
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"version": 1, "graph": graph}), "utf-8")
    return str(file)


@pytest.mark.parametrize(
    "private",
    [
        {"token": {"env": "DATABASE_PASSWORD"}},
        {"headers": {"X-Given": {"env": "DATABASE_PASSWORD"}}},
    ],
    ids=["token", "header"],
)
def test_looking_at_tools_sends_no_variable_that_was_not_granted(
    tmp_path, monkeypatch, capsys, heard, private
):
    address, sent = heard
    monkeypatch.setenv("DATABASE_PASSWORD", "p4ssw0rd-of-mine")
    file = written(tmp_path, {"url": address, **private})
    assert main(["mcp", "tools", file]) != 0
    assert "AX138" in capsys.readouterr().err
    assert not any("p4ssw0rd" in each for each in sent)
    main(["mcp", "tools", file, "--allow", "env:DATABASE_PASSWORD"])  # that is no server of MCP
    assert any("p4ssw0rd" in each for each in sent)


def test_a_login_sends_no_variable_that_was_not_granted(tmp_path, monkeypatch, capsys, heard):
    address, sent = heard
    monkeypatch.setenv("DATABASE_PASSWORD", "p4ssw0rd-of-mine")
    server = {
        "url": address,
        "oauth": {"client_id": "c"},
        "headers": {"X-Given": {"env": "DATABASE_PASSWORD"}},
    }
    assert main(["mcp", "login", written(tmp_path, server)]) != 0
    assert "AX138" in capsys.readouterr().err
    assert sent == []
