"""The front ends of the table of pairs: each begins a row as its users do, and reads what it says.

What a front end says is a status in its own words (``SAID``), and a text.
"""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.pairs import ROWS, SERVED, Outcome, Row, expected, workflow
from tests.journeys.person import ROOT, Program, Server, Terminal, eventually

PARTS = Path(__file__).with_name("pair_parts.py")
PROGRAM = Path(__file__).with_name("pair_program.py")
RAY = ROOT / ".venv/ray/bin/python"
"""The interpreter of the environment that ``make ray`` makes."""
METADATA = "Metadata-Version: 2.1\nName: pair-parts\nVersion: 1\n"
ENTRY_POINTS = """[axil.nodes]
pair.inline = pair_parts:Inline
pair.thread = pair_parts:Thread
pair.async = pair_parts:Async
"""
CODES = {"done": 0, "failed": 1, "limited": 4, "cancelled": 130}
"""The exit codes of ``axil run``."""
SAID = {
    "openai": {"limited": "failed"},
    "a2a": {"limited": "failed", "done": "completed", "cancelled": "canceled"},
    "agui": {"limited": "failed", "cancelled": "failed"},
    "mcp": {"limited": "failed"},
}
"""The words of protocols that have others, by the status of the run."""
MARKS = "flows/.axil"
"""The folder in which a body of a workflow file may write without being asked."""
TOKEN = "a token of at least 32 characters, made here"
REST = ("done", "failed", "limited", "cancelled")
CLOSED: dict[str, Any] = {"trust_env": False, "timeout": 60}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A terminal with a journal and a view of it, and the servers that its rows need.

    The server of workflows has a journal of its own: a server is a worker, and would execute what
    is submitted.
    """

    terminal: Terminal
    journal: str
    served: str
    mcp: dict[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def view(self) -> Server:
        return Server(self.terminal, f"axil view --journal {self.journal}")

    @cached_property
    def server(self) -> Server:
        return Server(self.terminal, f"axil serve flows --journal {self.served}")

    def mcp_address(self, journal: str) -> str:
        """Return the address of a server of MCP with a journal."""
        if journal not in self.mcp:
            kept = f"--journal {self.journal}" if journal == "full" else ""
            files = " ".join(
                f"flows/row{number}.yaml"
                for number, row in enumerate(ROWS)
                if (row["front"], row["journal"]) == ("mcp", journal)
            )
            line = f"axil mcp serve {files} --transport http --port 0 {kept}"
            self.mcp[journal] = self.terminal.start(line).find(r"(http://\S+/mcp)")
        return self.mcp[journal]

    def keeper(self, row: Row) -> Server | None:
        """Return the server that shows the runs of a row; None: there is none."""
        if row["journal"] in ("off", "memory"):
            return None
        return self.server if row["front"] in SERVED else self.view

    def begun(self) -> None:
        """Wait until a body is at work that only its cancellation ends."""
        eventually(lambda: self.mark("begun").exists())

    def mark(self, name: str) -> Path:
        """Return a file by which a body tells how far it is."""
        return self.terminal.folder / MARKS / name


def place(folder: Path, journal: str, served: str) -> Place:
    """Write the files of all rows."""
    terminal = Terminal(
        folder,
        AXIL_JOURNAL=journal,
        PYTHONPATH=str(folder),
        PAIR_FOLDER=str(folder / MARKS),
        AXIL_MCP_TOKEN=TOKEN,
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
    )
    for file in (PARTS, PROGRAM):
        terminal.write(file.name, file.read_text("utf-8"))
    terminal.write("pair_parts-1.dist-info/METADATA", METADATA)
    terminal.write("pair_parts-1.dist-info/entry_points.txt", ENTRY_POINTS)
    for number, row in enumerate(ROWS):
        terminal.write(f"flows/row{number}.yaml", workflow(row))
    (folder / MARKS).mkdir()
    if "://" not in journal:
        (folder / journal).mkdir()
    return Place(terminal=terminal, journal=journal, served=served)


def text(output: Any) -> str:
    """Return an output as a text, whatever the graph carries."""
    if isinstance(output, dict) and "messages" in output:
        output = output["messages"]
    if isinstance(output, list):
        output = output[-1]["content"]
    return str(output["message"] if isinstance(output, dict) else output or "")


def given(row: Row) -> Any:
    """Return the input of a row in Python and for the API."""
    if row["graph"] == "fields":
        return {"message": "hi"}
    typed = {"messages": [{"role": "user", "content": "hi"}]}
    return typed if row["graph"] == "typed" else "hi"


def interrupted(here: Place, line: str, code: int) -> str:
    """Press Ctrl-C when a body is at work; return what was shown."""
    program = here.terminal.start(line)
    eventually(lambda: here.mark("begun").exists() or program.process.poll() is not None)
    return program.stop(code)


def by_run(here: Place, row: Row, name: str) -> Outcome:
    terminal, outcome = here.terminal, expected(row)
    kept = "--journal off" if row["journal"] == "off" else f"--run-id {name}"
    line = f"axil run flows/{name}.yaml --input hi --format json {kept}"
    if row["happening"] == "cancelled":
        shown = interrupted(here, line, CODES["cancelled"])
        told = json.loads(shown[shown.index("{") :])
        return Outcome(status=told["status"], output=text(told["output"]))
    if row["happening"] == "killed":  # the same command goes on with what was recorded of it
        terminal.type(line, code=-9)
    if row["happening"] == "paused":
        terminal.type(line, code=3)
        line = f"axil runs answer {name} yes --format json"
    told = terminal.type(line, code=CODES[outcome.status], tracebacks=True).data
    return Outcome(status=told["status"], output=text(told["output"]))


def worker(here: Place, row: Row, name: str) -> Program:
    """Start a worker of a row."""
    engine = "temporal" if row["engine"] == "temporal" else "local"
    return here.terminal.start(f"axil worker flows/{name}.yaml --engine {engine}")


def by_python(here: Place, row: Row, name: str) -> Outcome:
    terminal = here.terminal
    program = sys.executable
    if row["body"] == "ray":
        if not RAY.exists():
            pytest.skip("there is no environment with Ray: make ray")
        program = str(RAY)
    told = {**row, "file": f"flows/{name}.yaml", "name": name, "place": here.journal}
    told |= {"given": given(row), "is_again": False}

    def line() -> str:
        return f"{program} pair_program.py '{json.dumps(told)}'"

    is_killed = row["happening"] == "killed"
    if row["engine"] == "worker":
        at_work = worker(here, row, name)
        running = terminal.start(line())
        if is_killed:
            assert at_work.process.wait(60) == -9, at_work.text
            at_work = worker(here, row, name)
        eventually(lambda: running.process.poll() is not None)
        running.stop(0)
        at_work.stop(0)
        said = json.loads(running.text.splitlines()[-1])
    else:
        if is_killed:
            terminal.type(line(), code=-9)
            told["is_again"] = True
        said = json.loads(terminal.type(line(), tracebacks=True).out.splitlines()[-1])
    return Outcome(status=said["status"], output=text(said["output"]))


def by_worker(here: Place, row: Row, name: str) -> Outcome:
    terminal, happening = here.terminal, row["happening"]
    put = json.dumps(given(row)) if row["graph"] in ("fields", "typed") else "hi"
    terminal.type(f"axil submit flows/{name}.yaml --run-id {name} --input '{put}'")
    at_work = worker(here, row, name)
    if happening == "killed":
        assert at_work.process.wait(60) == -9, at_work.text
        at_work = worker(here, row, name)
    if happening == "paused":
        eventually(lambda: here.view.get(f"/v1/runs/{name}")["questions"])
        terminal.type(f"axil runs answer {name} yes")
    if happening == "cancelled":
        here.begun()
        terminal.type(f"axil runs cancel {name}")
    eventually(lambda: here.view.get(f"/v1/runs/{name}")["status"] in REST)
    at_work.stop(0)
    told = here.view.get(f"/v1/runs/{name}")
    return Outcome(status=told["status"], output=text(told["output"]))


def by_batch(here: Place, row: Row, name: str) -> Outcome:
    terminal, outcome = here.terminal, expected(row)
    terminal.write(f"{name}.csv", "message\nhi\n")
    line = f"axil batch flows/{name}.yaml {name}.csv --name {name}"
    if row["happening"] == "cancelled":
        interrupted(here, line, CODES["cancelled"])
    else:
        if row["happening"] == "killed":
            terminal.type(line, code=-9)
        if row["happening"] == "paused":
            terminal.type(line, code=1)
            terminal.type(f"axil runs answer {name}-1 yes")
        terminal.type(line, code=0 if outcome.status == "done" else 1, tracebacks=True)
    csv.field_size_limit(10_000_000)
    with (terminal.folder / f"{name}.results.csv").open(encoding="utf-8", newline="") as file:
        [told] = csv.DictReader(file)
    columns = {"output": str, "output.message": str, "output.messages": json.loads}
    output = [read(told[name]) for name, read in columns.items() if told.get(name)]
    return Outcome(status=told["run.status"], output=text(output[0]) if output else "")


def by_serve(here: Place, row: Row, name: str) -> Outcome:
    run = here.server.post("/v1/runs", {"workflow": name, "input": given(row)})["run_id"]
    if row["happening"] == "paused":
        [question] = here.server.ended(run, status="paused")["questions"]
        here.server.post(f"/v1/runs/{run}/answers", {"answers": {question["id"]: "yes"}})
    if row["happening"] == "cancelled":
        here.begun()
        here.server.post(f"/v1/runs/{run}/cancel", {})
    told = here.server.ended(run, status=expected(row).status)
    return Outcome(status=told["status"], output=text(told["output"]))


def by_openai(here: Place, row: Row, name: str) -> Outcome:
    module = pytest.importorskip("openai")
    message = {"role": "user", "content": "hi"}
    with module.OpenAI(
        base_url=f"{here.server.address}/v1", api_key=here.server.token, max_retries=0
    ) as client:
        if row["happening"] == "cancelled":  # completions know no cancellation: responses do
            begun = client.responses.create(model=name, input="hi", background=True)
            here.begun()
            return Outcome(status=client.responses.cancel(begun.id).status)
        create = client.chat.completions.create
        try:
            told = create(model=name, messages=[message])
            if row["happening"] == "paused":
                metadata = {"run_id": told.id}
                yes = {"role": "user", "content": "yes"}
                told = create(model=name, messages=[yes], metadata=metadata)
        except module.APIStatusError as error:
            return Outcome(status="failed" if "AX" in str(error) else str(error))
    return Outcome(status="done", output=told.choices[0].message.content)


def by_a2a(here: Place, row: Row, name: str) -> Outcome:
    a2a = pytest.importorskip("a2a.client")
    import httpx
    from a2a.types import (
        CancelTaskRequest,
        GetTaskRequest,
        Message,
        Part,
        Role,
        SendMessageRequest,
        TaskState,
    )

    def says(said: str, task_id: str = "") -> Any:
        parts = [Part(text=said)]
        message = Message(message_id=said, role=Role.ROLE_USER, parts=parts, task_id=task_id)
        return SendMessageRequest(message=message)

    async def talk() -> Any:
        headers = {"authorization": f"Bearer {here.server.token}"}
        async with httpx.AsyncClient(headers=headers, **CLOSED) as http:
            config = a2a.ClientConfig(httpx_client=http)
            address = f"{here.server.address}/a2a/{name}"
            client = await a2a.create_client(address, client_config=config)
            task_id = ""
            async for event in client.send_message(says("hi")):
                if task_id:
                    continue
                task_id = event.task.id
                if row["happening"] == "cancelled":
                    await asyncio.to_thread(here.begun)
                    await client.cancel_task(CancelTaskRequest(id=task_id))
            if row["happening"] == "paused":
                async for _ in client.send_message(says("yes", task_id)):
                    pass
            return await client.get_task(GetTaskRequest(id=task_id))

    task = asyncio.run(talk())
    status = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()
    parts = [part for artifact in task.artifacts for part in artifact.parts]
    return Outcome(status=status, output="".join(part.text for part in parts))


def by_agui(here: Place, row: Row, name: str) -> Outcome:
    core = pytest.importorskip("ag_ui.core")
    from pydantic import TypeAdapter

    def events(**more: Any) -> list[Any]:
        message = {"id": "1", "role": "user", "content": "hi"}
        whole = {"threadId": name, "runId": name, "messages": [message], **more}
        body = core.RunAgentInput.model_validate(whole).model_dump(mode="json", by_alias=True)
        found: list[Any] = []
        is_cancelled = False
        with here.server.http.stream("POST", f"/ag-ui/{name}", json=body) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    found.append(TypeAdapter(core.Event).validate_json(line[6:]))
                if row["happening"] == "cancelled" and not is_cancelled:
                    here.begun()
                    newest = here.server.get("/v1/runs")["runs"][0]["run_id"]
                    here.server.post(f"/v1/runs/{newest}/cancel", {})
                    is_cancelled = True
        return found

    said = events()
    if row["happening"] == "paused":
        [interrupt] = said[-1].outcome.interrupts
        resume = [{"interruptId": interrupt.id, "status": "resolved", "payload": "yes"}]
        said = events(resume=resume)
    if said[-1].type.value == "RUN_ERROR":
        return Outcome(status="failed")
    assert said[-1].type.value == "RUN_FINISHED", said
    words = "".join(getattr(each, "delta", "") for each in said)
    assert words == text(said[-1].result)
    return Outcome(status="done", output=words)


def by_mcp(here: Place, row: Row, name: str) -> Outcome:
    mcp = pytest.importorskip("mcp")
    httpx2 = pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client

    address = here.mcp_address(row["journal"])

    async def asks(context: Any, params: Any) -> Any:
        return mcp.types.ElicitResult(action="accept", content={"answer": "yes"})

    async def call() -> Any:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, **CLOSED) as http:
            transport = streamable_http_client(address, http_client=http)
            async with mcp.Client(transport, elicitation_callback=asks) as client:
                [tool] = [each for each in (await client.list_tools()).tools if each.name == name]
                [key] = tool.input_schema["properties"]
                whole = given(row)
                inputs = whole if isinstance(whole, dict) else {key: whole}
                job = asyncio.ensure_future(client.call_tool(name, inputs))
                if row["happening"] == "cancelled":
                    await asyncio.to_thread(here.begun)
                    job.cancel()
                    await asyncio.wait([job])
                    return None
                return await job

    told = asyncio.run(call())
    if told is None:
        return Outcome(status="cancelled")
    if told.is_error:
        return Outcome(status="failed")
    return Outcome(status="done", output=text(told.structured_content["output"]))


FRONTS: dict[str, Callable[[Place, Row, str], Outcome]] = {
    "run": by_run,
    "python": by_python,
    "serve": by_serve,
    "openai": by_openai,
    "a2a": by_a2a,
    "agui": by_agui,
    "mcp": by_mcp,
    "batch": by_batch,
    "worker": by_worker,
}
