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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from axil import MemoryJournal, RootGraph
from axil_serve import Access, Caller, Limits, RunService, app_of
from axil_serve.app import PAGE
from axil_serve.export import page_of

from .conftest import ADA, access, greeting, refund
from .test_editor import FLOW, edit_access, editor_of

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
    service = RunService(journal, {"w": workflow}, watch_only=True)

    def made() -> str:
        workflow.invoke(input, journal=journal, run_id="r")
        return asyncio.run(page_of(service, "r"))

    return apart(made)


def apart(call: Callable[[], Any]) -> Any:
    """Call in a thread: the tests of a browser have a loop at work."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(call).result(30)


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


def test_the_assets_of_the_page_are_small():
    place = files("axil_serve") / "page"
    assert {each.name for each in place.iterdir()} == set(PAGE)
    assert sum(len((place / name).read_bytes()) for name in PAGE) < 300_000


def test_the_page_reads_nothing_as_markup_and_asks_no_other_host():
    for name in PAGE:
        text = (files("axil_serve") / "page" / name).read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, (name, word)
        # imports from a variable or another host could not be kept from an export
        assert "import(" not in text.replace('import("/page/editor.js")', ""), name
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
def listening(service: RunService, **options: Any) -> Iterator[str]:
    """Serve in a thread; return the address."""
    import socket

    import uvicorn

    rights = options.pop("access", None) or access()
    app = app_of(service, rights, limits=Limits(requests_per_minute=60_000, burst=1000), **options)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One Chromium for all tests; where there is none, they are passed over."""
    path = os.environ.get("AXIL_BROWSER", "")
    if not path:
        pytest.skip("AXIL_BROWSER names no Chromium: make check does, where one is installed")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium) -> Iterator[Callable[..., Any]]:
    """Open pages; in none of them may a script fail, or the policy be broken."""
    contexts: list[Any] = []
    faults: list[str] = []

    def opened(**options: Any) -> Any:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: m.type == "error" and faults.append(m.text))
        return page

    yield opened
    for context in contexts:
        context.close()
    # a refused request is a line of the browser's own
    assert [each for each in faults if "status of 409" not in each] == []


def test_in_a_browser_a_run_is_started_answered_forked_and_compared(open_page):
    service = RunService(MemoryJournal(), {"refund": refund(), "greeting": greeting()})
    page = open_page()
    with listening(service) as address:
        asked_for: list[str] = []
        page.on("request", lambda request: asked_for.append(request.url))
        page.goto(f"{address}/#token={ADA}")
        page.get_by_text("Start a run").click()
        page.get_by_label("Input").fill('{"amount": 5}')
        page.get_by_role("button", name="Start").click()
        page.get_by_label("answer").fill("surely")
        page.get_by_role("button", name="Answer").click()
        page.locator("svg .node[data-state=done]").click()
        page.get_by_text('"5: surely"').first.wait_for()
        assert "token" not in page.url
        page.get_by_role("button", name="Fork from here").click()
        page.get_by_label("output of the step").fill('{"decision": "never"}')
        first = page.url
        page.get_by_role("button", name="Start the fork").click()
        page.wait_for_url(lambda url: url != first)
        page.get_by_label("edge decide to @exit").press("Enter")
        page.locator("aside").get_by_text('"never"').wait_for()
        page.get_by_text("compare with the run it was forked from").click()
        page.get_by_text("decide, with another output").wait_for()
        differing = page.get_by_label("differences").locator(".is-removed").first.inner_text()
        assert differing.split() == ["-", '"decision":', '"5:', 'surely"']
        page.get_by_text("all runs").click()
        page.get_by_label("Search").fill("SURELY")
        page.get_by_role("button", name="Search in what runs said").click()
        page.get_by_role("link", name="decide").first.click()
        page.locator("svg .node.is-chosen").wait_for()
        assert [url for url in asked_for if not url.startswith(address)] == []


BIG = """
async ({ count, wide, rounds }) => {
  const { RunPage } = await import("/page/look.js")
  const name = (at) => `node${at}`, nodes = [], edges = [], steps = []
  for (let at = 0; at < count; at += 1) {
    const source = at < wide ? "@entry" : name(at - wide)
    nodes.push({ name: name(at), level: Math.floor(at / wide), type: "python", config: {} })
    edges.push({ name: `e${at}`, source, target: name(at), label: "", trigger: true })
  }
  const plan = { kind: "graph", name: "big", nodes, edges }
  const view = new RunPage("big", { workflow: "big", status: "running" }, plan)
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
  const most = []
  for (let number = 1; number <= rounds; number += 1) {
    const at = number % count, node = name(at), id = `${number}`
    view.hear("step", { id, number, kind: "done", frame: [], node, activation: node,
      at: number, used: {}, output: { [`e${at}`]: number }, wrote: {} })
  }
  await frame()
  for (const scale of [0.1, 0.5, 1]) {
    view.graph.zoom(scale)
    await frame()
    most.push(document.querySelectorAll("svg *").length)
  }
  view.graph.reveal(JSON.stringify([name(count - 1)]), true)
  const focused = document.activeElement.dataset.key
  view.turn("steps")
  await frame()
  await frame()
  view.stepList.choose(rounds - 1)
  const rows = document.querySelectorAll(".row").length
  return { most, focused, rows, times: view.run.nodes.get('["node1"]').times,
    last: document.querySelector(".row.is-current").textContent }
}
"""


def test_in_a_browser_of_many_nodes_and_steps_those_in_sight_alone_are_drawn(open_page):
    page = open_page()
    with listening(RunService(MemoryJournal(), {"greeting": greeting()})) as address:
        page.goto(f"{address}/#token={ADA}")
        page.get_by_text("Start a run").wait_for()
        found = page.evaluate(BIG, {"count": 2000, "wide": 40, "rounds": 100_000})
    assert found["most"][0] < 50  # from far away
    assert max(found["most"]) < 5000
    assert found["focused"] == '["node1999"]'
    assert found["rows"] < 100
    assert found["times"] == 50
    assert "100000" in found["last"]


def test_in_a_browser_a_hostile_run_shows_nothing_but_text(open_page, tmp_path):
    def checked(page: Any) -> None:
        assert page.title() != "taken"
        assert page.locator("img").count() == 0

    file = tmp_path / "run.html"
    file.write_text(exported(hostile(), {"name": HOSTILE}), "utf-8")
    page = open_page()
    page.goto(file.as_uri())
    page.locator("svg .node").click()
    page.locator("aside pre:visible").first.wait_for()
    assert HOSTILE in page.locator("aside").inner_text().replace("\\", "")
    checked(page)
    journal = MemoryJournal()
    for run_id in ("one", "two"):
        text, own = f"{HOSTILE}{run_id}", {"journal": journal, "run_id": run_id}
        apart(lambda text=text, own=own: hostile().invoke({"name": text}, **own))
    bad = tmp_path / "in"
    bad.mkdir()
    markup = HOSTILE.replace("/", "")
    bad_node = {"id": markup, "type": HOSTILE, "description": HOSTILE}
    bad_node["config"] = {HOSTILE: HOSTILE}
    graph = {"description": HOSTILE, "start": [markup], "nodes": [bad_node]}
    text = f"# {HOSTILE}\ngraph: {json.dumps(graph)}\n"
    (bad / "flow.yaml").write_text(text, "utf-8")
    service = RunService(journal, {"w": hostile()}, watch_only=True)
    seeing = Access.of_token(
        ADA, Caller(name="ada", sees_all=True, rights=frozenset(["look", "edit"]))
    )
    with listening(service, access=seeing, editor=editor_of(bad)) as address:
        page.goto(f"{address}/#run=one&token={ADA}")
        page.locator("svg .node").click()
        page.locator("aside pre:visible").first.wait_for()
        for view in ("Steps", "Costs"):
            page.get_by_role("button", name=view, exact=True).click()
        checked(page)
        page.goto(f"{address}/#compare=one,two")
        page.get_by_label("differences").wait_for()
        checked(page)
        page.goto(f"{address}/#")
        page.get_by_label("Search").fill("onerror")
        page.get_by_role("button", name="Search in what runs said").click()
        page.get_by_role("heading", name="In what runs said").wait_for()
        checked(page)
        page.goto(f"{address}/#edit=flow.yaml")
        page.locator("svg .node").click()
        page.locator(".form .finding").first.wait_for()
        checked(page)


def test_in_a_browser_a_file_is_edited_by_drag_forms_and_text(open_page, tmp_path):
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW, "utf-8")
    service = RunService(MemoryJournal(), poll_seconds=0.05)
    page = open_page(viewport={"width": 1400, "height": 1000})
    drawn = page.get_by_label("graph of the file")

    def node(*path: str) -> Any:
        return drawn.locator(f"[data-key='{json.dumps(list(path), separators=(',', ':'))}']")

    def drag(source: Any, target: Any) -> None:
        source.scroll_into_view_if_needed()
        places = [each.bounding_box() for each in (source, target)]
        (x, y), (a, b) = [(p["x"] + p["width"] / 2, p["y"] + p["height"] / 2) for p in places]
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(a, b, steps=4)
        page.mouse.up()

    def edge(label: str) -> None:
        page.get_by_label(f"edge {label}").wait_for(state="attached")

    with listening(service, access=edit_access(), editor=editor_of(tmp_path)) as address:
        page.goto(f"{address}/#edit=flow.yaml&token={ADA}")
        node("a").wait_for()
        drag(page.locator("[data-type=literal]"), drawn)
        node("literal").wait_for()
        drag(node("a"), node("literal"))
        edge("a to literal")
        drag(node("literal"), drawn.locator("[data-end='@exit']"))
        edge("literal to @exit")
        page.locator(".finding.is-error").first.wait_for()  # the literal says nothing yet
        node("literal").click()
        page.get_by_label("content *").fill("It says so")
        page.get_by_label("id", exact=True).fill("says")
        page.get_by_label("id", exact=True).press("Enter")
        node("says").wait_for()
        page.get_by_text("no findings").wait_for()
        text = page.get_by_label("text of the file")
        text.press_sequentially("oops")  # while one types
        page.locator(".mark.is-error").wait_for()
        text.press("Control+z")
        for _ in "oop":
            text.press("Control+z")
        page.get_by_text("no findings").wait_for()
        page.get_by_text("Run it").click()
        page.get_by_label("Input: a text").fill("go")
        page.get_by_role("button", name="Save and run").click()
        page.get_by_text("done", exact=True).wait_for()
        expected = FLOW + "    - {id: says, type: literal, config: {content: It says so}}\n"
        expected += "  edges:\n    - {from: a, to: says}\n  end: [says]\n"
        assert file.read_text("utf-8") == expected
        page.goto(f"{address}/#edit=flow.yaml")
        node("a").press("m")
        node("says").press("m")
        page.get_by_role("button", name="Group the marked").click()
        node("group", "says").wait_for()
        file.write_text(FLOW, "utf-8")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("alert").get_by_text("has changed since it was read").wait_for()
        assert file.read_text("utf-8") == FLOW


@pytest.fixture
def axe() -> str:
    """The script of axe-core, which finds faults of accessibility."""
    path = os.environ.get("AXIL_AXE", "")
    if not path or not Path(path).is_file():
        pytest.skip("AXIL_AXE names no axe-core: make check installs it, where npm is")
    return Path(path).read_text("utf-8")


def test_in_a_browser_no_fault_of_accessibility_is_found(chromium, axe, tmp_path):
    journal = MemoryJournal()
    for number in range(3):
        own = {"journal": journal, "run_id": f"run{number}"}
        apart(lambda own=own: greeting().invoke({"name": "ada"}, **own))
    service = RunService(journal, {"greeting": greeting()})
    (tmp_path / "flow.yaml").write_text(FLOW.replace("passthrough", "passthrogh"), "utf-8")
    rights = frozenset(["look", "run", "answer", "edit"])
    seeing = Access.of_token(ADA, Caller(name="ada", sees_all=True, rights=rights))
    views = {
        "": "main",
        "run=run1": "svg .node",
        "compare=run1,run2": "meter, section",
        "edit=": "main ul",
        "edit=flow.yaml": "svg .node",
    }
    views_again = {view: views[view] for view in ("run=run1", "edit=flow.yaml")}
    found: list[str] = []
    with listening(service, access=seeing, editor=editor_of(tmp_path)) as address:
        for scheme, width in (("light", 1300), ("dark", 1300), ("light", 390)):
            looks = views if (scheme, width) == ("light", 1300) else views_again
            size = {"width": width, "height": 900}
            # the page's policy keeps axe out, too
            context = chromium.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)
            page = context.new_page()
            page.set_default_timeout(10_000)
            page.goto(f"{address}/#token={ADA}")
            page.get_by_text("Start a run").wait_for()
            for view, shown in looks.items():
                page.goto(f"{address}/#{view}")
                page.locator(shown).first.wait_for()
                if shown == "svg .node":
                    page.locator(shown).first.click()
                result = page.evaluate(f"{axe}; axe.run(document)")
                found += [
                    f"{scheme} {width} {view}: {each['id']} {each['nodes'][0]['html']:.200}"
                    for each in result["violations"]
                ]
                wider = (
                    "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                )
                if page.evaluate(wider) > 0:
                    found.append(f"{scheme} {width} {view}: wider than the window")
            context.close()
    assert found == []
