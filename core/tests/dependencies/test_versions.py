"""Versions of a run: recorded when it begins, compared when it continues."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Any

import pluggy
import pytest
from pydantic import BaseModel

from axil import GraphSpec, NodeSpec, Question, RootGraph, Workflow, run_sync
from axil.plugin import JournalError, recorded_files
from axil_journals import MemoryJournal, recorded_graph


class Brief(BaseModel):
    notes: Annotated[list[str], "append"] = []
    cost: Annotated[float, "sum"] = 0.0


def asking() -> RootGraph:
    async def ask(inputs: Any, ctx: Any) -> Any:
        return {"said": await ctx.ask("?", name="word")}

    graph = RootGraph("g")
    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", {})
    graph.edge_to_exit("ask", {"said": ""})
    return graph.build()


def test_a_run_is_pinned_to_its_plugins():
    journal, flow = MemoryJournal(), asking()
    paused = run_sync(flow.run({}, journal=journal, run_id="r"))
    (question,) = paused.questions
    assert isinstance(question, Question)
    pins = recorded_graph(journal.entries("r"))["pins"]
    assert pins["axil-core"]["version"] == flow.pins["axil-core"]["version"]
    other = {**pins, "axil-core": {"version": "99.0"}}
    with pytest.raises(JournalError, match=r"AX524.*axil-core was .*, and is 99\.0.*migrate.*fork"):
        run_sync(flow.resume("r", journal=journal, pins=other))
    assert run_sync(flow.resume("r", journal=journal, pins=other, migrate=True)).status == "paused"
    with pytest.raises(JournalError, match="AX524"):
        run_sync(flow.resume("r", journal=journal))
    answers = {question.id: "yes"}
    result = run_sync(flow.resume("r", journal=journal, pins=other, answers=answers))
    assert result.output == {"said": "yes"}


def test_what_was_made_in_python_is_pinned_by_its_package_and_what_a_wheel_listed():
    pins = Workflow(
        GraphSpec(id="g", nodes=(NodeSpec(id="a", body=pluggy.HookimplMarker("x")),))
    ).pins
    assert pins["pluggy"]["version"] == pluggy.__version__
    assert len(pins["pluggy"]["record"]) == 16
    assert (
        "record" not in pins["axil-core"] or pins["axil-core"]["record"] != pins["pluggy"]["record"]
    )


def test_typed_state_is_pinned_to_who_checks_it_and_to_who_provides_its_strategies():
    assert {"axil-core"} == set(RootGraph("g", state=Brief).build().pins)


def test_what_an_installer_writes_does_not_count():
    class There:
        @staticmethod
        def read_text(name: str) -> str:
            own = "a-1.dist-info/INSTALLER,sha256=3,4\n../bin/a,,\n"
            return f"b.py,sha256=2,9\na.py,sha256=1,9\n{own}"

    assert recorded_files(There()) == "a.py,sha256=1\nb.py,sha256=2"


WITHOUT_FILES = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "axil_files":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing)
from axil import EdgeSpec, GraphSpec, NodeSpec, ComponentRef, Workflow
from axil_journals import MemoryJournal
nodes = (NodeSpec(id="a", use=ComponentRef(type="custom")),)
edges = (EdgeSpec(source="@entry", target="a"), EdgeSpec(source="a", target="@exit"))
flow = Workflow(GraphSpec(id="g", nodes=nodes, edges=edges, payload="fields"))
print(flow.invoke({"x": 1}, journal=MemoryJournal())[0], list(flow.pins))
"""


def test_without_files_the_components_that_a_spec_names_are_pinned():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_FILES],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("{'x': 1} ['axil-core']\n", "")
