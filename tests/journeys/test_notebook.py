"""A notebook: cells typed one after the other into IPython, in a process of its own."""

from __future__ import annotations

import importlib.util

import pytest

from tests.journeys.person import Terminal

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("IPython") is None, reason="there is no IPython"
)
SHELL = """
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
for cell in Path("cells.py").read_text().split("# %%"):
    shell.run_cell(cell, store_history=True)
"""
CELLS = """
from axil import Context, RootGraph
from axil_agent import Agent, Scripted
from axil_sqlite import SqliteJournal

journal = SqliteJournal(".axil")
graph = RootGraph("letter")
# %%
async def sign(inputs, ctx: Context):
    return {"letter": f"{inputs['draft']} {await ctx.ask('Sign as?')}"}
# %%
graph.create_node(Agent(Scripted(['{"draft": "Dear Ada,"}'])), name="write")
graph.create_node(sign, name="sign")
graph.edge_from_entry("write", {"topic": ""})
graph.create_edge("write", "sign", {"draft": ""})
graph.edge_to_exit("sign", {"letter": ""})
graph.build();
# %%
graph
# %%
result = await graph.run({"topic": "axils"}, journal=journal, run_id="letter")
print("status:", result.status, result.questions[0].text)
# %%
done = await graph.resume("letter", journal=journal, answers={result.questions[0].id: "B."})
print("output:", done.output)
# %%
async for event in graph.stream({"topic": "ferns"}):
    print("saw:", event.kind)
"""
MISTAKES = """
from axil import RootGraph

graph = RootGraph("letter")
graph.create_node(lambda inputs: {"text": inputs["txt"]}, name="write")
graph.edge_from_entry("write", {"text": "", "txt": ""})
graph.edge_to_exit("write", {"text": ""})
# %%
graph.create_node(lambda inputs: {}, name="write")
# %%
graph.invoke({"text": "hello"})
# %%
graph.build();
# %%
graph.invoke({"text": "hello"})
# %%
print("and on:", graph.invoke({"text": "a", "txt": "b"}))
"""


def test_a_graph_is_drawn_run_answered_and_streamed_in_cells(terminal: Terminal) -> None:
    terminal.write("cells.py", CELLS)
    terminal.write("shell.py", SHELL)
    shown = terminal.type("python shell.py")
    shown.shows("in → write [{topic}]", "write Agent → sign [{draft}]")  # the drawing
    shown.shows("status: paused Sign as?", "output: {'letter': 'Dear Ada, B.'}")
    shown.shows("saw: run_started", "saw: firing_finished", "saw: run_finished")
    terminal.type("axil runs show letter").shows("letter done", "Dear Ada, B.")


def test_a_mistake_in_a_cell_ends_the_cell_and_not_the_notebook(terminal: Terminal) -> None:
    terminal.write("cells.py", MISTAKES)
    terminal.write("shell.py", SHELL)
    shown = terminal.type("python shell.py", tracebacks=True)
    shown.shows("AX101", '"write"', "AX123", "Call build() first.", "AX221", "lacks txt")
    shown.shows("and on: Result(status='done'", "output={'text': 'b'}")
