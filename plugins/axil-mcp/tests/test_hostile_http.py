"""Laws of servers over HTTP that mean harm: where they lead a client, a token, or a person."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, StreamingResponse

from axil import ConfigError
from axil_mcp import MCPServer, Unreachable
from axil_mcp.command import _logged_in
from axil_testing.members import free_port

from .kit import metadata_of, until
from .test_oauth import Authority, names

KEY = "a-key-of-some-length"


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to others: what these laws are about must not happen if one is broken."""
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    connecting = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"a test connected to {address}")
        connecting(self, address)

    waiting = asyncio.SelectorEventLoop.sock_connect

    async def sock_connect(self: Any, sock: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"a test connected to {address}")
        await waiting(self, sock, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect, raising=False)


@contextlib.asynccontextmanager
async def served(port: int, answer: Callable[[Request], Any]) -> AsyncIterator[list[Request]]:
    """Serve at a port; give the requests that came."""
    came: list[Request] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            came.append(request)
            await answer(request)(scope, receive, send)

    config = uvicorn.Config(app, port=port, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield came
    finally:
        server.should_exit = True
        server.force_exit = True
        await serving


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_host_is_not_followed(status):
    here, there = free_port(), free_port()
    address = f"http://127.0.0.1:{there}/mcp"
    settings = {"url": f"http://127.0.0.1:{here}/mcp", "retries": 0}

    async def main() -> list[Request]:
        redirect = RedirectResponse(address, status_code=status)
        async with (
            served(there, lambda request: JSONResponse({})) as strayed,
            served(here, lambda request: redirect),
        ):
            with pytest.raises(Unreachable, match="AX920"):
                await names(MCPServer(name="h", **settings, headers={"X-Key": KEY}))
            return strayed

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_that_drips_is_given_up(kind):
    port = free_port()

    async def drip() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b":\n" if kind == "text/event-stream" else b" "

    async def main() -> None:
        async with served(port, lambda request: StreamingResponse(drip(), media_type=kind)):
            settings = {"url": f"http://127.0.0.1:{port}/mcp", "connect_timeout_seconds": 0.5}
            with pytest.raises(Unreachable, match="AX920"):
                await names(MCPServer(name="h", **settings))

    asyncio.run(main())


# ------------------------------------------------------------------------------------- logins


class Evil(Authority):
    """An authorization server with other metadata of itself, or of what it protects."""

    def __init__(self, about: dict[str, Any], protects: dict[str, Any]) -> None:
        super().__init__()
        self.changes, self.protects = about, protects
        self.headers: list[Any] = []

    def resource(self, request: Request) -> Any:
        own = {"resource": f"{self.base}/mcp", "authorization_servers": [self.base]}
        self.headers.append(request.headers)
        return JSONResponse({**own, **self.protects})

    def about(self, request: Request) -> Any:
        self.headers.append(request.headers)
        return JSONResponse({**metadata_of(self.base), **self.changes})

    async def register(self, request: Request) -> Any:
        self.headers.append(request.headers)
        return await super().register(request)

    async def token(self, request: Request) -> Any:
        self.headers.append(request.headers)
        return await super().token(request)


def logged_in(evil: Evil, **oauth: Any) -> tuple[BaseException | None, list[str]]:
    """Return what became of a person's login, and the addresses that the person was shown."""
    shown: list[str] = []

    async def main() -> None:
        port = free_port()
        settings = {"url": f"{evil.base}/mcp", "retries": 0, "headers": {"X-Key": KEY}}
        server = MCPServer(name="s", **settings, oauth={"port": port, **oauth})
        async with evil.open(), httpx2.AsyncClient(follow_redirects=True) as browser:
            pages: list[asyncio.Task[Any]] = []

            def login(address: str) -> None:
                shown.append(address)
                if urlsplit(address).hostname == "127.0.0.1":
                    pages.append(asyncio.create_task(browser.get(address)))

            await _logged_in(server, login)

    try:
        asyncio.run(main())
    except BaseException as error:  # noqa: BLE001  # the test looks at it, group or not
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return error, shown
    return None, shown


@pytest.fixture(autouse=True)
def logins(tmp_path, monkeypatch):
    monkeypatch.setenv("AXIL_MCP_LOGINS", str(tmp_path))


@pytest.mark.parametrize(
    ("about", "protects", "said"),
    [
        ({"issuer": "https://login.bank.example"}, {}, "issuer mismatch"),
        ({}, {"resource": "https://bank.example/mcp"}, "does not match"),
        ({"authorization_endpoint": "http://bank.example/authorize"}, {}, "nor https"),
        ({"authorization_endpoint": "https://bank.example@evil.example/"}, {}, "nor https"),
        ({"token_endpoint": "http://bank.example/token"}, {}, "nor https"),
        ({"registration_endpoint": "http://169.254.169.254/latest"}, {}, "nor https"),
        ({}, {"authorization_servers": ["http://bank.example"]}, "nor https"),
        ({}, {"authorization_servers": ["http://10.0.0.1"]}, "nor https"),
    ],
)
def test_a_login_that_leads_elsewhere_is_refused(about, protects, said):
    evil = Evil(about, protects)
    error, shown = logged_in(evil)
    assert error is not None
    assert said in str(error)
    assert shown == [] or "token_endpoint" in about
    assert evil.asked == []


@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "data:,x"])
def test_a_person_is_shown_no_address_of_another_scheme(address):
    _, shown = logged_in(Evil({"authorization_endpoint": address}, {}))
    assert not [each for each in shown if not each.startswith("http://127.0.0.1")]


def test_a_login_at_another_issuer_than_the_settings_name_is_not_shown():
    error, shown = logged_in(Evil({}, {}), issuer="https://login.example")
    assert isinstance(error, ConfigError)
    assert "AX939" in str(error)
    assert "https://login.example" in str(error)
    assert shown == []


def test_a_login_says_for_which_server_its_token_is_and_sends_no_other_secret():
    evil = Evil({}, {})
    error, [shown] = logged_in(evil)
    assert error is None
    assert parse_qs(urlsplit(shown).query)["resource"] == [f"{evil.base}/mcp"]
    assert [each["resource"] for each in evil.asked] == [f"{evil.base}/mcp"]
    assert evil.headers
    assert not [each for each in evil.headers if KEY in str(each)]


def test_a_page_that_does_not_know_the_state_ends_no_login():
    evil = Evil({}, {})
    statuses: list[int] = []

    def authorize(request: Request) -> Any:
        given = request.query_params
        forged = httpx2.get(f"{given['redirect_uri']}?code=evil&state=guessed")
        statuses.append(forged.status_code)
        return RedirectResponse(f"{given['redirect_uri']}?code=xyz&state={given['state']}")

    evil.authorize = authorize  # type: ignore[method-assign]
    logged_in(evil)
    assert statuses == [404]
    assert [each["code"] for each in evil.asked] == ["xyz"]
