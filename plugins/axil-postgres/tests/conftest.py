"""A PostgreSQL server for these tests, where one can be started; they are skipped elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from axil_postgres import PostgresJournal

from .server import Server, start_server

_COUNT = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    given = start_server()
    if given is None:
        pytest.skip("there is no PostgreSQL server to start")
    yield given
    given.close()


@pytest.fixture
def journals(server: Server) -> Iterator[Callable[..., PostgresJournal]]:
    """Return what makes journals, each in tables of its own."""
    made: list[PostgresJournal] = []

    def make(**settings: Any) -> PostgresJournal:
        settings.setdefault("tables", f"t{next(_COUNT)}")
        settings.setdefault("lease_seconds", 60.0)  # however busy the machine is
        cipher = settings.pop("cipher", None)
        made.append(PostgresJournal(server.url, cipher=cipher, **settings))
        return made[-1]

    yield make
    for journal in made:
        journal.close()
