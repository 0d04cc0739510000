"""A registry that knows this distribution and the lexical embedder, and nothing else that is
installed; and no way out of the machine.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

from axil_testing.members import own_components


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and the embedder that is the default."""
    others = {
        "axil.embedders": {"lexical": "axil_context.retrieval.lexical:LexicalEmbedder"},
        "axil.formatters": {
            "json": "axil_models.formatters.json:Json",
            "paragraph": "axil_models.formatters.paragraph:Paragraph",
        },
    }
    with own_components(__file__, others) as made:
        yield made


class OutsideMark(AssertionError):
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
            raise OutsideMark(f"connects to {address}")
        return connect(self, address)

    def look_up_here(host: Any, *more: Any, **named: Any) -> Any:
        if not is_here(host):
            raise OutsideMark(f"looks up {host}")
        return look_up(host, *more, **named)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "getaddrinfo", look_up_here)
