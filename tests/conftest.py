"""Marks of the tests of the whole."""

from __future__ import annotations

import os
import zlib

import pytest

_HAS_ALL = os.environ.get("AXIL_HYPOTHESIS") == "thorough"


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark ``third``."""
    config.addinivalue_line(
        "markers", "third: make test runs every third of the cases, make thorough all"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out two of three cases with the mark ``third``, by their names: the same each time."""
    if _HAS_ALL:
        return
    left = {
        id(item)
        for item in items
        if item.get_closest_marker("third") and zlib.crc32(item.name.encode()) % 3
    }
    config.hook.pytest_deselected(items=[item for item in items if id(item) in left])
    items[:] = [item for item in items if id(item) not in left]
