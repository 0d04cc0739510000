"""Images that are passed by their path in the workspace, those that a model made among them: along
edges, over a stop, into a fork, into a model, and back to the one that made them.
"""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from axil import Context, NodeFailed, RootGraph
from axil_agent import Agent, HistoryMemory
from axil_anthropic import AnthropicModel
from axil_files import load
from axil_gemini import GeminiModel
from axil_journals import fork
from axil_models import ProviderTool, image, spread_results
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_sqlite import SqliteJournal
from axil_testing.stub import Act, Call, Stub

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
LARGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
MADE = base64.b64encode(LARGE).decode()
MAKERS = {"chat": OpenAIModel, "responses": OpenAIResponsesModel, "generate": GeminiModel}
DATA = image(PNG)["data"]
LEAF = {"type": "image", "path": "out/leaf.png", "media_type": "image/png"}


def draw(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Draw a leaf into a file, and give its path."""
    assert ctx.workspace is not None
    (ctx.workspace / "out").mkdir()
    (ctx.workspace / "out" / "leaf.png").write_bytes(PNG)
    return {"picture": LEAF}


def test_a_path_goes_along_edges_and_over_a_stop_and_the_model_is_sent_the_image(tmp_path):
    stopped = asyncio.Event()

    async def stops(inputs: dict[str, Any]) -> dict[str, Any]:
        if not stopped.is_set():
            stopped.set()
            await asyncio.Event().wait()
        return inputs

    def show() -> dict[str, Any]:
        """Show the leaf."""
        return LEAF

    with Stub() as server:
        server.say(Act(calls=(Call(name="show"),)), "Two leaves.")
        model = OpenAIModel("m", server.key, server.url)
        graph = RootGraph("g")
        graph.create_node(draw, name="draw")
        graph.create_node(stops, name="stops")
        graph.create_node(Agent(model, tools=[show]), name="look")
        graph.edge_from_entry("draw", ["name"])
        graph.create_edge("draw", "stops", ["picture"])
        graph.create_edge("stops", "look", ["picture"])
        graph.edge_to_exit("stops", ["picture"])
        graph.edge_to_exit("look", ["message"])
        built, journal = graph.build(), SqliteJournal(tmp_path / "runs.db")
        options: Any = {"journal": journal, "workspace": tmp_path}

        async def twice() -> Any:
            first = asyncio.create_task(built.run({"name": "leaf"}, run_id="r", **options))
            await asyncio.wait_for(stopped.wait(), 30)
            first.cancel()  # as a process that is stopped
            await asyncio.wait({first})
            return await built.resume("r", **options)

        result = asyncio.run(twice())
        sent = [each.text for each in server.requests]
    assert result.output == {"picture": LEAF, "message": "Two leaves."}
    assert [text.count(DATA) for text in sent] == [1, 2]  # the input's, and the tool's
    kept = str(list(journal.entries("r")))
    assert "out/leaf.png" in kept
    assert DATA not in kept


def sent(server: Stub) -> list[int]:
    """Return how often each request holds the image that was made."""
    urlsafe = base64.urlsafe_b64encode(LARGE).decode()
    return [each.text.count(MADE) + each.text.count(urlsafe) for each in server.requests]


def asked(server: Stub, number: int) -> None:
    """Wait until there have been so many requests."""
    until = time.monotonic() + 120
    while len(server.requests) < number and time.monotonic() < until:
        time.sleep(0.01)


def drawing(model: Any, **second: Any) -> RootGraph:
    graph = RootGraph("g")
    graph.create_node(Agent(model), name="draw")
    graph.create_node(Agent(model, **second), name="look")
    graph.edge_from_entry("draw", ["q"])
    graph.create_edge("draw", "look", ["picture"])
    graph.edge_to_exit("draw", ["picture"])
    graph.edge_to_exit("look", ["answer"])
    return graph


@pytest.mark.parametrize("dialect", MAKERS)
def test_what_a_model_makes_is_a_file_of_the_run_over_a_stop_and_in_a_fork(dialect, tmp_path):
    with Stub(dialect) as server:
        server.say(Act(text="Here.", image=MADE), Act(text="A leaf.", stall_at=0.5))
        model = MAKERS[dialect]("m", server.key, server.url)
        built, journal = drawing(model).build(), SqliteJournal(tmp_path / "runs.db")
        options: Any = {"journal": journal, "workspace": tmp_path / "files"}

        async def thrice() -> list[Any]:
            first = asyncio.create_task(built.run({"q": "draw"}, run_id="r", **options))
            await asyncio.to_thread(asked, server, 2)
            first.cancel()  # as a process that is stopped
            await asyncio.wait({first})
            await fork(journal, "r", "f")
            return [await built.resume(run_id, **options) for run_id in ("r", "f")]

        results = asyncio.run(thrice())
        counted = sent(server)
    for result in results:
        text, picture = result.output["picture"]
        assert text == {"type": "text", "text": "Here."}
        assert picture.keys() == {"type", "media_type", "path"}
        assert (tmp_path / "files" / picture["path"]).read_bytes() == LARGE
        assert result.output["answer"] == "OK"
    assert counted == [0, 1, 1, 1]  # drawn once, looked at before the stop, after it, in the fork
    kept = str([*journal.entries("r"), *journal.entries("f")])
    assert MADE[40:80] not in kept
    assert "made/" in kept


@pytest.mark.parametrize("dialect", ["responses", "generate"])
def test_what_goes_back_to_a_model_with_its_image_is_kept_without_and_sent_whole(dialect, tmp_path):
    def note() -> str:
        """Note that it was drawn."""
        return "noted"

    with Stub(dialect) as server:
        server.say(Act(image=MADE, sealed="c2VhbGVk", calls=(Call(name="note"),)), "Done.")
        graph = RootGraph("g")
        model = MAKERS[dialect]("m", server.key, server.url)
        graph.create_node(Agent(model, tools=[note]), name="draw")
        graph.edge_from_entry("draw", ["q"])
        graph.edge_to_exit("draw", ["answer"])
        journal = SqliteJournal(tmp_path / "runs.db")
        options: Any = {"journal": journal, "workspace": tmp_path, "run_id": "r"}
        result = asyncio.run(graph.build().run({"q": "draw"}, **options))
        counted = sent(server)
    assert result.output == {"answer": "Done."}
    assert counted == [0, 1]
    kept = str(list(journal.entries("r")))
    assert MADE[40:80] not in kept
    assert base64.urlsafe_b64encode(LARGE).decode()[40:80] not in kept


SCREENS = {
    "responses": Act(own=({
        "id": "cu_1", "type": "computer_call", "call_id": "c1", "status": "completed",
        "actions": [{"type": "screenshot"}], "pending_safety_checks": [],
    },)),
    "messages": Act(calls=(Call(name="computer", arguments={"action": "screenshot"}, id="c1"),)),
    "generate": Act(calls=(Call(name="click_at", arguments={"x": 5, "y": 5}),)),
    "chat": Act(calls=(Call(name="see"),)),
}  # fmt: skip


@pytest.mark.parametrize("dialect", SCREENS)
def test_a_picture_that_a_tool_gives_is_a_file_of_the_run_and_is_sent_whole(dialect, tmp_path):
    def see(actions: Any = None) -> list[Any]:
        """Show the screen."""
        return [{"type": "text", "text": "A page."}, image(LARGE)]

    chunks = list[Any]()

    class Watch:
        def chunk(self, activation: Any, chunk: Any) -> None:
            chunks.append(chunk)

    computer = ProviderTool("computer", act=see, approve="never")
    with Stub(dialect) as server:
        server.say(SCREENS[dialect], Act(text="A", stall_at=0.5), "A leaf.")
        model = {**MAKERS, "messages": AnthropicModel}[dialect]("m", server.key, server.url)
        graph = RootGraph("g")
        graph.create_node(Agent(model, tools=[see if dialect == "chat" else computer]), name="a")
        graph.edge_from_entry("a", ["q"])
        graph.edge_to_exit("a", ["answer"])
        built, journal = graph.build(), SqliteJournal(tmp_path / "runs.db")
        options: Any = {"journal": journal, "workspace": tmp_path / "files", "observers": [Watch()]}

        async def twice() -> Any:
            first = asyncio.create_task(built.run({"q": "?"}, run_id="r", **options))
            await asyncio.to_thread(asked, server, 2)
            first.cancel()
            await asyncio.wait({first})
            return await built.resume("r", **options)

        result, counted = asyncio.run(twice()), sent(server)
    assert result.output == {"answer": "A leaf."}
    assert counted == [0, 1, 1]
    assert MADE[40:80] not in str(list(journal.entries("r"))) + str(chunks)
    [file] = (tmp_path / "files/made").iterdir()
    assert file.read_bytes() == LARGE
    [shown] = [chunk for chunk in chunks if chunk["kind"] == "tool_result"][:1]
    assert shown["content"][1]["path"] == f"made/{file.name}"


PROGRAM = """
import asyncio, sys
from pathlib import Path
from axil_openai import OpenAIModel
from axil_sqlite import SqliteJournal
from tests.integration.test_parts_by_reference import drawing

folder, url, key = Path(sys.argv[1]), *sys.argv[2:]
options = {"journal": SqliteJournal(folder / "runs.db"), "workspace": folder / "files"}
asyncio.run(drawing(OpenAIModel("m", key, url)).build().run({"q": "draw"}, run_id="r", **options))
"""


def test_what_a_killed_process_had_a_model_make_is_taken_on_by_another(tmp_path):
    with Stub() as server:
        server.say(Act(image=MADE), Act(text="A leaf.", stall_at=0.5), "A leaf.")
        given = [sys.executable, "-c", PROGRAM, str(tmp_path), server.url, server.key]
        with subprocess.Popen(given, env={**os.environ, "PYTHONPATH": os.getcwd()}) as first:
            asked(server, 2)
            first.kill()
        journal = SqliteJournal(tmp_path / "runs.db")
        built = drawing(OpenAIModel("m", server.key, server.url)).build()
        options: Any = {"journal": journal, "workspace": tmp_path / "files"}
        result = asyncio.run(built.resume("r", **options))
        counted = sent(server)
    assert result.output["answer"] == "A leaf."
    assert counted == [0, 1, 1]
    assert [each.name for each in (tmp_path / "files/made").iterdir()] == [
        Path(result.output["picture"]["path"]).name
    ]


def test_an_image_that_was_made_is_shown_to_the_next_agent_of_a_workflow_file(
    tmp_path, monkeypatch
):
    node = "type: agent, config: {model: {type: openai, name: m}}"
    (tmp_path / "flow.yaml").write_text(
        "version: 1\ngraph:\n  start: [draw]\n  end: [look]\n  nodes:\n"
        f"    - {{id: draw, {node}}}\n    - {{id: look, {node}}}\n"
        "  edges:\n    - {from: draw, to: look}\n"
    )
    with Stub() as server:
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        server.say(*[Act(text="Here.", image=MADE), "A leaf."] * 2)
        flow = load(tmp_path / "flow.yaml")
        for workspace in (tmp_path, None):
            result = asyncio.run(flow.run("draw", workspace=workspace))
            assert result.output == "A leaf."
        assert sent(server) == [0, 1, 0, 1]
        seen = server.requests[1].body["messages"][-1]["content"]
    assert [part["type"] for part in seen] == ["text", "image_url"]


@pytest.mark.parametrize("dialect", MAKERS)
def test_an_image_that_was_made_stays_in_a_conversation_of_a_typed_state(dialect, tmp_path):
    with Stub(dialect) as server:
        server.say(Act(text="Here.", image=MADE), "A leaf.", "Greener, then.")
        model = MAKERS[dialect]("m", server.key, server.url)
        graph = RootGraph("g", state="messages")
        for name in ("draw", "look"):
            graph.create_node(Agent(model), name=name)
        graph.create_node(Agent(model), name="again")
        graph.edge_from_entry("draw")
        graph.create_edge("draw", "look")
        graph.create_edge("look", "again")
        graph.edge_to_exit("again")
        result = asyncio.run(graph.build().run("draw", workspace=tmp_path))
        counted = sent(server)
    said = result.output["messages"]
    assert [part["type"] for part in said[1]["content"]] == ["text", "image"]
    assert said[-1]["content"] == "Greener, then."
    assert counted == [0, 1, 1]


def test_a_model_is_sent_the_image_of_its_own_reply_behind_it():
    picture = image(LARGE)
    messages = [
        {"role": "user", "content": "Draw."},
        {"role": "assistant", "content": [{"type": "text", "text": "Here."}, picture]},
        {"role": "user", "content": "Greener."},
    ]
    _, reply, shown, last = spread_results(messages)
    assert reply == {"role": "assistant", "content": "Here.\n[image 1]"}
    assert shown["role"] == "user"
    assert shown["content"] == [{"type": "text", "text": "[image 1], of your reply:"}, picture]
    assert last["content"] == "Greener."
    named = spread_results(messages, ())[1]["content"]
    assert "it cannot be shown" in named


def test_small_images_and_those_that_cannot_be_written_stay_in_their_part(tmp_path):
    (tmp_path / "made").write_text("a file in the way")
    with Stub() as server:
        server.say(Act(image=DATA), "Small.", Act(image=MADE), "Large.")
        built = drawing(OpenAIModel("m", server.key, server.url)).build()
        small = asyncio.run(built.run({"q": "draw"}, workspace=tmp_path))
        large = asyncio.run(built.run({"q": "draw"}, workspace=tmp_path))
    assert (small.output["picture"]["data"], small.output["answer"]) == (DATA, "Small.")
    assert (large.output["picture"]["data"], large.output["answer"]) == (MADE, "Large.")


def test_a_later_run_of_a_thread_says_that_an_image_is_not_in_its_workspace(tmp_path):
    with Stub() as server:
        server.say(Act(image=MADE), "A leaf.", "Hello.", "I have seen one.")
        memory = HistoryMemory(share="talk")
        graph = drawing(OpenAIModel("m", server.key, server.url), memories=[memory])
        built, journal = graph.build(), SqliteJournal(tmp_path / "runs.db")

        def run(folder: str) -> Any:
            options: Any = {"journal": journal, "thread": "t", "workspace": tmp_path / folder}
            return asyncio.run(built.run({"q": "draw"}, run_id=folder, **options))

        picture = run("first").output["picture"]
        assert run("second").output["answer"] == "I have seen one."
        last = server.requests[-1].body["messages"]
        name = Path(picture["path"]).name
    assert [f"[image: {name}] (its file is not here)" in str(each) for each in last].count(
        True
    ) == 1


def test_an_image_of_the_present_message_that_is_not_there_is_an_error(tmp_path):
    graph = RootGraph("g")
    graph.create_node(Agent(OpenAIModel("m", "key", "http://127.0.0.1:9")), name="look")
    graph.edge_from_entry("look", ["picture"])
    graph.edge_to_exit("look", ["answer"])
    with pytest.raises(NodeFailed, match="AX804"):
        graph.build().invoke({"picture": LEAF}, workspace=tmp_path)
