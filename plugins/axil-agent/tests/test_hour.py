"""First steps of a new user with agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from axil import NodeFailed, RootGraph, SpecError, load
from axil_agent import Agent, Scripted, SingleAgent
from axil_agent.errors import ContextError

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
