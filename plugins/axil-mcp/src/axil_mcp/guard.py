"""HTTP in front of a ``WorkflowServer``: a token on every route, and requests only from where they
may come.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr

from axil import ConfigError, Problem
from axil.plugin import answer_without_secrets
from axil_cli import HOST, bounded_protocol
from axil_mcp.serving import WorkflowServer

PATH: Final = "/mcp"
_LEAST: Final = 16
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_SESSIONS: Final = 200
_SPARE: Final = 20
"""Sessions that the SDK has room for beside, while some are being ended and others begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """The address of a server, and the clients that it accepts."""

    token: SecretStr
    host: str = "127.0.0.1"
    port: int = 8765
    """0: any that is free."""
    hosts: tuple[str, ...] = ()
    """Further names under which it may be asked for, without a port."""
    origins: tuple[str, ...] = ()
    """Web pages' origins that may ask; requests without an ``Origin`` come from no page."""

    def check(self) -> None:
        """Raises: ConfigError (AX934): the token is too short to be one."""
        if len(self.token.get_secret_value()) < _LEAST:
            message = f"the token has fewer than {_LEAST} characters."
            hint = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
            raise ConfigError(Problem("AX934", "token", message, hint))


@dataclass(slots=True)
class _Session:
    """A session of a client."""

    client: str
    at_work: int = 0
    """Requests that are under way."""


class Sessions:
    """An ASGI application before another that has room for a number of sessions.

    Where there is no room for a new one, the client with the most sessions loses one: that which
    was used longest ago, one without a request under way if there is any. So a client that opens
    many takes room from itself.
    """

    def __init__(self, app: Any, most: int = _SESSIONS) -> None:
        self._app, self._most = app, most
        self._open: dict[str, _Session] = {}  # the one used last is last

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        id = _header(scope["headers"], b"mcp-session-id")
        client = (scope.get("client") or ("",))[0]
        if not id and scope["method"] == "POST" and len(self._open) >= self._most:
            await self._end_one(scope)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start" and not id:
                new = _header(message.get("headers", ()), b"mcp-session-id")
                if new:
                    self._open.setdefault(new, _Session(client))
            await send(message)

        session = self._open.pop(id, None) if id else None
        if session is None:
            await self._app(scope, receive, sent)
            return
        self._open[id] = session
        session.at_work += 1
        try:
            await self._app(scope, receive, sent)
        finally:
            session.at_work -= 1
            if scope["method"] == "DELETE":
                self._open.pop(id, None)

    async def _end_one(self, scope: Any) -> None:
        counts = Counter(each.client for each in self._open.values())
        most = max(counts.values())
        theirs = [id for id, each in self._open.items() if counts[each.client] == most]
        id = next((id for id in theirs if not self._open[id].at_work), theirs[0])
        del self._open[id]
        kept = [each for each in scope["headers"] if each[0] in (b"host", b"authorization")]
        headers = [
            *kept,
            (b"mcp-session-id", id.encode("latin-1")),
            (b"accept", b"application/json, text/event-stream"),
        ]
        request = {**scope, "method": "DELETE", "headers": headers}

        async def nothing() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(message: Any) -> None:
            pass

        await self._app(request, nothing, unheard)


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    return next((value.decode("latin-1") for each, value in headers if each.lower() == name), "")


class AuthMiddleware:
    """An ASGI application before another: a client that lacks the token, or uses a strange name,
    learns nothing of what is behind.
    """

    def __init__(self, app: Any, config: HttpConfig) -> None:
        """Raises: ConfigError (AX934)."""
        from mcp.server.transport_security import (
            TransportSecurityMiddleware,
            TransportSecuritySettings,
        )

        config.check()
        own = f"[{config.host}]" if ":" in config.host else config.host
        names = [
            name
            for known in dict.fromkeys((*_LOOPBACK, own, *config.hosts))
            for name in (known, f"{known}:*")
        ]
        settings = TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=list(config.origins)
        )
        self._app, self._sessions = app, Sessions(app)
        self._from = TransportSecurityMiddleware(settings)
        self._digest = _digest(config.token.get_secret_value())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request, or the application's start and end."""
        from starlette.requests import Request
        from starlette.responses import Response

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks anything else; the server refuses the connection
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
            await Response("Bad Request", status_code=400)(scope, receive, send)
            return
        refused = await self._from.validate_request(Request(scope))
        if refused is None and not self._is_known(scope):
            refused = Response(
                "Unauthorized", status_code=401, headers={"WWW-Authenticate": "Bearer"}
            )
        await (refused or self._sessions)(scope, receive, answer_without_secrets(send))

    def _is_known(self, scope: Any) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (
            given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        )
        # Digests are compared, so the time says nothing of the token's length either.
        return (
            hmac.compare_digest(_digest(token.strip()), self._digest) and scheme.lower() == "bearer"
        )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def app_of(server: WorkflowServer, config: HttpConfig) -> AuthMiddleware:
    """Return the ASGI application that serves the workflows, at ``/mcp``. Raises: ConfigError
    (AX934).
    """
    from mcp.server.transport_security import TransportSecuritySettings

    # the guard has asked already, on every route
    open_inside = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    inner = server.server.streamable_http_app(
        streamable_http_path=PATH, transport_security=open_inside, max_sessions=_SESSIONS + _SPARE
    )
    return AuthMiddleware(inner, config)


async def serve(
    server: WorkflowServer, config: HttpConfig, listening: Callable[[str], None]
) -> None:
    """Serve over HTTP until the process is asked to end. ``listening`` receives the address.

    Raises: ConfigError (AX934): the token, or the address is in use.
    """
    import uvicorn

    app = app_of(server, config)
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        listener = socket.create_server((config.host, config.port), family=family)
    except OSError as error:
        message = f"cannot listen at {config.host}:{config.port}: {error.strerror or error}."
        raise ConfigError(
            Problem("AX934", "host, port", message, "Choose another port; 0 uses any free port.")
        ) from error
    with listener:
        settings = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            http=bounded_protocol(),
            timeout_graceful_shutdown=5,
        )
        http = uvicorn.Server(settings)
        host = f"[{config.host}]" if ":" in config.host else config.host
        async with server.ready():
            listening(f"http://{host}:{listener.getsockname()[1]}{PATH}")
            await http.serve(sockets=[listener])


__all__: Sequence[str] = ["AuthMiddleware", "HttpConfig", "app_of", "serve"]
