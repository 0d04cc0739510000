"""Laws of the page in a browser: runs are started, answered, forked and compared there, files are
edited, and a hostile run shows nothing but text.

They are passed over where playwright or Chromium is missing. One browser, one server and one window
serve them all; what takes longer is part of ``make browser``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import socketserver
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from axil import RootGraph
from axil_serve import RunService
from axil_serve.data import step_data
from axil_serve.export import page_of
from axil_serve.layouts import layout_data
from axil_sqlite import SqliteJournal

from .conftest import ADA, EVE, greeting
from .hostile import HOSTILE, apart, exported, hostile
from .site import chosen, expect, served_site, shop, site, started, thorough
from .test_editor import FLOW

__all__ = ["served_site", "site"]


def test_in_a_browser_a_call_is_approved_and_the_answer_of_a_critic_changed(site):
    page = site.page
    started(page, "shop", {"complaint": "The kettle is broken."})
    question = page.get_by_role("region", name="question")
    asked = question.inner_text()
    for shown in ("payer", "pay", '"amount": 40', "Pay money to a customer.", "changes"):
        assert shown in asked
    question.get_by_role("button", name="Approve").click()
    page.get_by_text("done", exact=True).wait_for()
    page.locator("aside").get_by_text("Paid.").wait_for()  # the output of the run
    details = chosen(page, "payer")
    details.get_by_text("paid 40").first.wait_for()
    page.get_by_role("button", name="Unfold all").click()
    details = chosen(page, "cycle(clerk,critic)", "clerk")
    details.get_by_text("prompt of").last.click()
    prompt = details.locator("details[open]").inner_text()
    assert "Answer the customer, and name the sum." in prompt
    assert "The kettle is broken." in prompt
    first = page.url
    details = chosen(page, "cycle(clerk,critic)", "critic")
    details.get_by_role("button", name="Fork from here").first.click()
    details.get_by_label("output of the step").fill('{"verdict": "REVISE"}')
    page.get_by_role("button", name="Start the fork").click()
    page.wait_for_url(lambda url: url != first)
    # the clerk writes again, the critic reads again, and the payment is asked for again
    page.get_by_role("region", name="question").get_by_text("Pay money").wait_for()
    page.get_by_text("3 rounds").first.wait_for()
    page.get_by_text("compare with the run it was forked from").click()
    page.get_by_text("critic, with another output").wait_for()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_label("Search").fill("PAY 40 BACK")
    page.get_by_role("button", name="Search in what runs said").click()
    found = page.locator("li", has_text="We pay 40 back.")
    found.first.wait_for()
    expect(found).to_have_count(2)  # the run and its fork, each once
    found.first.get_by_role("link").click()
    page.locator("svg .node.is-chosen").wait_for()


def test_in_a_browser_a_run_is_shown_without_its_prompts(site):
    kept = {"journal": site.journal, "run_id": "unseen", "prompts": "whole"}
    given = {"complaint": "The kettle is broken."}
    apart(lambda: asyncio.run(shop().run(given, **kept)))
    site.page.close()
    site.window(EVE)
    page = site.go("run=unseen")
    page.get_by_text("Since step").wait_for()  # of two steps, with others between that are hidden
    chosen(page, "payer").get_by_text("May the tool").first.wait_for()
    page.get_by_role("button", name="Timeline").click()
    page.locator(".timeline").get_by_text("cycle(clerk,critic)").first.click()
    page.get_by_text("done cycle(clerk,critic)").wait_for()  # the step of the row, and no other
    expect(page.locator("aside")).to_contain_text("ACCEPT")
    assert "name the sum" not in page.content()
    page.close()
    site.window()


STOPS = {
    "bad": ("failed", {"bad": "failed", "nap": "skipped", "cycle(turn)": "skipped"}),
    "turn": ("limited", {"cycle(turn)": "limited", "bad": "skipped", "turn": "done"}),
    "turn, wrongly": ("failed", {"cycle(turn)": "failed", "turn": "failed", "last": "pending"}),
    "nothing": ("done", {"bad": "skipped", "nap": "skipped", "last": "skipped"}),
    "nap": ("cancelled", {"first": "done", "nap": "cancelled", "bad": "skipped"}),
}
"""By input of ``ends``: how the run ends, and what is seen at nodes."""


def test_in_a_browser_each_node_says_how_it_stopped_also_after_a_reload(site):
    def seen(nodes: dict[str, str]) -> None:
        page.get_by_role("button", name="Unfold all").click()
        for name, state in nodes.items():
            described = f"svg .node[aria-description='{name}: {state}']"
            page.locator(described).first.wait_for(state="attached")
            if state not in ("done", "pending"):
                expect(page.locator(described).first).to_contain_text(state)

    page, said = site.page, site.page.locator(".quiet")
    for how, (status, nodes) in STOPS.items():
        site.go("")
        started(page, "ends", {"how": how})
        page.wait_for_url("**/*run=*")
        if how == "nap":
            page.reload()  # while the firing is under way
            seen({"nap": "running", "last": "pending"})
            chosen(page, "nap").get_by_text("Half asleep").wait_for()
            page.get_by_role("button", name="Cancel").click()
        page.get_by_text(status, exact=True).first.wait_for()
        seen(nodes)
        page.reload()
        seen(nodes)
        assert not said.text_content()  # its end is no news
        if how == "turn, wrongly":  # in a loop it is found as elsewhere, with what came in
            page.get_by_role("region", name="failure").get_by_role("button").click()
            page.locator("aside").get_by_role("heading", name="cycle(turn) / turn").wait_for()
            page.locator("aside").get_by_text("in: first").wait_for()
        if how == "bad":
            wrong = page.get_by_role("region", name="failure")
            wrong.get_by_text('in bad: raise ValueError("no paper")').wait_for()
            wrong.get_by_role("button", name="bad").click()
            page.locator("aside").get_by_text("in: first").wait_for()
            page.get_by_role("button", name="Timeline").click()
            page.locator(".row", has_text="bad failed").click()
            page.get_by_role("heading", name="bad", exact=True).wait_for()


class Line(socketserver.BaseRequestHandler):
    """A connection to a server that passes nothing on while ``is_up`` is not set."""

    is_up = threading.Event()
    target: ClassVar[tuple[str, int]]

    def handle(self) -> None:
        with socket.create_connection(self.target) as other:
            both = [(self.request, other), (other, self.request)]
            threads = [threading.Thread(target=self.passed, args=each) for each in both]
            for each in threads:
                each.start()
            for each in threads:
                each.join()

    def passed(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.is_up.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Lines(socketserver.ThreadingTCPServer):
    daemon_threads = True


def test_in_a_browser_a_lost_connection_is_said_and_what_was_missed_is_caught_up(site):
    host, port = site.address.removeprefix("http://").split(":")
    Line.target = (host, int(port))
    Line.is_up.set()
    with Lines(("127.0.0.1", 0), Line) as lines, site.browser.new_context() as context:
        threading.Thread(target=lines.serve_forever, daemon=True).start()
        address, page = f"http://127.0.0.1:{lines.server_address[1]}", context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}/#token={ADA}")
        started(page, "refund", {"amount": 3})
        page.get_by_role("region", name="question").wait_for()
        run_id = page.url.rpartition("=")[2]
        Line.is_up.clear()
        page.get_by_text("connection to the server is lost").wait_for()
        site.go("inbox")
        own = site.page.locator("section", has_text=run_id).get_by_label("answer").first
        own.fill("yes")
        own.press("Enter")
        Line.is_up.set()
        page.get_by_text("done", exact=True).wait_for()
        page.locator("aside").get_by_text("3: yes").wait_for()
        page.locator(".lost").wait_for(state="detached")
        expect(page.locator(".quiet")).to_have_text("The run ended as done")
        page.goto(f"{address}/#")
        page.get_by_role("heading", name="Runs", exact=True).wait_for()
        assert not page.locator(".quiet").text_content()  # of the run that was left
        lines.shutdown()


FOLDED = """
async ({ steps }) => {
  const { folded, costs, states } = await import("/page/run.js")
  const run = folded(steps, steps.length)
  const scope = (kind, name, nodes) => ({ kind, name, nodes, edges: [] })
  const loop = scope("cycle", "cycle(count)", [{ name: "count" }, { name: "other" }])
  const plan = scope("graph", "loop", [{ name: "cycle(count)", inside: loop }])
  const of = (name) => costs(run, plan).find((each) => each.name === name)
  const [cycle, count] = ["cycle(count)", "cycle(count) / count"].map(of)
  const other = states(run, plan, []).get('["cycle(count)","other"]')
  return { rounds: cycle.rounds, isPartial: count.isPartial, other }
}
"""


def test_in_a_browser_rounds_are_counted_that_the_journal_does_not_keep(site, tmp_path):
    graph = RootGraph("loop", cycles="allow")
    graph.create_node(lambda inputs: {"n": inputs["n"] + 1}, name="count")
    graph.edge_from_entry("count", {"n": ""})
    graph.create_edge("count", "count", {"n": ""}, when=lambda sent: sent["n"] < 90)
    graph.edge_to_exit("count", {"n": ""}, when=lambda sent: sent["n"] >= 90)
    with closing(SqliteJournal(tmp_path / "journal", detail=8)) as journal:
        own = {"journal": journal, "run_id": "loop"}
        apart(lambda: graph.build().invoke({"n": 0}, **own))
        steps = [step_data(entry, at) for at, entry in enumerate(journal.entries("loop"), 1)]
    assert len(steps) < 30
    found = site.page.evaluate(FOLDED, {"steps": steps})
    assert found == {"rounds": 90, "isPartial": True, "other": "unknown"}


def test_in_a_browser_a_run_is_run_again_with_changes_and_saved(site, tmp_path):
    page = site.page
    started(page, "greeting", {"name": "ada"})
    page.locator("aside").get_by_text("Hello Ada").first.wait_for()
    for kind, says in (("Markdown", "## Output\n"), ("JSON", '"kind": "ended"')):
        with page.expect_download() as download:
            page.get_by_role("button", name=kind, exact=True).click()
        download.value.save_as(tmp_path / kind)
        text = (tmp_path / kind).read_text("utf-8")
        assert says in text
        assert "Hello Ada" in text
    page.get_by_role("button", name="Run again").click()
    field = page.get_by_label("name", exact=True)
    expect(field).to_have_value("ada")
    field.fill("ben")
    page.get_by_role("button", name="Start", exact=True).click()
    page.locator("aside").get_by_text("Hello Ben").first.wait_for()
    site.go("")
    page.get_by_label("Status").select_option("done")
    page.get_by_role("listitem").filter(has_text='{"name": "ben"}').first.wait_for()


def test_in_a_browser_nodes_are_folded_with_a_server_and_without(site, tmp_path):
    page, file = site.page, tmp_path / "run.html"
    started(page, "shop", {"complaint": "The kettle is broken."})
    page.wait_for_url("**/*run=*")
    journal, run_id = site.journal, page.url.rpartition("=")[2]
    service = RunService(journal, {"shop": shop()}, watch_only=True)
    file.write_text(apart(lambda: asyncio.run(page_of(service, run_id))), "utf-8")
    for place in (page.url, file.as_uri()):
        page.goto(place)
        page.locator("svg [data-key*='critic\"]']").wait_for()
        page.locator("svg .label").first.wait_for()
        page.get_by_role("button", name="Fold all", exact=True).click()
        page.locator("svg .inside").wait_for(state="detached")
        expect(page.locator("svg .node")).to_have_count(2)
        page.get_by_label("edge critic to payer").wait_for(state="attached")
        cycle = page.locator("svg .node").first
        cycle.press("f")
        page.locator("svg .inside").wait_for()
        expect(page.locator("svg .node")).to_have_count(4)
        page.get_by_role("button", name="Fold all", exact=True).click()
        page.locator("svg .inside").wait_for(state="detached")
        page.get_by_role("button", name="Unfold all").click()
        page.locator("svg .inside").wait_for()


def test_in_a_browser_a_hostile_run_shows_nothing_but_text(site, tmp_path):
    def checked() -> None:
        assert page.title() != "taken"
        assert page.locator("img").count() == 0

    page, file = site.page, tmp_path / "run.html"
    file.write_text(exported(hostile(), {"name": HOSTILE}), "utf-8")
    page.goto(file.as_uri())
    page.locator("svg .node").press("Enter")
    page.locator("aside pre:visible").first.wait_for()
    assert HOSTILE in page.locator("aside").inner_text().replace("\\", "")
    checked()
    for run_id in ("one", "two"):
        text, own = f"{HOSTILE}{run_id}", {"journal": site.journal, "run_id": run_id}
        apart(lambda text=text, own=own: hostile().invoke({"name": text}, **own))
    markup = HOSTILE.replace("/", "")
    bad_node = {"id": markup, "type": HOSTILE, "description": HOSTILE}
    bad_node["config"] = {HOSTILE: HOSTILE}
    graph = {"description": HOSTILE, "start": [markup], "nodes": [bad_node]}
    text = f"# {HOSTILE}\ngraph: {json.dumps(graph)}\n"
    (site.folder / "hostile.yaml").write_text(text, "utf-8")
    site.go("run=one")
    page.locator("svg .node").press("Enter")
    page.locator("aside pre:visible").first.wait_for()
    for view in ("Steps", "Costs"):
        page.get_by_role("button", name=view, exact=True).click()
    checked()
    site.go("")
    started(page, "asking", {"name": "x"})
    question = page.get_by_role("region", name="question")
    question.wait_for()
    assert question.inner_text().count("<script>") >= 4
    question.get_by_role("button", name="Change the arguments").click()
    question.get_by_label("arguments, as JSON").fill('{"a": 1}')
    checked()
    question.get_by_role("button", name="Approve these").click()
    page.locator("aside").get_by_text("{'answer': 'edit', 'arguments': {'a': 1}}").wait_for()
    site.go("compare=one,two")
    page.get_by_label("differences").wait_for()
    checked()
    site.go("")
    page.get_by_label("Search").fill("onerror")
    page.get_by_role("button", name="Search in what runs said").click()
    page.get_by_role("heading", name="In what runs said").wait_for()
    checked()
    site.go("edit=hostile.yaml")
    page.locator("svg .node").press("Enter")
    page.locator(".form .finding").first.wait_for()
    checked()


def big(count: int, wide: int) -> dict[str, Any]:
    """Return a graph of many nodes in rows."""
    nodes = [{"name": f"node{at}", "level": at // wide, "type": "python"} for at in range(count)]
    edges = [
        {
            "name": f"e{at}",
            "source": "@entry" if at < wide else f"node{at - wide}",
            "target": f"node{at}",
            "label": "",
            "trigger": True,
        }
        for at in range(count)
    ]
    return {"kind": "graph", "name": "big", "title": "big", "nodes": nodes, "edges": edges}


BIG = """
async ({ plan, layout, rounds }) => {
  const { RunPage } = await import("/page/runpage.js")
  const name = (at) => `node${at}`, count = plan.nodes.length
  const view = new RunPage("big", { workflow: "big", status: "running" }, plan, layout)
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
  const most = []
  for (let number = 1; number <= rounds; number += 1) {
    const at = number % count, node = name(at), id = `${number}`
    view.receive("step", { id, number, kind: "done", frame: [], node, activation: node,
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


@thorough
def test_in_a_browser_of_many_nodes_and_steps_those_in_sight_alone_are_drawn(site):
    plan = big(2000, 40)
    given = {"plan": plan, "layout": layout_data(plan, None), "rounds": 100_000}
    found = site.page.evaluate(BIG, given)
    assert found["most"][0] < 50  # from far away
    assert max(found["most"]) < 5000
    assert found["focused"] == '["node1999"]'
    assert found["rows"] < 100
    assert found["times"] == 50
    assert "100000" in found["last"]
    site.page.close()
    site.window()
    site.faults.clear()  # the server has no such run


@thorough
def test_in_a_browser_a_file_is_edited_by_drag_forms_and_text(site):
    page, file = site.page, site.folder / "flow.yaml"
    file.write_text(FLOW, "utf-8")
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

    site.go("edit=flow.yaml")
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
    site.go("edit=flow.yaml")
    node("a").press("m")
    node("says").press("m")
    page.get_by_role("button", name="Group the marked").click()
    node("group", "says").wait_for()
    node("group").press("Enter")
    page.get_by_role("button", name="Ungroup").click()
    node("says").wait_for()
    page.get_by_label("text of the file").fill("# another\n" + FLOW)
    page.get_by_text("no findings").wait_for()
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


@thorough
def test_in_a_browser_no_fault_of_accessibility_is_found(site, axe):
    for run_id, name in (("run1", "ada"), ("run2", "ben")):
        own = {"journal": site.journal, "run_id": run_id}
        apart(lambda own=own, name=name: greeting().invoke({"name": name}, **own))
    asks = {"journal": site.journal, "run_id": "asks", "channel": None}
    apart(lambda: asyncio.run(shop().run({"complaint": "x"}, **asks)))
    (site.folder / "flow.yaml").write_text(FLOW.replace("passthrough", "passthrogh"), "utf-8")
    views = {
        "": "main",
        "run=run1": "svg .node",
        "run=asks": "svg .node",
        "compare=run1,run2": "meter, section",
        "start=shop": ".fields",
        "workflows": ".cards",
        "sessions": "h1",
        "chat=&workflow=refund": ".say",
        "inbox": ".card",
        "evaluations": "h1",
        "edit=": "main ul",
        "edit=flow.yaml": "svg .node",
    }
    views_again = {view: views[view] for view in ("run=run1", "run=asks", "edit=flow.yaml")}
    wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found: list[str] = []
    for scheme, width in (("light", 1300), ("dark", 1300), ("light", 390)):
        looks = views if (scheme, width) == ("light", 1300) else views_again
        size = {"width": width, "height": 900}
        # the page's policy keeps axe out, too
        context = site.browser.new_context(color_scheme=scheme, viewport=size, bypass_csp=True)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{site.address}/#token={ADA}")
        page.get_by_role("link", name="New run").wait_for()
        for view, shown in looks.items():
            page.goto(f"{site.address}/#{view}")
            page.locator("#app:not([aria-busy])").wait_for()
            page.locator(shown).first.wait_for()
            if shown == "svg .node":
                page.locator(shown).first.press("Enter")
            result = page.evaluate(f"{axe}; axe.run(document)")
            found += [
                f"{scheme} {width} {view}: {each['id']} {each['nodes'][0]['html']:.200}"
                for each in result["violations"]
            ]
            if page.evaluate(wider) > 0:
                found.append(f"{scheme} {width} {view}: wider than the window")
        context.close()
    assert found == []


def focused(page: Any) -> str:
    """Return what has the focus, by its tag and its label or text."""
    return page.evaluate(
        "() => { const e = document.activeElement;"
        " return e.tagName + ' ' + (e.getAttribute('aria-label') || e.textContent || e.id) }"
    )


def test_in_a_browser_a_question_is_answered_by_keys_alone(site):
    page = site.page
    started(page, "refund", {"amount": 7})
    page.get_by_role("region", name="question").get_by_label("answer").focus()
    page.keyboard.type("yes, gladly")
    page.keyboard.press("Enter")
    page.get_by_text("done", exact=True).wait_for()
    page.locator("aside").get_by_text("7: yes, gladly").wait_for()
    page.get_by_label("find a node").focus()
    page.keyboard.press("Escape")  # the page's own key, which takes no other from the browser
    page.keyboard.type("deci")
    expect(page.get_by_label("find a node")).to_have_value("deci")


def test_in_a_browser_every_page_takes_keys(site):
    apart(lambda: [greeting().invoke({"name": each}, journal=site.journal, run_id=each)
                   for each in ("ann", "bob")])  # fmt: skip
    (site.folder / "keys.yaml").write_text(FLOW, "utf-8")
    pages = {
        "": "Search",
        "run=ann": "find a node",
        "edit=keys.yaml": "find a node type",
        "compare=ann,bob": "",
    }
    for place, label in pages.items():
        page = site.go(place)
        if label:
            field = page.get_by_label(label, exact=True).first
            field.focus()
            page.keyboard.type("gr x")
            expect(field).to_have_value("gr x")
        else:
            page.get_by_text("Hello Bob").first.wait_for()
            page.get_by_role("link", name="Runs", exact=True).focus()
        before = focused(page)
        page.keyboard.press("Tab")
        assert focused(page) != before, place
        page.keyboard.press("Shift+Tab")
        assert focused(page) == before, place


LEAF = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_in_a_browser_an_image_in_a_file_of_the_run_is_drawn(site):
    files = site.folder.parent / f"{site.folder.name}-runs" / "drawn"

    def draw(inputs: dict[str, Any]) -> dict[str, Any]:
        (files / "made").mkdir(parents=True)
        (files / "made" / "leaf.png").write_bytes(base64.b64decode(LEAF))
        named = {"type": "image", "media_type": "image/png"}
        gone = {**named, "path": "made/gone.png"}
        return {"picture": {**named, "path": "made/leaf.png"}, "other": gone}

    graph = RootGraph("drawing")
    graph.create_node(draw, name="draw")
    graph.edge_from_entry("draw", ["q"])
    graph.edge_to_exit("draw", ["picture", "other"])
    kept = {"journal": site.journal, "run_id": "drawn"}
    apart(lambda: asyncio.run(graph.build().run({"q": "a leaf"}, **kept)))
    place = site.go("run=drawn").locator("aside")
    place.locator("img:visible").wait_for()
    assert place.locator("img").first.evaluate("each => each.naturalWidth") == 1
    expect(place.locator("img:visible")).to_have_count(1)  # what is gone stays a path
    place.get_by_text("made/gone.png").wait_for()


def test_in_a_browser_what_is_filled_in_stays_between_the_form_and_json(site):
    page = site.page
    page.get_by_role("link", name="New run").click()
    page.get_by_label("Workflow", exact=True).select_option("count")
    page.get_by_label("source").fill("attachments/a.txt")
    page.get_by_label("detail").select_option("full")
    page.get_by_label("copies").fill("three")  # wrong, and kept all the same
    as_json, text = page.get_by_label("write the input as JSON"), page.get_by_label("Input:")
    as_json.check()
    filled = json.loads(text.input_value())
    assert (filled["source"], filled["detail"], filled["copies"]) == (
        "attachments/a.txt",
        "full",
        "three",
    )
    filled |= {"copies": 3, "is_loud": True}
    del filled["detail"]
    text.fill(json.dumps(filled))
    as_json.uncheck()
    expect(page.get_by_label("copies")).to_have_value("3")
    expect(page.get_by_label("is_loud")).to_have_value("true")
    expect(page.get_by_label("detail")).to_have_value("")  # as it was, and not the default
    expect(page.get_by_label("source")).to_have_value("attachments/a.txt")
    as_json.check()
    assert json.loads(text.input_value()) == filled
    for wrong, said in (({**filled, "size": 1}, "size"), ([1], "what is not a JSON object")):
        text.fill(json.dumps(wrong))
        as_json.click()
        page.get_by_role("alert").get_by_text(f"The form cannot show {said}.").wait_for()
        assert json.loads(text.input_value()) == wrong
        assert as_json.is_checked()


VALUES = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "choice": {"enum": ["a", 1, None]},
    "list": {"type": "array", "items": {"type": "string"}},
    "any": {},
    "object": {"type": "object"},
}
GIVEN: list[dict[str, Any]] = [
    {"text": "5", "number": -0.5, "choice": 1, "list": ["a", "b c"], "any": 5, "object": {}},
    {"text": " a\nb", "list": ["a\nb", ""], "any": "5", "object": {"x": [1, None]}},
    {"text": "[1]", "list": ["[1]"], "any": '"q"', "choice": "a"},
    {"list": [" a"], "any": ["x", {"y": True}]},
    {"any": "plain", "list": []},
]


def test_in_a_browser_a_form_gives_back_what_it_was_given(site):
    script = """async ([properties, given]) => {
        const { InputForm } = await import("/page/start.js")
        return new InputForm({ properties }, given, true).draft
    }"""
    for given in GIVEN:
        assert site.page.evaluate(script, [VALUES, given]) == given


def test_in_a_browser_a_run_that_is_not_served_is_said_to_be_elsewhere(site):
    async def asks(inputs: dict[str, Any], ctx: Any) -> dict[str, Any]:
        return {"a": await ctx.ask("Which shelf?")}

    def fails(inputs: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no paper")

    for name, body in (("asks", asks), ("fails", fails)):
        graph = RootGraph("elsewhere")
        graph.create_node(body, name="n")
        graph.edge_from_entry("n", ["q"])
        graph.edge_to_exit("n", ["a"])
        run = graph.build().start({"q": "?"}, journal=site.journal, run_id=f"elsewhere-{name}")
        apart(lambda run=run: asyncio.run(run.result()))
    page = site.go("run=elsewhere-fails")
    notice = page.get_by_text("The workflow of this run is not served here")
    notice.wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("the run's workflow is not served here").wait_for()
    site.go("run=elsewhere-asks")
    notice.wait_for()
    question = page.get_by_role("region", name="question")
    question.get_by_role("textbox").fill("the top one")
    question.get_by_role("button", name="Answer").click()
    expect(question).to_have_count(0)
    page.reload()
    notice.wait_for()
    answered = [each for each in site.journal.entries("elsewhere-asks") if each.kind == "answer"]
    assert [each.data["value"] for each in answered] == ["the top one"]
