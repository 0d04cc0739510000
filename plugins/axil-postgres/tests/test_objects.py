"""Large values, which are kept as objects and go with their runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from axil.plugin import JournalError
from axil_journals import Bucket, Entry
from axil_postgres import PostgresJournal

Journals = Callable[..., PostgresJournal]
pytest.importorskip("obstore")


def test_a_large_value_is_an_object_until_its_run_is_forgotten(
    journals: Journals, tmp_path: Path
) -> None:
    objects = f"file://{tmp_path}/objects"
    journal, large = journals(objects=objects), "ü" * 300_000

    async def go() -> None:
        writer = journal.open("r")
        writer.append(Entry("run", data={"graph": "g", "input": large, "digest": "d"}))
        await writer.kept()
        writer.append(Entry("ended", data={"status": "done"}))
        await writer.kept()
        writer.close()

    asyncio.run(go())
    rows = journal.writer.database.rows
    assert rows("select max(length(body)) < 200 from entries") == [(True,)]
    bucket = Bucket(objects)
    (name,) = bucket.names("runs/")
    other = journals(objects=objects, tables=journal.config.tables)
    assert other.entries("r")[0].data["input"] == large
    with pytest.raises(JournalError, match="AX511"):
        journals(tables=journal.config.tables).entries("r")
    kept = bucket.get(name)
    bucket.put(name, kept[:-1])
    assert "object" in other.examine()[0].problem
    bucket.put(name, kept)
    assert list(other.examine()) == []
    other.prune(1e12)
    assert list(bucket.names("runs/")) == []
