"""Shared fixtures: a registry that knows this distribution and the formatters, and a script for a
model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from axil.plugin import Registry, parse_json, use_registry
from axil_agent import Scripted

# Laws are not about seconds: a slow machine is no counterexample. A failure prints how to repeat
# it.
settings.register_profile(
    "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("axil")

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
FORMATTERS = {
    "json": "json:Json",
    "paragraph": "paragraph:Paragraph",
    "twins": "twins:Twins",
    "tagged": "tagged:Tagged",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry point, as the registry reads it."""

    name: str
    group: str
    value: str
    dist: Any


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, as its pyproject.toml names them, some formatters, and
    JSON files.
    """
    dist = SimpleNamespace(name=PROJECT["name"], version=PROJECT["version"], requires=[])
    tables = PROJECT["entry-points"].items()
    entries = [
        Entry(name=n, group=group, value=v, dist=dist)
        for group, table in tables
        for n, v in table.items()
    ]
    other = SimpleNamespace(name="axil-formatters", version="0", requires=[])
    entries += [
        Entry(name=n, group="axil.formatters", value=f"axil_formatters.{v}", dist=other)
        for n, v in FORMATTERS.items()
    ]
    made = Registry(entry_points=entries)
    made.register("loaders", "json", parse_json)
    with use_registry(made):
        yield made


@pytest.fixture
def script() -> Callable[..., Scripted]:
    """A model that gives these replies, in order."""
    return lambda *replies: Scripted(list(replies))
