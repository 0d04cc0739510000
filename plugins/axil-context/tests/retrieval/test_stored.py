"""Documents and blocks in a store: what is embedded, what is kept, what is refused."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil_context import (
    BlockIndex,
    Entry,
    IndexSettings,
    LexicalEmbedder,
    MemoryStore,
    StoreRetriever,
)
from axil_models import ContextBlock, ContextError, ContextQuery, Row, StoreLost


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


class Kept(MemoryStore):
    """Rows that outlive their retrievers, as those on a disk do; calls are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.read = 0
        """Rows that were read."""
        self.gone = False

    def upsert(self, rows: Sequence[Row], /) -> None:
        self._count("upsert")
        super().upsert(rows)

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> Any:
        self._count("search")
        found = super().search(vector, top_k, tags)
        self.read += len(found)
        return found

    def delete(self, ids: Sequence[str], /) -> None:
        self._count("delete")
        super().delete(ids)

    def marks(self, tags: Sequence[str], /) -> Mapping[str, str]:
        self._count("marks")
        found = super().marks(tags)
        self.read += len(found)
        return found

    def _count(self, name: str) -> None:
        if self.gone:
            self.gone = False
            self._rows.clear()
            raise StoreLost("AX911", "it is gone.")
        self.calls.append(name)


def texts(blocks: Sequence[ContextBlock]) -> list[str]:
    return [block.text for block in blocks]


# --------------------------------------------------------------------------------------------------


def test_reopened_unchanged_a_store_is_asked_for_two_rows_and_nothing_is_embedded():
    documents = [
        {"text": f"Document {n} is about topic{n % 97} and number{n}.", "uri": f"doc-{n}"}
        for n in range(300)
    ]
    store, counting, asked = Kept(), Counting(), "Document 217 is about topic23 and number217."

    async def indexed() -> tuple[list[str], list[str]]:
        retriever = StoreRetriever(store=store, documents=documents, embedder=counting, batch=100)
        changed = await retriever.refresh()
        store.calls.clear()
        store.read = 0
        again = await retriever.refresh()
        found = await retriever.get_blocks(ContextQuery(asked), 1)
        await retriever.close()
        return changed + again, texts(found)

    changed, found = run_sync(indexed())
    assert (len(changed), counting.calls, len(counting.texts)) == (300, 4, 301)
    assert found == [asked]
    counting.texts.clear()
    changed, again = run_sync(indexed())
    assert (changed, counting.texts, again) == ([], [asked], found)
    # the note; the space of its vectors; the search, with the two rows of the index's own
    assert (store.calls, store.read) == (["marks", "marks", "search"], 1 + 1 + 3)
    documents[7] = {"text": "Something else.", "uri": "doc-7"}
    counting.texts.clear()
    assert run_sync(indexed())[0] == ["doc-7"]
    assert counting.texts == ["Something else.", asked]


def test_what_does_not_fit_a_filter_is_never_fetched():
    """Let the store select, whatever the value is."""
    wanted: dict[str, Any] = {"tags": ["a"], "n": 2**70, "owner": {"name": "x" * 500}}
    documents = [
        {"text": "the same text", "uri": f"doc-{n}", "metadata": {"tags": ["b"], "n": n}}
        for n in range(50)
    ]
    documents.append({"text": "the same text", "uri": "one", "metadata": wanted})
    store = Kept()

    async def go() -> None:
        retriever = StoreRetriever(store=store, documents=documents)
        await retriever.refresh()
        for filters in ({name: value} for name, value in wanted.items()):
            store.read = 0
            found = await retriever.get_blocks(
                replace(ContextQuery("same text"), filters=filters), 5
            )
            assert [block.uri for block in found] == ["one"]
            assert store.read <= 2

    run_sync(go())


def test_only_what_has_changed_is_embedded_again(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(
            f"# {name}\nthe first text of {name}\n# more\nother", "utf-8"
        )
    counting = Counting()
    settings = {
        "store": Kept(),
        "paths": [str(folder)],
        "embedder": counting,
        "refresh": "query",
    }

    async def go() -> None:
        retriever = StoreRetriever(**settings)
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
        await StoreRetriever(**{**settings, "chunk_chars": 400}).refresh()
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
        retriever = StoreRetriever(
            store=Kept(),
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
        assert block.metadata["provider"] == "store"
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
    retriever = StoreRetriever(
        store=Kept(),
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
        retriever = StoreRetriever(documents=["a red fox", "green tea"], min_score=least)
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
        retriever = StoreRetriever(store=Kept(), documents=documents)
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


@pytest.mark.parametrize(
    "other", [Counting("other", 64), Counting("counting", 32)], ids=["name", "length"]
)
def test_another_embedder_is_refused_before_anything_is_embedded(other):
    store = Kept()
    block = ContextBlock("a", "kit", "1")
    run_sync(StoreRetriever(store=store, embedder=Counting()).put([block]))
    strange = StoreRetriever(store=store, embedder=other)
    mine = re.escape(f'"{other.name}" ({other.dimensions} numbers)')
    message = rf'of "counting" \(64 numbers\), and the embedder is {mine}'
    for act in (strange.put([block]), strange.get_blocks(ContextQuery("a"))):
        with pytest.raises(ContextError, match=f"AX910 the store of store holds vectors {message}"):
            run_sync(act)
    assert other.texts == []


def test_of_two_embedders_that_begin_at_once_one_is_refused():
    """Leave nothing behind of the one that lost."""

    class Late(Kept):
        """Another process writes before this one does."""

        def upsert(self, rows: Sequence[Row], /) -> None:
            if "upsert" not in self.calls:
                self.calls.append("upsert")
                run_sync(StoreRetriever(store=self, embedder=Counting("first")).put([block]))
            super().upsert(rows)

    block, store = ContextBlock("a", "kit", "1"), Late()
    second = StoreRetriever(store=store, embedder=Counting("second"))
    with pytest.raises(ContextError, match=r'AX910 .* vectors of "first"'):
        run_sync(second.put([block]))
    spaces = [json.loads(mark)[1] for mark in store.marks(["axil:space"]).values()]
    assert spaces == ["first"]


def test_rows_that_are_gone_are_made_again():
    """So does a server forget all that begins anew without a disk."""
    store = Kept()
    retriever = StoreRetriever(store=store, documents=["Axils are angles."])

    async def go() -> None:
        for _ in range(3):
            assert texts(await retriever.get_blocks(ContextQuery("axils"))) == ["Axils are angles."]
            store.gone = True

    run_sync(go())


def test_an_embedder_that_gives_too_few_vectors_is_found_out(tmp_path):
    class Lazy(Counting):
        async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
            return (await super().embed(texts))[:-1]

    retriever = StoreRetriever(documents=["a"], embedder=Lazy())
    with pytest.raises(ContextError, match="AX893"):
        run_sync(retriever.refresh())


class Slow(Kept):
    """A store whose searches wait."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()
        self.is_closed = False

    def search(self, vector: Sequence[float], top_k: int, tags: Sequence[str], /) -> Any:
        found = super().search(vector, top_k, tags)
        self.is_asked.set()
        assert self.may_answer.wait(30)
        return found

    def close(self) -> None:
        self.is_closed = True


def test_a_cancelled_search_is_not_made_and_a_cancelled_close_is():
    """Before their turn. Else a store would stay open, or be opened again that was closed."""
    store = Slow()
    index = BlockIndex(IndexSettings(), store, "documents", "here", owns=True)

    def in_threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "alone"]

    async def begun(doing: Any) -> asyncio.Future[Any]:
        """Return it as a task, whose call of the store waits in a thread."""
        # one of before may end meanwhile
        before, task = set(in_threads()), asyncio.ensure_future(doing)
        while before.issuperset(in_threads()):  # noqa: ASYNC110  # no event says that it is there
            await asyncio.sleep(0.001)
        return task

    async def go() -> None:
        store.may_answer.set()
        block = ContextBlock("Ferns, and mosses.", uri="ferns")
        await index.put([Entry(block=block)])
        await index.search("ferns", 1, {})
        store.may_answer.clear()
        store.is_asked.clear()
        store.calls.clear()
        first = asyncio.ensure_future(index.search("ferns", 1, {}))
        assert await asyncio.to_thread(store.is_asked.wait, 30)
        waiting = [await begun(index.search("mosses", 1, {})), await begun(index.close())]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        store.may_answer.set()
        await first
        for thread in in_threads():
            thread.join(30)

    run_sync(asyncio.wait_for(go(), 60))
    assert store.calls.count("search") == 1
    assert store.is_closed
