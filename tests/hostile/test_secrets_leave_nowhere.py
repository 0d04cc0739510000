"""Values of secrets are nowhere in what leaves the process, however they are written.

Each source of secrets meets each sink of text, and a model that says the secret back in every
spelling that JSON, URLs and Python have.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
import re
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from starlette.testclient import TestClient

from axil import AxilError, ConfigError, Context, Problem, Result, RootGraph
from axil.plugin import (
    FromEnvironment,
    Grants,
    Secret,
    decode_config,
    granted,
    hook_manager,
    keep_password,
    keep_secret,
    without_secrets,
)
from axil_agent import Recorder, Scripted
from axil_cli.main import main
from axil_files import load
from axil_journals import MemoryJournal
from axil_mcp import WorkflowServer
from axil_otel import OpenTelemetry
from axil_serve import (
    A2a,
    Access,
    AgUi,
    Caller,
    ChatCompletions,
    Responses,
    RunService,
    app_of,
    token_digest,
)
from axil_sqlite import SqliteJournal
from axil_testing import Golden
from axil_testing.stub import Act, Stub

from ..internals import internal

pytestmark = pytest.mark.third

_numbers = itertools.count()
PEER = "peer-" * 8
"""The token of a client of the server."""


def fresh() -> str:
    """Return a secret of its own, whose letters JSON and URLs write differently."""
    return f'cnrykey{next(_numbers):05}"+/=ZYX%41'


def core(secret: str) -> str:
    """Return the letters by which a secret is found, wherever they are."""
    return re.match(r"\w+", secret)[0]  # type: ignore[index]


def unfolded(text: str) -> str:
    """Return a text with all spellings undone, as somebody who looks for the secret would."""
    for _ in range(5):
        text = unquote(text)
        text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
        text = re.sub(r"\\x([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)
    return text


def assert_absent(secret: str, *texts: str) -> None:
    """Check that no text has a secret, nor the letters of it."""
    for text in texts:
        plain = unfolded(text)
        at = plain.find(core(secret))
        assert at < 0, plain[max(0, at - 200) : at + 100]


def left(folder: Path) -> str:
    """Return all bytes of a folder as text."""
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return "\n".join(each.read_bytes().decode("utf-8", "replace") for each in files)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "by a URL": lambda secret: quote(secret, safe=""),
    "by a URL in small letters": lambda secret: re.sub(
        "%..", lambda found: found[0].lower(), quote(secret, safe="")
    ),
    "by a URL, letters too": lambda secret: "".join(f"%{each:02x}" for each in secret.encode()),
    "by a URL twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "by JSON": lambda secret: json.dumps({"key": secret}),
    "by JSON twice": lambda secret: json.dumps(json.dumps({"key": secret})),
    "by JSON, letters too": lambda secret: "".join(f"\\u{ord(each):04X}" for each in secret),
    "by JSON in a URL": lambda secret: quote(json.dumps({"key": secret})),
    "by Python": lambda secret: repr([secret.encode(), secret + "'"]),
    "by Python, letters too": lambda secret: "".join(f"\\x{ord(each):02x}" for each in secret),
}

MODEL = "{type: openai, name: m, retry: {max_tries: 1}, %s}"
SOURCES = {
    "an environment variable": ("env", "base_url: '{url}', api_key: '${CNRY}'"),
    "--set into a secret": ("set", "base_url: '{url}', api_key: '${CNRY}'"),
    "--set into a header": (
        "set",
        "base_url: '{url}', api_key: none-given, headers: {X-Team: '${CNRY}'}",
    ),
    "a part of a header": (
        "set",
        "base_url: '{url}', api_key: none-given, headers: {Authorization: 'Bearer ${CNRY}'}",
    ),
    "the password of an address": (
        "set",
        "base_url: 'http://me:${CNRY}@{host}/v1', api_key: none-given",
    ),
    "an address with a password, from the environment": (
        "env address",
        "base_url: '${CNRY}', api_key: none-given",
    ),
    "an address with a password, by --set": (
        "set address",
        "base_url: '${CNRY}', api_key: none-given",
    ),
}
DEVALL = """
version: 0.4.0
vars: {{}}
graph:
  id: flow
  nodes:
    - id: a
      type: agent
      config:
        provider: openai
        name: m
        base_url: "{url}"
        api_key: ${{CNRY}}
        role: You help.
  start: [a]
"""


@pytest.fixture
def typed(capsys, caplog, monkeypatch, tmp_path):
    """Return a function that runs the command: its exit code, and all that was printed and
    logged.
    """
    caplog.set_level("DEBUG")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run(*arguments: Any) -> tuple[int, str]:
        code = main([str(each) for each in arguments])
        return code, "\n".join([*capsys.readouterr(), caplog.text])

    return run


def url_fit(secret: str) -> str:
    """Return a secret as it may stand in an address."""
    return quote(secret, safe="")


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        (source, spelling)
        for source in (*SOURCES, "a DevAll file")
        for spelling in SPELLINGS
        if source == "--set into a secret" or spelling in ("as it is", "by JSON in a URL")
    ],
)
def test_a_run_leaves_no_secret(typed, tmp_path, monkeypatch, source, spelling):
    """Journal, export, recording, events, progress, logs and errors of a run and of one that fails,
    where the model says the secret back.
    """
    secret, kept = fresh(), tmp_path / "kept"
    said = f"Your key is {SPELLINGS[spelling](secret)}, right?"
    with Stub("chat") as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
        if source == "a DevAll file":
            how, text = "set", DEVALL.format(url=server.url)
        else:
            how, setting = SOURCES[source]
            setting = setting.replace("{url}", server.url).replace("{host}", host)
            node = "{id: a, type: agent, config: {model: %s}}" % (MODEL % setting)
            text = f"graph:\n  id: flow\n  nodes:\n    - {node}\n  start: [a]\n"
        value = f"http://me:{url_fit(secret)}@{host}/v1" if "address" in how else secret
        value = url_fit(secret) if source == "the password of an address" else value
        (tmp_path / "flow.yaml").write_text(text)
        if how.startswith("env"):
            monkeypatch.setenv("CNRY", value)
            given = ["--allow", "env:CNRY"]
        else:
            given = ["--set", f"CNRY={value}"]
        ways = (*given, "--input", f"hi, {said}", "--journal", kept, "--prompts", "whole")
        server.say(said, said, Act(status=401, message=said), Act(status=401, message=said))
        code, shown = typed("run", "flow.yaml", *ways, "--run-id", "r")
        assert code == 0, shown
        assert server.requests, shown
        told = [shown, typed("run", "flow.yaml", *ways, "--format", "events")[1]]
        code, failed = typed("run", "flow.yaml", *ways, "--format", "json", "--run-id", "f")
        assert code == 1, failed
        monkeypatch.setenv("AXIL_DEBUG", "1")
        told += [failed, typed("run", "flow.yaml", *ways, "--run-id", "g")[1]]
        assert "Traceback" in told[-1]
        monkeypatch.delenv("AXIL_DEBUG")
    for run, form in (("r", "text"), ("r", "json"), ("f", "json")):
        told.append(typed("runs", "show", run, "--journal", kept, "--format", form)[1])
    code, exported = typed("runs", "export", "r", "--journal", kept)
    assert code == 0, exported
    told += [exported, typed("runs", "list", "--journal", kept, "--format", "json")[1]]
    told += [typed("check", "flow.yaml", *given, "--format", form)[1] for form in ("text", "json")]
    told += [typed("show", "flow.yaml", *given, "--format", form)[1] for form in ("json", "text")]
    assert "Your key is" in exported
    assert_absent(secret, *told, left(kept))


# ------------------------------------------------------------------------ a secret of this process


@pytest.fixture(params=SPELLINGS)
def echo(request) -> tuple[str, str]:
    """A secret that a file's setting was filled with, and a text that has it in some spelling."""
    secret = fresh()
    with granted(Grants()):
        Secret(FromEnvironment(secret, "${CNRY}"))
    return secret, f"Your key is {SPELLINGS[request.param](secret)}, right?"


def echoing(said: str, *, fails: bool = False) -> Any:
    """Return a workflow that shows a text in pieces, gives it, and takes a step with it."""

    def say(ctx: Context) -> str:
        for piece in (said[at : at + 3] for at in range(0, len(said), 3)):
            ctx.emit({"kind": "text", "text": piece})
        ctx.emit({"kind": "tool_call", "id": "c", "name": "t", "arguments": {"x": said}})
        ctx.emit({"kind": "tool_result", "id": "c", "name": "t", "content": said})
        logging.getLogger("axil.flow").warning("%s", said)
        if fails:
            raise ValueError(said)
        return said

    return talking(say, "failing" if fails else "flow")


def talking(body: Callable[[Context], str], name: str = "flow") -> Any:
    """Return a workflow of one node, which gives a text."""

    class Talk:
        def run(self, ctx: Context) -> str:
            """Give it."""
            return body(ctx)

    graph = RootGraph(name, state="messages")
    graph.create_node(Talk, name="say")
    graph.edge_from_entry("say")
    graph.edge_to_exit("say")
    return graph.build()


@pytest.mark.parametrize("fails", [False, True])
def test_journals_have_no_secret(echo, tmp_path, fails, caplog):
    secret, said = echo
    memory, sqlite = MemoryJournal(), SqliteJournal(tmp_path / "kept")
    for journal in (memory, sqlite):
        result = asyncio.run(_ran(echoing(said, fails=fails), said, journal=journal, run_id="r"))
        assert result.status == ("failed" if fails else "done")
        entries = list(journal.entries("r"))
        assert len(entries) > 1
        assert_absent(secret, json.dumps([dict(each.data) for each in entries]), repr(entries))
        assert_absent(secret, repr(result), str(result.error), repr(result.error))
    sqlite.close()
    assert_absent(secret, left(tmp_path / "kept"), caplog.text)


async def _ran(workflow: Any, given: Any, **options: Any) -> Result:
    return await workflow.start(given, **options).result()


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("redact", [None, str.upper])
def test_spans_have_no_secret(echo, fails, redact):
    secret, said = echo
    exporter = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    hook = OpenTelemetry(content=True, redact=redact, tracer_provider=tracers)
    asyncio.run(_ran(echoing(said, fails=fails), said, hooks=hook_manager([hook])))
    texts = [each.to_json() for each in exporter.get_finished_spans()]
    assert texts
    assert_absent(secret, *texts)
    assert_absent(secret, *(text.lower() for text in texts))


class Seen:
    """Text that observers are shown."""

    def __init__(self) -> None:
        self.text, self.whole = "", list[Any]()

    def chunk(self, activation: Any, chunk: Any) -> None:
        """Keep a chunk."""
        self.text += chunk["text"] if chunk["kind"] == "text" else ""
        self.whole.append(chunk)

    def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
        """Keep what was shown when the firing ends."""
        self.whole.append("end")


def test_what_is_shown_in_pieces_has_no_secret_and_loses_nothing():
    secret = f"cnry{next(_numbers)}q-{'z' * 12}"
    keep_secret(secret, "${CNRY}")
    for said in (f"a {secret} b", f"{secret}{secret[:7]}", "c" * 9, f"cc{secret[:9]} {secret}"):
        seen = Seen()
        asyncio.run(_ran(echoing(said), "", observers=[seen]))
        assert seen.text == said.replace(secret, "${CNRY}")
        assert seen.whole[-1] == "end"
        assert_absent(secret, json.dumps(seen.whole).replace(secret[:7], ""))


def test_a_reset_takes_back_what_was_held_back_and_given_by_itself():
    secret = f"cnry{next(_numbers)}q-{'z' * 12}"
    keep_secret(secret)

    def say(ctx: Context) -> str:
        ctx.emit({"kind": "text", "text": "kept"})
        ctx.emit({"kind": "text", "text": f"no {secret[:4]}"})
        ctx.emit({"kind": "note"})
        ctx.emit({"kind": "reset", "chunks": 2})
        return ""

    seen = Seen()
    asyncio.run(_ran(talking(say), "", observers=[seen]))
    reset = next(each for each in seen.whole if each["kind"] == "reset")
    at = seen.whole.index(reset)
    assert seen.whole[: at - reset["chunks"]] == [{"kind": "text", "text": "kept"}]


def test_logs_have_no_secret(echo, caplog):
    secret, said = echo
    caplog.set_level("DEBUG")
    log = logging.getLogger("somebody.else")
    log.info("HTTP Request: POST %s", f"https://host/?key={said}")
    log.info("%s and %r", said, {"said": said})
    try:
        raise ValueError(said)
    except ValueError:
        log.exception("it failed")
    assert len(caplog.records) == 3
    assert_absent(secret, caplog.text)


class Places(BaseModel, extra="forbid", frozen=True):
    """Settings that hold what they should not."""

    headers: dict[str, str] = {}
    dsn: str = ""
    key: Secret | None = None


def test_errors_settings_and_results_say_no_secret(echo):
    secret, said = echo
    problem = Problem("AX131", "here", said, said)
    errors: list[AxilError] = [ConfigError(problem), AxilError(said)]
    made = decode_config(Places, {"headers": {"a": said}, "dsn": said, "key": said})
    shown = [problem, *errors, made, Result(status="done", run_id="r", output=said)]
    assert_absent(secret, *map(str, shown), *map(repr, shown))


def test_a_recording_has_no_secret(echo, tmp_path):
    secret, said = echo
    file = tmp_path / "flow.yaml"
    file.write_text(
        "graph: {id: f, nodes: [{id: a, type: agent, config: {model: scripted}}], start: [a]}"
    )
    with Scripted([said]).everywhere(), Recorder.everywhere(tmp_path / "tape.jsonl"):
        result = asyncio.run(_ran(load(file), said))
    assert result.status == "done", result
    assert "Your key is" in (tmp_path / "tape.jsonl").read_text()
    assert_absent(secret, (tmp_path / "tape.jsonl").read_text())


def keeping(said: str) -> dict[str, dict[str, Any]]:
    """Return settings of agents and nodes that keep what was said on the disk."""
    store = {"store": {"type": "sqlite_vec", "path": ".axil/v.db"}, "embedder": "lexical"}
    documents = [{"text": f"roses {said}", "uri": "a", "title": said}]
    return {
        "file_memory": {"memories": [{"type": "file_memory", "path": ".axil/m.jsonl"}]},
        "store_memory": {"memories": [{"type": "store_memory", **store}]},
        "keyword": {
            "retrievers": [{"type": "keyword", "documents": documents, "path": ".axil/k.db"}]
        },
        "store": {"retrievers": [{"type": "store", "documents": documents, **store}]},
        "cache": {},
    }


@pytest.mark.parametrize("kept", keeping(""))
def test_what_memories_indexes_and_caches_keep_has_no_secret(echo, tmp_path, kept):
    secret, said = echo
    config = {"model": "scripted", **keeping(said)[kept]}
    node: dict[str, Any] = {"id": "a", "type": "agent", "config": config}
    if kept == "cache":
        node["wrappers"] = [{"type": "cache", "config": {"directory": ".axil/cache"}}]
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"graph": {"id": "f", "nodes": [node], "start": ["a"]}}))
    flow = load(file)
    file.write_text("{}")  # the file itself may say what it likes
    with Scripted([said] * 3).everywhere():
        for text in (f"roses {said}", "roses"):
            assert asyncio.run(_ran(flow, text)).status == "done"
    assert kept == "cache" or any((tmp_path / ".axil").rglob("*"))
    assert_absent(secret, left(tmp_path))


DEVALL_WITH_NOTES = """version: 0.4.0
graph:
  id: team
  start: [writer]
  memory:
    - {name: notes, type: simple, config: {memory_path: .axil/notes.jsonl}}
  nodes:
    - id: writer
      type: agent
      config:
        provider: openai
        name: m
        base_url: URL
        api_key: none
        role: Write.
        memories: [{name: notes, top_k: 2}]
  edges: []
"""


def test_the_notes_of_a_devall_file_have_no_secret(echo, tmp_path):
    secret, said = echo
    with Stub("chat") as server:
        server.say(said, said)
        (tmp_path / "team.yaml").write_text(DEVALL_WITH_NOTES.replace("URL", server.url))
        for text in (f"roses {said}", "roses"):
            result = load(tmp_path / "team.yaml").invoke(text)
            assert result.status == "done", result
        assert "Your key is" in json.dumps(server.requests[-1].body)  # it is remembered
    notes = (tmp_path / ".axil/notes.jsonl").read_text()
    assert "Your key is" in notes
    assert_absent(secret, left(tmp_path))


@pytest.mark.parametrize("fails", [False, True])
def test_a_golden_trace_has_no_secret_and_is_met_again(echo, tmp_path, fails):
    secret, said = echo
    golden = Golden(tmp_path / "golden.json", echoing(said, fails=fails), said)
    golden.check()
    assert "Your key is" in golden.file.read_text()
    assert_absent(secret, golden.file.read_text())
    golden.check()


# ------------------------------------------------------------------------------------------ servers


@pytest.fixture
def client(echo) -> Iterator[TestClient]:
    _, said = echo
    protocols = {
        "a2a": A2a(),
        "ag-ui": AgUi(),
        "openai": ChatCompletions(),
        "responses": Responses(),
    }
    flows = {"flow": echoing(said), "failing": echoing(said, fails=True)}
    service = RunService(MemoryJournal(), flows, poll_seconds=0.01)
    access = Access([(token_digest(PEER, "peer"), Caller(name="peer"))])
    app = app_of(service, access, protocols=protocols)
    headers = {"authorization": f"Bearer {PEER}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def _deltas(text: str) -> str:
    """Return the texts of a stream's events, one behind the other."""
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                if key in ("text", "content", "delta") and isinstance(each, str):
                    found.append(each)
                else:
                    walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    for line in text.splitlines():
        if line.startswith("data: {"):
            walk(json.loads(line[6:]))
    return "".join(found)


@pytest.mark.parametrize("flow", ["flow", "failing"])
def test_the_answers_of_servers_have_no_secret(echo, client, flow):
    secret, said = echo
    begun = client.post("/v1/runs", json={"workflow": flow, "input": said})
    run_id = begun.json()["run_id"]
    told = [begun.text, client.get(f"/v1/runs/{run_id}/events").text]
    told += [
        client.get(f"/v1/runs/{run_id}{each}").text for each in ("", "/steps", "/plan", "/state")
    ]
    told += [client.get(each).text for each in ("/v1/runs", "/v1/search?q=key", "/v1/workflows")]
    messages = [{"role": "user", "content": said}]
    for stream in (False, True):
        body = {"model": flow, "messages": messages, "stream": stream}
        told.append(client.post("/v1/chat/completions", json=body).text)
        body = {"model": flow, "input": said, "stream": stream}
        told.append(client.post("/v1/responses", json=body).text)
    given = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": []}
    message = [{"id": "m", "role": "user", "content": said}]
    given |= {"messages": message, "forwardedProps": {}}
    told.append(client.post(f"/ag-ui/{flow}", json=given).text)
    sent = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": said}]}}
    for method in ("SendMessage", "SendStreamingMessage"):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}
        headers = {"A2A-Version": "1.0"}
        told.append(client.post(f"/a2a/{flow}", json=call, headers=headers).text)
    assert sum("Your key is" in _deltas(each) + each for each in told) >= 6, told
    assert_absent(secret, *told, *map(_deltas, told))


@pytest.mark.parametrize("fails", [False, True])
def test_the_answers_of_an_mcp_server_have_no_secret(echo, fails):
    secret, said = echo
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    stream = internal("mcp_leaving").MessageStream
    sent: list[Any] = []

    class Wire:
        async def send(self, item: Any) -> None:
            sent.append(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": 1}
    content = {"content": [{"type": "text", "text": said}], "structuredContent": {"output": said}}
    answer |= {"error": {"code": 1, "message": said}} if fails else {"result": content}
    message = jsonrpc_message_adapter.validate_python(answer, by_name=False)
    asyncio.run(stream(Wire()).send(SessionMessage(message)))
    assert "Your key is" in sent[0]
    assert_absent(secret, *sent)


def test_an_mcp_server_over_http_has_no_secret(echo):
    secret, said = echo
    from pydantic import SecretStr

    guard = internal("mcp_guard")
    server = WorkflowServer({"flow": echoing(said)})
    app = guard.app_of(server, guard.HttpConfig(token=SecretStr(PEER)))
    accept = "application/json, text/event-stream"
    headers = {"authorization": f"Bearer {PEER}", "accept": accept, "host": "127.0.0.1"}

    def call(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        who = {"name": "c", "version": "1"}
        begin = call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=who)
        first = client.post("/mcp", json=begin)
        session = {"mcp-session-id": first.headers["mcp-session-id"]}
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        client.post("/mcp", json=done, headers=session)
        asked = call("tools/call", name="flow", arguments={})
        answer = client.post("/mcp", json=asked, headers=session).text
    assert "Your key is" in answer, answer
    assert_absent(secret, answer)


# ---------------------------------------------------------------------------------- other commands

FLOW = """
graph:
  id: flow
  nodes:
    - id: a
      type: agent
      config:
        instructions: "Answer."
        model: scripted
    - {id: key, type: literal, config: {content: "${API_KEY}"}}
  start: [key]
  edges: [{from: key, to: a}]
"""


@pytest.fixture
def flow(echo, tmp_path) -> Iterator[tuple[str, list[str]]]:
    """A secret that ``--set`` gives, and ``flow.yaml``, whose model says it."""
    secret, said = echo
    (tmp_path / "flow.yaml").write_text(FLOW)
    rules = [{"match": {"system_contains": "You improve"}, "replies": [said]}]
    with Scripted({"rules": rules, "default": said}).everywhere():
        yield secret, ["--set", f"API_KEY={secret}"]


def test_batches_leave_no_secret(echo, flow, typed, tmp_path):
    secret, given = flow
    rows = [{"q": echo[1]}, {"q": "other"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for suffix in ("jsonl", "csv", "xlsx"):
        out = f"out.{suffix}"
        ways = ("--column", "q", *given, "--journal", "kept", "-o", out)
        code, said = typed("batch", "flow.yaml", "rows.jsonl", *ways)
        assert code == 0, said
        assert_absent(secret, said)
        if suffix != "xlsx":
            assert "Your key is" in (tmp_path / out).read_text()
            assert_absent(secret, (tmp_path / out).read_text())
    from openpyxl import load_workbook

    cells = [cell.value for row in load_workbook(tmp_path / "out.xlsx").active for cell in row]
    assert_absent(secret, *map(str, cells), left(tmp_path / "kept"))


def test_evaluations_leave_no_secret(echo, flow, typed, tmp_path):
    secret, given = flow
    case = {"name": "one", "inputs": echo[1], "expected": echo[1]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))
    ways = (*given, "--scorer", "exact", "--journal", "kept", "--run-id", "e")
    out = ("--out", "e.json", "--out", "e.html", "--out", "e.xml")
    code, said = typed("eval", "run", "flow.yaml", "cases.jsonl", *ways, *out)
    assert code < 2, said
    reports = [(tmp_path / name).read_text() for name in ("e.json", "e.html", "e.xml")]
    assert_absent(secret, said, *reports, left(tmp_path / "kept"))


def test_tuning_leaves_no_secret(echo, flow, typed, tmp_path):
    secret, given = flow
    cases = [{"name": f"c{n}", "inputs": f"q{n}", "expected": "A"} for n in range(12)]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    ways = ("--budget", "2.00", "--journal", "kept", "--proposals", "1", *given)
    code, said = typed("tune", "flow.yaml", "cases.jsonl", *ways, "--scorer", "exact")
    assert code < 2, said
    assert_absent(secret, said, left(tmp_path / "kept"), (tmp_path / "flow.tuned.md").read_text())


def test_a_draft_has_no_secret(echo, typed, tmp_path):
    secret, said = echo
    node = f"{{id: a, type: literal, config: {{content: {json.dumps(said)}}}}}"
    text = f"graph:\n  id: f\n  nodes:\n    - {node}\n  start: [a]\n"
    rules = [
        {"match": {"system_contains": "You assign roles"}, "replies": [said]},
        {"match": {"system_contains": "You plan a graph"}, "replies": [said]},
        {
            "match": {"system_contains": "You write workflow files"},
            "replies": [f"```yaml\n{text}```"],
        },
    ]
    with Scripted({"rules": rules}).everywhere():
        ways = ("--yes", "-o", "team.yaml", "--model", "scripted")
        code, told = typed("draft", said, *ways)
    assert code == 0, told
    assert "Your key is" in (tmp_path / "team.yaml").read_text()
    assert_absent(secret, told, left(tmp_path))


def test_a_secret_that_was_cut_is_no_longer_there():
    secret = fresh()
    keep_secret(secret, "${CNRY}")
    for spelled in SPELLINGS.values():
        whole = spelled(secret)
        for length in range(len(whole) // 2, len(whole)):
            cut = whole[:length]
            if core(secret) in unfolded(cut):
                assert_absent(secret, without_secrets(f"{cut}…"), without_secrets(f"{cut}. More."))


def test_ordinary_words_are_no_beginnings_of_secrets():
    keep_secret("configuration-of-the-user")
    keep_secret('{"type": "service_account", "key": 1}')
    keep_secret("postgresql://me:abcdefgh1234@host/name")
    for text in ("configuration", '{"type": "server"}', "postgresql://other@host"):
        assert without_secrets(text) == text


@pytest.mark.parametrize("text", ["ha" * 10**6, "://" * 10**6, "x=" * 10**6, "password='" * 10**5])
def test_looking_for_passwords_takes_time_by_the_length(text):
    began = time.process_time()
    keep_password(text)
    without_secrets(text)
    assert time.process_time() - began < 5


def test_texts_without_secrets_are_as_they_were():
    keep_secret(fresh())
    for text in ('a "b" \\n %41 %zz \\u12', "100% of \\d+", "\\", "%", json.dumps({"a": "ü\n"})):
        assert without_secrets(text) == text


def test_the_header_that_a_password_of_an_address_becomes_is_a_secret():
    secret = fresh()
    keep_secret(f"https://me:{url_fit(secret)}@host.example/v1")
    header = b64encode(f"me:{secret}".encode()).decode()
    assert header not in without_secrets(f"sent: Authorization: Basic {header}")
