"""OAuth: a program that logs in by itself, and a person who logs in once; the authorization server
is one of the tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from mcp.shared.auth import OAuthToken
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from axil import ConfigError, RootGraph
from axil_mcp import MCPServer, MCPTools, Unreachable
from axil_mcp.command import _logged_in
from axil_mcp.guard import HttpConfig, app_of
from axil_mcp.oauth import LOGINS, OAuthConfig, Store
from axil_mcp.serving import WorkflowServer
from axil_testing.members import free_port

from .kit import metadata_of, until

TOKEN = "a-token-of-some-length"


class Authority:
    """An authorization server, and the MCP server that it gives tokens for."""

    def __init__(self) -> None:
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.asked: list[dict[str, str]] = []
        graph = RootGraph("greet")
        graph.create_node(lambda inputs: {"text": "Hello!"}, name="hello")
        graph.edge_from_entry("hello", {})
        graph.edge_to_exit("hello", ["text"])
        door = HttpConfig(token=SecretStr(TOKEN), port=self.port)
        self.inner = app_of(WorkflowServer({"greet": graph.build()}), door)

    def resource(self, request: Request) -> Any:
        return JSONResponse({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]})

    def about(self, request: Request) -> Any:
        return JSONResponse(metadata_of(self.base))

    async def register(self, request: Request) -> Any:
        return JSONResponse({**json.loads(await request.body()), "client_id": "c"}, 201)

    def authorize(self, request: Request) -> Any:
        given = request.query_params
        return RedirectResponse(f"{given['redirect_uri']}?code=xyz&state={given['state']}")

    async def token(self, request: Request) -> Any:
        given = {k: v[0] for k, v in parse_qs((await request.body()).decode()).items()}
        self.asked.append(given)
        return JSONResponse({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        known = "/.well-known"
        routes = [
            Route(f"{known}/oauth-protected-resource/mcp", self.resource),
            Route(f"{known}/oauth-authorization-server", self.about),
            Route("/register", self.register, methods=["POST"]),
            Route("/authorize", self.authorize),
            Route("/token", self.token, methods=["POST"]),
        ]
        own, paths = Starlette(routes=routes), {each.path for each in routes}

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await (own if scope.get("path") in paths else self.inner)(scope, receive, send)

        server = uvicorn.Server(uvicorn.Config(app, port=self.port, log_level="error"))
        serving = asyncio.create_task(server.serve())
        await until(lambda: server.started)
        try:
            yield
        finally:
            server.should_exit = True
            await serving


async def names(server: MCPServer) -> list[str]:
    async with MCPTools(server) as toolset:
        return [tool.name for tool in await toolset.tools()]


def test_a_program_logs_in_with_its_secret_and_keeps_its_token(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "s3cret-of-ours")
    monkeypatch.setenv("AXIL_MCP_LOGINS", str(tmp_path / "kept"))
    authority = Authority()
    oauth = {
        "client_id": "us",
        "client_secret": "${SECRET}",
        "issuer": authority.base,
    }
    settings = {"name": "s", "url": f"{authority.base}/mcp", "retries": 0}

    async def main() -> None:
        async with authority.open():
            for _ in range(2):
                assert await names(MCPServer(**settings, oauth=oauth)) == ["s__greet"]
            monkeypatch.setenv("AXIL_MCP_LOGINS", str(tmp_path / "other"))
            other = {**oauth, "issuer": "http://127.0.0.1:1"}
            with pytest.raises(Unreachable, match="AX920"):
                await names(MCPServer(**settings, oauth=other))

    asyncio.run(main())
    [asked] = authority.asked
    assert asked["grant_type"] == "client_credentials"
    [kept] = (tmp_path / "kept").iterdir()
    assert (kept.stat().st_mode & 0o077, "s3cret" in kept.read_text()) == (0, False)


def test_a_person_logs_in_once_and_runs_use_it(tmp_path, monkeypatch):
    monkeypatch.setenv("AXIL_MCP_LOGINS", str(tmp_path))
    authority = Authority()
    oauth = {"port": free_port()}
    server = MCPServer(name="s", url=f"{authority.base}/mcp", retries=0, oauth=oauth)

    async def main() -> None:
        async with authority.open(), httpx2.AsyncClient(follow_redirects=True) as browser:
            with pytest.raises(ConfigError, match=r"AX939.*axil mcp login"):
                await names(server)
            pages: list[asyncio.Task[Any]] = []

            def login(address: str) -> None:
                assert "code_challenge" in urlsplit(address).query
                pages.append(asyncio.create_task(browser.get(address)))

            await _logged_in(server, login)
            assert "logged in" in (await pages[0]).text
            assert await names(server) == ["s__greet"]

    asyncio.run(main())
    assert [each["grant_type"] for each in authority.asked] == ["authorization_code"]


def test_two_processes_may_keep_tokens_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv(LOGINS, str(tmp_path))
    store = Store("https://a.example/mcp", OAuthConfig(client_id="me"))
    dump, others = json.dump, [OAuthToken(access_token="other")]

    def interrupted(data: Any, file: Any) -> None:
        dump(data, file)
        while others:
            other = threading.Thread(target=asyncio.run, args=(store.set_tokens(others.pop()),))
            other.start()
            other.join()

    monkeypatch.setattr(json, "dump", interrupted)
    asyncio.run(store.set_tokens(OAuthToken(access_token="mine")))
    assert asyncio.run(store.get_tokens()).access_token == "mine"
    assert list(tmp_path.iterdir()) == [store.path]
