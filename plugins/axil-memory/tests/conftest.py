"""A registry that knows this distribution and the index that its memories usually have, and nothing
else that is installed.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from axil.plugin import Registry, use_registry

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
INDEXES = {
    "axil.context": {
        "keyword": "axil_retrieval.keyword:KeywordRetriever",
        "vector": "axil_retrieval.vector:VectorRetriever",
    },
    "axil.formatters": {"twins": "axil_formatters.twins:Twins"},
    "axil.embedders": {"lexical": "axil_retrieval.lexical:LexicalEmbedder"},
    "axil.stores": {"memory": "axil_retrieval.rows:MemoryStore"},
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
    """The components of this distribution, and the usual indexes."""
    entries: list[Entry] = []
    for dist_name, tables in (
        (PROJECT["name"], PROJECT["entry-points"]),
        ("axil-retrieval", INDEXES),
    ):
        dist = SimpleNamespace(name=dist_name, version="0", requires=[])
        entries += [
            Entry(name=n, group=group, value=v, dist=dist)
            for group, table in tables.items()
            for n, v in table.items()
        ]
    with use_registry(Registry(entry_points=entries)) as made:
        yield made
