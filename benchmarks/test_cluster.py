"""Laws of workers at length: however they die, each run ends once, with its result."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from axil_postgres import PostgresJournal
from axil_sqlite import SqliteJournal

from .cluster import Soaked, database, soak

LONG = os.environ.get("AXIL_HYPOTHESIS") == "thorough"
pytestmark = pytest.mark.skipif(not LONG, reason="minutes: make thorough")


def is_whole(made: Soaked) -> None:
    assert made.stuck == [], made
    assert made.wrong == [], made
    assert made.strange == [], made
    assert made.is_sound, made.doctor
    assert (made.kills, made.stops > 0) == (60, True)


def test_no_run_on_postgresql_is_stuck_or_wrong_however_workers_die(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    with database() as server:
        if server is None:
            pytest.skip("there is no PostgreSQL server to start")
        journal = PostgresJournal(server.url)
        # asleep for longer than the lease
        made = asyncio.run(soak(journal, server.url, tmp_path, asleep_seconds=10.0))
        journal.close()
    print(made)
    record_property("soak", str(made))
    is_whole(made)


def test_no_run_on_sqlite_is_stuck_or_wrong_however_workers_die(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    place = tmp_path / "runs"
    journal = SqliteJournal(place)
    # asleep for longer than a process without a sign of life keeps its runs
    made = asyncio.run(soak(journal, str(place), tmp_path, asleep_seconds=35.0))
    journal.close()
    print(made)
    record_property("soak", str(made))
    is_whole(made)
