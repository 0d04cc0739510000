"""The engine passes the conformance kit on a real server."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from axil import Workflow
from axil_journals import MemoryJournal
from axil_temporal import TemporalEngine
from axil_testing.kit import EngineKit

from .conftest import Server

_COUNT = itertools.count()


class TestTemporal(EngineKit):
    nap_seconds = 0.6  # by the clock of the server

    @pytest.fixture(autouse=True)
    def _server(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)

    def make(self, workflows: Sequence[Workflow] = (), beside: Any = None) -> Any:
        journal = MemoryJournal() if beside is None else beside.journal
        queue = f"kit{next(_COUNT)}" if beside is None else beside.queue
        return TemporalEngine(journal, workflows, queue=queue, patience_seconds=0.05)
