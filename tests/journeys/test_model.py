"""A model behind an address: the llama.cpp server with a small model where both are present, and
else a server of the standard library that speaks Chat Completions, and says what goes wrong.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.person import ROOT, Terminal

FLOW = """
version: 1
graph:
  start: [plan]
  end: [write]
  nodes:
    - id: plan
      type: agent
      config:
        model: {type: openai, name: wired, settings: {max_tokens: 20, temperature: 0}}
        instructions: You plan.
    - id: write
      type: agent
      config:
        model: {type: openai, name: wired, settings: {max_tokens: 20, temperature: 0}}
        instructions: You write.
  edges: [{from: plan, to: write}]
"""


class Replies(BaseHTTPRequestHandler):
    """Chat Completions, for one key; each reply is OK."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != "Bearer sk-of-the-test":
            return self.send(401, {"error": {"message": "Incorrect API key provided."}})
        Replies.asked += 1
        usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        whole = {"id": "1", "created": 1, "model": body["model"], "usage": usage}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "OK"}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return self.send(200, {**whole, "object": "chat.completion", "choices": [choice]})
        said = {"index": 0, "delta": {"role": "assistant", "content": "OK"}, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        parts = [
            {**whole, "object": "chat.completion.chunk", "usage": None, "choices": [said]},
            {**whole, "object": "chat.completion.chunk", "choices": [end]},
        ]
        text = "".join(f"data: {json.dumps(each)}\n\n" for each in parts) + "data: [DONE]\n\n"
        return self.send(200, text, "text/event-stream")

    def send(self, status: int, data: Any, kind: str = "application/json") -> None:
        body = (data if isinstance(data, str) else json.dumps(data)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def stub() -> Iterator[str]:
    """The address of the server of the standard library."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Replies) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a llama.cpp server, as the tests of the adapter start it."""
    spec = importlib.util.spec_from_file_location(
        "llama_of_journeys", ROOT / "tests/integration/test_llama.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not (module.MAKERS / "mkwired.py").is_file() or module.missing:
        pytest.skip("no scripts that make models beside this checkout, or no xllamacpp")
    yield from module.serve(tmp_path_factory.mktemp("wired"), "mkwired")


@pytest.fixture(params=["stub", "llama"])
def address(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture
def desk(terminals: Callable[..., Terminal], address: str) -> Terminal:
    terminal = terminals(OPENAI_BASE_URL=address, OPENAI_API_KEY="sk-of-the-test")
    terminal.write("flow.yaml", FLOW)
    return terminal


def test_agents_ask_a_server_and_what_they_used_is_shown(desk: Terminal) -> None:
    shown = desk.type("axil run flow.yaml --input hello --progress --run-id r")
    assert shown.out.strip() == "OK"
    shown.shows("plan", "write", " input, ", " output tokens")
    desk.type("axil runs show r").shows("flow done", "output: OK")


def test_a_recording_answers_when_the_server_is_gone(desk: Terminal) -> None:
    line = "axil run flow.yaml --input hello"
    first = desk.type(f"{line} --record run.jsonl").out
    assert "sk-of-the-test" not in (desk.folder / "run.jsonl").read_text("utf-8")
    desk.environment["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"
    assert desk.type(f"{line} --replay run.jsonl").out == first
    other = desk.type("axil run flow.yaml --input other --replay run.jsonl", code=1)
    other.shows("hello", "other")


def test_a_key_is_in_nothing_that_is_kept(desk: Terminal) -> None:
    desk.type("axil run flow.yaml --input hello --run-id r --prompts whole --progress")
    shown = desk.type("axil runs export r").text + desk.type("axil runs show r --prompts").text
    assert "sk-of-the-test" not in shown
    kept = [each for each in Path(desk.folder / ".axil").rglob("*") if each.is_file()]
    assert not any(b"sk-of-the-test" in each.read_bytes() for each in kept)


def test_a_wrong_key_is_said_once_with_the_setting_and_the_run_goes_on_with_the_right_one(
    terminals: Callable[..., Terminal], stub: str
) -> None:
    desk = terminals(OPENAI_BASE_URL=stub, OPENAI_API_KEY="sk-wrong")
    desk.write("flow.yaml", FLOW)
    shown = desk.type("axil run flow.yaml --input hello", code=1)
    shown.shows('node "plan"', "401", "OPENAI_API_KEY")
    assert "sk-wrong" not in shown.text
    desk.environment["OPENAI_API_KEY"] = "sk-of-the-test"
    assert desk.type(shown.find("The run is kept: (.*)")).out.strip() == "OK"


def test_a_missing_key_is_said_before_anything_is_sent(
    terminals: Callable[..., Terminal], stub: str
) -> None:
    desk = terminals(OPENAI_BASE_URL="https://api.openai.com/v1")
    desk.write("flow.yaml", FLOW)
    desk.type("axil run flow.yaml --input hello", code=1).shows("OPENAI_API_KEY")
    assert desk.environment.get("OPENAI_API_KEY") is None
    assert stub


def test_a_server_that_is_not_there_is_named_with_its_port(
    terminals: Callable[..., Terminal],
) -> None:
    desk = terminals(OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="x")
    flow = FLOW.replace("name: wired,", "name: wired, retry: {max_tries: 1},")
    desk.write("flow.yaml", flow)
    desk.type("axil run flow.yaml --input hello", code=1).shows("127.0.0.1:9", 'node "plan"')
