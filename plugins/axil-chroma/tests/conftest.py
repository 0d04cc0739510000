"""A registry that knows this distribution and the lexical embedder, and nothing else that is
installed; and no way out of the machine.
"""

from __future__ import annotations

import ipaddress
import socket
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


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An entry point, as the registry reads it."""

    name: str
    group: str
    value: str
    dist: Any


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and the embedder that is the default."""
    tables = {
        **PROJECT["entry-points"],
        "axil.embedders": {"lexical": "axil_retrieval.lexical:LexicalEmbedder"},
        "axil.formatters": {
            "json": "axil_formatters.json:Json",
            "paragraph": "axil_formatters.paragraph:Paragraph",
        },
    }
    dist = SimpleNamespace(name=PROJECT["name"], version="0", requires=[])
    with use_registry(
        Registry(
            entry_points=[
                Entry(name=n, group=g, value=v, dist=dist)
                for g, table in tables.items()
                for n, v in table.items()
            ]
        )
    ) as made:
        yield made


class Outside(AssertionError):
    """An attempt to connect to another machine."""


@pytest.fixture(autouse=True)
def no_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections go to this machine or nowhere."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def is_here(host: Any) -> bool:
        try:
            return host in ("localhost", None, "") or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def connect_here(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple) and not is_here(address[0]):
            raise Outside(f"connects to {address}")
        return connect(self, address)

    def look_up_here(host: Any, *more: Any, **named: Any) -> Any:
        if not is_here(host):
            raise Outside(f"looks up {host}")
        return look_up(host, *more, **named)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "getaddrinfo", look_up_here)
