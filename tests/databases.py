"""A PostgreSQL server for tests outside of axil-postgres, which knows how to start one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

_START = Path(__file__).parents[1] / "plugins/axil-postgres/tests/server.py"


@contextmanager
def postgres_server() -> Iterator[Any]:
    """Start a server and yield it, with its ``url``; skip the test where none can be started."""
    spec = importlib.util.spec_from_file_location("axil_postgres_server", _START)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.start_server()
    if server is None:
        pytest.skip("there is no PostgreSQL server to start")
    with closing(server):
        yield server
