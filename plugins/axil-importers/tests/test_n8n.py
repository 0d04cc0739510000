"""n8n's workflows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from axil_agent import Scripted
from axil_files import load
from axil_importers.n8n.importer import N8n

BASE, AI = "n8n-nodes-base.", "@n8n/n8n-nodes-langchain."


def node(name: str, type: str, version: float = 1, **parameters: Any) -> dict[str, Any]:
    """Return a node."""
    kind = type if "." in type else BASE + type
    return {
        "name": name, "type": kind, "typeVersion": version, "parameters": parameters,
        "position": [0, 0],
    }  # fmt: skip


def flow(*nodes: dict[str, Any], **connections: Any) -> dict[str, Any]:
    """Return a workflow; a connection is a list of the targets of each output, or of helpers."""
    made: dict[str, Any] = {}
    for source, outputs in connections.items():
        kind = "main"
        if isinstance(outputs, dict):
            ((kind, outputs),) = outputs.items()
        ends = [[{"node": n, "type": kind, "index": 0} for n in targets] for targets in outputs]
        made[source] = {kind: ends}
    return {"name": "sample", "nodes": list(nodes), "connections": made}


CHAT = flow(
    node("Ask", AI + "chatTrigger"),
    node("Agent", AI + "agent", options={"systemMessage": "=Be {brief} to {{ $json.chatInput }}"}),
    node("Model", AI + "lmChatOpenAi", model={"__rl": True, "value": "gpt-4o", "mode": "list"}),
    node("Memory", AI + "memoryBufferWindow"),
    node("Note", "stickyNote", content="A note."),
    Ask=[["Agent"]],
    Model={"ai_languageModel": [["Agent"]]},
    Memory={"ai_memory": [["Agent"]]},
)


def fields(**given: Any) -> dict[str, Any]:
    """Return the parameters of a node that sets fields."""
    pairs = [{"id": k, "name": k, "value": v, "type": "string"} for k, v in given.items()]
    return {"assignments": {"assignments": pairs}}


def condition(left: Any, operation: str, right: Any = "") -> dict[str, Any]:
    """Return the parameters of a node that asks one condition."""
    operator = {"type": "string", "operation": operation}
    one = {"leftValue": left, "rightValue": right, "operator": operator}
    return {"conditions": {"combinator": "and", "conditions": [one]}}


EVERYTHING = flow(
    node("Go", "manualTrigger"),
    node("Edit", "set", 3, **fields(a="x", b="={{ $json.started }}")),
    node("If", "if", 2, **condition("={{ $json.a }}", "equals", "x")),
    node("Switch", "switch", 3, rules={"values": [condition("={{ $json.a }}", "contains", "x")]}),
    node("Wait", "wait"),
    node("Code", "code", 2, jsCode="return $input.all();"),
    node("Get", "httpRequest", 4, url="=https://example.org/{{ $('Edit').item.json.a }}"),
    node("Send", "httpRequest", 4, method="POST", url="https://example.org"),
    node("Mail", "gmail", sendTo="={{ $json.a }}"),
    node("Merge", "merge", 3, mode="combine"),
    node("Split", "splitOut", fieldToSplitOut="rows"),
    node("Loop", "splitInBatches", 3),
    node("Sort", "textClassifier", categories={"categories": [{"category": "good"}]}),
    Go=[["Edit"]],
    Edit=[["If"]],
    If=[["Switch"], ["Wait"]],
    Switch=[["Code"]],
    Wait=[["Get"]],
    Code=[["Merge"]],
    Get=[["Merge"]],
    Merge=[["Split"]],
    Split=[["Loop"]],
    Loop=[["Send"], ["Mail"]],
    Mail=[["Loop"]],
)


@pytest.fixture
def ran(tmp_path):
    """Return what a workflow gives; it is written, and read again."""

    def run(document: Any, given: dict[str, Any], replies: list[str] | None = None) -> Any:
        file = tmp_path / "flow.yaml"
        file.write_text(N8n().read(document, "sample").text(), encoding="utf-8")
        script = Scripted(replies or ["OK"])
        with script.everywhere():
            output, _ = load(file).invoke(given)
        return output, script.requests

    return run


def test_an_agent_has_its_model_and_its_prompts(ran):
    output, requests = ran(CHAT, {"chatInput": "Ann"}, ["Hello."])
    assert output == {"Agent": "Hello."}
    assert requests[0].messages[0]["content"] == "Be {brief} to Ann"
    assert "Message:\nAnn\n" in requests[0].messages[-1]["content"]


@pytest.mark.parametrize(("word", "said"), [("yes", "left"), ("no", "right")])
def test_branches_are_taken_and_merged(ran, word, said):
    document = flow(
        node("Hook", "webhook"),
        node("If", "if", 2, **condition("={{ $json.word }}", "equals", "yes")),
        node("L", "set", 3, **fields(side="left")),
        node("R", "set", 3, **fields(side="right")),
        node("M", "merge", 3, mode="combine"),
        node("Out", "set", 3, **fields(text="={{ $json.side }} of {{ $('Hook').item.json.word }}")),
        Hook=[["If"]],
        If=[["L"], ["R"]],
        L=[["M"]],
        R=[["M"]],
        M=[["Out"]],
    )
    output, _ = ran(document, {"input": {"word": word}})
    assert output == {"Out": {"text": f"{said} of {word}"}}


def test_a_loop_takes_one_item_after_another(ran):
    document = flow(
        node("Hook", "webhook"),
        node("Split", "splitOut", fieldToSplitOut="names"),
        node("Loop", "splitInBatches", 3),
        node("Chain", AI + "chainLlm", 1.4, promptType="define", text="=Greet {{ $json.name }}"),
        node("Model", AI + "lmChatOpenAi", model="gpt-4o"),
        node("End", "set", 3, **fields(last="={{ $('Chain').item.json.text }}")),
        Hook=[["Split"]],
        Split=[["Loop"]],
        Loop=[["End"], ["Chain"]],
        Chain=[["Loop"]],
        Model={"ai_languageModel": [["Chain"]]},
    )
    given = {"input": {"names": [{"name": "Ann"}, {"name": "Bob"}]}}
    output, requests = ran(document, given, ["Hi Ann", "Hi Bob"])
    assert output == {"End": {"last": "Hi Bob"}}
    said = [each.messages[-1]["content"] for each in requests]
    assert ["Greet Ann" in said[0], "Greet Bob" in said[1], len(said)] == [True, True, 2]


def test_what_nothing_does_is_asked_of_a_person_and_said():
    made = N8n().read(EVERYTHING, "sample")
    left = {each.kind for each in made.findings if each.status == "left"}
    assert left == {"gmail", "textClassifier"}  # nothing leads to the last
    kinds = {each["id"]: each["type"] for each in made.document["graph"]["nodes"]}
    assert [kinds["Mail"], kinds["Send"]] == ["human_form", "http"]


def test_javascript_in_an_expression_is_never_run_and_always_said():
    edit = node("E", "set", 3, **fields(a="={{ $json.x.split(',').length }}", b="={{ $now }}"))
    made = N8n().read(flow(node("H", "webhook"), edit, H=[["E"]]), "sample")
    said = [each.reason for each in made.losses if each.kind == "set"]
    assert said == [
        "of the JavaScript $json.x.split(',').length only $json.x is taken",
        "JavaScript in an expression is left out: $now",
    ]


def test_a_request_is_sent_with_what_it_had_and_without_its_secret():
    send = node(
        "Send", "httpRequest", 4, method="PATCH", url="=https://example.org/{{ $json.id }}?key=k1",
        sendBody=True, bodyParameters={"parameters": [{"name": "a", "value": "={{ $json.a }}"}]},
        headerParameters={"parameters": [{"name": "X-Api-Key", "value": "sk-1"}]},
        queryParameters={"parameters": [{"name": "n", "value": "{1}"}]},
    )  # fmt: skip
    raw = node(
        "Raw", "httpRequest", 4, method="POST", url="https://example.org", specifyBody="json",
        jsonBody='={"a": "{{ $json.b }}"}',
    )  # fmt: skip
    far = node("Far", "httpRequest", 4, method="POST", url="={{ $json.url }}")
    made = N8n().read(
        flow(node("H", "webhook"), send, raw, far, H=[["Send"]], Send=[["Raw"]], Raw=[["Far"]]), "x"
    )
    nodes = {each["id"]: each for each in made.document["graph"]["nodes"]}
    assert nodes["Send"]["config"] == {
        "method": "PATCH",
        "url": "https://example.org/{H.id}",
        "query": {"n": "{{1}}"},
        "secrets": {"X-Api-Key": {"env": "SEND_X_API_KEY"}},
        "body": {"a": "{H.a}"},
        "send": "json",
        "field": "Send",
    }
    assert nodes["Raw"]["config"]["body"] == '{{"a": "{Send.b}"}}'
    assert nodes["Raw"]["config"]["send"] == "text"
    assert nodes["Far"]["type"] == "human_form"
    assert not {"sk-1", "k1"} & set(re.findall(r"[\w-]+", made.text()))


def test_a_workflow_whose_parts_lead_nowhere_is_a_workflow_file_all_the_same(tmp_path):
    made = N8n().read(flow(node("Cron", "cron"), node("Alert", "if")), "sample")
    assert made.counts() == {"taken": 0, "approximated": 0, "left": 2}
    file = tmp_path / "flow.yaml"
    file.write_text(made.text(), encoding="utf-8")
    assert load(file).invoke("hello").status == "done"
