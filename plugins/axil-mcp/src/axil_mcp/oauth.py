"""OAuth, as the SDK has it: how a client gets its tokens, and where they are kept.

A program logs in with its own secret whenever it needs a token. A person logs in once, with ``axil
mcp login``; runs use what was kept then, and renew it, but open no browser.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from axil import ConfigError, Problem
from axil.plugin import Secret, legible
from axil_mcp.addresses import strange_address

_DONE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"You are logged in. This page can be closed.\n"
)
LOGINS: Final = "AXIL_MCP_LOGINS"
"""The variable that names the folder of tokens. No file may choose it."""
USUAL: Final = "~/.config/axil/mcp"
_LONGEST: Final = 300.0
"""Seconds in which a person has to log in."""


class OAuthConfig(BaseModel):
    """The way to get a token of a server: with a secret of one's own, or by a person's login."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    client_id: str = Field("", description="Empty: it registers itself with the server.")
    client_secret: Secret | None = Field(
        None, description="With it a program logs in by itself; without it a person does."
    )
    issuer: str = Field(
        "",
        description="The authorization server that may see the secret, required with one; without "
        "a secret the only one that a person is sent to.",
    )
    port: int = Field(
        8767, ge=1, le=65535, description="The port at which a person's browser comes back."
    )

    @model_validator(mode="after")
    def _whole(self) -> OAuthConfig:
        if self.client_secret is not None and not (self.client_id and self.issuer):
            raise ValueError("client_secret needs client_id and issuer")
        return self

    @property
    def address(self) -> str:
        """The address at which a person's browser comes back."""
        return f"http://127.0.0.1:{self.port}/callback"


class Store:
    """The tokens of a server, in a file that only its owner reads; the SDK's ``TokenStorage``."""

    def __init__(self, url: str, config: OAuthConfig) -> None:
        key = hashlib.sha256(f"{url} {config.client_id}".encode()).hexdigest()[:16]
        name = f"{urlsplit(url).hostname}-{key}.json"
        self.path = Path(os.environ.get(LOGINS) or USUAL).expanduser() / name
        self._config = config

    async def get_tokens(self) -> Any:
        """Return the tokens that are kept; None: there are none."""
        from mcp.shared.auth import OAuthToken

        return self._kept("tokens", OAuthToken)

    async def set_tokens(self, tokens: Any) -> None:
        """Keep tokens."""
        self._write("tokens", tokens)

    async def get_client_info(self) -> Any:
        """Return what the server knows this client as; None: it does not know it."""
        from mcp.shared.auth import OAuthClientInformationFull

        own = None
        if self._config.client_id:
            own = {
                "client_id": self._config.client_id,
                "redirect_uris": [self._config.address],
                "token_endpoint_auth_method": "none",
            }
        return self._kept("client", OAuthClientInformationFull, own)

    async def set_client_info(self, client_info: Any) -> None:
        """Keep what the server knows this client as."""
        self._write("client", client_info)

    def _read(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self.path.read_text("utf-8"))
        except (FileNotFoundError, ValueError, RecursionError):
            found = None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def _kept(self, name: str, kind: type[Any], given: Any = None) -> Any:
        """Return what is kept, else what is given; what was damaged is as if it were not kept."""
        with suppress(ValidationError):
            if kept := self._read().get(name):
                return kind.model_validate(kept)
        return None if given is None else kind.model_validate(given)

    def _write(self, name: str, value: Any) -> None:
        data = {**self._read(), name: value.model_dump(mode="json", exclude_none=True)}
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a name of its own: another process may renew the same tokens
        new = self.path.with_suffix(f".{secrets.token_hex(8)}.new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(data, file)
            new.replace(self.path)
        finally:
            new.unlink(missing_ok=True)


def auth_of(
    url: str, config: OAuthConfig, place: str, login: Callable[[str], None] | None = None
) -> Any:
    """Return what signs the requests to a server.

    Args:
        login: shows a person the address to open; None: there is none, and a login that is
            needed is an error.
    Raises: ConfigError (AX134): the secret is not set.
    """
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.shared.auth import OAuthClientMetadata

    store = Store(url, config)
    if config.client_secret is not None:
        secret = config.client_secret.resolve(None, f"{place}, oauth")
        return ClientCredentialsOAuthProvider(
            url,
            store,
            config.client_id,
            secret.get_secret_value(),
            issuer=config.issuer,
        )
    person = _Person(url, config, place, login)
    about = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [config.address],
            "client_name": "axil",
            "token_endpoint_auth_method": "none",
        }
    )
    person.provider = OAuthClientProvider(url, about, store, person.opened, person.came_back)
    return person.provider


class _Person:
    """A person who logs in with a browser, which comes back to this machine."""

    def __init__(
        self, url: str, config: OAuthConfig, place: str, login: Callable[[str], None] | None
    ) -> None:
        self._url, self._config, self._place, self._login = url, config, place, login
        self.provider: Any = None
        self._state = ""
        """The text that the browser has to bring back; a page without it ends no login."""
        self._back: asyncio.Future[dict[str, str]] | None = None
        self._listening: asyncio.Server | None = None

    async def opened(self, address: str) -> None:
        """Show the address to open, and listen for the browser that comes back.

        Raises: ConfigError (AX939): a run cannot log in.
        """
        if self._login is None:
            hint = "Log in once: axil mcp login WORKFLOW."
            problem = Problem("AX939", self._place, "it wants a person to log in.", hint)
            raise ConfigError(problem)
        if fault := self._odd(address):
            hint = "Do not log in there; ask the server's owner."
            raise ConfigError(Problem("AX939", self._place, fault, hint))
        self._state = parse_qs(urlsplit(address).query).get("state", [""])[0]
        self._back = asyncio.get_running_loop().create_future()
        self._listening = await asyncio.start_server(
            self._answer, "127.0.0.1", self._config.port, limit=16_384
        )
        self._login(address)

    def _odd(self, address: str) -> str:
        """Return why a person is not sent to an address; empty: it may be."""
        about = self.provider.context.oauth_metadata
        issuer, wanted = str(about.issuer) if about is not None else "", self._config.issuer
        if wanted and issuer.rstrip("/") != wanted.rstrip("/"):
            return f'it wants a login at "{legible(issuer)[:200]}", and issuer is "{wanted}".'
        if legible(address) != address:
            return "the address of its login hides characters."
        fault = strange_address(self._url, address)
        return f"{fault}." if fault else ""

    async def came_back(self) -> Any:
        """Return what the browser brings. Raises: ConfigError (AX939): it brings no code."""
        from mcp.client.auth import AuthorizationCodeResult

        assert self._back is not None
        assert self._listening is not None
        try:
            async with asyncio.timeout(_LONGEST):
                found = await self._back
        except TimeoutError:
            found = {"error": f"there was no login within {_LONGEST:g} s"}
        finally:
            self._listening.close()
        if "code" not in found:
            message = f"the login failed: {legible(found.get('error', 'there is no code'))[:200]}."
            raise ConfigError(Problem("AX939", self._place, message, "Log in again."))
        kept = {key: found[key] for key in ("code", "state", "iss") if key in found}
        return AuthorizationCodeResult.model_validate(kept)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await reader.readline()).decode("ascii", "replace").split()
            parts = urlsplit(line[1] if len(line) > 1 else "")
            given = {k: v[0] for k, v in parse_qs(parts.query).items()}
            is_it = parts.path == "/callback" and given.get("state") == self._state
            writer.write(_DONE if is_it else b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            await writer.drain()
            if is_it and self._back is not None and not self._back.done():
                self._back.set_result(given)
        except (OSError, ValueError):
            return
        finally:
            writer.close()
