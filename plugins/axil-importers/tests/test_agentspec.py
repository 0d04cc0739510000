"""Agent Spec's agents, teams and flows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from axil_agent import Scripted
from axil_files import load
from axil_importers import ImportProblem
from axil_importers.agentspec.importer import AgentSpec

LLM = {"component_type": "OpenAiConfig", "id": "llm", "name": "llm", "model_id": "gpt-4o"}


def text(title: str, **more: Any) -> dict[str, Any]:
    """Return a property that is a text."""
    return {"title": title, "type": "string", **more}


def part(type: str, id: str, inputs: Any = (), outputs: Any = (), **more: Any) -> dict[str, Any]:
    """Return a component; its inputs and outputs are texts, by their titles."""
    given = [[text(e) if isinstance(e, str) else e for e in each] for each in (inputs, outputs)]
    made = {"component_type": type, "id": id, "name": id, **more}
    return {**made, "inputs": given[0], "outputs": given[1]}


def way(source: str, target: str, branch: str | None = None) -> dict[str, Any]:
    """Return an edge of the control flow."""
    ends = {"from_node": {"$component_ref": source}, "to_node": {"$component_ref": target}}
    return {"component_type": "ControlFlowEdge", "from_branch": branch, **ends}


def carries(source: str, output: str, target: str, input: str) -> dict[str, Any]:
    """Return an edge of the data flow."""
    return {
        "component_type": "DataFlowEdge",
        "source_node": {"$component_ref": source},
        "source_output": output,
        "destination_node": {"$component_ref": target},
        "destination_input": input,
    }


def flow(*nodes: dict[str, Any], ways: Any = None, data: Any = None, **more: Any) -> dict[str, Any]:
    """Return a flow whose nodes follow each other, if ``ways`` does not say otherwise."""
    ids = [each["id"] for each in nodes]
    return {
        "component_type": "Flow", "agentspec_version": "25.4.1", "id": "flow", "name": "sample",
        "nodes": [{"$component_ref": each} for each in ids],
        "inputs": nodes[0]["inputs"], "outputs": nodes[-1]["outputs"],
        "start_node": {"$component_ref": ids[0]},
        "control_flow_connections": ways or [way(a, b) for a, b in pairwise(ids)],
        "data_flow_connections": data,
        "$referenced_components": {each["id"]: each for each in nodes},
        **more,
    }  # fmt: skip


LOOPING = flow(
    part("StartNode", "start", ["ask"], ["ask"]),
    part("LlmNode", "write", ["ask", text("hint", default="none")], ["code"], llm_config=LLM,
         prompt_template="Do {{ask}} {x}; {{hint}}."),
    part("LlmNode", "judge", ["code"], ["hint", {"title": "good", "type": "boolean"}],
         llm_config=LLM, prompt_template="Judge {{code}}."),
    part("BranchingNode", "choose", [{"title": "good", "type": "boolean"}],
         mapping={"true": "yes"}),
    part("EndNode", "end", ["code"], ["code"]),
    ways=[way("start", "write"), way("write", "judge"), way("judge", "choose"),
          way("choose", "end", "yes"), way("choose", "write", "default")],
    data=[carries("start", "ask", "write", "ask"), carries("judge", "hint", "write", "hint"),
          carries("write", "code", "judge", "code"), carries("judge", "good", "choose", "good"),
          carries("write", "code", "end", "code")],
)  # fmt: skip
SHOP = {"url": "https://example.org/{{id}}", "http_method": "POST", "data": {"a": "{{id}}"},
        "sensitive_headers": {"X-Key": "sk-1"}}  # fmt: skip
PARTS = flow(
    part("StartNode", "start", ["id"], ["id"]),
    part("ToolNode", "send", ["id"], ["price"], tool=part("RemoteTool", "shop", **SHOP)),
    part("ToolNode", "own", ["id"], ["price"], tool=part("ServerTool", "price of")),
    part("ApiNode", "get", ["id"], ["a", "b"], url="https://example.org/x"),
    part("InputMessageNode", "hear", [], ["id"], message="Which?"),
    part("OutputMessageNode", "say", ["id"], message="It is {{id}}."),
    part("CatchExceptionNode", "try", ["id"], ["id"], subflow=flow(
        part("StartNode", "s", ["id"], ["id"]), part("EndNode", "e", ["id"], ["id"]))),
    part("PluginRegexNode", "regex", ["id"], ["found"]),
    part("EndNode", "end", ["price"], ["price"]),
)  # fmt: skip
CLERK = part(
    "Agent", "Clerk", ["shop"], system_prompt="You serve {{shop}}.", llm_config=LLM,
    tools=[part("ServerTool", "web_search"), part("ClientTool", "pay")],
    toolboxes=[part("MCPToolBox", "box", tool_filter=["find"],
                    client_transport=part("SSETransport", "t", url="https://example.org/mcp"))],
)  # fmt: skip
TEAM = {
    **part("ManagerWorkers", "team"),
    "group_manager": part("Agent", "Boss", system_prompt="You lead.", llm_config=LLM),
    "workers": [part("Agent", "Coder", system_prompt="You code.", llm_config=LLM)],
}


def ran(document: Any, given: Any, replies: list[str], tmp_path: Any) -> tuple[Any, Any]:
    """Return the output of the imported workflow, and what the model was asked."""
    out = tmp_path / "flow.yaml"
    out.write_text(AgentSpec().read(document, "x").text(), encoding="utf-8")
    script = Scripted(replies)
    with script.everywhere():
        output, _ = load(out, allow={"network"}).invoke(given)
    return output, script.requests


def judged(good: str, hint: str) -> str:
    return f'{{"judge_good": {good}, "judge_hint": "{hint}"}}'


def test_data_and_branches_go_where_edges_say(tmp_path):
    replies = ["One", judged("false", "more"), "Two", judged("true", "")]
    output, requests = ran(LOOPING, {"ask": "it"}, replies, tmp_path)
    assert output == {"code": "Two"}
    said = [each.messages[-1]["content"] for each in requests]
    assert "Do it {x}; none." in said[0] or "Do it {x}; ." in said[0]
    assert "Judge One." in said[1]
    assert "Do it {x}; more." in said[2]


def test_each_node_is_taken_approximated_or_left():
    made = AgentSpec().read(PARTS, "x")
    kinds = {each["id"]: each["type"] for each in made.document["graph"]["nodes"]}
    assert [kinds[each] for each in ("send", "own", "get", "hear", "say", "regex")] == [
        "http", "human_form", "http", "human_form", "assign", "human_form",
    ]  # fmt: skip
    said = [(each.kind, each.status) for each in made.losses]
    assert said == [
        ("ToolNode", "approximated"),
        ("ToolNode", "left"),
        ("OutputMessageNode", "approximated"),
        ("CatchExceptionNode", "approximated"),
        ("PluginRegexNode", "left"),
    ]
    assert "sk-1" not in made.text()
    nodes = {each["id"]: each["config"] for each in made.document["graph"]["nodes"]}
    assert nodes["send"]["secrets"] == {"X-Key": {"env": "SEND_X_KEY"}}
    assert nodes["send"]["body"] == {"a": nodes["send"]["url"].partition("org/")[2]}


def test_a_map_runs_a_flow_once_per_item(tmp_path):
    inner = flow(
        part("StartNode", "s", ["name"], ["name"]),
        part("LlmNode", "greet", ["name"], ["said"], llm_config=LLM, prompt_template="Hi {{name}}"),
        part("EndNode", "e", ["said"], ["said"]),
    )
    rows = {"title": "iterated_name", "type": "array", "items": {"type": "string"}}
    document = flow(
        part("StartNode", "start", [rows], [rows]),
        part("MapNode", "each", [rows], [{"title": "collected_said", "type": "array"}],
             subflow=inner, reducers={"said": "append"}),
        part("EndNode", "end", ["collected_said"], ["collected_said"]),
    )  # fmt: skip
    given = {"iterated_name": ["Ann", "Bob"]}
    output, requests = ran(document, given, ["Hello Ann", "Hello Bob"], tmp_path)
    assert output == {"collected_said": ["Hello Ann", "Hello Bob"]}
    assert ["Hi Ann" in requests[0].messages[-1]["content"], len(requests)] == [True, 2]


def test_an_agent_has_its_tools_and_what_it_lacks_is_said(tmp_path):
    made = AgentSpec().read(CLERK, "x")
    (agent,) = [n["config"] for n in made.document["graph"]["nodes"] if n["type"] == "agent"]
    mcp = {"type": "mcp", "url": "https://example.org/mcp", "allow": ["find"]}
    assert agent["tools"] == ["web_search", mcp]
    assert made.counts() == {"taken": 2, "approximated": 1, "left": 1}
    plain = {**CLERK, "tools": [], "toolboxes": []}
    output, requests = ran(plain, {"question": "Hi", "shop": "us"}, ["Hello."], tmp_path)
    assert output == {"answer": "Hello."}
    assert requests[0].messages[0]["content"] == "You serve us."


def test_a_manager_chooses_workers_until_it_is_done(tmp_path):
    replies = [
        '{"chosen": "Coder", "answer": "Code."}',
        "Code!",
        '{"chosen": "FINISH", "answer": "Done."}',
    ]
    output, requests = ran(TEAM, {"question": "Q"}, replies, tmp_path)
    assert output == {"answer": "Done."}
    assert "Coder: Code!" in requests[2].messages[-1]["content"]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"component_type": "OpenAiConfig"}, "is no agent, no team and no flow"),
        ({**LOOPING, "$referenced_components": {}}, "refers to the component start"),
        ({"component_type": "Flow"}, "is damaged"),
    ],
)
def test_what_is_not_whole_is_refused(document, fault):
    with pytest.raises(ImportProblem, match=fault):
        AgentSpec().read(document, "x")
