"""Agents of which one text is wanted answer in prose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from axil import RootGraph
from axil_agent import Agent, ReplyError, Scripted, SingleAgent
from axil_agent.formatters import OneField, Prose
from axil_models import Json, Reply, Request


def between(model: Any, keys: Any, **settings: Any) -> Any:
    """Return the output of an agent whose out-edge carries ``keys``."""
    g = RootGraph("g")
    node = g.create_node(Agent, name="w", model=model, **settings)
    g.edge_from_entry(node, ["q"])
    g.edge_to_exit(node, keys)
    return g.build().invoke({"q": "?"})[0]


def test_an_agent_without_fields_answers_in_prose():
    model = Scripted(["An axil is an angle."])
    assert SingleAgent(model).invoke({"q": "?"}) == {"message": "An axil is an angle."}
    assert between(model, None) == {"message": "An axil is an angle."}
    assert all("JSON" not in str(r.messages) and r.output is None for r in model.requests)
    assert all("Response" not in str(r.messages) for r in model.requests)


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        ("plain words", "plain words"),
        ('{"angle": "in a field"}', "in a field"),
        ('```json\n{"angle": "in a fence"}\n```', "in a fence"),
        ('{"other": 1}', '{"other": 1}'),
        ('So: {"angle": 1}', 'So: {"angle": 1}'),
        ('{"angle":', '{"angle":'),
        ("<think>hm</think>\nwords", "words"),
    ],
)
def test_what_is_no_json_with_the_one_field_is_its_value(reply, output):
    model = Scripted([reply])
    assert between(model, {"angle": "in five words"}) == {"angle": output}
    assert (
        model.requests[0]
        .messages[-1]["content"]
        .endswith("Response fields:\nAnswer only with the text of the field angle: in five words")
    )


def test_several_fields_are_asked_for_in_json():
    model = Scripted(["words", '{"a": "1", "b": 2}'])
    assert between(model, ["a", "b"]) == {"a": "1", "b": 2}
    assert "Answer with a single JSON object" in str(model.requests[0].messages)


class Mood(BaseModel):
    mood: str = ""
    level: int = 0


@pytest.mark.parametrize("reply", ['{"level": 3}', "3", "```json\n3\n```"])
def test_a_typed_field_of_a_state_is_asked_for_in_json_and_read_without(reply):
    model = Scripted([reply])
    g = RootGraph("g", state=Mood)
    g.create_node(Agent, name="w", model=model, push_keys=["level"])
    g.edge_from_entry("w")
    g.edge_to_exit("w")
    assert g.build().invoke({})[1]["level"] == 3
    assert "JSON" in str(model.requests[0].messages)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [({"text": ""}, "it is empty"), ({"text": "I cannot.", "finish": "refusal"}, "AX805")],
)
def test_no_text_and_no_answer_are_not_taken_for_prose(reply, fault):
    with pytest.raises(ReplyError, match=fault):
        SingleAgent(Scripted([reply])).invoke({"q": "?"})


class Interrupted:
    """A model whose first try breaks off in the middle, as adapters show it."""

    def __init__(self, text: str, pieces: int) -> None:
        self.text, self.pieces = text, pieces

    async def reply(self, request: Request, emit: Callable[[Any], None]) -> Reply:
        size = -(-len(self.text) // self.pieces)
        pieces = [self.text[at : at + size] for at in range(0, len(self.text), size)]
        for piece in pieces[:-1]:
            emit({"kind": "text", "text": piece})
        emit({"kind": "reset", "chunks": len(pieces) - 1})
        emit({"kind": "retry", "try": 2, "of": 2})
        for piece in pieces:
            emit({"kind": "text", "text": piece})
        return Reply(text=self.text)


@pytest.mark.parametrize("pieces", [2, 3, 9])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("An axil is an angle.", {}),
        ("<think>Is it a leaf? No.</think>An axil is an angle.", {}),
        ('{"mood": "calm", "level": 3}', {"output_type": Mood}),
        ('<think>{"mood"?</think>{"mood": "calm", "level": 3}', {"output_type": Mood}),
    ],
)
def test_a_try_that_broke_off_is_taken_back_as_it_was_shown(text, options, pieces):
    before = {"kind": "note"}
    left: list[Any] = [before]

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            if chunk["kind"] == "reset":
                del left[len(left) - chunk["chunks"] :]
                assert left == [before]
            elif chunk["kind"] != "retry":
                left.append(chunk)

    g = RootGraph("g")
    g.create_node(Agent, name="w", model=Interrupted(text, pieces), prompt_template="?", **options)
    g.edge_from_entry("w", {})
    g.edge_to_exit("w", {"mood": "", "level": ""} if options else {"text": ""})
    g.build().invoke({}, observers=[Watch()])
    said = "".join(chunk["text"] for chunk in left if chunk["kind"] == "text")
    assert said == text.rpartition("</think>")[2]


@pytest.mark.parametrize("formatter", [Prose(), OneField(Json())])
def test_brackets_inside_each_other_without_end_are_text(formatter):
    text = "[" * 200_000 + "]" * 200_000
    assert formatter.parse(text, ["angle"]) == {"angle": text}
    text = '{"a":' * 200_000 + "1" + "}" * 200_000
    assert Prose().parse(text, ["angle"]) == {"angle": text}
