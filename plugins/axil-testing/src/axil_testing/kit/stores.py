"""The laws of a store: rows with vectors, tags and marks.

    class TestRows(StoreKit):
        persists = True

        def make(self):
            return Rows(path=str(self.folder / "rows"))

Each law uses a store of its own: ``make`` gives one whose place is below ``self.folder``, or has
``self.name`` in it where a server keeps it.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, TypeVar

import pytest

from axil.plugin import is_async
from axil_models import ContextQuery, Hit, Row, call_async
from axil_testing.kit.base import Kit, claimed, require

T = TypeVar("T")
STRANGE: Final = (
    "it's",
    '"quoted"',
    "a,b;c=d",
    "100%_",
    "\\back\\slash",
    "{tag}",
    "$where",
    "#document",
    "'); DROP TABLE rows; --",
    "[1, 2]",
    "x" * 200,
)
"""Tags and ids that a query language might read as something else."""
_EXACT: Final = 1e-3
"""The largest difference of a score from the cosine: stores keep numbers of 32 bits."""


def near(*numbers: float) -> list[float]:
    """Return a vector of length 1 in eight dimensions that begins with ``numbers``."""
    vector = [*numbers, *[0.0] * (8 - len(numbers))]
    length = sum(number * number for number in vector) ** 0.5
    return [number / length for number in vector]


class StoreKit(Kit):
    """The laws of stores."""

    kind = "stores"
    persists: ClassVar[bool] = False
    """Keep its rows when it is made again on the same ``folder`` and ``name``."""
    many: ClassVar[int] = 2000
    """The number of rows that are put at once; fewer, where each takes long."""

    @cached_property
    def name(self) -> str:
        """A name of this test's own, for stores on a server."""
        return f"kit_{secrets.token_hex(8)}"

    def clear(self) -> None:
        """Remove what a law has left on a server."""

    # -- how it is used

    def using(self, law: Callable[[_Used], Awaitable[T]]) -> T:
        """Return the result of a law about a new store; closed afterwards."""

        async def used() -> T:
            store = _Used(self.make())
            try:
                return await law(store)
            finally:
                await store.close()

        return self.wait(used())

    def about(self, law: Callable[[_Used], Awaitable[None]]) -> None:
        """Hold a new store to a law, and remove it."""
        try:
            self.using(law)
        finally:
            self.clear()

    # -- laws

    def test_an_empty_store_gives_nothing(self) -> None:
        """Before anything was put, each question has an answer."""

        async def law(store: _Used) -> None:
            require(await store.search(near(1), 3) == [], "an empty store gives rows.")
            require(await store.marks() == {}, "an empty store gives marks.")
            await store.delete(["never there"])
            await store.upsert([])

        self.about(law)

    def test_the_nearest_come_first_with_their_cosine(self) -> None:
        """Give no more than was asked for, nearest first; data is given back as it was."""
        rows = [
            Row(id="same", vector=near(1), data='{"text": "\\u00e9\\n\\ud800"}'),
            Row(id="near", vector=near(1, 1), data="near"),
            Row(id="across", vector=near(0, 1), data=""),
            Row(id="opposite", vector=near(-1), data="x" * 100_000),
        ]

        async def law(store: _Used) -> None:
            await store.upsert(rows)
            found = await store.search(near(1), 10)
            require(
                [(hit.id, hit.data) for hit in found] == [(row.id, row.data) for row in rows],
                f"asked for the rows near the first, it gave {[hit.id for hit in found]}.",
            )
            for hit, cosine in zip(found, (1.0, 0.5**0.5, 0.0, -1.0), strict=True):
                require(
                    abs(hit.score - cosine) < _EXACT,
                    f"the score of {hit.id} is {hit.score}; its cosine is {cosine:.4f}.",
                )
            for top_k in (1, 2):
                ids = [hit.id for hit in await store.search(near(1), top_k)]
                require(
                    ids == [row.id for row in rows[:top_k]],
                    f"asked for the nearest {top_k}, it gave {ids}.",
                )

        self.about(law)

    def test_a_row_replaces_the_one_with_its_id(self) -> None:
        """Nothing is left of the old one: vector, data, tags and mark."""

        async def law(store: _Used) -> None:
            for vector, word in ((near(1), "old"), (near(0, 1), "new")):
                await store.upsert(
                    [Row(id="a", vector=vector, data=word, tags=(word, "both"), mark=word)]
                )
            found = await store.search(near(0, 1), 5)
            require([(h.id, h.data) for h in found] == [("a", "new")], f"it holds {found}.")
            require(found[0].score > 1 - _EXACT, "it kept the old vector.")
            require(await store.marks(["both"]) == {"a": "new"}, "it kept the old mark.")
            require(await store.marks(["old"]) == {}, "it kept the old tags.")
            require(await store.search(near(1), 5, ["old"]) == [], "it kept the old tags.")

        self.about(law)

    def test_deleted_rows_are_gone(self) -> None:
        """Ids that are not there are passed over."""

        async def law(store: _Used) -> None:
            await store.upsert([Row(id=id, vector=near(1), tags=("t",)) for id in ("a", "b", "c")])
            await store.delete(["a", "never there", "c"])
            found = [hit.id for hit in await store.search(near(1), 5, ["t"])]
            require(found == ["b"], f"of a, b and c, with a and c deleted, it gives {found}.")
            require(set(await store.marks(["t"])) == {"b"}, "the mark of a deleted row is left.")

        self.about(law)

    def test_tags_select_before_rows_are_counted(self) -> None:
        """Give what has all tags; what lacks one takes no place, however near it is."""
        rows = [
            Row(id=f"nearer {n}", vector=near(1, n / 1000), tags=("kind", f"n={n}"), mark="nearer")
            for n in range(120)
        ]
        rows.append(Row(id="far", vector=near(-1), tags=("kind", "wanted"), mark="far"))

        async def law(store: _Used) -> None:
            await store.upsert(rows)
            for tags in (["wanted"], ["kind", "wanted"], ["wanted", "kind"]):
                found = [hit.id for hit in await store.search(near(1), 3, tags)]
                require(found == ["far"], f"asked for rows with {tags}, it gave {found}.")
                marks = await store.marks(tags)
                require(marks == {"far": "far"}, f"the marks of rows with {tags} are {marks}.")
            for tags in (["wanted", "n=1"], ["never"]):
                require(
                    await store.search(near(1), 3, tags) == [] and await store.marks(tags) == {},
                    f"no row has {tags}, and it gave some.",
                )
            require(len(await store.marks(["kind"])) == 121, "it gives too few marks.")

        self.about(law)

    def test_any_text_is_only_text(self) -> None:
        """No id and no tag is read as anything else."""

        async def law(store: _Used) -> None:
            await store.upsert(
                [
                    Row(id=text, vector=near(1), data=text, tags=(text, "all"), mark=text[:40])
                    for text in STRANGE
                ]
            )
            for text in STRANGE:
                found = [(hit.id, hit.data) for hit in await store.search(near(1), 5, [text])]
                require(found == [(text, text)], f"asked for the tag {text!r}, it gave {found}.")
            await store.delete(list(STRANGE[1:]))
            left = await store.marks(["all"])
            require(left == {STRANGE[0]: STRANGE[0]}, f"with all but one deleted, it has {left}.")

        self.about(law)

    def test_many_rows_are_put_marked_and_deleted_at_once(self) -> None:
        """However many a statement of the database can hold."""
        rows = [
            Row(id=str(n), vector=near(1, n), tags=("t",), mark=str(-n)) for n in range(self.many)
        ]

        async def law(store: _Used) -> None:
            await store.upsert(rows)
            marks = await store.marks(["t"])
            require(
                marks == {row.id: row.mark for row in rows},
                f"of {len(rows)} rows it gives {len(marks)} marks.",
            )
            await store.delete([row.id for row in rows[1:]])
            left = await store.marks(["t"])
            require(left == {"0": "0"}, f"with all but one deleted, it has {len(left)} rows.")

        self.about(law)

    def test_it_serves_several_threads_and_event_loops(self) -> None:
        """One call after another, or async ones side by side, from wherever they come."""
        made = self.make()
        turn = threading.Lock()

        def work(number: int) -> None:
            async def go() -> None:
                store = _Used(made, turn)
                await store.upsert([Row(id=str(number), vector=near(1), tags=("t",))])
                await store.search(near(1), 3, ["t"])

            asyncio.run(go())

        try:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            async def seen() -> None:
                store = _Used(made)
                found = set(await store.marks(["t"]))
                await store.close()
                require(
                    found == {"0", "1", "2", "3"}, f"four threads put a row each; it has {found}."
                )

            self.wait(seen())
        finally:
            self.clear()

    @claimed("persists")
    def test_what_was_put_is_there_when_it_is_made_again(self) -> None:
        """Closed and opened, and used again after it was closed."""
        row = Row(id="a", vector=near(1), data="kept", tags=("t",), mark="m")

        async def put(store: _Used) -> None:
            await store.upsert([row])
            await store.close()
            require(await store.marks(["t"]) == {"a": "m"}, "closed, it cannot be used again.")

        async def found(store: _Used) -> None:
            hits = [(hit.id, hit.data) for hit in await store.search(near(1), 5, ["t"])]
            require(hits == [("a", "kept")], f"made again, it gives {hits}.")

        try:
            self.using(put)
            self.using(found)
        finally:
            self.clear()

    @claimed("persists")
    def test_a_retriever_finds_in_it_what_it_was_given(self) -> None:
        """Made again, the documents are there, unchanged. Needs axil-context."""
        retrieval: Any = pytest.importorskip("axil_context", reason="axil-context is missing")
        documents = [
            {"text": f"Sheet {n} is about {topic}.", "uri": f"{n}", "metadata": {"tags": [topic]}}
            for n, topic in enumerate(("ferns", "mosses", "lichens"))
        ]

        async def law() -> list[str]:
            retriever = retrieval.StoreRetriever(
                store=self.make(), embedder=retrieval.LexicalEmbedder(), documents=documents
            )
            changed = await retriever.refresh()
            found = await retriever.get_blocks(ContextQuery("a sheet about mosses"), 1)
            filtered = ContextQuery("a sheet about mosses", filters={"tags": ["lichens"]})
            found += await retriever.get_blocks(filtered, 5)
            uris = [block.uri for block in found]
            require(uris == ["1", "2"], f"of mosses, and of lichens, it finds {uris}.")
            await _Used(retriever.index.store).close()
            return changed

        try:
            first, again = self.wait(law()), self.wait(law())
            require(first == ["0", "1", "2"], f"of three new documents {first} are indexed.")
            require(again == [], f"made again, {again} are indexed once more.")
        finally:
            self.clear()


class _Used:
    """A store as an index calls it: plain methods in threads, one at a time."""

    def __init__(self, store: Any, turn: Any = None) -> None:
        self._store = store
        self._turn = turn or threading.Lock()

    async def upsert(self, rows: Sequence[Row]) -> None:
        """Add or replace rows."""
        await self._call(self._store.upsert, rows)

    async def search(
        self, vector: Sequence[float], top_k: int, tags: Sequence[str] = ()
    ) -> list[Hit]:
        """Return the hits of a search."""
        return list(await self._call(self._store.search, vector, top_k, list(tags)))

    async def delete(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        await self._call(self._store.delete, ids)

    async def marks(self, tags: Sequence[str] = ()) -> Mapping[str, str]:
        """Return the marks of rows."""
        return dict(await self._call(self._store.marks, list(tags)))

    async def close(self) -> None:
        """Close it, if it can be closed."""
        if hasattr(self._store, "close"):
            await self._call(self._store.close)

    async def _call(self, method: Any, *given: Any) -> Any:
        def alone() -> Any:
            with self._turn:
                return method(*given)

        return await (method(*given) if is_async(method) else call_async(alone))
