"""Laws of the page: a run in one file that loads nothing, and, where a browser is there, the page
in it. A hostile run shows nothing but text.
"""

from __future__ import annotations

import asyncio
import html.parser
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

from axil import MemoryJournal, RootGraph
from axil_serve import RunService, app_of
from axil_serve.app import PAGE
from axil_serve.export import page_of

from .conftest import ADA, access, greeting, refund

HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
)


def hostile():
    """Return a graph whose every text is markup."""
    graph = RootGraph("hostile", attributes={"field": HOSTILE})
    graph.create_node(lambda inputs: {HOSTILE: HOSTILE}, name="bad")
    graph.edge_from_entry("bad", {"name": HOSTILE})
    graph.edge_to_exit("bad", {HOSTILE: HOSTILE})
    return graph.build()


def exported(workflow: Any, input: Any) -> str:
    journal = MemoryJournal()
    workflow.invoke(input, journal=journal, run_id="r")
    service = RunService(journal, {"w": workflow}, watch_only=True)
    return asyncio.run(page_of(service, "r"))


class Reader(html.parser.HTMLParser):
    """The elements of a page with their attributes, and the text of its data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][1].get("id") == "exported":
            self.data += data


def test_an_exported_run_is_one_file_that_loads_nothing_and_holds_hostile_texts_as_data():
    page = Reader(exported(hostile(), {"name": HOSTILE}))
    names = [name for name, _ in page.elements]
    assert names.count("script") == 2
    assert "img" not in names
    assert "link" not in names
    assert not [a for _, attributes in page.elements for a in attributes if a in ("src", "href")]
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    data = json.loads(page.data)
    assert data["run"]["output"] == {HOSTILE: HOSTILE}
    assert data["states"]


def test_the_page_reads_nothing_as_markup_and_asks_no_other_host():
    for name in PAGE:
        text = (files("axil_serve") / "page" / name).read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, (name, word)
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), name


def test_the_page_shows_the_chunks_that_count(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed; a browser shows the same in make check")
    at = {"activation": "a", "frame": [], "node": "a"}
    inner = {"activation": "b", "frame": ["a", "#inside"], "node": "b"}
    heard = [
        ("started", at),
        ("started", inner),
        ("chunk", {**at, "chunk": {"kind": "tool_call", "name": "find"}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {}}}),
        ("chunk", {**at, "chunk": {"kind": "text", "text": '{"n": "no"}'}}),
        ("chunk", {**at, "chunk": {"kind": "reset", "chunks": 2}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {}}}),
        ("chunk", {**at, "chunk": {"kind": "text", "text": '{"n": 2}'}}),
        ("chunk", {**at, "chunk": {"kind": "output", "fields": {"n": 2}}}),
        ("chunk", {**inner, "chunk": {"kind": "text", "text": "Half"}}),
        ("chunk", {**at, "chunk": {"kind": "reset", "chunks": 0, "inside": True}}),
    ]
    (tmp_path / "run.mjs").write_bytes((files("axil_serve") / "page" / "run.js").read_bytes())
    script = tmp_path / "heard.mjs"
    script.write_text(
        'import { Live, saidBy } from "./run.mjs"\n'
        f"const live = new Live()\nfor (const [kind, data] of {json.dumps(heard)}) "
        "live.hear(kind, data)\n"
        "console.log(JSON.stringify([...live.firings.values()].map((f) => saidBy(f.chunks))))\n"
    )
    done = subprocess.run([node, script], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [
        {"text": "", "fields": {"n": 2}, "notes": [{"kind": "tool_call", "name": "find"}]},
        {"text": "", "fields": None, "notes": []},
    ]


# --------------------------------------------------------------------------------- a browser


@contextmanager
def listening(service: RunService) -> Iterator[str]:
    """Serve in a thread; return the address."""
    import socket

    import uvicorn

    config = uvicorn.Config(app_of(service, access()), log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def browser() -> Iterator[Any]:
    """A page of Chromium; where there is none, the test is passed over."""
    chromium = os.environ.get("AXIL_BROWSER", "")
    if not chromium:
        pytest.skip("AXIL_BROWSER names no Chromium: make check does, where one is installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda m: m.type == "error" and page.faults.append(m.text))
        yield page
        assert page.faults == []
        browser.close()


def test_in_a_browser_a_run_is_started_answered_and_forked(browser):
    service = RunService(MemoryJournal(), {"refund": refund(), "greeting": greeting()})
    with listening(service) as address:
        asked_for: list[str] = []
        browser.on("request", lambda request: asked_for.append(request.url))
        browser.goto(f"{address}/#token={ADA}")
        browser.get_by_text("Start a run").click()
        browser.get_by_label("Input").fill('{"amount": 5}')
        browser.get_by_role("button", name="Start").click()
        browser.get_by_label("answer").fill("surely")
        browser.get_by_role("button", name="Answer").click()
        browser.locator("svg .node[data-state=done]").click()
        browser.get_by_text('"5: surely"').first.wait_for()
        assert "token" not in browser.url
        browser.get_by_role("button", name="Fork from here").click()
        browser.get_by_label("output of the step").fill('{"decision": "never"}')
        first = browser.url
        browser.get_by_role("button", name="Start the fork").click()
        browser.wait_for_url(lambda url: url != first)
        browser.get_by_label("edge decide to @exit").press("Enter")
        browser.locator("aside").get_by_text('"never"').wait_for()
        assert [url for url in asked_for if not url.startswith(address)] == []


@pytest.fixture
def hostile_page(tmp_path) -> str:
    """The address of an exported hostile run."""
    file = tmp_path / "run.html"
    file.write_text(exported(hostile(), {"name": HOSTILE}), "utf-8")
    return file.as_uri()


def test_in_a_browser_a_hostile_run_shows_nothing_but_text(hostile_page, browser):
    browser.goto(hostile_page)
    browser.locator("svg .node").click()
    browser.locator("aside pre:visible").first.wait_for()
    assert HOSTILE in browser.locator("aside").inner_text().replace("\\", "")
    assert browser.title() != "taken"
    assert browser.locator("img").count() == 0
