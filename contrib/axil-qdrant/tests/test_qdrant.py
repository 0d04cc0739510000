"""The collection keeps the laws of stores, and a retriever finds in it what it was given."""

from __future__ import annotations

import json
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import pytest

from axil.plugin import Grants, granted
from axil_models import ContextError
from axil_qdrant import QdrantStore
from axil_testing.kit import StoreKit

if find_spec("qdrant_client") is None:
    pytest.skip("qdrant-client cannot be installed here", allow_module_level=True)


class TestStore(StoreKit):
    component = QdrantStore
    config = {"path": "notes"}  # noqa: RUF012  # the kit's own attribute
    persists = True
    many = 50  # in a folder each row is written alone

    def make(self) -> Any:
        return QdrantStore(path=str(self.folder / "rows"))


def test_a_place_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder", "utf-8")
    store = QdrantStore(path=str(tmp_path / "file" / "rows"))
    with pytest.raises(ContextError, match=r"AX911 the store .*rows.* cannot be opened"):
        store.marks([])


def test_a_server_gets_the_key_that_is_given_and_no_password_of_the_users(monkeypatch, tmp_path):
    heard: list[str] = []
    is_greeted = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path} {self.headers}")
            if self.path != "/":
                self.send_error(503)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"version": version("qdrant-client")}).encode())
            is_greeted.set()

        def log_message(self, *given: Any) -> None: ...

    for name in ("QDRANT_API_KEY", "QDRANT__SERVICE__API_KEY", "QDRANT_URL", "API_KEY"):
        monkeypatch.setenv(name, "canary-own-1")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary-own-2\n")
    (tmp_path / ".netrc").chmod(0o600)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with granted(Grants(folder=str(tmp_path))), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a key that is sent without TLS
            url = f"http://127.0.0.1:{server.server_port}"
            store = QdrantStore(url=url, api_key="stated-key")
            with pytest.raises(Exception, match="503"):
                store.marks(())
        assert is_greeted.wait(30)  # by a thread of the client's
        store.close()
        server.shutdown()
        thread.join()
    said = " ".join(heard)
    assert "stated-key" in said
    assert "canary" not in said
