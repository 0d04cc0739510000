"""First steps of a new user with agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from axil import NodeFailed, RootGraph, SpecError
from axil_agent import Agent, Scripted, SingleAgent
from axil_files import load
from axil_models import ContextError

Script = Callable[..., Scripted]


def test_a_model_whose_invoke_takes_names_only_is_asked_by_name():
    class Named:
        def invoke(self, *, messages: Any, tools: Any = None, settings: Any = None) -> Any:
            return {"type": "content", "content": json.dumps({"o": len(messages)})}

    assert SingleAgent(Named(), "Be brief.", output_keys=["o"]).invoke({"q": 1}) == {"o": 2}


def test_a_context_provider_that_gives_a_text_is_refused():
    class Text:
        def get_blocks(self, query: Any) -> str:
            return "one text"

    agent = SingleAgent(Scripted(["x"]), retrievers=[Text()])
    with pytest.raises(ContextError, match="gave a text; expected a list of blocks"):
        agent.invoke({"q": 1})


@pytest.mark.parametrize("model", [None, "gpt-5"])
def test_an_error_of_a_model_names_the_node(model: Any):
    g = RootGraph("g")
    g.create_node(Agent, name="writer", model=model)
    g.create_edges([("entry", "writer"), ("writer", "exit")])
    with pytest.raises((SpecError, NodeFailed), match='node "writer"') as failed:
        g.build()
    if model:
        assert '{"type": "openai", "name": "gpt-5"}' in str(failed.value)


def test_an_agent_of_a_file_with_a_template_and_no_output_answers_in_text(tmp_path: Any):
    script = {"type": "scripted", "config": {"rules": [{"replies": ["A plain reply."]}]}}
    node = {
        "id": "a",
        "type": "agent",
        "config": {"model": script, "prompt_template": "On {message}."},
    }
    path = tmp_path / "flow.json"
    path.write_text(
        json.dumps(
            {"version": 1, "graph": {"id": "g", "nodes": [node], "edges": [], "start": ["a"]}}
        )
    )
    flow = load(path)
    assert flow.invoke("axils")[0] in ("A plain reply.", {"message": "A plain reply."})


def test_an_edge_that_keeps_a_dead_branch_alive_is_named_with_what_to_write():
    graph = RootGraph("g")
    graph.create_node(lambda inputs: inputs, name="look")
    graph.create_node(Agent, name="act", model=Scripted(["x"]), prompt_template="{x} {who}")
    graph.edge_from_entry("look", ["x"])
    graph.create_edge("look", "act", {"x": ""}, when=lambda message: False)
    graph.edge_from_entry("act", ["who"])
    graph.edge_to_exit("act", ["y"])
    with pytest.raises(NodeFailed, match=r"AX650 .*came on @entry->act\. .* trigger=False"):
        graph.build().invoke({"x": "1", "who": "c"})


OUTPUT = {
    "text": "What to say.",
    "mood": {"enum": ["good", "bad"], "description": "How it sounds."},
    "score": {"type": "integer", "minimum": 1, "maximum": 5},
    "places": {"type": "array", "items": {"properties": {"name": "Its name."}}},
    "note": {"type": "string", "optional": True},
}


def typed(folder: Any, *replies: str, output: Any = OUTPUT, **more: Any) -> Any:
    """Load a workflow file with one agent, whose output has types."""
    script = {"type": "scripted", "config": {"rules": [{"replies": list(replies)}]}}
    node = {"id": "a", "type": "agent", "config": {"model": script, "output": output}}
    path = folder / "flow.json"
    graph = {"id": "g", "nodes": [node], "edges": [], "start": ["a"]}
    path.write_text(json.dumps({"version": 1, "graph": graph}))
    return load(path, **more)


GOOD = {"text": "Hi.", "mood": "good", "score": 3, "places": [{"name": "Rome"}], "note": None}


def test_the_output_of_an_agent_in_a_file_may_have_types(tmp_path: Any):
    wrong = json.dumps({**GOOD, "mood": "fair", "score": 9})
    flow = typed(tmp_path, wrong, json.dumps({**GOOD, "score": "3"}))
    result = flow.invoke("hello")
    assert json.loads(result.output) == GOOD
    assert result.usage.firings == 1


def test_an_output_may_be_a_type_where_imports_are_allowed(tmp_path: Any):
    path = "axil_agent.outputs:OutputField"
    flow = typed(tmp_path, '{"type": "x"}', '{"type": "integer"}', output=path, allow=["code"])
    assert json.loads(flow.invoke("hello").output)["type"] == "integer"
    with pytest.raises(SpecError, match=r"AX148.*is an import path"):
        typed(tmp_path, '{"n": 2}', output="pydantic:BaseModel").plan  # noqa: B018
    with pytest.raises(SpecError, match="is no type of an output"):
        typed(tmp_path, "{}", output="string:digits", allow=["code"]).plan  # noqa: B018


def test_a_typed_output_is_shown_as_fields_that_fit_and_a_repaired_reply_is_taken_back(
    tmp_path: Any,
):
    flow = typed(tmp_path, '{"n": "no"}', '{"n": 12, "words": ["a", "b"]}', output=WORDS)
    chunks: list[Any] = []

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    flow.invoke("hello", observers=[Watch()])
    resets = [n for n, chunk in enumerate(chunks) if chunk["kind"] == "reset"]
    assert len(resets) == 1
    assert chunks[resets[0]]["chunks"] == resets[0]  # all that was shown before
    shown = [chunk["fields"] for chunk in chunks if chunk["kind"] == "output"]
    assert shown[-1] == {"n": 12, "words": ["a", "b"]}
    assert all(set(fields) <= {"n", "words"} for fields in shown)
    assert len(shown) > 1


WORDS = {"n": {"type": "integer"}, "words": {"type": "array", "items": {"type": "string"}}}
