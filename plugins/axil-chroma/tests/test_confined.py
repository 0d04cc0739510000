"""A server that a workflow file chose gets what the file says, and nothing of the user's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

from axil import run_sync
from axil.plugin import Grants, granted, noting_wants
from axil_chroma import ChromaMemory
from axil_models import ContextError, ContextQuery

if find_spec("chromadb") is None:
    pytest.skip("chromadb cannot be installed here", allow_module_level=True)

VARIABLES = {
    "CHROMA_CLIENT_AUTH_PROVIDER": "chromadb.auth.token_authn.TokenAuthClientProvider",
    "CHROMA_CLIENT_AUTH_CREDENTIALS": "canary-own-1",
    "CHROMA_AUTH_TOKEN_TRANSPORT_HEADER": "X-Chroma-Token",
    "CHROMA_SERVER_HEADERS": '{"X-Own": "canary-own-2"}',
    "CHROMA_TENANT": "canary-own-3",
    "CHROMA_DATABASE": "canary-own-4",
    "CHROMA_API_KEY": "canary-own-5",
}


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    """The port of a server that refuses everything, and what it is sent."""
    found: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def _note(self) -> None:
            found.append(f"{self.path} {self.headers}")
            self.send_error(503)

        do_GET = do_POST = _note  # names of the standard library

        def log_message(self, *given: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.append(server.server_port)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def asked(heard: list[Any], grants: Grants | None, **more: Any) -> str:
    with granted(grants):
        memory = ChromaMemory(host="127.0.0.1", port=heard[0], embedder="lexical", **more)
        with pytest.raises((ContextError, ValueError)):
            run_sync(memory.get_blocks(ContextQuery("x")))
    run_sync(memory.close())
    assert heard[1:]
    return " ".join(heard[1:])


@pytest.mark.parametrize("place", ["variables", ".env"])
def test_a_files_server_gets_no_variable_of_the_user(heard, monkeypatch, tmp_path, place):
    monkeypatch.chdir(tmp_path)
    if place == ".env":
        lines = [f"{name}='{value}'\n" for name, value in VARIABLES.items()]
        (tmp_path / ".env").write_text("".join(lines))
    else:
        for name, value in VARIABLES.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary-own-6\n")
    (tmp_path / ".netrc").chmod(0o600)
    said = asked(heard, Grants(folder=str(tmp_path)), token="stated-token", tenant="stated")
    assert "canary-own" not in said
    assert "Bearer stated-token" in said
    del heard[1:]
    assert "canary-own-1" in asked(heard, None)  # of code they are its own


def test_the_server_of_a_file_is_listed():
    with granted(Grants()), noting_wants() as wants:
        ChromaMemory(host="db.example.org", embedder="lexical")
    assert ("net:db.example.org", "own") in {(each.word, each.status) for each in wants}
