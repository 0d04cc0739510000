"""Laws of searching the web by a service."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from axil import ConfigError
from axil_workspace.errors import FetchFault, NotAllowed
from axil_workspace.web_search import KEY, WebSearch

FOUND: Any = {
    "knowledgeGraph": {"title": "Rain", "description": "Water."},
    "organic": [{"title": f"T{n}", "link": f"http://{n}", "snippet": "s"} for n in range(3)],
    "peopleAlsoAsk": [{"question": "Why?"}, "no object"],
    "relatedSearches": [{"query": "snow"}],
}


class Handler(BaseHTTPRequestHandler):
    """A search service."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((asked, self.headers["X-API-KEY"]))  # type: ignore[attr-defined]
        status = 403 if self.headers["X-API-KEY"] == "wrong" else 200
        data = b"nothing" if asked["q"] == "broken" else json.dumps(FOUND).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def service(monkeypatch) -> Iterator[Any]:
    monkeypatch.delenv(KEY, raising=False)
    made: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked = []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    made.url = f"http://127.0.0.1:{made.server_port}/search"
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def search(use, service):
    def call(query: str, config: Any = None, **arguments: Any) -> str:
        made = WebSearch(WebSearch.Config(url=service.url, **(config or {})))
        return use(made, "web_search", query=query, **arguments)

    return call


def test_the_service_is_asked_with_the_key_and_what_it_finds_is_shown(search, service):
    said = search("rain", {"api_key": "secret", "results": 2}, page=2, language="ja")
    assert service.asked == [({"q": "rain", "page": 2, "hl": "ja", "gl": "us"}, "secret")]
    assert said.split("\n\n") == [
        "Rain\n   Water.",
        "1. T0\n   http://0\n   s",
        "2. T1\n   http://1\n   s",
        "Also asked: Why?",
        "Related: snow",
    ]


def test_without_a_key_the_error_says_which_is_needed_and_no_service_is_asked(search, service):
    with pytest.raises(FetchFault, match=rf"AX800.*no key.*{KEY}"):
        search("rain")
    assert service.asked == []


def test_the_key_may_be_in_the_environment(search, service, monkeypatch):
    monkeypatch.setenv(KEY, "of the environment")
    search("rain")
    assert service.asked[0][1] == "of the environment"


def test_a_variable_that_is_named_and_not_set_is_an_error(search):
    with pytest.raises(ConfigError, match="AX134"):
        search("rain", {"api_key": {"env": "NO_SUCH_VARIABLE_OF_OURS"}})


@pytest.mark.parametrize(
    ("query", "key", "reported"),
    [("rain", "wrong", "status 403"), ("broken", "k", "not a JSON object")],
)
def test_an_answer_that_is_none_is_reported_without_the_key(search, query, key, reported):
    with pytest.raises(FetchFault, match=reported) as raised:
        search(query, {"api_key": key})
    assert f"{key!r}" not in str(raised.value)


def test_the_network_has_to_be_allowed(service, tmp_path, called, firing_of):
    made = WebSearch(WebSearch.Config(url=service.url, api_key="k"))
    with pytest.raises(NotAllowed, match="AX876"):
        asyncio.run(called(made, "web_search", {"query": "q"}, firing_of(tmp_path)))
    assert service.asked == []
