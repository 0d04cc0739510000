"""Guard before the routes: names and origins, sizes, rates, callers.

A request that is refused here has reached no route. Static files of the page need no token: they
hold nothing of any run.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from axil.plugin import CallerSecrets, answer_without_secrets
from axil_cli import HOST
from axil_serve.access import Access, Caller
from axil_serve.errors import error_data

if TYPE_CHECKING:
    from axil_serve.signin import SignIn

Asgi = Callable[[Any, Any, Any], Awaitable[None]]
Refused = Callable[[Caller, str, str], Awaitable[None]]
"""A function of a caller, a method and a path."""

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_MOST_CLIENTS: Final = 10_000
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of requests."""

    body_bytes: int = 1_000_000
    """The largest body of a request."""
    file_bytes: int = 32 << 20
    """The largest file that is uploaded."""
    requests_per_minute: float = 600.0
    """For each token; a client without one has a tenth of it for each address."""
    burst: int = 60
    """Requests that may come at once."""
    streams: int = 100
    """Event streams that are open at the same time, of all callers."""
    streams_each: int = 50
    """Of one caller."""


class Guard:
    """An ASGI application before another."""

    def __init__(
        self,
        app: Asgi,
        access: Access,
        *,
        limits: Limits,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        public: Callable[[str], float] = lambda path: 0.0,
        is_upload: Callable[[str], bool] = lambda path: False,
        is_verbatim: Callable[[str], bool] = lambda path: False,
        sign_in: SignIn | None = None,
        secrets: Mapping[str, str] | None = None,
        refused: Refused | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Store the settings.

        Args:
            hosts: further names of this server, without a port, beside those of the loopback.
            origins: of web pages on other hosts that may ask; the server's own page always may.
            public: how much of a request a path counts that is served without a token; 0: it needs
                one.
            is_upload: whether a path takes files.
            is_verbatim: whether a path gives texts that come back from there, and so are given as
                they are; all others are given without the secrets of the process.
            sign_in: lets callers in who have no token of the server.
            secrets: by headers, the names under which callers give secrets along with their runs.
            refused: is called for requests that a caller had no right to.
        """
        self._app, self._access, self._limits = app, access, limits
        self._hosts = {*_LOOPBACK, *(host.lower() for host in hosts)}
        self._origins, self._public = frozenset(origins), public
        self._is_upload, self._is_verbatim = is_upload, is_verbatim
        self._sign_in, self._refused = sign_in, refused
        self._secrets = {name.lower().encode(): as_ for name, as_ in (secrets or {}).items()}
        if sign_in is not None:
            self._hosts.add(sign_in.host.lower())
            self._origins |= {sign_in.origin}
        self._rates = _Rates(limits, now)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request, or the application's start and end."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # refused before it is open
            return
        if not self._is_verbatim(scope["path"]):
            send = answer_without_secrets(send)
        send = _with_headers(send)
        host, origin = _header(scope, b"host"), _header(scope, b"origin")
        if not HOST.fullmatch(host):
            await _refuse(
                send, 400, "AX963", "the request has no host, several, or none that is one."
            )
            return
        if _name(host) not in self._hosts:
            await _refuse(send, 421, "AX963", "the request's host is not a name of this server.")
            return
        if origin and origin not in self._origins and origin != f"{scope['scheme']}://{host}":
            await _refuse(send, 403, "AX963", "web pages of this origin may not use this server.")
            return
        client = (scope.get("client") or ("",))[0]
        if part := self._public(scope["path"]):
            caller, key, share = None, f"public {client}", 1.0
        else:
            caller = await self._caller(scope)
            key, share = (f"of {caller.name}", 1.0) if caller else (f"from {client}", 0.1)
        wait = self._rates.wait(key, share, part or 1.0)
        if wait > 0:
            more = [(b"retry-after", str(max(1, round(wait))).encode())]
            await _refuse(send, 429, "AX964", "too many requests.", more)
            return
        if caller is None and not part:
            more = [(b"www-authenticate", b"Bearer")]
            await _refuse(
                send, 401, "AX961", "the request has no token, or its token is unknown.", more
            )
            return
        if caller is not None and self._is_astray(scope, caller, origin):
            await _refuse(send, 403, "AX963", "a session asks from pages of this server alone.")
            return
        is_upload = self._is_upload(scope["path"])
        limits = self._limits
        body = _Body(receive, limits.file_bytes if is_upload else limits.body_bytes)
        if body.is_over(_header(scope, b"content-length")):
            await _refuse(send, 413, "AX964", f"the body has more than {body.most} bytes.")
            return
        if caller is not None:
            given = self._given(scope) if self._secrets else None
            caller = replace(caller, place=client, secrets=given)
        scope.setdefault("state", {})["caller"] = caller
        statuses: list[int] = []
        await self._app(scope, body.receive, _with_status(send, statuses))
        if caller is not None and statuses[:1] == [403] and self._refused is not None:
            await self._refused(caller, scope["method"], scope["path"])

    async def _caller(self, scope: Any) -> Caller | None:
        """Return the caller of a request; None: it has none that is known."""
        token = _bearer(scope)
        caller = self._access.caller(token)
        if caller is None and self._sign_in is not None:
            caller = await self._sign_in.caller(token, _header(scope, b"cookie"))
        return caller

    def _is_astray(self, scope: Any, caller: Caller, origin: str) -> bool:
        """Return whether a request would change something by a cookie, which the browser sends
        along with whatever a page of another place asks.
        """
        is_safe = scope["method"] in ("GET", "HEAD", "OPTIONS")
        is_own = self._sign_in is not None and origin == self._sign_in.origin
        return caller.way == "session" and not is_safe and not is_own

    def _given(self, scope: Any) -> CallerSecrets:
        """Return the secrets that a caller gives along."""
        found = {as_: _header(scope, name) for name, as_ in self._secrets.items()}
        return CallerSecrets(self._secrets.values(), {n: each for n, each in found.items() if each})


class BodyTooLarge(Exception):
    """A body of a request that is larger than the limit; the application answers it with 413."""


class _Body:
    """The body of a request, counted while it is read."""

    def __init__(self, receive: Any, most: int) -> None:
        self._receive, self.most, self._read = receive, most, 0

    def is_over(self, stated: str) -> bool:
        return stated.isdigit() and int(stated) > self.most

    async def receive(self) -> Any:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self.most:
            raise BodyTooLarge
        return message


class _Rates:
    """A bucket of requests for each key, filled at a constant rate."""

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self._per_second = limits.requests_per_minute / 60
        self._burst, self._now = limits.burst, now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, share: float, part: float) -> float:
        """Take a part of a request; return the seconds until there is room for it, 0: there was."""
        now, rate = self._now(), self._per_second * share
        left, since = self._buckets.pop(key, (float(self._burst), now))
        left = min(self._burst, left + (now - since) * rate)
        is_room = left > part - 1e-9  # parts are no whole numbers
        self._buckets[key] = (left - part if is_room else left, now)
        if len(self._buckets) > _MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if is_room else (part - left) / rate


def _header(scope: Any, name: bytes) -> str:
    """Return a header that the request has once; empty: it has none, or several."""
    found = [value for each, value in scope["headers"] if each == name]
    return found[0].decode("latin-1").strip() if len(found) == 1 else ""


def _name(host: str) -> str:
    """Return the name in a ``Host``, without its port.

    >>> _name("LocalHost:8000"), _name("[::1]:80"), _name("")
    ('localhost', '[::1]', '')
    """
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _bearer(scope: Any) -> str:
    scheme, _, token = _header(scope, b"authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _with_status(send: Any, statuses: list[int]) -> Any:
    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        await send(message)

    return sent


def _with_headers(send: Any) -> Any:
    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            known = {name.lower() for name, _ in given}
            message["headers"] = [*given, *(each for each in _HEADERS if each[0] not in known)]
        await send(message)

    return sent


async def _refuse(
    send: Any,
    status: int,
    id: str,
    message: str,
    more: Iterable[tuple[bytes, bytes]] = (),
) -> None:
    body = json.dumps(error_data(id, message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


__all__ = ["CONTENT_POLICY", "BodyTooLarge", "Guard", "Limits"]
