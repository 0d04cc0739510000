"""Work on the page, by mouse and by keys: each way is taken with real events, and counted.

The counts stand in the how-to; the seconds there were measured once, with ``AXIL_SHOW_WORK=1``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from axil_journals import decode_value

from .site import Site, evaluated, expect, served_site, site, started, thorough

__all__ = ["served_site", "site"]

HOW_TO = Path(__file__).parents[3] / "docs/how-to/serve-workflows.md"
ROW = re.compile(r"^\| ([^|`]+?) \| (\d+) clicks?[^|]* \| (\d+) keys?[^|]* \|", re.MULTILINE)


class Hand:
    """A person at the page, whose clicks or keys are counted; what is typed as text is not."""

    def __init__(self, page: Any) -> None:
        self.page, self.acts = page, 0
        self.began = time.monotonic()
        # the browser learns of it now: asked at the press, it may open its window first
        page.on("filechooser", lambda _: None)

    def click(self, found: Any) -> None:
        self.acts += 1
        found.click()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.acts += 1
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def chooses(self, act: Callable[[], None], *files: Path) -> None:
        """Do what opens the browser's own window for files, and choose there."""
        with self.page.expect_file_chooser() as chooser:
            act()
        chooser.value.set_files(files)


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def at_heading(page: Any, name: str) -> None:
    page.get_by_role("heading", name=name).first.wait_for()


def node(page: Any, *path: str) -> Any:
    return page.locator(f"svg [data-key='{json.dumps(path, separators=(',', ':'))}']")


def until(page: Any, expression: str) -> None:
    """Wait until something holds in the page, whose policy keeps the browser's own way out."""
    for _ in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def by_mouse(way: Callable[..., None]) -> Any:
    """Leave it to ``make browser``: the keys lead through the same parts of the page."""
    return pytest.param(way, marks=thorough)


AT_TEXT = "document.activeElement.tagName === 'TEXTAREA'"


def by_mouse_a_file_is_given(hand: Hand, site: Site, text: Path) -> None:
    page = hand.page
    hand.click(page.get_by_role("link", name="New run"))
    page.get_by_label("Workflow", exact=True).select_option("count")
    hand.acts += 2  # the list is opened, and one of it chosen
    hand.chooses(lambda: hand.click(button(page, "Add files …")), text)
    page.get_by_label("files of the run").get_by_text("14 bytes").wait_for()
    expect(page.get_by_label("source")).to_have_value("attachments/tale.txt")
    hand.click(button(page, "Start"))


def by_keys_a_file_is_given(hand: Hand, site: Site, text: Path) -> None:
    page = hand.page
    hand.press("n")
    page.get_by_label("Workflow", exact=True).wait_for()
    until(page, "document.activeElement.id.startsWith('in-')")
    hand.press("Shift+Tab", "Shift+Tab")
    hand.write("count")
    hand.press("Tab")
    hand.chooses(lambda: hand.press("Enter"), text)
    page.get_by_label("files of the run").get_by_text("14 bytes").wait_for()
    hand.press("Control+Enter")


@pytest.mark.parametrize("way", [by_mouse(by_mouse_a_file_is_given), by_keys_a_file_is_given])
def test_in_a_browser_a_run_is_started_with_a_file_and_gives_files(site, tmp_path, way):
    page, text = site.page, tmp_path / "tale.txt"
    text.write_text("Once upon a ti", "utf-8")
    hand = counted(site, way, text)
    page.get_by_text("done", exact=True).first.wait_for()
    button(page, "Files").click()
    page.get_by_text("4 words, brief").wait_for()  # what the run wrote first is shown
    button(page, "words.csv").click()
    page.get_by_role("cell", name="attachments/tale.txt", exact=True).last.wait_for()
    with page.expect_download() as download:
        page.get_by_label("download summary.md").click()
    download.value.save_as(tmp_path / "summary")
    assert (tmp_path / "summary").read_text("utf-8") == "4 words, brief"
    stated(hand, "start a run with a file", way)


def by_mouse_it_is_found_why(hand: Hand, site: Site) -> None:
    hand.click(hand.page.get_by_role("listitem").first)
    hand.page.get_by_role("region", name="failure").get_by_text("ValueError: no paper").wait_for()
    hand.click(hand.page.get_by_role("region", name="failure").get_by_role("button", name="bad"))


def by_keys_it_is_found_why(hand: Hand, site: Site) -> None:
    hand.page.get_by_role("listitem").first.wait_for()
    hand.press("j", "Enter")
    hand.page.get_by_role("region", name="failure").get_by_text("ValueError: no paper").wait_for()
    hand.press("x")


@pytest.mark.parametrize("way", [by_mouse(by_mouse_it_is_found_why), by_keys_it_is_found_why])
def test_in_a_browser_it_is_found_why_a_run_failed(site, way):
    page = site.page
    started(page, "ends", {"how": "bad"})
    page.get_by_text("failed", exact=True).first.wait_for()
    site.go("")
    hand = counted(site, way)
    page.get_by_role("region", name="failure").get_by_text("in bad: raise ValueError").wait_for()
    page.locator("aside").get_by_text("in: first").wait_for()  # and what the node had received
    stated(hand, "find why it failed", way)


def by_mouse_a_question_is_answered(hand: Hand, site: Site) -> None:
    hand.click(hand.page.get_by_role("link", name="Inbox"))
    hand.click(hand.page.get_by_role("region", name="question").get_by_role("button").first)


def by_keys_a_question_is_answered(hand: Hand, site: Site) -> None:
    hand.press("i")
    hand.page.get_by_role("region", name="question").first.wait_for()
    hand.press("a", "Enter")


@pytest.mark.parametrize(
    "way", [by_mouse(by_mouse_a_question_is_answered), by_keys_a_question_is_answered]
)
def test_in_a_browser_a_question_is_answered_in_the_inbox(site, way):
    page = site.page
    started(page, "shop", {"complaint": "It leaks."})
    page.get_by_role("region", name="question").wait_for()
    run = page.url
    site.go("")
    page.locator(".waits").wait_for()
    hand = counted(site, way)
    page.goto(run)
    page.get_by_text("done", exact=True).first.wait_for()
    stated(hand, "answer a question", way)


def by_mouse_the_critic_is_changed(hand: Hand, site: Site) -> None:
    page = hand.page
    hand.click(page.get_by_role("listitem").first)
    hand.click(node(page, "cycle(clerk,critic)", "critic"))
    hand.click(button(page, "Fork from here").first)
    until(page, AT_TEXT)
    page.keyboard.press("Control+a")
    hand.write('{"verdict": "REVISE"}')
    hand.click(button(page, "Start the fork"))


def by_keys_the_critic_is_changed(hand: Hand, site: Site) -> None:
    page = hand.page
    page.get_by_role("listitem").first.wait_for()
    hand.press("j", "Enter")
    node(page, "cycle(clerk,critic)", "critic").wait_for()
    hand.press("/")
    until(page, "document.activeElement.type === 'search'")
    hand.write("critic")
    hand.press("Enter", "Enter")
    page.locator("aside").get_by_role("heading", name="/ critic").wait_for()
    button(page, "Fork from here").first.wait_for()
    hand.press("k")
    until(page, AT_TEXT)
    hand.press("Control+a")
    hand.write('{"verdict": "REVISE"}')
    hand.press("Control+Enter")


@pytest.mark.parametrize(
    "way", [by_mouse(by_mouse_the_critic_is_changed), by_keys_the_critic_is_changed]
)
def test_in_a_browser_a_critic_is_changed_and_the_run_goes_on(site, way):
    page = site.page
    started(page, "shop", {"complaint": "It leaks."})
    page.get_by_role("region", name="question").wait_for()
    site.go("")
    page.get_by_role("listitem").first.get_by_text("paused").wait_for()
    hand = counted(site, way)
    page.get_by_text("3 rounds").first.wait_for()
    stated(hand, "change the critic's answer and run on", way)
    is_mouse = "mouse" in way.__name__
    hand = Hand(page)
    found = page.get_by_role("link", name="compare with the run")
    found.wait_for()
    hand.click(found) if is_mouse else hand.press("p")
    page.get_by_text("critic, with another output").wait_for()
    stated(hand, "compare with the first", way)


def by_mouse_it_is_run_again(hand: Hand, site: Site) -> None:
    hand.click(button(hand.page, "Run again …"))
    hand.page.get_by_label("name", exact=True).fill("ben")
    hand.click(button(hand.page, "Start"))


def by_keys_it_is_run_again(hand: Hand, site: Site) -> None:
    hand.press("b")
    hand.page.get_by_label("name", exact=True).wait_for()
    until(hand.page, "document.activeElement.id === 'in-name'")
    hand.press("Control+a")
    hand.write("ben")
    hand.press("Control+Enter")


@pytest.mark.parametrize("way", [by_mouse(by_mouse_it_is_run_again), by_keys_it_is_run_again])
def test_in_a_browser_a_run_is_changed_and_saved_as_a_page(site, tmp_path, way):
    page = site.page
    started(page, "greeting", {"name": "ada"})
    page.locator("aside").get_by_text("Hello Ada").first.wait_for()
    hand = counted(site, way)
    page.locator("aside").get_by_text("Hello Ben").first.wait_for()
    stated(hand, "edit the input and run again", way)
    hand = Hand(page)
    with page.expect_download() as download:
        hand.click(button(page, "HTML")) if "mouse" in way.__name__ else hand.press("d")
    stated(hand, "export as a page", way)
    download.value.save_as(tmp_path / "run.html")
    page.goto((tmp_path / "run.html").as_uri())
    page.locator("aside").get_by_text("Hello Ben").first.wait_for()
    assert page.get_by_role("link", name="New run").count() == 0


def counted(site: Site, way: Callable[..., None], *given: Any) -> Hand:
    """Go one way from where the page is; return the hand that went it."""
    hand = Hand(site.page)
    way(hand, site, *given)
    return hand


def stated(hand: Hand, work: str, way: Callable[..., None]) -> None:
    """Hold what was counted against the table of the how-to, where it is at hand."""
    if os.environ.get("AXIL_SHOW_WORK"):
        spent = time.monotonic() - hand.began
        name = way.__name__.split("_")[1]
        print(f"\n{work}: {name}, {hand.acts} in {spent:.1f} s")  # noqa: T201 - asked for
    elif HOW_TO.is_file():
        rows = {name: counts for name, *counts in ROW.findall(HOW_TO.read_text("utf-8"))}
        assert hand.acts == int(rows[work][0 if "mouse" in way.__name__ else 1])


def test_in_a_browser_a_saved_page_has_the_files_of_its_run(site, tmp_path):
    page = site.page
    contents = {"tale.txt": b"Once upon a ti", "tale.pdf": b"%PDF-1.7", "long.bin": b"x" * 600_000}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    site.go("start=count")
    page.locator("#files").set_input_files([tmp_path / name for name in contents])
    page.get_by_label("files of the run").get_by_text("600.0 kB").wait_for()
    page.get_by_label("source").fill("attachments/tale.txt")
    button(page, "Start").click()
    page.get_by_text("done", exact=True).first.wait_for()
    button(page, "Files").click()
    page.get_by_text("4 words, brief").wait_for()
    button(page, "attachments/tale.pdf").click()
    page.get_by_text("A PDF is not shown here").wait_for()
    with page.expect_download() as download:
        button(page, "HTML").click()
    download.value.save_as(tmp_path / "run.html")
    page.goto((tmp_path / "run.html").as_uri())
    button(page, "Files").click()
    page.get_by_text("4 words, brief").wait_for()
    button(page, "words.csv").click()
    page.get_by_role("cell", name="attachments/tale.txt", exact=True).last.wait_for()
    page.get_by_text(hashlib.sha256(contents["long.bin"]).hexdigest()).wait_for()
    assert page.get_by_label("download attachments/long.bin").count() == 0
    with page.expect_download() as download:
        page.get_by_label("download attachments/tale.pdf").click()
    download.value.save_as(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == contents["tale.pdf"]


# ------------------------------------------------------------------------- conversations and forms


def test_in_a_browser_a_conversation_goes_on_and_keeps_what_was_said(site, tmp_path):
    page, photo = site.page, tmp_path / "kettle.txt"
    photo.write_text("a kettle", "utf-8")
    site.go("workflows")
    page.get_by_role("region", name="desk").get_by_role("link", name="Chat").click()
    page.get_by_role("heading", name="A chat with desk").wait_for()
    page.get_by_label("message").wait_for()
    page.keyboard.type("What do kettles cost?")
    page.keyboard.press("Enter")
    page.get_by_label("assistant").get_by_text("Kettles cost 40.").wait_for()
    page.get_by_label("message").fill("This is my second question")
    page.locator("#files").set_input_files(photo)
    page.get_by_label("files of the run").get_by_text("8 bytes").wait_for()
    page.keyboard.press("Enter")
    page.get_by_label("assistant").get_by_text("You asked about kettles before.").wait_for()
    expect(page.get_by_label("conversation")).to_contain_text("kettle.txt")
    said = page.get_by_label("conversation").inner_text()
    assert said.index("What do kettles cost?") < said.index("This is my second question")
    assert said.count("What do kettles cost?") == 1
    page.reload()
    page.get_by_label("assistant").get_by_text("You asked about kettles before.").wait_for()
    site.go("sessions")
    page.get_by_role("row", name="desk").first.get_by_role("link").click()
    page.get_by_label("assistant").get_by_text("Kettles cost 40.").wait_for()
    page.get_by_role("link", name="how it came about").last.click()
    page.get_by_role("link", name=re.compile("^desk-")).wait_for()  # the chat that it belongs to


def test_in_a_browser_a_conversation_asks_and_is_answered_in_its_place(site):
    page = site.page
    site.go("chat=&workflow=refund")
    page.get_by_label("message").fill("Forty")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="question").get_by_text("Refund Forty?").wait_for()
    page.keyboard.type("gladly")  # the answer has the focus
    page.keyboard.press("Enter")
    page.get_by_label("assistant").get_by_text("Forty: gladly").wait_for()


def test_in_a_browser_the_form_of_a_workflow_has_its_types_and_says_what_is_wrong(site):
    page = site.page
    site.go("start=count")
    detail = page.get_by_label("detail")
    expect(detail.locator("option")).to_have_text(["not set", "brief", "full"])
    expect(detail).to_have_value('"brief"')
    is_loud = page.get_by_label("is_loud")
    expect(is_loud.locator("option")).to_have_text(["not set", "true", "false"])
    copies = page.get_by_label("copies")
    expect(copies).to_have_value("1")
    copies.fill("many")
    button(page, "Start").click()
    page.get_by_text("Expected a number.").wait_for()
    copies.fill("2")
    drop = """(target) => {
      const data = new DataTransfer()
      data.items.add(new File(["one two"], "two.txt", { type: "text/plain" }))
      for (const kind of ["dragover", "drop"]) {
        target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }))
      }
    }"""
    page.locator("main").evaluate(drop)
    page.get_by_label("files of the run").get_by_text("7 bytes").wait_for()
    detail.select_option("full")
    is_loud.select_option("true")
    button(page, "Start").click()
    page.get_by_text("done", exact=True).first.wait_for()
    button(page, "Files").click()
    page.get_by_text("2 WORDS, FULL").wait_for()


def test_in_a_browser_two_evaluations_are_compared(site, tmp_path):
    page = site.page
    evaluated(site.journal)
    site.go("evaluations")
    page.get_by_label("mark eval-old").check()
    page.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")  # the list is drawn again
    page.wait_for_load_state("networkidle")
    expect(page.get_by_label("mark eval-old")).to_be_checked()
    page.get_by_label("mark eval-new").check()
    button(page, "Compare the marked").click()
    at_heading(page, "Two versions side by side")
    row = page.get_by_role("row", name=re.compile("^exact"))
    expect(row).to_contain_text("25 %")
    expect(row).to_contain_text("worse")
    cases = page.get_by_label("cases")
    expect(cases.get_by_role("row")).to_have_count(9)
    page.get_by_label("only cases that differ").check()
    expect(cases.get_by_role("row")).to_have_count(7)
    cases.get_by_text("N'Djamena").first.wait_for()
    site.go("evaluations")
    page.get_by_role("link", name="eval-new").click()
    page.get_by_text("2 of 8 cases pass").wait_for()
    files: list[Path] = []
    for run_id in ("eval-old", "eval-new"):
        [ended] = [each for each in site.journal.entries(run_id) if each.kind == "ended"]
        files.append(tmp_path / f"{run_id}.json")
        files[-1].write_text(json.dumps(decode_value(ended.data["output"])["report"]), "utf-8")
    site.go("evaluations")
    page.locator("#reports").set_input_files(files)
    at_heading(page, "Two versions side by side")
    row = page.get_by_role("region", name="differences").get_by_role("row")
    row.filter(has_text="exact").get_by_text("worse").wait_for()  # and what is chance, as of runs
    expect(page.get_by_label("cases").get_by_role("row")).to_have_count(9)


# -------------------------------------------------------------------------------------- the editor


def test_in_a_browser_a_loop_is_made_of_an_empty_page_by_keys(site):
    page = site.page

    def keys(*names: str) -> None:
        for name in names:
            page.keyboard.press(name)

    def focus_on(id: str) -> None:
        """Go to a field as keys do, from where the focus is."""
        for _ in range(60):
            if page.evaluate("document.activeElement.id") == id:
                return
            keys("Tab")
        raise AssertionError(id)

    site.go("")
    page.get_by_role("heading", name="Runs", exact=True).wait_for()
    keys("e")
    page.get_by_label("New file").wait_for()
    until(page, "document.activeElement.id === 'name'")
    page.keyboard.type("keys-loop")
    keys("Enter")
    page.get_by_role("heading", name="An empty graph").wait_for()
    keys("/")
    page.keyboard.type("literal")
    keys("Enter")
    until(page, "document.activeElement.id.endsWith('config-content')")
    page.keyboard.type("a draft")
    focus_on("f-after")
    page.keyboard.type("loop_c")
    keys("Tab", "Enter")
    node(page, "loop_counter").wait_for()
    until(page, "document.querySelector('#f-id')?.value === 'loop_counter'")
    text = page.get_by_label("text of the file")
    until(page, "document.querySelector('.code-text').value.includes('a draft')")
    page.evaluate("document.getElementById('f-id').focus()")
    focus_on("f-edge")
    page.keyboard.type("literal")
    keys("Tab", "Enter")
    page.get_by_label("edge loop_counter to literal").wait_for(state="attached")
    page.get_by_label("rounds of its loop").wait_for()
    before = text.input_value()
    keys("Control+z")
    page.get_by_label("edge loop_counter to literal").wait_for(state="detached")
    keys("Control+y")
    page.get_by_label("edge loop_counter to literal").wait_for(state="attached")
    expect(text).to_have_value(before)
    page.get_by_text("no findings").wait_for()
    keys("Control+Enter")
    until(page, "document.activeElement.id === 'run-input'")
    page.keyboard.type("go")
    keys("Control+Enter")
    page.wait_for_url("**/*run=*")
    page.get_by_text("done", exact=True).first.wait_for()
    page.get_by_text("rounds").first.wait_for()


def written(page: Any, text: str) -> None:
    """Wait until the file says something."""
    until(page, f"document.querySelector('.code-text').value.includes({json.dumps(text)})")


def on_line(page: Any, label: str) -> None:
    """Press with the mouse on the middle of an edge."""
    middle = """(path) => {
      const at = path.getPointAtLength(path.getTotalLength() / 2)
      const { x, y } = at.matrixTransform(path.getScreenCTM())
      return [x, y]
    }"""
    line = page.get_by_label(label).first
    line.scroll_into_view_if_needed()
    page.mouse.click(*line.evaluate(middle))


def test_in_a_browser_conditions_are_made_by_mouse(site):
    page = site.page
    site.go("edit=")
    page.get_by_label("New file").fill("mouse.yaml")
    button(page, "Begin").click()
    page.get_by_role("heading", name="An empty graph").wait_for()
    button(page, "human").first.click()
    node(page, "human").wait_for()
    page.get_by_label("description", exact=True).first.fill("Go?")
    for type, word in (("literal", "yes"), ("literal", "no")):
        node(page, "human").click()
        until(page, "document.querySelector('#f-id')?.value === 'human'")
        page.get_by_label("new node after it").select_option(type)
        button(page, "Add the node").click()
        name = "literal" if word == "yes" else "literal2"
        node(page, name).wait_for()
        page.get_by_label("content *").fill(f"It is {word}")
        page.keyboard.press("Tab")
        page.get_by_label("its output is the result").check()
        written(page, f"It is {word}")
        written(page, f"{name}]")
        page.get_by_text("no findings").wait_for()
        on_line(page, f"edge human to {name}")
        page.get_by_label("taken when").select_option("keyword")
        page.get_by_label("any", exact=True).fill(word)
        page.get_by_label("any", exact=True).press("Tab")
        written(page, f"'{word}']")
    page.get_by_text("no findings").wait_for()
    page.get_by_text("Run it").click()
    page.get_by_label("Input: a text").fill("A letter")
    button(page, "Save and run").click()
    question = page.get_by_role("region", name="question")
    question.get_by_label("answer").fill("no")
    button(question, "Answer").click()
    page.get_by_text("done", exact=True).first.wait_for()
    page.locator("aside").get_by_text("It is no").wait_for()


def test_in_a_browser_a_form_that_is_drawn_again_keeps_a_choice_and_a_press(site):
    page = site.page
    site.go("edit=")
    page.get_by_label("New file").fill("pressed.yaml")
    button(page, "Begin").click()
    page.get_by_role("heading", name="An empty graph").wait_for()
    button(page, "human").first.click()
    node(page, "human").wait_for()
    page.get_by_label("new node after it").select_option("literal")
    page.get_by_label("description", exact=True).first.fill("Go?")
    adding = button(page, "Add the node")
    adding.hover()
    page.mouse.down()  # ends the typing: the text is changed, and the form drawn again
    written(page, "Go?")
    page.get_by_text("no findings").wait_for()
    page.mouse.up()
    node(page, "literal").wait_for()
