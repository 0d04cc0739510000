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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axil import RootGraph, run_sync
from axil_agent import Agent
from axil_chroma import ChromaMemory, ChromaRetriever
from axil_models import ContextBlock, ContextError, ContextQuery, Reply, Turn
from axil_retrieval import LexicalEmbedder

pytest.importorskip("chromadb", reason="chromadb cannot be installed here")


class Counting:
    """The lexical embedder, counting."""

    def __init__(self, name: str = "counting", dimensions: int = 64) -> None:
        self._inner = LexicalEmbedder(dimensions=dimensions)
        self.name, self.dimensions = name, dimensions
        self.texts: list[str] = []
        self.calls = 0

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        self.calls += 1
        self.texts += texts
        return await self._inner.embed(texts)


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


def test_a_thousand_documents_indexed_twice_are_embedded_once(tmp_path):
    documents = [
        {"text": f"Document {n} is about topic{n % 97} and number{n}.", "uri": f"doc-{n}"}
        for n in range(1000)
    ]
    counting = Counting()

    async def indexed() -> tuple[list[str], list[str]]:
        retriever = ChromaRetriever(
            path=str(tmp_path / "c"), documents=documents, embedder=counting, batch=100
        )
        changed = await retriever.refresh()
        found = await retriever.get_blocks(ContextQuery("number417"), 1)
        await retriever.close()
        return changed, texts(found)

    changed, found = run_sync(indexed())
    assert (len(changed), counting.calls, len(counting.texts)) == (1000, 11, 1001)
    assert found == ["Document 417 is about topic29 and number417."]
    counting.texts.clear()
    changed, again = run_sync(indexed())
    assert (changed, counting.texts, again) == ([], ["number417"], found)


def test_only_what_has_changed_is_embedded_again(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(
            f"# {name}\nthe first text of {name}\n# more\nother", "utf-8"
        )
    counting = Counting()
    settings = {
        "path": str(tmp_path / "c"),
        "paths": [str(folder)],
        "embedder": counting,
        "refresh": "query",
    }

    async def go() -> None:
        retriever = ChromaRetriever(**settings)
        await retriever.get_blocks(ContextQuery("first"))
        counting.texts.clear()
        (folder / "a.md").write_text("# a\na second text\n# more\nother", "utf-8")
        (folder / "b.md").unlink()
        (folder / "d.txt").write_text("something new", "utf-8")
        found = await retriever.get_blocks(ContextQuery("text"), 50)
        assert sorted(counting.texts) == sorted(
            ["# a\na second text", "# more\nother", "something new", "text"]
        )
        uris = {
            Path(str(block.uri)).name
            for block in await retriever.get_blocks(ContextQuery("text other something"), 50)
        }
        assert uris == {"a.md", "c.md", "d.txt"}
        assert "# a\nthe first text of a" not in texts(found)
        counting.texts.clear()
        await ChromaRetriever(**{**settings, "chunk_chars": 400}).refresh()
        assert len(counting.texts) == 5  # cut otherwise, all is made anew
        await retriever.close()

    run_sync(go())


def test_a_block_leads_back_to_its_file_and_place(tmp_path):
    text = (
        "\r\n# Häuser\r\n\r\n"
        + "Ein Satz über Häuser. " * 40
        + "\r\n# Bäume\r\nEin Satz über Bäume."
    )
    (tmp_path / "d.md").write_bytes(text.encode())

    async def go() -> list[ContextBlock]:
        retriever = ChromaRetriever(
            path=str(tmp_path / "c"),
            paths=[str(tmp_path / "d.md")],
            chunk_chars=200,
            overlap_chars=20,
        )
        found = await retriever.get_blocks(ContextQuery("Satz über Bäume Häuser"), 50)
        await retriever.close()
        return found

    found = run_sync(go())
    assert len(found) > 4
    for block in found:
        start, end = map(int, str(block.chunk_id).split("-"))
        assert Path(str(block.uri)).read_bytes().decode()[start:end] == block.text
        assert block.metadata["provider"] == "chroma"
        assert (block.metadata["start"], block.metadata["end"]) == (start, end)


def test_indexing_that_was_cut_off_is_finished_by_the_next(tmp_path):
    class FailsOnce(Counting):
        fails = True

        async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            if self.calls == 2 and self.fails:
                self.fails = False
                raise ConnectionError("the line is dead")
            return await super().embed(texts)

    embedder = FailsOnce()
    retriever = ChromaRetriever(
        path=str(tmp_path / "c"),
        documents=[f"text number {n}" for n in range(10)],
        embedder=embedder,
        batch=3,
    )

    async def go() -> None:
        with pytest.raises(ConnectionError):
            await retriever.get_blocks(ContextQuery("text"), 50)
        assert len(await retriever.get_blocks(ContextQuery("text"), 50)) == 10
        assert len(embedder.texts) == 3 + 3 + 4 + 1  # what had been kept is not embedded again
        await retriever.close()

    run_sync(go())


def test_blocks_below_the_threshold_are_left_out(tmp_path):
    async def go(least: float | None) -> list[str]:
        retriever = ChromaRetriever(
            path=str(tmp_path / "c"), documents=["a red fox", "green tea"], min_score=least
        )
        found = await retriever.get_blocks(ContextQuery("a red fox runs"), 5)
        await retriever.close()
        return texts(found)

    assert run_sync(go(None)) == ["a red fox", "green tea"]
    assert run_sync(go(0.5)) == ["a red fox"]
    assert run_sync(go(0.99)) == []


def test_filters_of_every_kind_are_kept_to(tmp_path):
    odd: dict[str, Any] = {
        "n": 2**70,
        "list": [1, 2],
        "none": None,
        "flag": True,
        "score": 1.5,
        "lang": "en",
        "nested": {"a": 1},
    }
    documents = [
        {"text": "the same text", "uri": "one", "metadata": odd},
        {"text": "the same text", "uri": "two", "metadata": {"lang": "de"}},
    ]

    async def go() -> None:
        retriever = ChromaRetriever(path=str(tmp_path / "c"), documents=documents)
        for name, value in odd.items():
            found = await retriever.get_blocks(
                replace(ContextQuery("same text"), filters={name: value}), 5
            )
            assert [block.uri for block in found] == ["one"], name
            assert found[0].metadata[name] == value
        assert (
            await retriever.get_blocks(
                replace(ContextQuery("same text"), filters={"lang": "fr"}), 5
            )
            == []
        )
        await retriever.close()

    run_sync(go())


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dimensions"), [("other", 64), ("counting", 32)])
def test_another_embedder_is_refused(tmp_path, name, dimensions):
    async def go(embedder: Counting) -> None:
        memory = ChromaMemory(path=str(tmp_path / "c"), embedder=embedder)
        try:
            await memory.learn(turn("a", f"b {embedder.name}"))
        finally:
            await memory.close()

    run_sync(go(Counting()))
    other = Counting(name, dimensions)
    if name == "other":
        with pytest.raises(
            ContextError,
            match='AX910 the collection "memories" holds vectors of "counting", and the embedder '
            'is "other"',
        ):
            run_sync(go(other))
        assert other.texts == []  # refused before anything is embedded
    else:
        with pytest.raises(Exception, match="dimension"):
            run_sync(go(other))


def test_a_collection_of_somebody_elses_is_refused(tmp_path):
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(
        path=str(tmp_path / "c"), settings=Settings(anonymized_telemetry=False)
    )
    client.create_collection("memories", embedding_function=None)
    client.close()
    memory = ChromaMemory(path=str(tmp_path / "c"))
    with pytest.raises(ContextError, match=r"AX910 .* holds vectors of an unknown embedder"):
        run_sync(memory.get_blocks(ContextQuery("x")))
    run_sync(memory.close())


def test_an_embedder_that_gives_too_few_vectors_is_found_out(tmp_path):
    class Lazy(Counting):
        async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            return (await super().embed(texts))[:-1]

    memory = ChromaMemory(path=str(tmp_path / "c"), embedder=Lazy())
    with pytest.raises(ContextError, match="AX893"):
        run_sync(memory.learn(turn("a", "b")))
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
        telemetry = memory.store._client.get_settings().anonymized_telemetry
        await memory.close()
        return telemetry

    assert run_sync(go()) is False


# --------------------------------------------------------------------------------------------------


def test_the_newest_are_kept_of_each_namespace(tmp_path):
    async def go() -> None:
        memory = ChromaMemory(path=str(tmp_path / "c"), namespace=["user"], max_items=3)
        for number in range(6):
            await memory.learn(turn("tea?", f"tea number {number}", user="ann", number=number))
        await memory.learn(turn("tea?", "tea for bob", user="bob"))
        assert sorted(texts(await memory.get_blocks(ContextQuery("tea", {"user": "ann"}), 50))) == [
            f"tea?\ntea number {n}" for n in (3, 4, 5)
        ]
        await memory.put([ContextBlock(f"nobody's {n}", "kit", str(n)) for n in range(5)])
        assert len(await memory.get_blocks(ContextQuery("tea", {"user": "ann"}), 50)) == 3
        newest = await memory.get_blocks(ContextQuery("", {"user": "ann"}), 2)
        assert texts(newest) == ["tea?\ntea number 5", "tea?\ntea number 4"]
        assert texts(await memory.get_blocks(ContextQuery("tea", {"user": "bob"}), 50)) == [
            "tea?\ntea for bob"
        ]
        await memory.close()

    run_sync(go())


@pytest.mark.parametrize(
    "namespace", [["run"], ["session"], ["agent"], ["user"], ["agent", "user"]]
)
def test_memories_are_kept_apart_for_each_run_session_agent_and_user(tmp_path, namespace):
    def asked(who: dict[str, str]) -> ContextQuery:
        return ContextQuery(
            "tea",
            {"user": who["user"]},
            node_name=who["agent"],
            run_id=who["run"],
            session_id=who["session"],
        )

    one = {"run": "r1", "session": "s1", "agent": "a1", "user": "u1"}
    others = [{**one, name: one[name].replace("1", "2")} for name in one]

    async def go() -> None:
        memory = ChromaMemory(path=str(tmp_path / "c"), namespace=namespace)
        for number, who in enumerate((one, *others)):
            await memory.learn(Turn(query=asked(who), reply=f"tea of {number}", number=number))
        mine = texts(await memory.get_blocks(asked(one), 50))
        shared = [
            number
            for number, who in enumerate(others, 1)
            if all(who[name] == one[name] for name in namespace)
        ]
        assert sorted(mine) == [f"tea\ntea of {number}" for number in (0, *shared)]
        held = await memory.get_blocks(asked(one), 50)
        await memory.delete([block for block in held if block.text.endswith("of 0")])
        assert len(await memory.get_blocks(asked(one), 50)) == len(shared)
        await memory.close()

    run_sync(go())


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


def test_what_one_user_says_is_no_filter_for_another(tmp_path):
    """A namespace is stronger than what a query asks for."""

    async def go() -> list[str]:
        memory = ChromaMemory(path=str(tmp_path / "c"), namespace=["user"])
        await memory.learn(turn("pin?", "the pin is 1234", user="ann"))
        query = ContextQuery("pin", {"user": "bob"}, filters={"owner_user": "ann"})
        found = texts(await memory.get_blocks(query, 50))
        await memory.close()
        return found

    assert run_sync(go()) == []


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
        assert await memory.store.count({}) == 50 * rounds
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
from axil_retrieval import LexicalEmbedder

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
            for store in (retriever.store, memory.store):
                store._client.delete_collection(store.name)
        await retriever.close()
        await memory.close()

    run_sync(go())


def test_a_run_that_ends_takes_no_client_from_another_that_uses_it(tmp_path):
    memory, begun, goes_on = ChromaMemory(path=str(tmp_path)), threading.Event(), threading.Event()

    def counted() -> int:
        found = memory.store._opened()
        begun.set()
        goes_on.wait(60)
        return found.count()

    async def go() -> None:
        await memory.learn(turn("tea?", "Have tea."))
        use = asyncio.ensure_future(memory.store._asked(counted))
        await asyncio.to_thread(begun.wait, 60)
        await memory.close()
        goes_on.set()
        assert await use == 1
        assert not memory.store._left

    run_sync(go())
