"""Fixtures of this member's tests."""

from collections.abc import Iterator

import pytest

from axil_sqlite import SqliteJournal


@pytest.fixture(params=["full", "normal"])
def journal(request: pytest.FixtureRequest, tmp_path) -> Iterator[SqliteJournal]:
    made = SqliteJournal(tmp_path / "journal", sync=request.param)
    yield made
    made.close()
