"""Tools that read the web: ``web``, and each by its own name.

Only where the caller of the run allowed the network, or the host. Every address is looked up once,
judged, and then connected to, redirects included. Proxies of the environment are not used: they
would do the looking up.
"""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import httpx2
from pydantic import Field, field_validator

from axil.plugin import current_grants
from axil_workspace.addresses import Network, Resolve, chosen, resolved
from axil_workspace.code import permitted
from axil_workspace.errors import AddressRefused, FetchFault, LimitExceeded, WorkspaceError
from axil_workspace.page import text_of_page
from axil_workspace.toolset import Tools, ToolsConfig, again, one_of

_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_URL: Final = 2_000
"""Characters of an address."""
_NOT_FOR_PAGES: Final = frozenset(
    {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"}
)
"""Encodings that no page is in; decoding some takes time that grows with the square of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The response to a request for a page."""

    url: str
    status: int
    media_type: str
    charset: str
    data: bytearray


class Web(Tools):
    """``web``: read pages and data from the public web."""

    class Config(ToolsConfig, frozen=True):
        """The pages that may be read."""

        allow_networks: tuple[str, ...] = Field(
            default=(),
            description="Networks and addresses that are allowed although they are not public: "
            "127.0.0.0/8.",
        )
        hosts: tuple[str, ...] = Field(
            default=(), description="The hosts that may be read, with their subdomains; empty: all."
        )
        timeout_seconds: int | float = Field(
            default=30,
            gt=0,
            allow_inf_nan=False,
            description="The longest time to wait for a page.",
        )
        page_bytes: int = Field(default=2_000_000, ge=1, description="The largest size of a page.")
        shown_characters: int = Field(
            default=50_000,
            ge=1,
            description="The number of characters returned; the result says when text was cut.",
        )
        redirects: int = Field(default=5, ge=0, description="The largest number of redirects.")

        @field_validator("allow_networks")
        @classmethod
        def _are_networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
            for each in given:
                ipaddress.ip_network(each, strict=False)
            return given

    provides: ClassVar = ("http_get", "read_web_page")
    resolve: Resolve = staticmethod(resolved)
    """The function that looks up hosts."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__(config)
        grants = current_grants()
        self._networks: list[Network] = [
            each for each in self._given if grants is None or grants.allows(f"net:{each}")
        ]

    @property
    def _given(self) -> list[Network]:
        return [ipaddress.ip_network(each, strict=False) for each in self.config.allow_networks]

    @property
    def wants(self) -> tuple[str, ...]:
        """The words that a file asks leave for: its hosts, else the whole network; and networks
        that are not public.
        """
        hosts = (f"net:{each}{host}" for host in self.config.hosts for each in ("", "*."))
        return (*(tuple(hosts) or ("network",)), *(f"net:{each}" for each in self._given))

    @again("none")
    async def http_get(self, ctx: Any, url: Annotated[str, "http://… or https://…"]) -> str:
        """Get what is at an address, as text: a page's source, JSON, CSV."""
        return await self._asked(ctx, url, is_read=False)

    @again("none")
    async def read_web_page(self, ctx: Any, url: Annotated[str, "http://… or https://…"]) -> str:
        """Read a web page: its title and its text, with links, code and lists."""
        return await self._asked(ctx, url, is_read=True)

    def _shown(self, page: Page, source: str, text: str) -> str:
        if page.status >= 400:
            message = f"{page.url} answered with the status {page.status}."
            raise FetchFault("AX878", message, "Use another address.")
        text, most = text or source, self.config.shown_characters
        if len(text) <= most:
            return text
        return f"{text[:most]}\n[characters 0 to {most} of {len(text)}]"

    async def _asked(self, ctx: Any, url: str, *, is_read: bool) -> str:
        try:
            async with asyncio.timeout(self.config.timeout_seconds):
                page = await self._followed(ctx, url)
                # a page may be large: other runs go on while it is read
                return await asyncio.to_thread(self._page_text, page, is_read)
        except TimeoutError as error:
            message = f"{url} took longer than {self.config.timeout_seconds:g} seconds."
            raise LimitExceeded("AX878", message, "Try again later, or another address.") from error
        except WorkspaceError:
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            message = f"{url} cannot be read: {str(error) or type(error).__name__}."
            raise FetchFault("AX878", message, "Check the address.") from error

    def _page_text(self, page: Page, is_read: bool) -> str:
        text = _decoded(page)
        is_html = is_read and "html" in page.media_type
        read = text_of_page(text, page.url) if is_html else ""
        return self._shown(page, text, read)

    async def _followed(self, ctx: Any, url: str) -> Page:
        here = self._judged(ctx, url)
        for _ in range(self.config.redirects + 1):
            port = here.port or (443 if here.scheme == "https" else 80)
            address = await chosen(here.host, port, self._networks, type(self).resolve)
            headers = {"Host": here.netloc.decode("ascii"), "User-Agent": "axil"}
            headers |= {"Accept": "*/*", "Accept-Encoding": "identity"}
            extensions = {"sni_hostname": here.raw_host.decode("ascii")}
            target = here.copy_with(host=address)
            # a client for each: connections and cookies are kept by address, which names may share
            async with (
                httpx2.AsyncClient(trust_env=False, timeout=None) as client,
                client.stream("GET", target, headers=headers, extensions=extensions) as response,
            ):
                moved_to = response.headers.get("location")
                if response.status_code not in _MOVED or not moved_to:
                    return await self._read(response, str(here))
                here = self._judged(ctx, str(here.join(moved_to)))
        message = f"{url} redirects more than {self.config.redirects} times."
        raise LimitExceeded("AX878", message, "Use the final address.")

    def _judged(self, ctx: Any, url: str) -> httpx2.URL:
        """Return the address, if it is one that may be asked.

        Raises: AddressRefused (AX877); NotAllowed (AX876): the run may not ask its host.
        """
        kinds = {unicodedata.category(sign) for sign in url[:_URL]}
        if len(url) > _URL or "\\" in url or kinds & {"Cc", "Zs", "Zl", "Zp"}:
            hint = "Use a URL like https://example.org/page."
            raise AddressRefused("AX877", f"{url[:80]!r} is not a URL.", hint)
        parsed = httpx2.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            hint = "Use http:// or https:// with a host and without a user."
            raise AddressRefused("AX877", f'"{url}" is not an allowed URL.', hint)
        host, hosts = parsed.host.lower().rstrip("."), self.config.hosts
        if hosts and not any(host == each or host.endswith(f".{each}") for each in hosts):
            message = f'"{host}" is not among the allowed hosts.'
            raise AddressRefused("AX877", message, f"Available: {', '.join(hosts)}.")
        asked = parsed.raw_host.decode("ascii").lower().strip("[]")
        permitted(ctx, f"net:{asked}", "ask this host")
        return parsed

    async def _read(self, response: httpx2.Response, url: str) -> Page:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _UNPACKED:
            # one compression in another one, or one that cannot be counted while it is unpacked
            known = "only gzip or deflate alone can be read"
            message = f"{url} is compressed as {encoding[:40]!r}; {known}."
            raise FetchFault("AX878", message, "Use another address.")
        unpack, data = _UNPACKED[encoding](), bytearray()
        async for chunk in response.aiter_raw(1 << 14):
            data += unpack(chunk, self.config.page_bytes + 1 - len(data))
            if len(data) > self.config.page_bytes:
                message = f"{url} has more than {self.config.page_bytes} bytes."
                raise LimitExceeded("AX878", message, "Use a smaller page.")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        charset = response.charset_encoding or ""
        if b"\0" in data[:4096] and not charset.lower().startswith("utf-16"):
            message = f"{url} is not text: its type is {media_type or 'unknown'}."
            raise FetchFault("AX878", message, "Use the address of a text.")
        status = response.status_code
        return Page(url=url, status=status, media_type=media_type, charset=charset, data=data)


def _decoded(page: Page) -> str:
    try:
        if codecs.lookup(page.charset or "utf-8").name not in _NOT_FOR_PAGES:
            return page.data.decode(page.charset or "utf-8", errors="replace")
    except (LookupError, ValueError):  # no such encoding, or no name of one
        pass
    return page.data.decode("utf-8", errors="replace")


Unpack = Callable[[bytes, int], bytes]
"""A function that decodes the next bytes of a response, into at most so many."""


def _as_it_is() -> Unpack:
    return lambda chunk, most: chunk[:most]


def _inflating(*ways: int) -> Callable[[], Unpack]:
    """Unpack in the first of these ways that the data have."""

    def made() -> Unpack:
        inflate, left = None, list(ways)

        def unpack(chunk: bytes, most: int) -> bytes:
            nonlocal inflate
            while True:
                inflate = inflate or zlib.decompressobj(left.pop(0))
                try:
                    return inflate.decompress(chunk, most)
                except zlib.error as error:
                    if not left:
                        raise httpx2.DecodingError(str(error)) from error
                    inflate = None

        return unpack

    return made


_UNPACKED: Final[dict[str, Callable[[], Unpack]]] = {
    "": _as_it_is,
    "identity": _as_it_is,
    "gzip": _inflating(16 + zlib.MAX_WBITS),
    "x-gzip": _inflating(16 + zlib.MAX_WBITS),
    # the standard says zlib, some servers leave its frame away
    "deflate": _inflating(zlib.MAX_WBITS, -zlib.MAX_WBITS),
}


# Each tool as a component of its own, with the same config.
http_get = one_of(Web, "http_get")
read_web_page = one_of(Web, "read_web_page")
