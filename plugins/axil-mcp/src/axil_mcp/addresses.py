"""Addresses that servers name: of resources, of pages for people, of logins."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from axil.plugin import is_hidden, legible

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS: Final = {"http": 80, "https": 443}
_LONGEST: Final = 2000
_SHOWN: Final = 200
_DOTS: Final = re.compile(r"(?:^|[/\\])\.{1,2}(?:$|[/\\?#])")


def is_plain_uri(uri: str) -> bool:
    """Return whether an address says where it leads: without hidden characters, and without
    segments ``..`` that lead out of what a pattern names.

    >>> is_plain_uri("docs://a/b"), is_plain_uri("docs://a/%2E%2e/b"), is_plain_uri("docs://..")
    (True, False, False)
    """
    for _ in range(3):  # a server may decode more than once
        if any(map(is_hidden, uri)) or "\n" in uri or _DOTS.search(uri):
            return False
        uri = unquote(uri)
    return True


def strange_address(own: str, other: str) -> str:
    """Return why nothing is sent to an address that a server names, such as that of a login; empty:
    it may be.

    Elsewhere than at the server only https will do, but for servers of this machine; and networks
    that are not public only for a server that is in one.

    >>> strange_address("https://a.example/mcp", "https://login.example/token")
    ''
    >>> strange_address("https://a.example/mcp", "http://127.0.0.1:1/token")
    'the server leads to "http://127.0.0.1:1", which is neither its own address nor https'
    """
    parts, mine = urlsplit(other), urlsplit(own)
    if _origin(parts) == _origin(mine):
        return ""
    if {parts.hostname, mine.hostname} <= LOOPBACK:
        may_be = parts.scheme in ("http", "https")
    else:  # a server of the internet leads nobody into networks that are not part of it
        may_be = parts.scheme == "https" and (_is_near(mine) or not _is_near(parts))
    if may_be and parts.username is None and parts.password is None:
        return ""
    place = legible(f"{parts.scheme}://{parts.netloc}")[:_SHOWN]
    return f'the server leads to "{place}", which is neither its own address nor https'


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _is_near(parts: SplitResult) -> bool:
    """Return whether an address is of this machine or its networks, as far as it says so."""
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def odd_address(address: str) -> str:
    """Return why a person is not sent to an address; empty: it is one of the web."""
    if len(address) > _LONGEST or legible(address) != address:
        return "its address is too long, or hides characters"
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return "its address is none"
    if parts.scheme != "https" and not (parts.scheme == "http" and host in LOOPBACK):
        return f'its address does not begin with https: "{address[:_SHOWN]}"'
    if not host or parts.username is not None or parts.password is not None or "\\" in address:
        return f'its address hides where it leads: "{address[:_SHOWN]}"'
    return ""


def host_of(address: str) -> str:
    """Return the host that an address leads to, in letters that look like no others.

    >>> host_of("https://ex\u0430mple.org/a")
    'xn--exmple-4nf.org'
    """
    host = urlsplit(address).hostname or ""
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return ascii(host)[1:-1]
