"""The server that the browser looks at: its workflows, its journal, and one window for all tests.

Everything is passed over where playwright or Chromium is missing.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import uvicorn
from pydantic import BaseModel, Field

from axil import Context, RootGraph, Workflow
from axil_agent import Agent, Scripted
from axil_evals import Case, Dataset, Plan, WorkflowTarget, evaluate
from axil_files import load
from axil_serve import Access, Caller, Limits, RunService, app_of
from axil_serve.access import token_digest
from axil_serve.files import RunFiles
from axil_sqlite import SqliteJournal

from .conftest import ADA, EVE, greeting, refund
from .hostile import apart, asking, hostile
from .test_editor import editor_of

THOROUGH = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
thorough = pytest.mark.skipif(not THOROUGH, reason="a part of make browser")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RIGHTS = frozenset(["look", "prompts", "run", "answer", "edit"])


def shop() -> Workflow:
    """Return a clerk, a critic that sends the first draft back, and a payment to be approved."""
    spent = {"usage": {"input_tokens": 900, "output_tokens": 40, "cost": 0.004}}
    better = {"text": '{"draft": "We pay 40 back."}', **spent}
    clerk = {
        "rules": [{"match": {"user_contains": "REVISE"}, "replies": [better]}],
        "default": {"text": '{"draft": "We are sorry."}', **spent},
    }
    accepts = {"match": {"user_contains": "40"}, "replies": ['{"verdict": "ACCEPT"}']}
    critic = {"rules": [accepts], "default": '{"verdict": "REVISE"}'}
    payer = [{"tool_calls": [{"name": "pay", "arguments": {"amount": 40}}]}, '{"said": "Paid."}']

    def pay(amount: int) -> str:
        """Pay money to a customer."""
        return f"paid {amount}"

    pay.needs_approval = True  # pyright: ignore[reportFunctionMemberAccess]
    graph = RootGraph("shop", cycles="allow")
    ask = {"instructions": "Answer the customer, and name the sum."}
    graph.create_node(Agent, name="clerk", model=Scripted(clerk), **ask)
    graph.create_node(Agent, name="critic", model=Scripted(critic))
    graph.create_node(Agent, name="payer", model=Scripted(payer * 9), tools=[pay])
    graph.edge_from_entry("clerk", {"complaint": ""})
    graph.create_edge("clerk", "critic", {"draft": ""})
    graph.create_edge("critic", "clerk", {"verdict": ""}, when=lambda text: "REVISE" in text)
    graph.create_edge("critic", "payer", {"verdict": ""}, when=lambda text: "ACCEPT" in text)
    graph.edge_to_exit("payer", {"said": ""})
    return graph.build()


def ends() -> Workflow:
    """Return a graph that fails, waits or turns too often where its input says so."""
    graph = RootGraph("ends", cycles="allow")

    def first(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"how": inputs["how"]}

    def bad(inputs: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no paper")

    async def nap(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
        ctx.emit({"kind": "text", "text": "Half asleep"})
        await asyncio.sleep(3600)
        return inputs

    def turn(inputs: dict[str, Any]) -> dict[str, Any]:
        if "wrongly" in inputs["how"]:
            raise ValueError("no ink")
        return inputs

    for body in (first, bad, nap, turn):
        graph.create_node(body, name=body.__name__)
    graph.create_node(lambda inputs: inputs, name="last")
    graph.edge_from_entry("first", {"how": ""})
    for name in ("bad", "nap", "turn"):
        graph.create_edge("first", name, {"how": ""}, when=lambda how, name=name: name in str(how))
    graph.create_edge("turn", "turn", {"how": ""}, when=lambda how: True)
    graph.create_edge("turn", "last", {"how": ""}, when=lambda how: False)
    graph.create_edge("bad", "last", {"how": ""})
    graph.create_edge("nap", "last", {"how": ""})
    graph.edge_to_exit("last", {"how": ""})
    graph.set_cycle_limit("turn", 3)
    return graph.build()


class Order(BaseModel):
    """The input and the output of `count`."""

    source: Path = Field(description="the text that is counted")
    detail: Literal["brief", "full"] = Field("brief", description="how much is written")
    copies: int = 1
    is_loud: bool = False
    words: int = 0


def count() -> Workflow:
    """Return a graph that reads a file that it is given, and writes a table and a summary."""
    graph = RootGraph("count", state=Order)

    def read(state: Any, ctx: Context) -> dict[str, Any]:
        folder = ctx.workspace
        assert folder is not None
        text = (folder / state.source).read_text("utf-8")
        if not text.strip():
            raise ValueError(f"{state.source} has no words")
        return {"words": len(text.split())}

    def write(state: Any, ctx: Context) -> dict[str, Any]:
        folder = ctx.workspace
        assert folder is not None
        said = f"{state.words} words, {state.detail}"
        (folder / "summary.md").write_text(said.upper() if state.is_loud else said, "utf-8")
        (folder / "words.csv").write_text(f'file,words\n"{state.source}",{state.words}\n', "utf-8")
        return {}

    graph.create_node(read, name="read")
    graph.create_node(write, name="write")
    graph.edge_from_entry("read", None)
    graph.create_edge("read", "write", None)
    graph.edge_to_exit("write", None)
    return graph.build()


DESK = """\
version: 1
graph:
  id: desk
  description: Answers questions about a shop.
  start: [clerk]
  end: [clerk]
  nodes:
    - id: clerk
      type: agent
      config:
        instructions: You answer customers of a kettle shop in one sentence.
        model:
          type: scripted
          rules:
            - {match: {user_contains: second}, replies: [You asked about kettles before.]}
          default: Kettles cost 40.
"""
"""A workflow of messages."""


def desk(folder: Path) -> Workflow:
    """Return a conversation about kettles."""
    (folder / "desk.yaml").write_text(DESK, "utf-8")
    return load(folder / "desk.yaml")


def evaluated(journal: Any) -> None:
    """Keep two evaluations of one dataset, of two versions."""
    right = {"France": "Paris", "Peru": "Lima", "Chad": "N'Djamena", "Oman": "Muscat"}
    names = [*right, "Cuba", "Iran", "Mali", "Togo"]
    cases = tuple(
        Case(name=name, inputs={"country": name}, expected=right.get(name, f"of {name}"))
        for name in names
    )

    def version(name: str, known: int) -> Workflow:
        graph = RootGraph(name)
        answers = {each.name: each.expected for each in cases[:known]}
        graph.create_node(
            lambda inputs: {"answer": answers.get(inputs["country"], "unknown")}, name="answer"
        )
        graph.edge_from_entry("answer", {"country": ""})
        graph.edge_to_exit("answer", {"answer": ""})
        return graph.build()

    dataset = Dataset(name="capitals", cases=cases)
    for run_id, known in (("eval-old", 8), ("eval-new", 2)):
        target = WorkflowTarget(version(f"knows-{known}", known))
        own = {"journal": journal, "run_id": run_id}
        apart(lambda t=target, own=own: asyncio.run(evaluate(dataset, t, Plan(), **own)))


@dataclass
class Site:
    """A server, the journal and the folder of files behind it, and a window at it."""

    browser: Any
    address: str
    journal: SqliteJournal
    folder: Path
    page: Any = None
    asked_for: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])

    def window(self, token: str = ADA) -> None:
        self.page = self.browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda m: m.type == "error" and self.faults.append(m.text))
        self.page.on("request", lambda request: self.asked_for.append(request.url))
        self.page.goto(f"{self.address}/#token={token}")
        self.page.get_by_role("heading", name="Runs", exact=True).wait_for()

    def go(self, place: str) -> Any:
        self.page.goto(f"{self.address}/#{place}")
        return self.page


def chromium_path() -> str:
    """Return the browser of ``AXIL_BROWSER``, or one that is installed; empty: there is none."""
    found = os.environ.get("AXIL_BROWSER")
    return next(filter(None, map(shutil.which, NAMES)), "") if found is None else found


@pytest.fixture(scope="module")
def served_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One browser, one server and one window for all tests."""
    api = pytest.importorskip("playwright.sync_api")
    if not (path := chromium_path()):
        pytest.skip("no Chromium is installed, and AXIL_BROWSER names none")
    folder = tmp_path_factory.mktemp("files")
    journal = SqliteJournal(folder.parent / f"{folder.name}-journal")
    workflows = {
        "shop": shop(),
        "refund": refund(),
        "greeting": greeting(),
        "w": hostile(),
        "asking": asking(),
        "ends": ends(),
        "count": count(),
        "desk": desk(folder.parent),
    }
    files = RunFiles(folder.parent / f"{folder.name}-runs")
    service = RunService(journal, workflows, files=files, poll_seconds=0.05, prompts="whole")
    ada = Caller(name="ada", sees_all=True, rights=RIGHTS)
    eve = Caller(name="eve", sees_all=True, rights=RIGHTS - {"prompts"})
    access = Access((token_digest(each, c.name), c) for each, c in ((ADA, ada), (EVE, eve)))
    limits = Limits(requests_per_minute=60_000, burst=1000)
    app = app_of(service, access, limits=limits, editor=editor_of(folder))
    settings = uvicorn.Config(
        app, log_config=None, lifespan="on", timeout_graceful_shutdown=1, timeout_keep_alive=60
    )
    server = uvicorn.Server(settings)
    with socket.create_server(("127.0.0.1", 0)) as listener, api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            site = Site(browser, address, journal, folder)
            site.window()
            yield site
        finally:
            browser.close()
            server.should_exit = True
            thread.join(60)
            journal.close()


@pytest.fixture
def site(served_site: Site) -> Iterator[Site]:
    """In the page no script may fail, the policy not be broken, and no other host be asked."""
    served_site.faults.clear()
    served_site.asked_for.clear()
    served_site.go("")
    yield served_site
    # a refused request is a line of the browser's own
    assert [each for each in served_site.faults if "status of 409" not in each] == []
    own = (served_site.address, "file:", "data:")
    assert [url for url in served_site.asked_for if not url.startswith(own)] == []


def expect(found: Any) -> Any:
    """Return Playwright's assertions about a part of the page, which wait until they hold."""
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    return expect(found)


def started(page: Any, workflow: str, input: Any) -> None:
    """Start a run with an input that is written as JSON."""
    page.get_by_role("link", name="New run").click()
    page.get_by_label("Workflow", exact=True).select_option(workflow)
    page.get_by_label("write the input as JSON").check()
    page.get_by_label("Input:").fill(json.dumps(input))
    page.get_by_role("button", name="Start", exact=True).click()


def chosen(page: Any, *path: str) -> Any:
    """Choose a node in the graph; return its details."""
    key = json.dumps(list(path), separators=(",", ":"))
    page.locator(f"svg [data-key='{key}']").press("Enter")
    return page.locator("aside")
