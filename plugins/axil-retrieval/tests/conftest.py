"""A registry that knows this distribution, as its pyproject.toml names its components, whatever
else is installed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from axil.plugin import Registry, use_registry

# Laws are not about seconds: a slow machine is no counterexample. A failure prints how to repeat
# it.
settings.register_profile(
    "axil", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("axil")

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry point, as the registry reads it."""

    name: str
    group: str
    value: str
    dist: Any


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and a formatter for agents."""
    dist = SimpleNamespace(name=PROJECT["name"], version=PROJECT["version"], requires=[])
    tables = {
        **PROJECT["entry-points"],
        "axil.formatters": {"twins": "axil_formatters.twins:Twins"},
    }
    entries = [
        Entry(name=n, group=group, value=v, dist=dist)
        for group, table in tables.items()
        for n, v in table.items()
    ]
    with use_registry(Registry(entry_points=entries)) as made:
        yield made
