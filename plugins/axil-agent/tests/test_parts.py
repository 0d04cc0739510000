"""Laws of content parts: images, files and recordings in fields, messages and recordings of
runs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from axil import RootGraph
from axil_agent import (
    Agent,
    HistoryMemory,
    Recorder,
    Replay,
    Scripted,
    SingleAgent,
    models_through,
)
from axil_files import load
from axil_journals import MemoryJournal
from axil_models import (
    LARGEST_PART_BYTES,
    ContextBlock,
    ContextError,
    PartError,
    Request,
    audio,
    check_modalities,
    checked_part,
    content_text,
    file,
    image,
    is_part,
    part_label,
    parts_of,
    text_part,
    with_labels,
)

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
        # what it holds says more than its name
        (image(b"RIFF\0\0\0\0WEBPVP8 ", name="x.png"), "image/webp"),
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
        assert checked_part(given)
        return
    with pytest.raises(PartError) as reported:
        checked_part(given)
    assert reported.value.id == id


def test_a_part_has_a_largest_size():
    with pytest.raises(PartError, match="AX803"):
        file(b"x" * (LARGEST_PART_BYTES + 1))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_values_without_parts_are_left_as_they_are(value):
    assert with_labels(value) is value


@settings(deadline=None)
@given(st.text(max_size=50))
def test_a_text_is_its_own_content(words):
    assert content_text(words) == words
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
    seen = Agent(prompt_template="{pages}", formatters="twins").observe(
        {"pages": [one, two], "zz": {"again": one}}
    )
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
    node = g.create_node(
        Agent, name="look", model=model, prompt_template="{picture}", formatters="twins"
    )
    g.edge_from_entry(node, ["picture"])
    g.edge_to_exit(node, ["answer"])
    g.build().invoke({"picture": image("leaf.png")}, workspace=tmp_path)
    assert model.requests[0].messages[-1]["content"][1] == {**image(PNG), "name": "leaf.png"}
    one, model = agent(workspace=tmp_path)
    one.invoke({"picture": image("leaf.png")})
    assert model.requests[0].messages[-1]["content"][1]["data"] == image(PNG)["data"]


@pytest.mark.parametrize("path", ["../secret.png", "link.png", "{outside}", "none.png", "\0.png"])
def test_a_path_never_leads_out_of_the_workspace(tmp_path, path):
    room = tmp_path / "room"
    room.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (room / "link.png").symlink_to(tmp_path / "secret.png")
    one, model = agent(workspace=room)
    with pytest.raises(PartError, match="AX804"):
        one.invoke({"picture": image(path.format(outside=tmp_path / "secret.png"))})
    assert model.requests == []


@pytest.mark.parametrize("path", ["pipe", "folder", "."])
def test_a_path_of_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    one, model = agent(workspace=tmp_path)
    with pytest.raises(PartError, match="AX804"):
        one.invoke({"picture": {"type": "image", "path": path, "media_type": "image/png"}})
    assert model.requests == []


def test_a_file_that_becomes_a_link_after_it_was_looked_at_is_not_read(tmp_path, monkeypatch):
    room, looked = tmp_path / "room", Path.resolve
    (room / "in").mkdir(parents=True)
    for each in (tmp_path / "a.png", room / "in/a.png"):
        each.write_bytes(PNG)

    def swapped(self: Path, *given: Any) -> Path:
        found = looked(self, *given)
        if self.name == "a.png" and not (room / "in").is_symlink():
            (room / "in").rename(tmp_path / "aside")
            (room / "in").symlink_to(tmp_path)
        return found

    one, model = agent(workspace=room)
    monkeypatch.setattr(Path, "resolve", swapped)
    with pytest.raises(PartError, match="AX804"):
        one.invoke({"picture": image("in/a.png")})
    assert model.requests == []
    assert (room / "in").is_symlink()


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
        nodes = [
            {
                "id": "A",
                "type": "agent",
                "config": {"model": {"type": "scripted"}, "input_mode": mode},
            }
        ]
        path = tmp_path / f"{mode}.json"
        path.write_text(
            json.dumps(
                {"graph": {"id": "look", "nodes": nodes, "edges": [], "start": ["A"], "end": ["A"]}}
            ),
            "utf-8",
        )
        flow = load(path)
        script = Scripted(["seen"])
        with script.everywhere():
            flow.invoke(said)
        content = script.requests[0].messages[-1]["content"]
        assert content[-1] == image(PNG)
        assert "Look:" in content[0]["text"]


def test_parts_are_journaled_and_recorded_as_data(tmp_path):
    g = RootGraph("look")
    node = g.create_node(
        Agent,
        name="look",
        model=Scripted(["seen"]),
        prompt_template="{picture}",
        formatters="twins",
    )
    g.edge_from_entry(node, ["picture"])
    g.edge_to_exit(node, ["answer"])
    flow, journal = g.build(), MemoryJournal()
    with models_through(lambda meant, written: Recorder(meant(), tmp_path / "run.jsonl")):
        output, _ = flow.invoke({"picture": image(PNG)}, journal=journal)
    with models_through(lambda meant, written: Replay(tmp_path / "run.jsonl")):
        assert flow.invoke({"picture": image(PNG)})[0] == output


def test_a_script_hears_the_text_of_parts():
    script = Scripted([{"echo_user": True}])
    request = Request(
        messages=[{"role": "user", "content": [{"type": "text", "text": "Look:"}, image(PNG)]}]
    )
    assert asyncio.run(script.reply(request, lambda chunk: None)).text == "(Look:\n[image])"


def test_a_model_is_sent_only_what_it_takes():
    messages = [{"role": "user", "content": [image(PNG, name="leaf.png")]}]
    check_modalities(messages, ["image"], "m")
    with pytest.raises(PartError, match=r"AX801.*m takes text.*\[image: leaf\.png\]"):
        check_modalities(messages, [], "m")


def test_a_label_has_nothing_of_the_content():
    assert part_label(image(PNG)) == "[image]"
    assert part_label(file("https://x/dir/report.pdf?key=1")) == "[file: report.pdf]"


# -- of tools and of context


class Sighted(Scripted):
    """A model that takes images and nothing else."""

    modalities = ("image",)

    async def reply(self, request: Request, emit: Any, /) -> Any:
        check_modalities(request.messages, self.modalities, "it")
        return await super().reply(request, emit)


def look() -> Any:
    return image(PNG, name="leaf.png")


def listen() -> Any:
    return [audio(WAV), {"type": "text", "text": "a bird"}]


def test_what_tools_show_comes_behind_their_results():
    calls = [{"name": "look"}, {"name": "look"}, {"name": "listen"}]
    model = Scripted([{"tool_calls": calls}, {"tool_calls": [{"name": "look"}]}, "seen"])
    SingleAgent(model, tools=[look, listen], formatters="twins", output_keys=["answer"]).invoke(
        {"q": "?"}
    )
    *_, first, second, third, shown = model.requests[1].messages
    assert [m["role"] for m in (first, second, third, shown)] == ["tool", "tool", "tool", "user"]
    assert [m["content"] for m in (first, second, third)] == [
        "[image 1: leaf.png]",
        "[image 2: leaf.png]",
        "[audio 3]\na bird",
    ]
    assert shown["content"][:2] == [text_part("[image 1: leaf.png], from the tool look:"), look()]
    assert [part["type"] for part in shown["content"]] == [
        "text",
        "image",
        "text",
        "image",
        "text",
        "audio",
    ]
    assert [m["role"] for m in model.requests[2].messages[-3:]] == ["assistant", "tool", "user"]


def test_a_model_gets_a_note_of_tool_output_that_it_cannot_see():
    model = Sighted([{"tool_calls": [{"name": "look"}, {"name": "listen"}]}, "seen"])
    SingleAgent(model, tools=[look, listen], formatters="twins", output_keys=["answer"]).invoke(
        {"q": "?"}
    )
    results = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert results == [
        "[image 1: leaf.png]",
        "[audio] (it cannot be shown: this model takes image, text)\na bird",
    ]


def test_a_tools_part_that_is_none_is_reported_to_the_model():
    def show() -> Any:
        return {"type": "image", "data": "no base64!"}

    model = Scripted([{"tool_calls": [{"name": "show"}]}, "seen"])
    SingleAgent(model, tools=[show], formatters="twins", output_keys=["answer"]).invoke({"q": "?"})
    assert model.requests[1].messages[-1]["content"].startswith("Error: PartError: AX802")


class Album:
    """A provider with a picture from each source."""

    def __init__(self, *parts: Any, **more: Any) -> None:
        self.parts = parts
        self.__dict__.update(more)

    def get_blocks(self, query: Any, top_k: int = 8) -> list[Any]:
        return [
            ContextBlock(f"number {n}", "album", str(n), part=part)
            for n, part in enumerate(self.parts)
        ][:top_k]


def test_blocks_of_every_source_are_named_and_sent(tmp_path):
    (tmp_path / "leaf.png").write_bytes(PNG)
    parts = (
        image(PNG),
        image("https://example.org/a.png"),
        image("leaf.png"),
        {"type": "file", "file_id": "f1"},
        file(b"%PDF-1.7"),
    )
    one, model = agent(retrievers=Album(*parts), workspace=tmp_path, prompt_template="{picture}")
    one.invoke({"picture": audio(WAV)})
    words, heard, *sent = model.requests[0].messages[-1]["content"]
    assert "[audio 1]" in words["text"]  # numbers go on from the fields to the context
    for number, name in enumerate(
        ("[image 2]", "[image 3: a.png]", "[image 4: leaf.png]", "[file 5]", "[file 6]")
    ):
        assert f"(Album) {name} number {number}" in words["text"]
    assert heard["type"] == "audio"
    assert [part.get("data") for part in sent] == [
        image(PNG)["data"],
        None,
        image(PNG)["data"],
        None,
        file(b"%PDF-1.7")["data"],
    ]
    assert (sent[1]["url"], sent[3]["file_id"]) == ("https://example.org/a.png", "f1")


def test_agents_of_files_are_shown_the_parts_of_blocks(tmp_path):
    from axil.plugin import Policy, Registry, use_registry

    class Pressed(Album):
        def __init__(self) -> None:
            super().__init__(image(PNG), context_label="Album")

    registry = Registry(Policy())
    registry.register("context", "album", Pressed)
    script = Scripted(["seen"])
    with use_registry(registry), script.everywhere():
        config = {"model": {"type": "scripted"}, "retrievers": ["album"]}
        nodes = [{"id": "A", "type": "agent", "config": config}]
        path = tmp_path / "look.json"
        path.write_text(
            json.dumps(
                {"graph": {"id": "look", "nodes": nodes, "edges": [], "start": ["A"], "end": ["A"]}}
            ),
            "utf-8",
        )
        load(path).invoke("What is it?")
    shown = [m["content"] for m in script.requests[0].messages]
    assert [{"type": "text", "text": "[Context]\n(Album) [image 1] number 0"}, image(PNG)] in shown


def test_a_block_that_the_model_cannot_take_is_an_error_that_names_it():
    model = Sighted(["seen"])
    one = SingleAgent(
        model,
        formatters="twins",
        output_keys=["answer"],
        retrievers=Album(file(b"%PDF-1.7", name="plan.pdf")),
    )
    with pytest.raises(PartError, match=r"AX801.*it takes image, text.*\[file: plan\.pdf\]"):
        one.invoke({"q": "?"})
    assert model.requests == []


def test_a_block_whose_part_is_none_is_the_providers_fault():
    one, _ = agent(retrievers=Album({"type": "image"}))
    with pytest.raises(ContextError, match=r"AX658.*Album.*AX802"):
        one.invoke({"q": "?"})


def test_two_pictures_without_a_name_are_two():
    pictures = [{"part": image(PNG)}, {"part": image(PNG)}, {"part": image(PNG + b"\0")}]

    class Bare:
        def get_blocks(self, query: Any) -> list[Any]:
            return pictures

    one, model = agent(retrievers=Bare())
    one.invoke({"q": "?"})
    assert [part["type"] for part in model.requests[0].messages[-1]["content"]] == [
        "text",
        "image",
        "image",
    ]


def test_what_a_model_asks_for_is_shown_behind_the_answer():
    call = {"name": "retrieve_context", "arguments": {"source": "Album", "query": "leaf"}}
    model = Scripted([{"tool_calls": [call]}, "seen"])
    album = Album(image(PNG, name="leaf.png"), passive=False, active=True)
    SingleAgent(model, formatters="twins", output_keys=["answer"], retrievers=album).invoke(
        {"q": "?"}
    )
    result, shown = model.requests[1].messages[-2:]
    reported = json.loads(result["content"].partition("\n")[0])
    assert reported["blocks"][0]["part"] == "[image 1: leaf.png]"
    assert image(PNG)["data"] not in result["content"]
    assert shown["content"][1] == image(PNG, name="leaf.png")


def test_a_resumed_run_is_shown_the_same_picture_without_asking_again():
    asked = list[str]()

    class Changing(Album):
        def get_blocks(self, query: Any, top_k: int = 8) -> list[Any]:
            asked.append(query.query_text)
            return super().get_blocks(query, top_k)

    async def main() -> Any:
        model, journal = Scripted([{"tool_calls": [{"name": "ask"}]}, "seen"]), MemoryJournal()

        async def ask(ctx: Any) -> str:
            return await ctx.ask("go on?")

        g = RootGraph("look")
        node = g.create_node(
            Agent,
            name="look",
            model=model,
            formatters="twins",
            tools=[ask],
            retrievers=Changing(image(PNG)),
        )
        g.edge_from_entry(node, ["q"])
        g.edge_to_exit(node, ["answer"])
        flow = g.build()
        paused = await flow.run({"q": "?"}, journal=journal)
        await flow.resume(paused.run_id, journal=journal, answers={paused.questions[0].id: "yes"})
        return [
            request.messages[0 if request.messages[0]["role"] == "user" else 1]["content"][1]
            for request in model.requests
        ]

    assert asyncio.run(main()) == [image(PNG)] * 2
    assert len(asked) == 1
