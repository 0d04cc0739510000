"""Network addresses that may be reached: public ones, and those that the config names."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from axil_workspace.errors import AddressRefused, FetchFault

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_PROVIDERS: Final = frozenset(
    ipaddress.IPv4Address(each) for each in ("168.63.129.16", "192.0.0.192")
)
"""Addresses in public networks that lead to the provider of the machine itself: metadata and
credentials. Those of other providers are in networks that are not public.
"""
_SITE_LOCAL: Final = ipaddress.IPv6Network("fec0::/10")


async def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system knows them. Raises: FetchFault (AX878)."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        message = f'the DNS knows no host "{host}".'
        raise FetchFault("AX878", message, "Check the address.") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def inside(address: Address) -> Iterator[Address]:
    """Yield the address, and those that it stands for: IPv4 in IPv6, in all its spellings."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    for each in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
        if each is not None:
            yield each
    last = int(address) & 0xFFFFFFFF
    interface = (int(address) >> 32) & 0xFFFFFFFF
    is_compatible = int(address) >> 32 == 0 and last > 1
    # NAT64, ISATAP, the oldest spelling
    if address in _NAT64 or interface in (0x00005EFE, 0x02005EFE) or is_compatible:
        yield ipaddress.IPv4Address(last)


def is_public(address: Address) -> bool:
    """Return whether the address is in the public internet, also where it stands for another.

    >>> [is_public(ipaddress.ip_address(a)) for a in ("93.184.216.34", "10.0.0.1",
    ...     "::ffff:127.0.0.1", "169.254.169.254")]
    [True, False, False, False]
    """
    return all(
        each.is_global
        and not each.is_multicast
        and not each.is_reserved
        and each not in _PROVIDERS
        and not (
            isinstance(each, ipaddress.IPv6Address)
            and (each in _SITE_LOCAL or each in _NAT64_LOCAL)
        )
        for each in inside(address)
        if not (isinstance(each, ipaddress.IPv6Address) and _stands_for_another(each))
    )


def _stands_for_another(address: ipaddress.IPv6Address) -> bool:
    """Return whether only the embedded address counts: these networks are not global by themselves,
    or are whatever is in them.
    """
    return address.ipv4_mapped is not None or address in _NAT64


async def chosen(
    host: str, port: int, allowed: Sequence[Network], resolve: Resolve = resolved
) -> str:
    """Return the address to connect to; looked up once, so what was checked is what is used.

    Raises: AddressRefused (AX877): one of the host's addresses is neither public nor ``allowed``;
    FetchFault (AX878): no such host.
    """
    found = [ipaddress.ip_address(each.partition("%")[0]) for each in await resolve(host, port)]
    if not found:
        raise FetchFault("AX878", f'the host "{host}" has no address.', "Check the address.")
    for each in found:
        if not is_public(each) and not any(each in network for network in allowed):
            message = f'"{host}" is {each}, which is not a public address.'
            hint = "The workflow's author can allow it with allow_networks."
            raise AddressRefused("AX877", message, hint)
    return str(found[0])
