"""Dify's apps."""

from __future__ import annotations

from typing import Any

import pytest

from axil_agent import Scripted
from axil_files import load
from axil_importers import Imported, import_text
from axil_importers.dify.importer import Dify

from .dify_app import EVERYTHING, LLM, MODEL, START, app, edge, end, line, node


def imported(document: Any) -> Imported:
    """Return the import of an app."""
    return Dify().read(document, "sample")


@pytest.fixture
def ran(tmp_path):
    """Return what an app gives; it is checked, written, and read again."""

    def run(document: Any, given: dict[str, Any], replies: list[str] | None = None) -> Any:
        file = tmp_path / "flow.yaml"
        file.write_text(imported(document).text(), encoding="utf-8")
        script = Scripted(replies or ["OK"])
        with script.everywhere():
            output, _ = load(file, allow={"code"}).invoke(given, allow={"code"})
        return output, script.requests

    return run


def test_an_app_of_prompts_runs_with_a_scripted_model(ran):
    output, requests = ran(line(START, LLM, end("write", "text")), {"topic": "axils"}, ["A leaf."])
    assert output == {"result": "A leaf."}
    system, user = requests[0].messages
    assert system["content"] == 'You write {"plain": 1}.'
    assert "About axils." in user["content"]


CODE = 'def main(a):\n    print("noise")\n    return {"n": len(a), "same": "${HOME} {a}"}'


def of(name: str, *selector: str) -> dict[str, Any]:
    """Return a variable as nodes name it."""
    return {"variable": name, "value_selector": list(selector)}


PROGRAM = node(
    "count",
    "code",
    code=CODE,
    code_language="python3",
    variables=[of("a", "begin", "topic")],
    outputs={"n": {"type": "number"}, "same": {"type": "string"}},
)
TEMPLATE = node(
    "letter",
    "template-transform",
    variables=[of("n", "count", "n"), of("s", "count", "same")],
    template="{{ n }} of {{s}} {x}",
)


def test_programs_and_templates_keep_braces_and_dollars(ran):
    output, _ = ran(line(START, PROGRAM, TEMPLATE, end("letter", "output")), {"topic": "axils"})
    assert output == {"result": "5 of ${HOME} {a} {x}"}


def asks(case: str, operator: str, value: str) -> dict[str, Any]:
    """Return a case of an if-else."""
    condition = {
        "variable_selector": ["begin", "topic"],
        "comparison_operator": operator,
        "value": value,
    }
    return {"case_id": case, "logical_operator": "and", "conditions": [condition]}


@pytest.mark.parametrize(
    ("topic", "taken"),
    [("plants", "one"), ("a plan", "two"), ("stones", "three"), ('say "x"', "four")],
)
def test_the_first_case_that_holds_is_taken_and_joined(ran, topic, taken):
    cases = [
        asks("c1", "is", "plants"),
        asks("c2", "contains", "plan"),
        asks("c4", "is", 'say "x"'),
    ]
    ways = {"c1": "one", "c2": "two", "false": "three", "c4": "four"}
    texts = [node(way, "template-transform", template=way) for way in ways.values()]
    document = app(
        START,
        node("choose", "if-else", cases=cases),
        *texts,
        node("join", "variable-aggregator", variables=[[way, "output"] for way in ways.values()]),
        end("join", "output"),
        edges=[
            edge("begin", "choose"),
            *(edge("choose", way, handle) for handle, way in ways.items()),
            *(edge(way, "join") for way in ways.values()),
            edge("join", "finish"),
        ],
    )
    assert ran(document, {"topic": topic})[0] == {"result": taken}


def test_an_iteration_runs_its_nodes_for_each_item(ran):
    document = app(
        node("begin", "start", variables=[{"variable": "names"}, {"variable": "word"}]),
        node(
            "each",
            "iteration",
            iterator_selector=["begin", "names"],
            output_selector=["greet", "output"],
        ),
        node("inner", "iteration-start", inside="each"),
        node(
            "greet",
            "template-transform",
            inside="each",
            variables=[of("w", "begin", "word"), of("i", "each", "item")],
            template="{{ w }} {{ i }}",
        ),
        end("each", "output"),
        edges=[edge("begin", "each"), edge("inner", "greet"), edge("each", "finish")],
    )
    output, _ = ran(document, {"names": ["Ann", "Bob"], "word": "Dear"})
    assert output == {"result": ["Dear Ann", "Dear Bob"]}


@pytest.mark.parametrize(("most", "rounds"), [(10, "iii"), (2, "ii")])
def test_a_loop_ends_when_it_may_or_when_it_has_turned_often_enough(ran, most, rounds):
    grow = {"variable_selector": ["turn", "text"], "operation": "append", "value": ["turn", "one"]}
    stop = {
        "variable_selector": ["turn", "text"],
        "comparison_operator": "contains",
        "value": "iii",
    }
    document = app(
        START,
        node(
            "turn",
            "loop",
            loop_count=most,
            break_conditions=[stop],
            logical_operator="and",
            loop_variables=[
                {"label": "text", "value_type": "constant", "value": ""},
                {"label": "one", "value_type": "constant", "value": "i"},
            ],
        ),
        node("inner", "loop-start", inside="turn"),
        node("grow", "assigner", inside="turn", items=[{**grow, "input_type": "variable"}]),
        end("turn", "text"),
        edges=[edge("begin", "turn"), edge("inner", "grow"), edge("turn", "finish")],
    )
    assert ran(document, {"topic": ""})[0] == {"result": rounds}


def test_a_classifier_sends_on_by_the_class(ran):
    sort = node(
        "sort",
        "question-classifier",
        model=MODEL,
        query_variable_selector=["begin", "topic"],
        classes=[{"id": "1", "name": "plants"}, {"id": "2", "name": "other"}],
    )
    document = app(
        START,
        sort,
        node("yes", "answer", answer="A plant: {{#sys.query#}}"),
        node("no", "answer", answer="No."),
        edges=[edge("begin", "sort"), edge("sort", "yes", "1"), edge("sort", "no", "2")],
        mode="advanced-chat",
    )
    given = {"query": "fern?", "topic": "fern"}
    output, _ = ran(document, given, ['{"sort_class_name": "plants"}'])
    assert output == {"answer": "A plant: fern?"}


def test_an_app_without_a_graph_is_one_agent(ran):
    config = {"pre_prompt": "You are brief.", "model": {"provider": "openai", "name": "gpt-4o"}}
    document = {"app": {"mode": "chat", "name": "a"}, "model_config": config}
    assert ran(document, {"query": "hi"}, ["Yes."])[0] == {"answer": "Yes."}


def test_each_node_is_taken_approximated_or_left_and_none_is_silent():
    made = imported(EVERYTHING)
    nodes = EVERYTHING["workflow"]["graph"]["nodes"]
    places = {each.place for each in made.findings}
    assert {f'workflow.graph.nodes[{at}] "{n["id"]}"' for at, n in enumerate(nodes)} <= places
    assert {each.kind for each in made.findings if each.status == "left"} == {
        "tool",
        "quantum-leap",
    }
    load_types = {each["type"] for each in made.document["graph"]["nodes"]}
    assert {"agent", "retrieve", "call_tool", "assign", "human_form"} <= load_types


def test_what_nothing_writes_is_said_where_it_is_read():
    made = imported(line(START, end("begin", "nothing")))
    said = [each.reason for each in made.losses if each.kind == "end"]
    assert said == ["it reads begin.nothing, which nothing writes here"]


def test_a_secret_of_the_environment_is_not_written():
    document = app(START, end("env", "KEY"), edges=[edge("begin", "finish")])
    secret = {"name": "KEY", "value": "s3cret-value", "value_type": "secret"}
    document["workflow"]["environment_variables"] = [secret]
    made = imported(document)
    assert "s3cret" not in made.text() + repr(made.findings)


def test_a_file_is_recognised_by_itself():
    import json

    assert import_text(json.dumps(EVERYTHING), "x").counts()["left"] == 2


def test_a_request_is_sent_with_what_it_had_and_without_its_secret():
    post = node(
        "post", "http-request", method="post", url="https://example.org/{{#begin.topic#}}",
        headers="X-Kind: a\nAuthorization: Bearer sk-1", params="q: {{#begin.topic#}}",
        authorization={"type": "api-key", "config": {"type": "bearer", "api_key": "sk-2"}},
        body={"type": "json", "data": [{"value": '{"t": "{{#begin.topic#}}"}'}]},
    )  # fmt: skip
    made = Dify().read(line(START, post, end("post", "status_code")), "x")
    (config,) = [n["config"] for n in made.document["graph"]["nodes"] if n["type"] == "http"]
    assert config == {
        "method": "POST",
        "url": "https://example.org/{topic}",
        "query": {"q": "{topic}"},
        "headers": {"X-Kind": "a", "Content-Type": "application/json"},
        "secrets": {"Authorization": {"env": "POST_AUTHORIZATION"}},
        "body": '{{"t": "{topic}"}}',
        "send": "text",
        "field": "post_body",
        "status": "post_status_code",
        "parse": False,
    }
    assert "sk-" not in made.text()
    assert [each.kind for each in made.losses] == ["http-request"]
