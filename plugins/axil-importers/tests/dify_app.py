"""An app in the form that Dify exports, with every kind of node that is read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

MODEL = {"provider": "langgenius/openai/openai", "name": "gpt-4o", "completion_params": {}}


def node(id: str, type: str, **data: Any) -> dict[str, Any]:
    """Return a node; ``inside`` is the iteration or the loop that holds it."""
    inside = data.pop("inside", None)
    around = {"parentId": inside} if inside else {}
    return {"id": id, "type": "custom", **around, "data": {"type": type, "title": id, **data}}


def edge(source: str, target: str, handle: str = "source") -> dict[str, Any]:
    """Return an edge."""
    return {"source": source, "target": target, "sourceHandle": handle}


def app(*nodes: dict[str, Any], edges: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return an app: a workflow, or with ``mode`` another one."""
    mode = more.pop("mode", "workflow")
    graph = {"nodes": list(nodes), "edges": edges}
    return {
        "kind": "app",
        "app": {"name": "sample", "mode": mode},
        "workflow": {"graph": graph, **more},
    }


def line(*nodes: dict[str, Any]) -> dict[str, Any]:
    """Return an app whose nodes follow each other."""
    ids = [each["id"] for each in nodes]
    return app(*nodes, edges=[edge(a, b) for a, b in pairwise(ids)])


START = node("begin", "start", variables=[{"variable": "topic", "label": "Topic"}])
LLM = node(
    "write",
    "llm",
    model=MODEL,
    prompt_template=[
        {"role": "system", "text": 'You write {"plain": 1}.'},
        {"role": "user", "text": "About {{#begin.topic#}}."},
    ],
)


def end(*selector: str) -> dict[str, Any]:
    """Return the end, whose output is one variable."""
    outputs = [{"variable": "result", "value_selector": list(selector)}]
    return node("finish", "end", outputs=outputs)


EVERYTHING = line(
    START,
    LLM,
    node(
        "sort",
        "question-classifier",
        model=MODEL,
        query_variable_selector=["begin", "topic"],
        classes=[{"id": "1", "name": "plants"}, {"id": "2", "name": "other"}],
    ),
    node(
        "take",
        "parameter-extractor",
        model=MODEL,
        query=["write", "text"],
        parameters=[{"name": "place", "type": "string", "description": "where", "required": True}],
    ),
    node("look", "knowledge-retrieval", query_variable_selector=["begin", "topic"]),
    node(
        "helper",
        "agent",
        agent_parameters={
            "instruction": {"type": "constant", "value": "Help."},
            "query": {"type": "constant", "value": "{{#begin.topic#}}"},
            "model": {"type": "constant", "value": {"provider": "openai", "model": "gpt-4o"}},
            "tools": {"type": "constant", "value": [{"tool_name": "current_time"}]},
        },
    ),
    node("clock", "tool", tool_name="current_time", provider_id="time", tool_parameters={}),
    node("mail", "tool", tool_name="send_mail", tool_parameters={"to": {"value": "Ann"}}),
    node("page", "http-request", method="get", url="https://example.org/{{#begin.topic#}}"),
    node("post", "http-request", method="post", url="https://example.org"),
    node("file", "document-extractor", variable_selector=["begin", "topic"]),
    node("cut", "list-operator", variable=["page", "body"], limit={"enabled": True, "size": 2}),
    node(
        "first",
        "variable-aggregator",
        variables=[["mail", "text"], ["write", "text"]],
    ),
    node(
        "set",
        "assigner",
        items=[{"variable_selector": ["conversation", "known"], "operation": "set", "value": 1}],
    ),
    node("person", "human-input", form_content="Is {{#write.text#}} right?", inputs=[]),
    node("strange", "quantum-leap"),
    end("first", "output"),
)
"""Every kind that is not about branches, programs or repetition, in a line."""
