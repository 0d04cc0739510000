"""Flowise's flows: agentflows, and chatflows."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from axil_agent import Scripted
from axil_files import load
from axil_importers.flowise.importer import Flowise

BAD, GOOD = '{"Judge": "bad"}', '{"Judge": "good"}'
MODEL = {"llmModel": "chatOpenAI", "llmModelConfig": {"modelName": "gpt-4o"}}


def node(id: str, name: str, label: str = "", **inputs: Any) -> dict[str, Any]:
    """Return a node; ``parent`` is the iteration that holds it, ``category`` what it is."""
    more = {"category": inputs.pop("category")} if "category" in inputs else {}
    around = {"parentNode": inputs.pop("parent")} if "parent" in inputs else {}
    return {
        "id": id,
        **around,
        "data": {"name": name, "label": label or id, **more, "inputs": inputs},
    }


def edge(source: str, target: str, output: str = "x") -> dict[str, Any]:
    """Return an edge from an output of a node."""
    return {"source": source, "sourceHandle": f"{source}-output-{output}", "target": target}


def flow(*nodes: dict[str, Any], edges: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a flow."""
    return {"nodes": list(nodes), "edges": edges}


def says(role: str, text: str) -> dict[str, str]:
    """Return a message of a prompt."""
    return {"role": role, "content": text}


def ran(document: Any, given: Any, replies: list[str], tmp_path: Any) -> tuple[Any, Any]:
    """Return the output of the imported workflow, and what the model was asked."""
    out = tmp_path / "flow.yaml"
    out.write_text(Flowise().read(document, "x").text(), encoding="utf-8")
    script = Scripted(replies)
    with script.everywhere():
        allowed = {"network", "code"}
        output, _ = load(out, allow=allowed).invoke(given, allow={"code"})
    return output, script.requests


LOOPING = flow(
    node("note", "stickyNoteAgentflow", note="A note."),
    node("start_0", "startAgentflow", startState=[{"key": "draft", "value": "<p>none</p>"}]),
    node("llm_0", "llmAgentflow", "Write", **MODEL,
         llmMessages=[says("system", "<p>You {x} <b>write</b>.</p>"),
                      says("user", "<p>{{ question }}; {{ $flow.state.draft }}</p>")],
         llmUpdateState=[{"key": "draft", "value": "<p>{{ output }}</p>"}]),
    node("judge_0", "conditionAgentAgentflow", "Judge", conditionAgentModel="chatOpenAI",
         conditionAgentInput="<p>{{ llm_0 }}</p>", conditionAgentInstructions="Judge.",
         conditionAgentModelConfig={"modelName": "gpt-4o"},
         conditionAgentScenarios=[{"scenario": "bad"}, {"scenario": "good"}]),
    node("loop_0", "loopAgentflow", "Back", loopBackToNode="llm_0-Write", maxLoopCount="1"),
    node("reply_0", "directReplyAgentflow", "Reply",
         directReplyMessage="<p>{{ $flow.state.draft }}!</p>"),
    edges=[edge("start_0", "llm_0"), edge("llm_0", "judge_0"),
           edge("judge_0", "loop_0", "0"), edge("judge_0", "reply_0", "1")],
)  # fmt: skip
PARTS = flow(
    node("start_0", "startAgentflow", startInputType="formInput",
         formInputTypes=[{"name": "topic", "label": "Topic"}]),
    node("if_0", "conditionAgentflow", "If", conditions=[
        {"type": "string", "value1": "{{ $form.topic }}", "operation": "equal", "value2": "a"}]),
    node("find_0", "retrieverAgentflow", "Find", retrieverQuery="{{ $form.topic }}"),
    node("code_0", "customFunctionAgentflow", "Code",
         customFunctionJavascriptFunction="return $topic.length;",
         customFunctionInputVariables=[
             {"variableName": "topic", "variableValue": "<p>{{ $form.topic }}</p>"}]),
    node("send_0", "httpAgentflow", "Send", method="POST", url="https://example.org/{{ code_0 }}",
         headers=[{"key": "X-Api-Key", "value": "sk-1"}], bodyType="json",
         body='{"a": "{{ code_0 }}"}'),
    node("ask_0", "humanInputAgentflow", "Ask", humanInputDescription="<p>Go on?</p>"),
    node("mail_0", "toolAgentflow", "Mail", toolAgentflowSelectedTool="gmail",
         toolInputArgs=[{"inputArgName": "to", "inputArgValue": "{{ $form.topic }}"}]),
    edges=[edge("start_0", "if_0"), edge("if_0", "find_0", "0"), edge("if_0", "code_0", "1"),
           edge("code_0", "send_0"), edge("send_0", "ask_0"), edge("ask_0", "mail_0", "0")],
)  # fmt: skip
CHAT = flow(
    node("chain_0", "llmChain", "Chain", category="Chains", chainName="First"),
    node("chain_1", "llmChain", "Chain", category="Chains", chainName="Last"),
    node("prompt_0", "promptTemplate", category="Prompts", template="Do {objective}.",
         promptValues='{"objective": "{{question}}"}'),
    node("prompt_1", "promptTemplate", category="Prompts", template="After {result}: {x}",
         promptValues='{"result": "{{chain_0.data.instance}}"}'),
    node("model_0", "chatOpenAI", category="Chat Models", modelName="gpt-4o"),
    node("tool_0", "calculator", category="Tools"),
    node("store_0", "faiss", category="Vector Stores"),
    edges=[edge("prompt_0", "chain_0"), edge("model_0", "chain_0"), edge("chain_0", "prompt_1"),
           edge("prompt_1", "chain_1"), edge("model_0", "chain_1"), edge("tool_0", "chain_1"),
           edge("store_0", "chain_1")],
)  # fmt: skip
TEAM = flow(
    node("boss", "supervisor", "Boss", category="Multi Agents", supervisorPrompt="{team_members}"),
    node("w1", "worker", category="Multi Agents", workerName="Coder", workerPrompt="Code."),
    node("model_0", "chatOpenAI", category="Chat Models", modelName="gpt-4o"),
    edges=[edge("boss", "w1"), edge("model_0", "boss")],
)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        (["One", BAD, "Two", GOOD], "Two!"),
        (["One", GOOD], "One!"),
    ],
)
def test_a_loop_goes_back_until_it_is_good(tmp_path, replies, expected):
    output, requests = ran(LOOPING, {"question": "Q"}, replies, tmp_path)
    assert output == {"Reply": expected}
    assert requests[0].messages[0]["content"] == "You {x} write."
    assert "Q; none" in requests[0].messages[-1]["content"]
    assert "One" in requests[1].messages[-1]["content"]


def test_a_loop_ends_after_its_rounds(tmp_path):
    output, requests = ran(LOOPING, {"question": "Q"}, ["1", BAD, "2", BAD], tmp_path)
    assert (output, len(requests)) == ({}, 4)


def test_an_iteration_runs_once_per_item(tmp_path):
    document = flow(
        node("start_0", "startAgentflow", startInputType="formInput",
             formInputTypes=[{"name": "rows"}, {"name": "tone"}]),
        node("each_0", "iterationAgentflow", "Each", iterationInput="<p>{{ $form.rows }}</p>"),
        node("llm_0", "llmAgentflow", "Greet", parent="each_0", **MODEL,
             llmMessages=[says("user", "Greet {{ $iteration.name }}, {{ $form.tone }}")]),
        edges=[edge("start_0", "each_0")],
    )  # fmt: skip
    given = {"rows": [{"name": "Ann"}, {"name": "Bob"}], "tone": "kind"}
    output, requests = ran(document, given, ["Hi Ann", "Hi Bob"], tmp_path)
    assert output == {"Each": ["Hi Ann", "Hi Bob"]}
    said = [each.messages[-1]["content"] for each in requests]
    assert ["Greet Ann, kind" in said[0], "Greet Bob, kind" in said[1]] == [True, True]


def test_each_node_is_taken_approximated_or_left():
    made = Flowise().read(PARTS, "x")
    kinds = {each["id"]: each["type"] for each in made.document["graph"]["nodes"]}
    assert [kinds[each] for each in ("If", "Find", "Code", "Send", "Ask", "Mail")] == [
        "passthrough", "retrieve", "script", "http", "human_form", "human_form",
    ]  # fmt: skip
    said = {(each.kind, each.status) for each in made.losses}
    assert said == {
        ("retriever", "approximated"),
        ("customFunction", "approximated"),
        ("http", "approximated"),
        ("tool", "left"),
    }
    assert "sk-1" not in made.text()


@pytest.mark.skipif(shutil.which("node") is None, reason="it runs JavaScript")
def test_a_function_runs_with_its_variables(tmp_path):
    document = flow(*PARTS["nodes"][:1], PARTS["nodes"][3], edges=[edge("start_0", "code_0")])
    output, _ = ran(document, {"topic": "four"}, [], tmp_path)
    assert output == {"Code": 4}


def test_chains_follow_each_other_with_the_parts_plugged_into_them(tmp_path):
    output, requests = ran(CHAT, {"question": "jobs"}, ["One", "Two"], tmp_path)
    assert output == {"Last": "Two"}
    said = [each.messages[-1]["content"] for each in requests]
    assert ["Do jobs." in said[0], "After One: jobs" in said[1]] == [True, True]
    losses = {(each.kind, each.status) for each in Flowise().read(CHAT, "x").losses}
    assert losses == {
        ("calculator", "left"),
        ("faiss", "approximated"),
        ("promptTemplate", "approximated"),
    }


def test_a_supervisor_chooses_workers_until_it_is_done(tmp_path):
    output, requests = ran(
        TEAM, {"question": "Q"}, ['{"Boss": "Coder"}', "Code!", '{"Boss": "FINISH"}'], tmp_path
    )
    assert list(output.values()) == ["Code!"]
    assert "Coder: Code!" in requests[2].messages[-1]["content"]
    assert requests[0].messages[0]["content"] == "Coder"
