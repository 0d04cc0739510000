"""Laws of several ``axil serve`` behind one address: on one PostgreSQL journal and one folder of
files it makes no difference which of them answers, or that one of them is killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.databases import member_module, postgres_server

LONG = pytest.mark.skipif(
    os.environ.get("AXIL_HYPOTHESIS") != "thorough", reason="the lease is six seconds: make check"
)
TOKEN = "ada-" * 8
RIGHTS = ("look", "prompts", "run", "answer", "audit")
AUTHORIZATION = {"authorization": f"Bearer {TOKEN}"}
APP = '''
import asyncio
import os

from axil import RootGraph

graph = RootGraph("desk")


async def work(inputs, ctx):
    """Write who worked, and go on when the gate is open."""
    ctx.workspace.mkdir(parents=True, exist_ok=True)
    given = sorted(each.name for each in (ctx.workspace / "attachments").glob("*"))
    (ctx.workspace / "work.txt").write_text(f"{inputs['gate']}: {given}", "utf-8")
    with open("worked.txt", "a", encoding="utf-8") as file:
        file.write(f"{inputs['gate']} {os.getpid()}\\n")
    while not os.path.exists(inputs["gate"]):
        await asyncio.sleep(0.01)
    return inputs


async def ask(inputs, ctx):
    return {"said": await ctx.ask(f"Is {inputs['gate']} good?")}


graph.create_node(work, name="work")
graph.create_node(ask, name="ask")
graph.edge_from_entry("work", {"gate": ""})
graph.create_edge("work", "ask", {"gate": ""})
graph.edge_to_exit("ask", {"said": ""})
graph.build()
'''


class Turn(socketserver.BaseRequestHandler):
    """A connection that is passed on to the next server that is there."""

    def handle(self) -> None:
        assert isinstance(self.server, Turns)
        with self.server.next() as other:
            both = [(self.request, other), (other, self.request)]
            threads = [threading.Thread(target=self.passed, args=each) for each in both]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

    def passed(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Turns(socketserver.ThreadingTCPServer):
    """An address behind which servers take turns, one connection each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Turn)
        self.ports: list[int] = []
        self.turn = 0

    def next(self) -> socket.socket:
        for _ in range(100):
            self.turn += 1
            with suppress(OSError):
                port = self.ports[self.turn % len(self.ports)]
                return socket.create_connection(("127.0.0.1", port))
        raise OSError("no server is there")


class Crew:
    """Servers of one journal, the address before them, and their provider of sign-ins."""

    def __init__(self, folder: Path, journal: str, provider: Any, stack: ExitStack) -> None:
        self.folder, self._journal = folder, journal
        self.turns = stack.enter_context(Turns())
        threading.Thread(target=self.turns.serve_forever, daemon=True).start()
        stack.callback(self.turns.shutdown)
        self.address = f"http://127.0.0.1:{self.turns.server_address[1]}"
        self.provider, self.processes = provider, dict[int, subprocess.Popen[str]]()
        self.readers: list[threading.Thread] = []
        stack.callback(self.close)
        (folder / "app.py").write_text(APP, "utf-8")
        callers = {"ada": {"env": "ADA", "look": "all", "rights": RIGHTS}}
        (folder / "tokens.json").write_text(json.dumps(callers), "utf-8")
        settings = {"issuer": provider.issuer, "client_id": "axil", "url": self.address}
        rights = {"staff": {"rights": ["look", "run", "answer"]}}
        (folder / "oidc.json").write_text(json.dumps({**settings, "rights": rights}), "utf-8")

    def begin(self, count: int) -> None:
        """Start so many servers, and wait until they listen."""
        start = [sys.executable, "-c", "from axil_cli.main import script; script()", "serve"]
        words = ["app.py:graph", "--port", "0", "--protocol", "openai", "--files", "files"]
        files = ["--tokens", "tokens.json", "--oidc", "oidc.json", "--journal", self._journal]
        own: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "cwd": self.folder}
        own["env"] = {**os.environ, "ADA": TOKEN}
        for each in [subprocess.Popen([*start, *words, *files], **own) for _ in range(count)]:
            assert each.stderr is not None
            said = each.stderr.readline()
            port = re.search(r"http://127\.0\.0\.1:(\d+)", said)
            assert port is not None, said + each.stderr.read()
            self.turns.ports.append(int(port[1]))
            self.processes[int(port[1])] = each
            self.readers.append(threading.Thread(target=self._drained, args=[each], daemon=True))
            self.readers[-1].start()

    @staticmethod
    def _drained(process: subprocess.Popen[str]) -> None:
        with process:  # until it has ended
            assert process.stderr is not None
            process.stderr.read()

    def client(self, port: int = 0, **headers: str) -> httpx2.Client:
        """Return a client at the common address, each of whose requests another server answers."""
        address = f"http://127.0.0.1:{port}" if port else self.address
        limits = httpx2.Limits(max_keepalive_connections=0)
        own: dict[str, Any] = {"headers": headers or AUTHORIZATION, "timeout": 20}
        return httpx2.Client(base_url=address, trust_env=False, limits=limits, **own)

    def worker(self, gate: str) -> int:
        """Wait until a body works, and return the port of its server."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(FileNotFoundError):
                for line in (self.folder / "worked.txt").read_text("utf-8").splitlines():
                    if line.startswith(f"{gate} "):
                        pid = int(line.rpartition(" ")[2])
                        return next(n for n, each in self.processes.items() if each.pid == pid)
            time.sleep(0.01)
        raise AssertionError(f"nobody works at {gate}")

    def open(self, gate: str) -> None:
        (self.folder / gate).write_text("", "utf-8")

    def kill(self, port: int) -> None:
        """End a server as a lost machine does."""
        self.processes[port].send_signal(signal.SIGKILL)
        self.processes.pop(port).wait()
        self.turns.ports.remove(port)

    def close(self) -> None:
        for each in self.processes.values():
            each.kill()
            each.wait()
        for each in self.readers:
            each.join()


@contextmanager
def provided() -> Generator[Any]:
    """Serve the provider that lets people in, at an address of its own."""
    stub = member_module("axil_provider_stub", "axil-serve/tests/provider_stub.py").ProviderStub()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stub.issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
        places = ("authorization_endpoint", "authorize"), ("token_endpoint", "token")
        stub.facts = {name: f"{stub.issuer}/{path}" for name, path in places}
        stub.facts |= {"issuer": stub.issuer, "jwks_uri": f"{stub.issuer}/jwks"}
        stub.claims = {"iss": stub.issuer, "sub": "una", "groups": ["staff"]}
        server = uvicorn.Server(uvicorn.Config(stub.app(), log_config=None))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield stub
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    folder = tmp_path_factory.mktemp("servers")
    with postgres_server() as database, provided() as provider, ExitStack() as stack:
        crew = Crew(folder, database.url, provider, stack)
        crew.begin(3)
        yield crew


def started(client: httpx2.Client, gate: str, **more: Any) -> str:
    body = {"workflow": "desk", "input": {"gate": gate}, **more}
    answer = client.post("/v1/runs", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["run_id"]


def events(client: httpx2.Client, run_id: str, after: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the events of a run: kind, id and data."""
    headers = {"last-event-id": after} if after else {}
    with client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as answer:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                yield fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
                fields = {}


def test_a_run_is_seen_and_answered_at_other_servers_than_its_own(crew: Crew) -> None:
    with crew.client() as client:
        run_id = started(client, "seen")
        at = crew.worker("seen")
        other, third = [port for port in crew.processes if port != at]
        with crew.client(other) as watching, crew.client(third) as answering:
            kinds: list[str] = []
            for kind, _, data in events(watching, run_id):
                kinds.append(data.get("kind", kind))
                if kinds == ["run"]:
                    crew.open("seen")
                if kinds[-1] == "asked":
                    own = {data["question"]["id"]: "very"}  # it may not have paused yet
                    path = f"/v1/runs/{run_id}/answers"
                    assert answering.post(path, json={"answers": own}).status_code == 202
        assert kinds[-1] == "end"
        for _ in crew.processes:
            run = client.get(f"/v1/runs/{run_id}").json()
            assert (run["status"], run["output"]) == ("done", {"said": "very"})


def test_files_sessions_and_idempotency_keys_hold_at_all_servers(crew: Crew) -> None:
    with crew.client() as client:
        upload = client.post("/v1/files?name=a.txt", content=b"one").json()["file_id"]
        assert client.get(f"/v1/files/{upload}/content").content == b"one"
        crew.open("kept")

        def start(_: int) -> str:
            key: Any = {"idempotency-key": "one", **AUTHORIZATION}
            with crew.client(**key) as own:
                return started(own, "kept", session="talk", files=[upload])

        with ThreadPoolExecutor(6) as pool:
            ids = {*pool.map(start, range(12))}
        [run_id] = ids
        for kind, _, data in events(client, run_id):
            if (kind, data.get("kind")) == ("step", "asked"):
                break
        for _ in crew.processes:
            files = client.get(f"/v1/runs/{run_id}/files").json()["files"]
            assert [each["path"] for each in files] == ["attachments/a.txt", "work.txt"]
            content = client.get(f"/v1/runs/{run_id}/files/{files[1]['file_id']}")
            assert content.text == "kept: ['a.txt']"
            [session] = client.get("/v1/sessions").json()["sessions"]
            assert (session["session"], session["runs"]) == ("talk", 1)
        acts = client.get(f"/v1/audit?run={run_id}").json()["acts"]
        assert [each["action"] for each in acts] == ["start"] * 12
        assert client.post(f"/v1/runs/{run_id}/cancel", json={}).status_code < 300
        worked = (crew.folder / "worked.txt").read_text("utf-8")
        assert worked.count("kept ") == 1


def test_a_sign_in_that_one_server_begins_another_ends_and_all_believe(crew: Crew) -> None:
    with crew.client(accept="*/*") as client:
        ports = [*crew.processes] * 2
        sent = client.get("/login")
        assert sent.status_code == 303, sent.text
        turn = crew.turns.turn
        back = client.get(f"/login/callback?{crew.provider.authorized(sent.headers['location'])}")
        assert crew.turns.turn == turn + 1
        assert back.status_code == 303, back.text
        for _ in ports:
            assert client.get("/v1/me").json()["name"] == "una"
        out = client.post("/logout", headers={"origin": crew.address})
        assert out.status_code == 200
        client.cookies.update(back.cookies)
        for _ in ports:
            assert client.get("/v1/me").status_code == 401


@LONG
def test_a_killed_server_is_taken_over_and_what_was_missed_is_caught_up(crew: Crew) -> None:
    with crew.client() as client:
        run_id = started(client, "lost")
        at = crew.worker("lost")
        seen: list[tuple[str, str]] = []
        with crew.client(at) as watching:
            for kind, id, _ in events(watching, run_id):
                seen.append((kind, id))
                break
        crew.kill(at)
        crew.open("lost")
        body: dict[str, Any] = {}
        for kind, _, data in events(client, run_id, after=seen[0][1]):
            assert (kind, data.get("kind")) not in (("reset", None), ("step", "run"))
            if data.get("kind") == "asked":
                body = {"answers": {data["question"]["id"]: "still"}}
                break
        assert client.post(f"/v1/runs/{run_id}/answers", json=body).status_code == 202
        assert [kind for kind, _, _ in events(client, run_id)][-1] == "end"
        assert client.get(f"/v1/runs/{run_id}").json()["output"] == {"said": "still"}
