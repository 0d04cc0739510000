"""Workflows of other systems, and designs of models, as graphs."""

from __future__ import annotations

import importlib
import json
from itertools import pairwise
from typing import Any

import pytest

from masfactory import Model, NodeTemplate, RootGraph, Unsupported, VibeGraph
from masfactory.aml import AmlError, condition_of
from masfactory.compatibility import (
    ChatDevCompileOptions,
    CompatibilityImportError,
    DifyCompileOptions,
    LangflowCompileOptions,
    load_graph_from_chatdev_yaml,
    load_graph_from_dify_dict,
    load_graph_from_dify_yaml,
    load_graph_from_langflow_json,
)

DIFY = """
app: {name: a demo, mode: workflow}
workflow:
  graph:
    nodes:
      - {id: "1", data: {type: start, variables: [{variable: query}]}}
      - id: "2"
        data:
          type: llm
          model: {name: small}
          prompt_template: [{role: system, text: Be brief.}, {role: user, text: "Q {{#1.query#}}"}]
      - id: "3"
        data:
          type: if-else
          cases:
            - case_id: long
              logical_operator: and
              conditions:
                - {variable_selector: ["2", text], comparison_operator: contains, value: x}
      - id: "4"
        data:
          type: template-transform
          template: "<{{ said }}>"
          variables: [{variable: said, value_selector: ["2", text]}]
      - {id: "5", data: {type: end, outputs: [{variable: result, value_selector: ["4", output]}]}}
      - {id: "6", data: {type: end, outputs: [{variable: result, value_selector: ["1", query]}]}}
    edges:
      - {source: "1", target: "2"}
      - {source: "2", target: "3"}
      - {source: "3", target: "4", sourceHandle: long}
      - {source: "4", target: "5"}
      - {source: "3", target: "6", sourceHandle: "false"}
"""


@pytest.mark.parametrize(("said", "result"), [("fox", "<fox>"), ("dog", "hello")])
def test_a_workflow_of_dify_asks_branches_and_fills_in(said, result):
    options = DifyCompileOptions(use_stub_llm=True, llm_stub_text=said)
    graph = load_graph_from_dify_yaml(DIFY, options=options)
    graph.build()
    assert graph.invoke({"query": "hello"})[0] == {"result": result}


def test_a_model_of_dify_is_asked_what_the_file_says():
    asked: list[Any] = []

    class Heard(Model):
        def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
            asked.append([message["content"] for message in messages])
            return {"type": "content", "content": "x"}

    graph = load_graph_from_dify_yaml(
        DIFY, options=DifyCompileOptions(model_factory=lambda reported: Heard(reported["name"]))
    )
    graph.build()
    graph.invoke({"query": "hello"})
    assert [each[0] for each in asked] == ["Be brief."]
    assert asked[0][1].strip() == "Q hello"


def dify(kind: str, **data: Any) -> dict[str, Any]:
    nodes = [
        {"id": "s", "data": {"type": "start", "variables": [{"variable": "q"}]}},
        {"id": "n", "data": {"type": kind, **data}},
        {"id": "e", "data": {"type": "answer", "answer": "{{#n.result#}}!"}},
    ]
    edges = [{"source": "s", "target": "n"}, {"source": "n", "target": "e"}]
    return {"workflow": {"graph": {"nodes": nodes, "edges": edges}}}


def test_tools_requests_and_knowledge_of_dify_are_functions_of_yours():
    cases = (
        (
            "tool",
            {"tool_executor": lambda node, given: {"result": given["text"]}},
            {"tool_parameters": {"text": {"type": "mixed", "value": "{{#s.q#}}"}}},
            None,
        ),
        (
            "http-request",
            {"http_client": lambda request: {"result": request["url"]}},
            {"url": "https://example.org/{{#s.q#}}"},
            "https://example.org/cat!",
        ),
        (
            "knowledge-retrieval",
            {"knowledge_retriever": lambda node, query: query.upper()},
            {"query_variable_selector": ["s", "q"]},
            "CAT!",
        ),
    )
    for kind, options, data, expected in cases:
        graph = load_graph_from_dify_dict(dify(kind, **data), options=DifyCompileOptions(**options))
        graph.build()
        answer = graph.invoke({"q": "cat"})[0]["answer"]
        assert answer == expected or (expected is None and '"value": "cat"' in answer)


def test_a_node_that_runs_code_is_not_imported():
    with pytest.raises(Unsupported, match=r'of the kind "code" \("n"\).*as a CustomNode of axil'):
        load_graph_from_dify_dict(dify("code", code="import os"))
    with pytest.raises(CompatibilityImportError, match=r"no workflow\.graph\.nodes"):
        load_graph_from_dify_dict({})
    with pytest.raises(CompatibilityImportError, match="found no file"):
        load_graph_from_dify_yaml("absent.yml")


@pytest.mark.parametrize("data", [b"\xff\xfe{", b"[" * 100_000, b'{"a":' * 100_000])
def test_a_damaged_file_is_not_imported(tmp_path, data):
    file = tmp_path / "flow.yml"
    file.write_bytes(data)
    with pytest.raises(CompatibilityImportError, match="it cannot be read"):
        load_graph_from_dify_yaml(str(file))


def flow(*kinds: str) -> dict[str, Any]:
    template = {"template": {"value": "Say {q}"}}
    nodes = [
        {"id": f"{kind}-1", "data": {"type": kind, "node": {"template": template}}}
        for kind in kinds
    ]
    fields = {"Prompt": "q"}
    edges = [
        {
            "source": f"{a}-1",
            "target": f"{b}-1",
            "targetHandle": json.dumps({"fieldName": fields.get(b, "input_value")}).replace(
                '"', "œ"
            ),
        }
        for a, b in pairwise(kinds)
    ]
    return {"data": {"nodes": nodes, "edges": edges}}


def test_a_flow_of_langflow_goes_from_its_input_to_its_output(tmp_path):
    asked: list[Any] = []

    class Heard(Model):
        def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
            asked.append(messages[-1]["content"].strip())
            return {"type": "content", "content": "said"}

    file = tmp_path / "flow.json"
    file.write_text(json.dumps(flow("ChatInput", "Prompt", "OpenAIModel", "ChatOutput")))
    options = LangflowCompileOptions(model_factory=lambda reported: Heard("m"))
    graph = load_graph_from_langflow_json(file, options=options)
    graph.build()
    assert graph.invoke({"input": "hello"})[0] == {"output": "said"}
    assert asked == ["Say hello"]


def test_what_langflow_has_and_this_not_is_named():
    with pytest.raises(Unsupported, match='of the kind "Python"'):
        load_graph_from_langflow_json(json.dumps(flow("ChatInput", "Python", "ChatOutput")))


def test_a_file_of_chatdev_runs_with_a_fixed_text(tmp_path):
    file = tmp_path / "flow.yaml"
    file.write_text(
        "version: 0.4.0\n"
        "graph:\n"
        "  id: small\n"
        "  start: [writer]\n"
        "  end: [writer]\n"
        "  nodes:\n"
        "    - id: writer\n"
        "      type: agent\n"
        "      config: {provider: openai, name: m, api_key: '${API_KEY}', role: Write.}\n"
        "  edges: []\n"
    )
    graph = load_graph_from_chatdev_yaml(file, options=ChatDevCompileOptions(llm_stub_text="said"))
    graph.build()
    assert graph.invoke({"task": "a plan"})[0] == {"message": "said"}
    with pytest.raises(CompatibilityImportError, match="found no file"):
        load_graph_from_chatdev_yaml(tmp_path / "absent.yaml")


# --------------------------------------------------------------------------------------------- AML

AML = """<aml version="0.2" kind="graph" id="w"><definitions>
<agents><agent id="planner"><instructions>You plan.</instructions>
<prompt_template>T: {topic}</prompt_template></agent></agents>
<graphs><graph id="root" kind="root"><nodes>
<agent id="plan" ref="#planner"/><logic_switch id="way"/><custom_node id="ok"/>
<loop id="again" max_iterations="3"><terminate if="'x' in message['plan']"/>
<nodes><agent id="mend" ref="#planner"/></nodes><edges>
<edge from="controller" to="mend"><keys><field name="plan"/><field name="topic"/></keys></edge>
<edge from="mend" to="controller"><keys><field name="plan"/></keys></edge></edges></loop>
</nodes><edges>
<edge from="entry" to="plan"><keys><field name="topic" description="what about"/></keys></edge>
<edge from="plan" to="way"><keys><field name="plan"/><field name="topic"/></keys></edge>
<edge from="way" to="ok" if="len(message['plan']) > 5"><keys><field name="plan"/></keys></edge>
<edge from="way" to="again" if="len(message['plan']) &lt;= 5">
<keys><field name="plan"/><field name="topic"/></keys></edge>
<edge from="ok" to="exit"><keys><field name="plan"/></keys></edge>
<edge from="again" to="exit"><keys><field name="plan"/></keys></edge>
</edges></graph></graphs></definitions></aml>"""


class Says(Model):
    """Says one text after the other."""

    def __init__(self, *texts: str) -> None:
        super().__init__("says")
        self.texts, self.asked = list(texts), []

    def invoke(self, messages: Any, tools: Any, settings: Any = None, **more: Any) -> Any:
        self.asked.append(messages[-1]["content"])
        return {"type": "content", "content": self.texts.pop(0)}


def vibe(builder: Model, *texts: str, **settings: Any) -> RootGraph:
    template = NodeTemplate(
        VibeGraph,
        invoke_model=Says(*texts),
        build_model=builder,
        build_instructions="Plan it.",
        **settings,
    )
    return RootGraph(
        "g",
        nodes=[("v", template)],
        edges=[("entry", "v", {"topic": ""}), ("v", "exit", {"plan": ""})],
    )


@pytest.mark.parametrize("texts", [["a long plan"], ["abc", "a", "x!"]])
def test_a_model_designs_a_graph_once_and_a_file_keeps_it(texts, tmp_path):
    cache, builder = tmp_path / "kept" / "w.aml", Says(f"Here:\n{AML}\nDone.")
    for _ in range(2):
        graph = vibe(builder, *texts, build_cache_path=cache)
        graph.build()
        assert graph.invoke({"topic": "T"})[0] == {"plan": texts[-1]}
    assert len(builder.asked) == 1
    assert cache.read_text("utf-8") == AML


def test_a_design_that_cannot_be_used_is_shown_its_fault():
    builder = Says("no XML", AML)
    vibe(builder, "a long plan").build()
    assert "could not be used" in builder.asked[1]
    with pytest.raises(AmlError, match=r"none of 3 documents could be used"):
        vibe(Says("no", "no", "no")).build()


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ('<custom_node id="ok" forward="python:os:getcwd"/>', "code is not imported"),
        ('<robot id="ok"/>', "found the kind robot"),
        ('<agent id="ok" ref="#nobody"/>', "there is no agent 'nobody'"),
    ],
)
def test_what_is_unknown_in_a_document_is_named(wrong, reported, tmp_path):
    cache = tmp_path / "w.aml"
    cache.write_text(AML.replace('<custom_node id="ok"/>', wrong))
    with pytest.raises(AmlError, match=reported):
        vibe(Says(""), build_cache_path=cache).build()


def test_a_document_declares_no_entities(tmp_path):
    cache = tmp_path / "w.aml"
    cache.write_text(f'<!DOCTYPE aml [<!ENTITY a "b">]>{AML}')
    with pytest.raises(AmlError, match="no DOCTYPE"):
        vibe(Says(""), build_cache_path=cache).build()


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("message['n'] > 1 and not message['n'] == 3", True),
        ("'x' in str(input.get('t', 'xyz')).lower()", True),
        ("message['n'] + 1 in [1, 2] or attributes['done']", False),
        ("0 < message['n'] < 2", False),
        ("(1 if attributes['done'] else 2) == 2", True),
    ],
)
def test_a_condition_compares(text, holds):
    assert condition_of(text)({"n": 2}, {"done": False}) is holds


@pytest.mark.parametrize(
    "text",
    [
        "().__class__",
        "__import__('os')",
        "message.__class__",
        "[x for x in message]",
        "lambda: 1",
        "message['a'].format(1)",
        "open('f')",
        "1 +",
    ],
)
def test_a_condition_is_never_code(text):
    with pytest.raises(ValueError, match=r"condition: found"):
        condition_of(text)


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("masfactory", "AdjacencyListGraph", "AdjacencyMatrixGraph"),
        ("masfactory.compatibility", "blueprint_to_dify_graph", "load_graph_from_dify_yaml"),
        ("masfactory.adapters.context", "ContextComposer", "ContextPolicy"),
    ],
)
def test_a_name_that_axil_has_in_another_way_says_so(module, name, instead):
    found = importlib.import_module(module)
    with pytest.raises(Unsupported, match=instead):
        getattr(found, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(found, "nothing")  # noqa: B009  # it is asked for, not used
