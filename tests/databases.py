"""Servers for tests outside of the members whose tests know how to start them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

_PLUGINS = Path(__file__).parents[1] / "plugins"


def member_module(name: str, file: str) -> Any:
    """Load a file of the tests of a member as a module."""
    spec = importlib.util.spec_from_file_location(name, _PLUGINS / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


@contextmanager
def postgres_server() -> Iterator[Any]:
    """Start a server and yield it, with its ``url``; skip the test where none can be started."""
    server = member_module("axil_postgres_server", "axil-postgres/tests/server.py").start_server()
    if server is None:
        pytest.skip("there is no PostgreSQL server to start")
    with closing(server):
        yield server


@contextmanager
def temporal_server(folder: Path) -> Iterator[Any]:
    """Start a server and yield it, with its ``address``; skip the test where none can be."""
    pytest.importorskip("temporalio")
    module = member_module("axil_temporal_server", "axil-temporal/tests/conftest.py")
    found = module.program()
    if found is None:
        pytest.skip("the program `temporal` is not installed")
    server = module.Server(found, folder)
    try:
        yield server
    finally:
        server.kill()
