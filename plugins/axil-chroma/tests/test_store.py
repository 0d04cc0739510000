"""Collections: what is embedded, what is kept, what is refused; alone and side by side, in this
process and in others.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from axil import RootGraph, run_sync
from axil_agent import Agent
from axil_chroma import ChromaMemory, ChromaRetriever
from axil_models import ContextBlock, ContextError, ContextQuery, Reply, Turn

if find_spec("chromadb") is None:
    pytest.skip("chromadb cannot be installed here", allow_module_level=True)


def turn(text: str, reply: str, *, run: str = "r", user: str = "", number: int = 1) -> Turn:
    return Turn(
        query=ContextQuery(
            text, {"user": user} if user else {}, node_name="n", node_path="n", run_id=run
        ),
        reply=reply,
        number=number,
    )


def texts(blocks: Sequence[ContextBlock]) -> list[str]:
    return [block.text for block in blocks]


# --------------------------------------------------------------------------------------------------


def test_a_collection_of_somebody_elses_is_refused(tmp_path):
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(
        path=str(tmp_path / "c"), settings=Settings(anonymized_telemetry=False)
    )
    client.create_collection("memories", embedding_function=None)
    client.close()
    memory = ChromaMemory(path=str(tmp_path / "c"))
    with pytest.raises(ContextError, match=r"AX910 .* was made by something else"):
        run_sync(memory.get_blocks(ContextQuery("x")))
    run_sync(memory.close())


def test_chroma_is_configured_to_report_nothing_and_embeds_nothing_itself(tmp_path, monkeypatch):
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    def refused(*given: Any, **named: Any) -> Any:
        raise AssertionError("Chroma's own model was asked")

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "__call__", refused)

    async def go() -> Any:
        memory = ChromaMemory(path=str(tmp_path / "c"))
        await memory.learn(turn("a", "b"))
        assert texts(await memory.get_blocks(ContextQuery("a b"))) == ["a\nb"]
        # what Chroma was told is not shown otherwise
        telemetry = memory.index.store._client.get_settings().anonymized_telemetry
        await memory.close()
        return telemetry

    assert run_sync(go()) is False


def test_an_agent_reads_before_each_step_and_writes_after_it(tmp_path):
    def graph() -> RootGraph:
        made = RootGraph("chat")
        memory = {"type": "chroma_memory", "path": str(tmp_path / "c"), "context_label": "MEMORY"}
        agent = made.create_node(
            Agent, name="agent", model=Mirror(), memories=[memory], prompt_template="{message}"
        )
        made.edge_from_entry(agent, ["message"])
        made.edge_to_exit(agent, ["answer"])
        return made.build()

    assert "(MEMORY)" not in graph().invoke({"message": "tea is green"})[0]["answer"]
    # another graph, another client
    assert "(MEMORY) tea is green" in graph().invoke({"message": "what is tea?"})[0]["answer"]


class Mirror:
    """A model that answers with what it was shown."""

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        return Reply(text=json.dumps({"answer": str(request.messages[-1]["content"])}))


def test_fifty_runs_at_once_lose_nothing_and_mix_nothing(tmp_path):
    memory = ChromaMemory(path=str(tmp_path / "c"), namespace=["user"], remember="turn")
    graph = RootGraph("chat")
    agent = graph.create_node(
        Agent,
        name="agent",
        model=Mirror(),
        memories=[memory],
        prompt_template="{message}",
        hide_unused_fields=True,
    )
    graph.edge_from_entry(agent, ["message", "user"])
    graph.edge_to_exit(agent, ["answer"])
    graph.build()
    rounds = 3

    async def talk(user: str) -> list[str]:
        said: list[str] = []
        for number in range(rounds):
            result = await graph.run({"message": f"word{number} of {user}.", "user": user})
            said.append(result.output["answer"])
        return said

    async def go() -> list[list[str]]:
        said = await asyncio.gather(*(talk(f"user{n}") for n in range(50)))
        for n in range(50):
            query = ContextQuery("word", {"user": f"user{n}"})
            assert len(await memory.get_blocks(query, 100)) == rounds
        assert len(await memory.index.marks(["axil:memory"])) == 50 * rounds
        await memory.close()
        return said

    for n, said in enumerate(run_sync(go())):
        assert all(set(re.findall(r"user\d+", each)) == {f"user{n}"} for each in said)
        assert "word0" in said[1]
        assert "word1" in said[2]


PROGRAM = """
import asyncio, sys
from axil_models import ContextQuery, Turn
from axil_chroma import ChromaMemory
from axil_context import LexicalEmbedder

async def main():
    memory = ChromaMemory(path=sys.argv[1], embedder=LexicalEmbedder())
    number = 0
    while True:
        query = ContextQuery("fact", run_id="r")
        await memory.learn(Turn(query=query, reply=f"fact number {number}", number=number))
        print(number, flush=True)
        number += 1

asyncio.run(main())
"""


def test_what_was_written_before_a_kill_is_there_afterwards(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "c")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 5:
                process.send_signal(signal.SIGKILL)
                break

    async def go() -> None:
        memory = ChromaMemory(path=str(tmp_path / "c"))
        found = texts(await memory.get_blocks(ContextQuery("fact number"), 1000))
        assert set(found) >= {f"fact\nfact number {n}" for n in range(6)}
        await memory.learn(turn("and", "it goes on"))
        assert "and\nit goes on" in texts(await memory.get_blocks(ContextQuery("it goes on"), 1000))
        await memory.close()

    run_sync(go())


def test_a_place_is_a_folder_or_a_server():
    for wrong in ({}, {"path": "x", "host": "y"}):
        with pytest.raises(ValueError, match="expected path or host, one of them"):
            ChromaMemory(**wrong)


def test_a_server_that_is_not_there_is_named():
    memory = ChromaMemory(host="127.0.0.1", port=1)
    with pytest.raises(ContextError, match=r"AX911 the store 127\.0\.0\.1:1 cannot be opened"):
        run_sync(memory.get_blocks(ContextQuery("x")))


def test_a_collection_that_somebody_deletes_is_made_anew_with_all_documents(tmp_path):
    """So does a server forget all that begins anew without a disk."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("Axils are angles.", "utf-8")

    async def go() -> None:
        retriever = ChromaRetriever(path=str(tmp_path / "store"), paths=[str(tmp_path / "docs")])
        memory = ChromaMemory(path=str(tmp_path / "store"))
        for _ in range(2):
            assert texts(await retriever.get_blocks(ContextQuery("axils"))) == ["Axils are angles."]
            await memory.learn(turn("tea?", "Have tea."))
            assert len(await memory.get_blocks(ContextQuery("tea"))) == 1
            for store in (retriever.index.store, memory.index.store):
                store._client.delete_collection(store.name)
        await retriever.close()
        await memory.close()

    run_sync(go())


def test_a_run_that_ends_takes_no_client_from_another_that_uses_it(tmp_path):
    memory, begun, goes_on = ChromaMemory(path=str(tmp_path)), threading.Event(), threading.Event()
    store = memory.index.store

    def counted() -> int:
        found = store._opened()
        begun.set()
        goes_on.wait(60)
        return found.count()

    async def go() -> None:
        await memory.learn(turn("tea?", "Have tea."))
        use = asyncio.ensure_future(store._asked(counted))
        await asyncio.to_thread(begun.wait, 60)
        await memory.close()
        goes_on.set()
        assert await use == 2  # the turn, and whose vectors they are
        assert not store._left

    run_sync(go())
