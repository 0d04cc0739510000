"""Langflow's flows."""

from __future__ import annotations

from typing import Any

import pytest

from axil_agent import Scripted
from axil_files import load
from axil_importers.langflow import Langflow


def node(id: str, type: str, title: str = "", **settings: Any) -> dict[str, Any]:
    """Return a component."""
    template = {key: {"value": value} for key, value in settings.items()}
    inner = {"display_name": title or id, "template": template}
    return {"id": id, "type": "genericNode", "data": {"id": id, "type": type, "node": inner}}


def edge(source: str, output: str, target: str, input: str) -> dict[str, Any]:
    """Return an edge from an output to an input."""
    handles = {
        "sourceHandle": {"id": source, "name": output},
        "targetHandle": {"id": target, "fieldName": input},
    }
    return {"source": source, "target": target, "data": handles}


def flow(*nodes: dict[str, Any], edges: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a flow."""
    return {"name": "sample", "data": {"nodes": list(nodes), "edges": edges, "viewport": {}}}


NOTE = {"id": "n", "type": "noteNode", "data": {"type": "note", "node": {"description": "A note."}}}
CHAT = flow(
    NOTE,
    node("in", "ChatInput", "Question"),
    node("prompt", "Prompt", "Rules", template="Be {mood}. {{x}} {question}", mood="kind"),
    node("agent", "Agent", "Clerk", system_prompt="You {help}.", model_name="gpt-4o",
         agent_llm="OpenAI", add_current_date_tool=True, max_iterations=3),
    node("search", "UnifiedWebSearch"),
    node("sum", "CalculatorComponent"),
    node("out", "ChatOutput", "Reply"),
    edges=[
        edge("in", "message", "prompt", "question"),
        edge("prompt", "prompt", "agent", "input_value"),
        edge("search", "component_as_tool", "agent", "tools"),
        edge("sum", "component_as_tool", "agent", "tools"),
        edge("agent", "response", "out", "input_value"),
    ],
)  # fmt: skip
PARTS = flow(
    node("in", "ChatInput"),
    node("find", "Knowledge", "Find"),
    node("parse", "ParserComponent", "Lines", pattern="<{text}>"),
    node("send", "APIRequest", "Send", method="POST", url_input="https://example.org/x",
         headers=[{"key": "Authorization", "value": "Bearer sk-1"}],
         body=[{"key": "a", "value": "{1}"}]),
    node("save", "SaveToFile", "Save", file_name="note"),
    node("rows", "SQLComponent", "Rows"),
    node("alone", "Agent", "Alone"),
    edges=[
        edge("in", "message", "find", "search_query"),
        edge("find", "retrieve_data", "parse", "input_data"),
        edge("parse", "parsed_text", "send", "query"),
        edge("send", "data", "save", "input"),
        edge("save", "message", "rows", "query"),
    ],
)  # fmt: skip


def ran(document: Any, given: Any, replies: list[str], tmp_path: Any) -> tuple[Any, Any]:
    """Return the output of the imported workflow, and what the model was asked."""
    out = tmp_path / "flow.yaml"
    out.write_text(Langflow().read(document, "x").text(), encoding="utf-8")
    script = Scripted(replies)
    with script.everywhere():
        output, _ = load(out, allow={"network"}).invoke(given)
    return output, script.requests


def test_an_agent_has_its_prompts_its_tools_and_what_it_lacks_is_said(tmp_path):
    output, requests = ran(CHAT, {"chat_input": "Who?"}, ["Ann."], tmp_path)
    assert output == {"Reply": "Ann."}
    assert requests[0].messages[0]["content"] == "You {help}."
    assert "Be kind. {x} Who?" in requests[0].messages[-1]["content"]
    made = Langflow().read(CHAT, "x")
    assert made.document["graph"]["description"] == "A note."
    assert [(each.kind, each.status) for each in made.losses] == [("CalculatorComponent", "left")]
    (agent,) = [each["config"] for each in made.document["graph"]["nodes"] if each["id"] == "Clerk"]
    assert agent["tools"] == ["web_search", "current_time"]
    assert agent["model"] == {"type": "openai", "name": "gpt-4o"}


def served(**config: Any) -> Any:
    """Return what becomes of an agent with an MCP server of this config."""
    document = flow(
        node("in", "ChatInput"),
        node("agent", "Agent", "Clerk", model_name="gpt-4o", agent_llm="OpenAI"),
        node("mcp", "MCPTools", mcp_server={"name": "mine", "config": config}, tool="find"),
        edges=[
            edge("in", "message", "agent", "input_value"),
            edge("mcp", "component_as_tool", "agent", "tools"),
        ],
    )
    return Langflow().read(document, "x")


def test_an_mcp_server_is_taken_by_its_address_and_without_its_login():
    made = served(url="https://example.org/mcp", headers={"x-api-key": "sk-1"})
    (agent,) = [each["config"] for each in made.document["graph"]["nodes"] if each["id"] == "Clerk"]
    assert agent["tools"] == [{"type": "mcp", "url": "https://example.org/mcp", "allow": ["find"]}]
    assert "sk-1" not in made.text()
    assert [each.reason for each in made.losses] == ["its headers and its login are not taken"]


def test_an_mcp_server_that_is_a_program_is_left_and_its_arguments_are_not_taken():
    made = served(command="uvx", args=["proxy", "sk-1"])
    assert "sk-1" not in made.text()
    [loss] = made.losses
    assert (loss.status, loss.reason) == ("left", "the MCP server is started by a program")


def test_each_component_is_taken_approximated_or_left():
    made = Langflow().read(PARTS, "x")
    kinds = {each["id"]: each["type"] for each in made.document["graph"]["nodes"]}
    assert kinds["Find"] == "retrieve"
    assert (kinds["Send"], kinds["Save"], kinds["Rows"]) == ("http", "call_tool", "human_form")
    said = {(each.kind, each.status) for each in made.losses}
    assert said == {
        ("Knowledge", "approximated"),
        ("ParserComponent", "approximated"),
        ("APIRequest", "approximated"),
        ("SaveToFile", "approximated"),
        ("SQLComponent", "left"),
        ("Agent", "left"),
    }
    assert "sk-1" not in made.text()
    assert made.counts() == {"taken": 1, "approximated": 4, "left": 2}


@pytest.mark.parametrize(("word", "said"), [("yes", "Good."), ("no", "Bad.")])
def test_a_condition_chooses_the_way(tmp_path, word, said):
    document = flow(
        node("in", "ChatInput"),
        node("if", "ConditionalRouter", "If", operator="equals", match_text="yes"),
        node("a", "Prompt", "A", template="Good."),
        node("b", "Prompt", "B", template="Bad."),
        edges=[
            edge("in", "message", "if", "input_text"),
            edge("if", "true_result", "a", "trigger"),
            edge("if", "false_result", "b", "trigger"),
        ],
    )
    output, _ = ran(document, {"chat_input": word}, [], tmp_path)
    assert list(output.values()) == [said]
