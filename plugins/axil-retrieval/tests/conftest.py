"""A registry that knows this distribution, as its pyproject.toml names its components, whatever else is installed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axil.registry import Registry, use

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry point, as the registry reads it."""

    name: str
    group: str
    value: str
    dist: Any


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution."""
    dist = SimpleNamespace(name=PROJECT["name"], version=PROJECT["version"], requires=[])
    tables = PROJECT["entry-points"].items()
    with use(Registry(entry_points=[Entry(name=n, group=g, value=v, dist=dist) for g, table in tables for n, v in table.items()])) as made:
        yield made
