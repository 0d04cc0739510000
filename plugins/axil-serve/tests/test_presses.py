"""Laws of the page in a hand's own time: a press takes 80 ms, a click follows what is typed at
once, and each answer of the server comes 300 ms late.

The delay is in the page's own ``fetch``: a route of the browser's would hold streams back whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ADA, greeting
from .hostile import apart
from .site import Site, expect, served_site, site, thorough
from .test_editor import FLOW
from .test_work import button, node, on_line, until

__all__ = ["served_site", "site"]

PRESS = 80
"""Milliseconds."""
LATE = """
const ask = window.fetch
window.fetch = async (...given) => {
  const answer = await ask(...given)
  await new Promise((done) => setTimeout(done, 300))
  return answer
}
"""
BUSY = """\
version: 1
graph:
  start: [talker]
  end: [talker]
  nodes:
    - id: talker
      type: agent
      config: {model: {type: scripted, default: {text: more, delay: 0.04}}, instructions: Talk.}
  edges:
    - {from: talker, to: talker}
  cycle_limits: {talker: {rounds: 100000}}
"""


@pytest.fixture
def late(site: Site) -> Iterator[Site]:
    """The site, with a window whose answers are late."""
    before = site.page
    context = site.browser.new_context(viewport={"width": 1400, "height": 1000})
    context.add_init_script(LATE)
    site.page = context.new_page()
    site.page.set_default_timeout(10_000)
    site.page.on("pageerror", lambda error: site.faults.append(str(error)))
    site.page.goto(f"{site.address}/#token={ADA}")
    site.page.get_by_role("heading", name="Runs", exact=True).wait_for()
    yield site
    context.close()
    site.page = before


def press(found: Any) -> None:
    found.click(delay=PRESS)


def begun(site: Site, workflow: str, input: Any, path: str = "runs") -> str:
    """Start a run as another window does."""
    named = "name" if path == "edit/run" else "workflow"
    body = json.dumps({named: workflow, "input": input})
    headers = {"authorization": f"Bearer {ADA}", "content-type": "application/json"}
    options = json.dumps({"method": "POST", "body": body, "headers": headers})
    script = f"fetch('/v1/{path}', {options}).then((answer) => answer.json())"
    return site.page.evaluate(script)["run_id"]


def runs_of(site: Site, workflow: str) -> list[Any]:
    headers = json.dumps({"authorization": f"Bearer {ADA}"})
    path = f"/v1/runs?workflow={workflow}"
    return site.page.evaluate(f"fetch('{path}', {{headers: {headers}}}).then((a) => a.json())")[
        "runs"
    ]


@thorough
def test_in_a_browser_a_start_waits_for_its_files_and_is_one_run(
    late: Site, tmp_path: Path
) -> None:
    page, text = late.page, tmp_path / "tale.txt"
    text.write_text("Once upon a ti", "utf-8")
    late.go("start=count")
    source = page.get_by_label("source")
    source.click()
    page.keyboard.type("attachments/tale.txt")
    page.locator("#files").set_input_files(text)
    press(button(page, "Start"))
    press(button(page, "Start"))
    page.get_by_text("done", exact=True).first.wait_for()
    assert len(runs_of(late, "count")) == 1


@thorough
def test_in_a_browser_a_message_is_sent_once_and_the_next_is_written_meanwhile(late: Site) -> None:
    page = late.page
    late.go("chat=&workflow=desk")
    page.get_by_role("heading", name="A chat with desk").wait_for()
    page.get_by_label("message").click()
    page.keyboard.type("What do kettles cost?")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.type("A second question")
    page.get_by_label("assistant").get_by_text("Kettles cost 40.").wait_for()
    until(page, "!document.querySelector('.say .primary').disabled")
    expect(page.get_by_label("message")).to_have_value("A second question")
    press(button(page, "Send"))
    page.get_by_label("assistant").get_by_text("You asked about kettles before.").wait_for()
    assert page.get_by_label("conversation").inner_text().count("What do kettles cost?") == 1
    assert len(runs_of(late, "desk")) == 2


@thorough
def test_in_a_browser_an_answer_is_typed_while_other_questions_come(late: Site) -> None:
    page = late.page
    run_id = begun(late, "refund", {"amount": 1})
    late.go("inbox")
    card = page.locator("section", has=page.get_by_role("link", name=run_id)).first
    card.get_by_label("answer").click()
    page.keyboard.type("glad")
    other = begun(late, "refund", {"amount": 2})
    page.get_by_role("link", name=other).wait_for()
    page.keyboard.type("ly")
    press(button(card, "Answer"))
    page.get_by_role("link", name=run_id).wait_for(state="detached")
    page.goto(f"{late.address}/#run={run_id}")
    page.locator("aside").get_by_text("1: gladly").wait_for()
    late.go(f"run={other}")
    page.get_by_role("region", name="question").get_by_label("answer").click()
    page.keyboard.type("no")
    press(button(page, "Answer"))
    page.locator("aside").get_by_text("2: no").wait_for()
    assert page.locator("p.problem").count() == 0


@thorough
def test_in_a_browser_a_run_that_goes_on_takes_presses(late: Site) -> None:
    page = late.page
    (late.folder / "busy.yaml").write_text(BUSY, "utf-8")
    run_id = begun(late, "busy.yaml", "x", "edit/run")
    late.go(f"run={run_id}")
    page.get_by_text("rounds").first.wait_for()
    press(page.locator("svg .node").last)
    page.get_by_text("settings", exact=True).wait_for()
    for found in (page.get_by_text("settings", exact=True), button(page, "Cancel")):
        # by hand: what is drawn again and again never lies still for a click of playwright's
        while (place := found.bounding_box()) is None:  # it is drawn just now
            pass
        page.mouse.move(place["x"] + 10, place["y"] + 5)
        page.mouse.down()
        page.wait_for_timeout(PRESS)
        page.mouse.up()
        page.locator("aside details[open]", has_text="settings").wait_for()
    page.get_by_text("cancelled", exact=True).first.wait_for()


@thorough
def test_in_a_browser_what_was_changed_last_is_saved(late: Site) -> None:
    page, file = late.page, late.folder / "pressed.yaml"
    more = "    - {id: b, type: passthrough}\n  end: [b]\n  edges: [{from: a, to: b}]\n"
    file.write_text(FLOW + more, "utf-8")
    late.go("edit=pressed.yaml")
    node(page, "b").wait_for()
    on_line(page, "edge a to b")
    page.get_by_label("taken when").select_option("keyword")
    page.get_by_label("any", exact=True).click()
    page.keyboard.type("yes")
    press(button(page, "Save"))
    press(button(page, "Save"))
    for _ in range(100):
        if "yes" in file.read_text("utf-8"):
            break
        page.wait_for_timeout(50)
    assert "keyword" in file.read_text("utf-8")
    assert "yes" in file.read_text("utf-8")
    page.get_by_text("no findings · saved").wait_for()
    assert page.locator("p.problem").count() == 0


@thorough
def test_in_a_browser_runs_are_searched_marked_and_compared_in_one_go(late: Site) -> None:
    page = late.page
    for name in ("ann", "bob"):
        own: dict[str, Any] = {"journal": late.journal, "run_id": f"of-{name}"}
        apart(lambda own=own, name=name: greeting().invoke({"name": name}, **own))
    late.go("")
    search = page.get_by_label("Search", exact=True)
    search.click()
    page.keyboard.type("of-")
    for name in ("ann", "bob"):
        press(page.get_by_label(f"mark of-{name}"))
    press(page.get_by_role("button", name="Compare"))
    page.get_by_text("Hello Bob").first.wait_for()
    late.go("")
    search.click()
    page.keyboard.type("of-ann")
    press(page.get_by_role("listitem").first.get_by_role("link").first)
    page.wait_for_url("**/*run=of-ann")


def focused(page: Any) -> str:
    """Return what the element that has the focus is called by."""
    return page.evaluate(
        "(each => each.dataset.key || each.getAttribute('aria-label') || each.textContent)"
        "(document.activeElement)"
    )


def steps_of(page: Any) -> int:
    return int(page.locator("#step").get_attribute("max"))


def goes_on(page: Any, rounds: int = 5) -> None:
    """Wait until a run that is looked at has taken more steps, and is drawn."""
    expect(page.locator("#step")).not_to_have_attribute("max", "0")
    until(page, f"document.querySelector('#step').max >= {steps_of(page) + rounds}")


@thorough
def test_in_a_browser_a_run_that_goes_on_keeps_the_focus_and_what_is_done(late: Site) -> None:
    page = late.page
    (late.folder / "busy.yaml").write_text(BUSY, "utf-8")
    run_id = begun(late, "busy.yaml", "x", "edit/run")
    late.go(f"run={run_id}")
    page.get_by_text("rounds").first.wait_for()
    cancel = button(page, "Cancel")
    cancel.focus()
    goes_on(page)
    assert focused(page) == "Cancel"
    page.locator("svg .node").last.press("Enter")
    details = page.locator("aside")
    # the settings are unfolded and stay so; a text is selected, and stays so
    details.get_by_text("settings", exact=True).press("Enter")
    goes_on(page)
    assert focused(page) == "settings"
    details.locator("details[open]", has_text="scripted").wait_for()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('aside h2'))")
    goes_on(page)
    assert page.evaluate("getSelection().toString()") == "cycle(talker) / talker"
    # a fork is written while newer firings come before it
    first = details.locator("> div", has=page.locator(".fork")).first
    own = f"aside > [data-key='{first.get_attribute('data-key')}']"
    page.locator(own).locator(".fork").focus()
    goes_on(page)
    assert focused(page) == "Fork from here"
    assert page.evaluate(f'document.querySelector("{own}").contains(document.activeElement)')
    page.keyboard.press("Enter")
    page.keyboard.type("ab")
    page.keyboard.press("ArrowLeft")
    goes_on(page, 150)  # more than are shown
    page.keyboard.type("c")
    expect(page.locator(f"{own} textarea")).to_have_value("moreacb")
    # costs, and the run itself: it is cancelled by keys, and all stays in its place
    button(page, "Costs").press("Enter")
    page.locator("table .link").first.focus()
    goes_on(page)
    assert "talker" in focused(page)
    cancel.press("Enter")
    page.get_by_text("cancelled", exact=True).first.wait_for()
    assert button(page, "Costs").get_attribute("aria-pressed") == "true"
    expect(page.locator(f"{own} textarea")).to_have_value("moreacb")
    page.locator("#base").press("ArrowDown")
    page.wait_for_timeout(500)  # until the state is drawn: nothing says that it was
    assert page.evaluate("document.activeElement.id") == "base"
    before = steps_of(page)
    button(page, "Resume").press("Enter")
    until(page, f"document.querySelector('#step').max > {before + 5}")
    assert button(page, "Costs").get_attribute("aria-pressed") == "true"
    cancel.press("Enter")
    page.get_by_text("cancelled", exact=True).first.wait_for()


@thorough
def test_in_a_browser_a_node_that_is_folded_by_keys_keeps_the_focus(late: Site) -> None:
    page = late.page
    late.go(f"run={begun(late, 'shop', {'complaint': 'x'})}")
    key = page.locator("svg .node.inside").first.get_attribute("data-key")
    inside = page.locator('svg .node[data-key$=\'","critic"]\']')
    page.locator(f"svg [data-key='{key}']").press("f")
    inside.wait_for(state="detached")
    assert focused(page) == key
    page.keyboard.press("f")
    inside.wait_for()
    assert focused(page) == key


@thorough
def test_in_a_browser_lists_that_are_read_again_keep_the_focus(late: Site) -> None:
    page = late.page
    for at in range(3):
        own: dict[str, Any] = {"journal": late.journal, "run_id": f"row-{at}"}
        apart(lambda own=own: greeting().invoke({"name": "x"}, **own))
    late.go("")
    page.get_by_role("link", name="row-1").focus()
    begun(late, "refund", {"amount": 9090})
    page.get_by_role("listitem").filter(has_text="9090").wait_for()
    assert focused(page) == "row-1"
    page.keyboard.press("j")  # from there, wherever newer runs have moved it
    assert focused(page) == "row-0"
    page.get_by_label("Search", exact=True).fill("no such run")
    page.get_by_label("Search", exact=True).fill("")
    page.get_by_label("mark row-1").focus()
    begun(late, "refund", {"amount": 9191})
    page.get_by_role("listitem").filter(has_text="9191").wait_for()
    assert focused(page) == "mark row-1"


@thorough
def test_in_a_browser_a_conversation_is_read_while_a_reply_comes(late: Site) -> None:
    page = late.page
    late.go("chat=&workflow=desk")
    for text in ("What do kettles cost?\n" * 60, "A second question"):
        page.get_by_label("message").fill(text)
        page.get_by_label("message").press("Enter")
        until(page, "!document.querySelector('.say .primary').disabled")
    said = page.get_by_label("conversation")
    assert said.evaluate("each => each.scrollTop + each.clientHeight > each.scrollHeight - 9")
    # the reader goes back, and has the focus there, when the next reply comes
    link = said.get_by_role("link", name="how it came about").first
    page.get_by_label("message").fill("A third, which is the second")
    page.get_by_label("message").press("Enter")
    said.get_by_text("A third").wait_for()
    link.focus()
    said.evaluate("each => (each.scrollTop = 0)")
    until(page, "!document.querySelector('.say .primary').disabled")
    expect(said.get_by_label("assistant")).to_have_count(3)
    assert said.evaluate("each => each.scrollTop") == 0
    assert focused(page) == "how it came about"


@thorough
def test_in_a_browser_a_text_keeps_its_caret_while_a_form_changes_it(late: Site) -> None:
    page, file = late.page, late.folder / "caret.yaml"
    file.write_text(FLOW, "utf-8")
    late.go("edit=caret.yaml")
    node(page, "a").wait_for()
    text = page.get_by_label("text of the file")
    found = text.input_value()
    node(page, "a").press("Enter")
    page.get_by_label("id", exact=True).fill("longer")  # it is in the text more than once
    at = found.index("# it") + 4
    text.focus()  # so the change is sent
    text.evaluate(f"each => each.setSelectionRange({at}, {at})")
    page.keyboard.type(" so")
    until(page, "document.querySelector('.code-text').value.includes('longer')")
    page.keyboard.type(" it is")
    wanted = re.sub(r"\ba\b", "longer", found)
    assert text.input_value() == wanted.replace("# it", "# it so it is")
