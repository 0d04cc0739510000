"""Visitors from LangGraph, MASFactory and ChatDev, each with a program of theirs."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.journeys.person import ROOT, Terminal

PAGES = ROOT / "docs/how-to"
CORPUS = ROOT.parent / "shared/chatdev_yaml/yaml_instance"

ASSISTANT = '''
"""A chat with a tool, a conversation that is kept, and a person who approves."""

from axil import RootGraph
from axil_agent import Agent


def book(room: str) -> str:
    """Book a room."""
    return f"{room} is booked"


book.needs_approval = True
model = {"type": "openai", "name": "gpt-5"}
graph = RootGraph("assistant", state="messages")
graph.create_node(Agent(model, "You help.", tools=[book]), name="help")
graph.edge_from_entry("help")
graph.edge_to_exit("help")
'''
REPLIES = """
rules:
  - match: {user_contains: which}
    replies: [The blue one.]
  - match: {user_contains: book}
    replies: [{tool_calls: [{name: book, arguments: {room: blue}}]}, The blue room is yours.]
"""


def commands(page: str, heading: str) -> list[str]:
    """Return the commands that a page shows under a heading."""
    text = (PAGES / page).read_text("utf-8").split(f"\n{heading}\n")[1].split("\n## ")[0]
    shown = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return re.findall(r"(?m)^\$ (.+)$", "\n".join(shown))


def programs(page: str) -> list[str]:
    """Return the programs of a page."""
    return re.findall(r"```python\n(.*?)```", (PAGES / page).read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("source", ["own", "theirs"])
def test_a_file_of_chatdev_runs_by_the_commands_of_the_page(
    terminal: Terminal, source: str
) -> None:
    page = "migrate-from-chatdev.md"
    if source == "own":
        written = programs(page)[0].split('Path("letter.yaml").write_text("""\n')[1]
        terminal.write("ChatDev_v1.yaml", written.partition('"""')[0])
    elif not CORPUS.is_dir():
        pytest.skip("files of ChatDev are not beside this checkout")
    else:
        shutil.copytree(CORPUS, terminal.folder, dirs_exist_ok=True)
    terminal.type(commands(page, "## Look at it")[0]).shows("in →", "agent")
    lines = "\n".join(commands(page, "## Try it without a model"))
    if source == "theirs":
        assert terminal.paste(lines).out
        return
    shown = terminal.paste(lines, code=3).shows("What should change?")
    way = shown.find(r"The run is kept: (axil runs answer .*)").replace("ANSWER", "Shorter.")
    for name in ("API_KEY", "BASE_URL"):
        terminal.environment[name] = "none"
    assert terminal.type(f"{way} --model-script script.json").out == "OK\n"


def test_a_program_of_masfactory_runs_and_then_keeps_its_runs(terminal: Terminal) -> None:
    first, second, *_ = programs("come-from-masfactory.md")
    terminal.write("grade.py", first)
    assert terminal.type("python grade.py").text == ""
    kept = second.replace("axil_journals import MemoryJournal", "axil_sqlite import SqliteJournal")
    kept = kept.replace("MemoryJournal()", 'SqliteJournal(".axil")')
    terminal.write("count.py", f"{kept}\njournal.close()\n")
    terminal.type("python count.py")
    terminal.type("axil runs show first").shows("count done", "up")


def test_a_chat_of_langgraph_is_kept_by_thread_and_approved_in_another_process(
    terminal: Terminal,
) -> None:
    terminal.write("app.py", ASSISTANT)
    terminal.write("replies.yaml", REPLIES)
    chat = "axil run app.py:graph --thread ada --model-script replies.yaml --input"
    begun = terminal.type(f"{chat} 'book a room'", code=3)
    begun.shows("May the tool book be called", "room: blue", "one of: allow, deny, edit")
    way = begun.find(r"The run is kept: (axil runs answer .*)").replace("ANSWER", "allow")
    terminal.type(f"{way} --model-script replies.yaml").shows("The blue room is yours.")
    terminal.type(f"{chat} 'which room was it?'").shows("The blue one.")
    listed = terminal.type("axil runs list --thread ada --format json").data
    assert [each["status"] for each in listed] == ["done", "done"]
