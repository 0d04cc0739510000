"""Agents with tools that are elsewhere, whose process is killed around a call: what must not be
done twice is not, what was said stays whole, and what was asked is asked again.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from axil import NodeFailed
from axil_agent import Scripted
from axil_sqlite import SqliteJournal

from .elsewhere import CALLS, agent, tools_of

pytestmark = [
    pytest.mark.third,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]


@dataclass
class Shop:
    """A service that notes what it is asked, and answers when it may."""

    url: str
    asked: list[str] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def shop() -> Iterator[Shop]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            made.asked.append(self.command)
            made.may_answer.wait()
            data = f"{self.command} is done".encode()
            try:
                self.send_response(200)
                self.send_header("content-type", "text/plain")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except ConnectionError:  # who asked is gone
                self.close_connection = True

        do_GET = do_POST = do_PUT = _answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Shop(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def process(kind: str, folder: Path, url: str, way: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the agent in a process, which is gone at the end."""
    command = [sys.executable, "-m", "tests.faults.elsewhere", kind, str(folder), url, way]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def until(holds: Callable[[], Any], child: subprocess.Popen[bytes]) -> None:
    """Wait for what the process does."""
    late = time.monotonic() + 120
    while not holds():
        assert child.poll() is None, child.stderr and child.stderr.read()
        assert time.monotonic() < late
        time.sleep(0.01)


def killed_during(kind: str, folder: Path, url: str, arrived: Callable[[], Any]) -> None:
    with process(kind, folder, url, "during") as child:
        until(arrived, child)


def killed_by_itself(kind: str, folder: Path, url: str, way: str) -> None:
    with process(kind, folder, url, way) as child:
        assert child.wait(120) == -signal.SIGKILL, child.stderr and child.stderr.read()


@dataclass
class Heir:
    """The process that goes on: it has a journal and a model of its own."""

    kind: str
    folder: Path
    url: str = ""
    offered: tuple[str, ...] = ("send",)
    options: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    model: Scripted = field(default_factory=lambda: Scripted(['{"o": 1}']))

    def resumed(self, **answers: Any) -> Any:
        tools = tools_of(self.kind, self.folder, self.url, self.offered, **self.options)
        graph = agent(self.model, tools, **self.settings)
        with closing(SqliteJournal(self.folder / "journal")) as journal:
            return asyncio.run(graph.resume("r", journal=journal, **answers))

    @property
    def shown(self) -> list[Any]:
        """The results that the model was shown, one for each call that it had made."""
        assert len(self.model.requests) == 1
        _, *messages = [m for m in self.model.requests[0].messages if m["role"] != "system"]
        asked, *results = messages
        calls = [each["name"] for each in asked["tool_calls"]]
        assert calls == [each["name"] for each in CALLS[self.kind]]
        assert [each["name"] for each in results] == calls
        assert [each["tool_call_id"] for each in results] == [
            each["id"] for each in asked["tool_calls"]
        ]
        return [each["content"] for each in results]


def test_of_calls_side_by_side_only_what_does_no_harm_twice_is_made_again(tmp_path, shop):
    killed_during("openapi", tmp_path, shop.url, lambda: len(shop.asked) == 3)
    shop.may_answer.set()
    heir = Heir("openapi", tmp_path, shop.url)
    [question] = heir.resumed().questions
    assert question.kind == "uncertain"
    assert "order" in question.text
    done = heir.resumed(answers={question.id: {"output": "it is ordered"}})
    assert done.output == {"o": 1}
    assert heir.shown == ["GET is done", "it is ordered", "PUT is done"]
    assert Counter(shop.asked) == {"GET": 2, "PUT": 2, "POST": 1}


def test_a_call_that_was_answered_and_not_recorded_is_asked_about(tmp_path, shop):
    shop.may_answer.set()
    killed_by_itself("order", tmp_path, shop.url, "unrecorded")
    heir = Heir("order", tmp_path, shop.url)
    [question] = heir.resumed().questions
    assert heir.resumed(answers={question.id: "retry"}).output == {"o": 1}
    assert (heir.shown, shop.asked) == (["POST is done"], ["POST", "POST"])
    assert heir.resumed().output == {"o": 1}  # it has ended
    assert len(shop.asked) == 2


OTHER = {"instructions": "Write it otherwise."}


def test_a_call_in_flight_is_asked_about_where_the_prompt_is_another_one(tmp_path, shop):
    shop.may_answer.set()
    killed_by_itself("order", tmp_path, shop.url, "unrecorded")
    heir = Heir("order", tmp_path, shop.url, settings=OTHER)
    for _ in range(2):
        [question] = heir.resumed(migrate=True).questions
        assert question.text.startswith("w: tool:1:0:order was about to run when the run broke")
        assert question.text.endswith("it may do that again, or not. Go on?")
        assert heir.model.requests == []
    done = heir.resumed(migrate=True, answers={question.id: "retry"})
    assert (done.output, shop.asked) == ({"o": 1}, ["POST"])


@pytest.mark.parametrize("answer", ["retry", "fail", {"output": "it is ordered"}])
@pytest.mark.parametrize("item", ["chair", "table"])
def test_what_came_of_a_call_in_flight_is_the_result_of_the_same_call_alone(
    tmp_path, shop, answer, item
):
    shop.may_answer.set()
    killed_by_itself("order", tmp_path, shop.url, "unrecorded")
    call = {"name": "order", "arguments": {"body": {"item": item}}}
    model = Scripted([{"tool_calls": [call]}, '{"o": 1}'])
    heir = Heir("order", tmp_path, shop.url, settings=OTHER, model=model)
    [question] = heir.resumed(migrate=True).questions
    answers = {question.id: answer}
    if answer == "fail":
        with pytest.raises(NodeFailed, match="was given up"):
            heir.resumed(migrate=True, answers=answers)
        assert shop.asked == ["POST"]
        return
    assert heir.resumed(migrate=True, answers=answers).output == {"o": 1}
    is_told = item == "chair" and answer != "retry"
    assert len(shop.asked) == (1 if is_told else 2)
    assert model.requests[1].messages[-1]["content"] == (
        "it is ordered" if is_told else "POST is done"
    )


def test_a_call_that_was_made_is_asked_about_where_the_prompt_is_another_one(tmp_path, shop):
    shop.may_answer.set()
    killed_by_itself("order", tmp_path, shop.url, "recorded")
    assert Heir("order", tmp_path, shop.url, settings=OTHER).resumed(migrate=True).questions
    heir = Heir("order", tmp_path, shop.url)
    assert heir.resumed(migrate=True).output == {"o": 1}  # with the first one nothing is asked
    assert shop.asked == ["POST"]


def test_what_a_person_was_asked_is_asked_again_and_an_allowed_call_is_made_once(tmp_path, shop):
    shop.may_answer.set()
    killed_by_itself("order", tmp_path, shop.url, "asked")
    heir = Heir("order", tmp_path, shop.url, settings={"approve": ["*"]})
    for _ in range(2):
        [question] = heir.resumed().questions
        assert (question.kind, question.data["arguments"]["body"]) == (
            "tool_approval",
            {"item": "chair"},
        )
        assert shop.asked == []
    assert heir.resumed(answers={question.id: "allow"}).output == {"o": 1}
    assert (heir.shown, shop.asked) == (["POST is done"], ["POST"])


def at_work_in(folder: Path) -> list[str]:
    """Return the processes whose current folder this is."""
    found: list[str] = []
    for pid in Path("/proc").iterdir():
        with suppress(OSError):
            if pid.name.isdecimal() and (pid / "cwd").readlink() == folder.resolve():
                found.append(pid.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="there is no /proc")
def test_a_server_ends_with_its_client_and_of_its_tools_that_are_gone_none_is_called(tmp_path):
    killed_during("mcp", tmp_path, "", (tmp_path / "sent").exists)
    late = time.monotonic() + 60
    while at_work_in(tmp_path) and time.monotonic() < late:
        time.sleep(0.01)
    assert not at_work_in(tmp_path)
    with pytest.raises(NodeFailed, match=r'AX923.*the tool "send" is allowed, and the server has'):
        Heir("mcp", tmp_path, offered=("forget",), options={"allow": ["send"]}).resumed()
    heir = Heir("mcp", tmp_path, offered=("forget",))
    [question] = heir.resumed().questions  # whether it was sent is not known
    assert "post__send was about to run when the run broke off" in question.text
    assert heir.resumed(answers={question.id: "retry"}).output == {"o": 1}
    assert heir.shown == ['Error: there is no tool "post__send". Did you mean "post__forget"?']
    assert [tool.name for tool in heir.model.requests[0].tools] == ["post__forget"]
    assert (tmp_path / "sent").read_text() == "one letter"
