"""Laws of content parts: images, files and recordings in fields, messages and recordings of runs."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axil import MemoryJournal, RootGraph, Workflow
from axil_agent import Agent, HistoryMemory, Recorder, Replay, Request, Scripted, SingleAgent, audio, file, image, models_through
from axil_agent.errors import PartError
from axil_agent.parts import LARGEST_BYTES, bare, checked, is_part, label, parts_of, said, taken

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
WAV = b"RIFF\x24\0\0\0WAVEfmt "


def agent(*replies: Any, **more: Any) -> tuple[SingleAgent, Scripted]:
    model = Scripted(list(replies) or ["seen"])
    return SingleAgent(model, formatters="twins", output_keys=["answer"], **more), model


# -- making


@pytest.mark.parametrize(
    ("made", "media_type"),
    [
        (image(PNG), "image/png"),
        (image(b"\xff\xd8\xff\xe0"), "image/jpeg"),
        (image(b"RIFF\0\0\0\0WEBPVP8 ", name="x.png"), "image/webp"),  # what it holds says more than its name
        (image("a/leaf.JPG"), "image/jpeg"),
        (image("https://example.org/x", media_type="image/png"), "image/png"),
        (audio(WAV), "audio/wav"),
        (file(b"%PDF-1.7"), "application/pdf"),
        (file("notes"), None),
        (file(b"plain words"), "text/plain"),
        (file(b"\0\xff"), "application/octet-stream"),
        (image("data:image/png;base64," + base64.b64encode(PNG).decode()), "image/png"),
    ],
)
def test_a_part_says_what_it_holds_as_far_as_can_be_known(made, media_type):
    assert made.get("media_type") == media_type
    assert is_part(made)
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    ("given", "id"),
    [
        ({"type": "image"}, "AX802"),
        ({"type": "image", "url": "https://x", "data": ""}, None),
        ({"type": "image", "url": "https://x", "data": "QQ=="}, "AX802"),
        ({"type": "image", "data": "no base64!"}, "AX802"),
        ({"type": "image", "data": base64.b64encode(b"%PDF-").decode()}, "AX802"),
        ({"type": "image", "data": base64.b64encode(b"who knows").decode()}, "AX802"),
        ({"type": "film", "url": "https://x"}, "AX802"),
        ("text", "AX802"),
    ],
)
def test_what_is_no_part_is_an_error_that_says_why(given, id):
    if id is None:
        assert checked(given)
        return
    with pytest.raises(PartError) as told:
        checked(given)
    assert told.value.id == id


def test_a_part_has_a_largest_size():
    with pytest.raises(PartError, match="AX803"):
        file(b"x" * (LARGEST_BYTES + 1))


@settings(deadline=None)
@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_values_without_parts_are_left_as_they_are(value):
    assert bare(value) is value


@settings(deadline=None)
@given(st.text(max_size=50))
def test_a_text_is_its_own_content(words):
    assert said(words) == words
    assert [part["text"] for part in parts_of(words)] == ([words] if words else [])


# -- in an agent


def test_a_part_in_a_field_is_named_in_the_prompt_and_sent_behind_it():
    mute = Agent(prompt_template="What is on {picture}?", formatters="twins")
    picture = image(PNG, name="leaf.png")
    seen = mute.observe({"picture": picture})
    assert "What is on [image 1: leaf.png]?" in seen.user
    assert seen.messages[-1]["content"] == [{"type": "text", "text": seen.user}, picture]
    assert seen == mute.observe({"picture": picture})
    assert isinstance(mute.observe({"picture": "none"}).messages[-1]["content"], str)


def test_parts_in_lists_are_numbered_in_order_and_each_is_sent_once():
    one, two = image("https://x/1.png"), file("https://x/2.pdf")
    seen = Agent(prompt_template="{pages}", formatters="twins").observe({"pages": [one, two], "zz": {"again": one}})
    assert seen.user.count("[image 1: 1.png]") == 2
    assert seen.user.count("[file 2: 2.pdf]") == 1
    assert seen.messages[-1]["content"][1:] == [one, two]


def test_a_field_with_content_is_its_text():
    seen = Agent(prompt_template="{message}", formatters="twins").observe(
        {"message": [{"type": "text", "text": "Look:"}, image("https://x/1.png")]}
    )
    assert "Look:\n[image 1: 1.png]" in seen.user


def test_a_part_that_no_prompt_names_is_not_sent():
    hidden = Agent(prompt_template="{topic}", hide_unused_fields=True, formatters="twins")
    seen = hidden.observe({"topic": "axils", "picture": image(PNG)})
    assert isinstance(seen.messages[-1]["content"], str)


def test_history_and_search_get_along_with_parts():
    asked: list[str] = []

    class Library:
        def get_blocks(self, query, top_k=8):
            asked.append(query.query_text)
            return []

    one, model = agent("a leaf", "green", memories=HistoryMemory(), retrievers=[Library()])
    one.invoke({"question": [{"type": "text", "text": "What is this?"}, image(PNG)]}, thread="t")
    one.invoke({"question": "Which colour?"}, thread="t")
    assert asked[0] == "What is this?\n[image]"
    assert model.requests[1].messages[0]["content"][1] == image(PNG)


def test_a_path_is_read_from_the_workspace_when_it_is_sent(tmp_path):
    (tmp_path / "leaf.png").write_bytes(PNG)
    g = RootGraph("look")
    model = Scripted(["seen"])
    node = g.create_node(Agent, name="look", model=model, prompt_template="{picture}", formatters="twins")
    g.edge_from_entry(node, ["picture"])
    g.edge_to_exit(node, ["answer"])
    g.build().invoke({"picture": image("leaf.png")}, workspace=tmp_path)
    assert model.requests[0].messages[-1]["content"][1] == {**image(PNG), "name": "leaf.png"}
    one, model = agent(workspace=tmp_path)
    one.invoke({"picture": image("leaf.png")})
    assert model.requests[0].messages[-1]["content"][1]["data"] == image(PNG)["data"]


@pytest.mark.parametrize("path", ["../secret.png", "link.png", "{outside}", "none.png"])
def test_a_path_never_leads_out_of_the_workspace(tmp_path, path):
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (room / "link.png").symlink_to(tmp_path / "secret.png")
    one, model = agent(workspace=room)
    with pytest.raises(PartError, match="AX804"):
        one.invoke({"picture": image(path.format(outside=tmp_path / "secret.png"))})
    assert model.requests == []


def test_without_a_workspace_no_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaf.png").write_bytes(PNG)
    one, model = agent()
    with pytest.raises(PartError, match="no workspace"):
        one.invoke({"picture": image("leaf.png")})
    assert model.requests == []


def test_agents_of_files_pass_parts_on(tmp_path):
    said = {"role": "user", "content": [{"type": "text", "text": "Look:"}, image(PNG)]}
    for mode in ("messages", "prompt"):
        nodes = [{"id": "A", "type": "agent", "config": {"model": {"type": "scripted"}, "input_mode": mode}}]
        path = tmp_path / f"{mode}.json"
        path.write_text(json.dumps({"graph": {"id": "look", "nodes": nodes, "edges": [], "start": ["A"], "end": ["A"]}}), "utf-8")
        flow = Workflow.from_file(path)
        script = Scripted(["seen"])
        with script.everywhere():
            flow.invoke(said)
        content = script.requests[0].messages[-1]["content"]
        assert content[-1] == image(PNG)
        assert "Look:" in content[0]["text"]


def test_parts_are_journaled_and_recorded_as_data(tmp_path):
    g = RootGraph("look")
    node = g.create_node(Agent, name="look", model=Scripted(["seen"]), prompt_template="{picture}", formatters="twins")
    g.edge_from_entry(node, ["picture"])
    g.edge_to_exit(node, ["answer"])
    flow, journal = g.build(), MemoryJournal()
    with models_through(lambda meant, written: Recorder(meant(), tmp_path / "run.jsonl")):
        output, _ = flow.invoke({"picture": image(PNG)}, journal=journal)
    with models_through(lambda meant, written: Replay(tmp_path / "run.jsonl")):
        assert flow.invoke({"picture": image(PNG)})[0] == output


def test_a_script_hears_the_text_of_parts():
    script = Scripted([{"echo_user": True}])
    request = Request(messages=[{"role": "user", "content": [{"type": "text", "text": "Look:"}, image(PNG)]}])
    assert asyncio.run(script.reply(request, lambda chunk: None)).text == "(Look:\n[image])"


def test_a_model_is_sent_only_what_it_takes():
    messages = [{"role": "user", "content": [image(PNG, name="leaf.png")]}]
    taken(messages, ["image"], "m")
    with pytest.raises(PartError, match=r"AX801.*m takes text.*\[image: leaf\.png\]"):
        taken(messages, [], "m")


def test_a_label_has_nothing_of_the_content():
    assert label(image(PNG)) == "[image]"
    assert label(file("https://x/dir/report.pdf?key=1")) == "[file: report.pdf]"
