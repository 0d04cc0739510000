"""MASFactory's documentation through axil-masfactory: each block of Python that imports it is run.

A scripted model stands in for models, files of the blocks' names for files. The blocks lie beside
the checkout; where they do not, the tests pass over them.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

import masfactory
from axil_agent import models_through
from axil_models import Reply, Request
from masfactory.aml import compile_aml

from .recorded import SHARED, cases

FILE = SHARED / "cases" / "masfactory_docs.json"
pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="the documentation's blocks are not beside this checkout"
)
BLOCKS: dict[str, str] = (
    {f"{b['page']} {b['n']}": b["code"] for b in json.loads(FILE.read_text("utf-8"))["blocks"]}
    if FILE.is_file()
    else {}
)
DESIGN = """<aml version="0.2" kind="graph" id="w"><definitions><agents><agent id="a">
<instructions>Work.</instructions></agent></agents><graphs><graph id="root" kind="root"><nodes>
<agent id="one" ref="#a"/><agent id="two" ref="#a"/></nodes><edges>
<edge from="entry" to="one"><keys/></edge>
<edge from="one" to="two"><keys><field name="text"/></keys></edge>
<edge from="two" to="exit"><keys/></edge></edges></graph></graphs></definitions></aml>"""

FRAGMENTS = ("guide/runtime_hooks.md", "guide/tools.md", "guide/vibegraphing.md")
"""Pages whose blocks use names that the text around them explains."""


class StandIn:
    """A model that gives every field that it is asked for, and designs for designers."""

    async def reply(self, request: Request, emit: Any, /) -> Reply:
        """Answer."""
        reported = [str(message["content"]) for message in request.messages]
        if "You design workflows" in reported[0]:
            return Reply(text=DESIGN)
        if "CONDITION" in reported[-1]:
            return Reply(text="YES")
        _, _, asked = reported[-1].partition("REQUIRED OUTPUT FIELDS AND THEIR DESCRIPTIONS:\n")
        fields: dict[str, Any] = {"answer": ""}
        if asked:
            fields = json.JSONDecoder().raw_decode(asked)[0] or fields
        return Reply(text=json.dumps({name: f"the {name}" for name in fields}))


def write(folder: Path) -> None:
    """Write the files that blocks open."""
    (folder / "receipt.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "invoice.pdf").write_bytes(b"%PDF-1.4\n")
    for name in ("paper-summary", "review-writing"):
        (folder / "skills" / name).mkdir(parents=True)
        reported = f"---\nname: {name}\ndescription: It is tried.\n---\nDo it.\n"
        (folder / "skills" / name / "SKILL.md").write_text(reported)
    config = folder / "applications/chatdev_lite/assets/config"
    config.mkdir(parents=True)
    phase = {"assistant_role_name": "A", "user_role_name": "B", "phase_prompt": ["Go."]}
    names = ("DemandAnalysis", "LanguageChoose", "Coding", "CodeComplete", "TestErrorSummary")
    written: dict[str, Any] = {
        "RoleConfig": {"A": ["You are A."], "B": ["You are B."]},
        "PhaseConfig": dict.fromkeys((*names, "Manual"), phase),
        "ChatChainConfig": {"background_prompt": "Software."},
    }
    for name, value in written.items():
        (config / f"{name}.json").write_text(json.dumps(value))
    nodes = [
        {"id": "s", "data": {"type": "start", "variables": [{"variable": "query"}]}},
        {"id": "e", "data": {"type": "answer", "answer": "{{#s.query#}}"}},
    ]
    graph = {"nodes": nodes, "edges": [{"source": "s", "target": "e"}]}
    (folder / "workflow.yml").write_text(json.dumps({"workflow": {"graph": graph}}))
    flow = {
        "nodes": [{"id": kind, "data": {"type": kind}} for kind in ("ChatInput", "ChatOutput")],
        "edges": [{"source": "ChatInput", "target": "ChatOutput"}],
    }
    (folder / "flow.json").write_text(json.dumps({"data": flow}))
    (folder / "chatdev_workflow.yaml").write_text(
        "version: 0.4.0\ngraph:\n  id: small\n  start: [a]\n  end: [a]\n  nodes:\n"
        "    - {id: a, type: agent, config: {provider: openai, name: m, api_key: '${API_KEY}'}}\n"
        "  edges: []\n"
    )


def names() -> dict[str, Any]:
    """Return the names that fragments use."""

    def get_utc_now() -> str:
        """Give the time."""
        return "now"

    def search_docs(query: str) -> str:
        """Search."""
        return query

    model = masfactory.OpenAIModel(model_name="m", api_key="k")
    return {
        "get_utc_now": get_utc_now,
        "search_docs": search_docs,
        "node": masfactory.CustomNode("node"),
        "invoke_model": model,
        "build_model": model,
        "build_instructions": "Build it.",
    }


def run(name: str, folder: Path) -> None:
    """Run one block."""
    write(folder)
    given = names() if name.startswith(FRAGMENTS) else {}
    code = BLOCKS[name].replace('\\"\\"\\"', '"""')  # as the page escapes it
    with (
        models_through(lambda meant, written: StandIn()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        exec(compile(code, name, "exec"), {"__name__": "block", **given})  # noqa: S102  # the test


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_of_the_documentation_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(name, tmp_path)


class Said(masfactory.Model):
    """Says recorded replies."""

    def __init__(self, replies: list[str]) -> None:
        super().__init__("said")
        self.replies = list(replies)

    def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
        """Answer."""
        return {"type": "content", "content": self.replies.pop(0)}


@pytest.mark.parametrize("name", ["aml_branch_direct", "aml_branch_loop"])
def test_a_recorded_design_becomes_a_graph(name):
    case = cases("masfactory")[name]
    model = Said(case["scripted_model_replies"])
    graph = masfactory.RootGraph("g")
    inner = graph.create_node(masfactory.Graph, name="v")
    graph.edge_from_entry(inner, {"topic": ""})
    graph.edge_to_exit(inner, {"plan": ""})
    compile_aml(case["spec"]["aml"], inner, model=model)
    graph.build()
    assert graph.invoke(case["input"])[0] == case["expected_output"]
    assert model.replies == []
