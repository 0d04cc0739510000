"""Sign-in of people with OpenID Connect, and tokens of their provider, beside tokens of the server.

A browser is sent to the provider and comes back with a code (authorization code with PKCE), which
is exchanged here; then the browser has a session, and the provider is not asked again. A program
sends the provider's JSON Web Token as its token. What groups are allowed is in the file of
``--oidc``. It needs the extra ``oidc``.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, cast
from urllib.parse import urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from axil.plugin import Secret, decode_config
from axil_serve.access import RIGHTS, Caller, Right, is_name
from axil_serve.errors import NotAllowed, NotSignedIn, Unserved, error_data
from axil_serve.provider import LOOPBACK, Provider, check_address
from axil_serve.service import RunService
from axil_serve.sessions import Sessions

LOGIN: Final = "/login"
CALLBACK: Final = "/login/callback"
LOGOUT: Final = "/logout"
_LOGIN_SECONDS: Final = 600.0
"""The time for a sign-in, from where a browser is sent away until it comes back."""
_LONGEST_NEXT: Final = 2_000
_PATH: Final = re.compile(r"(/[\w~-][\w.~-]*)*/?", re.ASCII)
"""The path of a server: names that no program reads as anything else."""


class Granted(BaseModel):
    """The rights of a group."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rights: tuple[Right, ...] = Field(RIGHTS, description="The rights of its members.")
    look: Literal["own", "all"] = Field(
        "own", description="own: the runs that a member started; all: those of all callers."
    )


class OidcConfig(BaseModel):
    """The file of ``--oidc``."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    issuer: str = Field(description="The address of the provider, as its tokens name it.")
    client_id: str = Field(min_length=1, description="The name of this server at the provider.")
    client_secret: Secret | None = Field(
        None, description="Its secret there, {env: NAME}; none: it is a public client."
    )
    url: str = Field(
        description="The address at which browsers reach this server; the provider sends them "
        "back to /login/callback there. It may have a path, which a proxy takes away."
    )
    scopes: tuple[str, ...] = Field(
        ("openid", "profile"), description="What the provider is asked for."
    )
    audience: tuple[str, ...] = Field(
        (), description="Audiences of the provider's tokens for programs; none: they are refused."
    )
    name: str = Field(
        "sub",
        description="The claim that names a caller. It has to be one person's for ever, and not "
        "theirs to change.",
    )
    groups: str = Field("groups", description="The claim with a caller's groups; a.b: b inside a.")
    rights: dict[str, Granted] = Field(
        min_length=1,
        description='By group, what its members may; "*": everybody whom the provider knows.',
    )
    session_seconds: float = Field(
        8 * 3600.0, gt=0, allow_inf_nan=False, description="How long a session lasts."
    )
    leeway_seconds: float = Field(60.0, ge=0, le=600, description="By how much clocks may differ.")

    @staticmethod
    def from_data(data: object, where: str) -> OidcConfig:
        """Return the settings. Raises: ConfigError; Unserved (AX960): an address is not safe."""
        config = decode_config(OidcConfig, data, where)
        check_address(config.issuer, f"{where}: issuer")
        check_address(config.url, f"{where}: url")
        if not _PATH.fullmatch(urlsplit(config.url).path) or "openid" not in config.scopes:
            message = f"{where}: url has an odd path, or scopes lacks openid."
            raise Unserved("AX960", message, "Write https://example.org, or a path of names there.")
        if config.client_id in config.audience:
            message = f"{where}: audience has the client_id, whose tokens are for sign-ins alone."
            raise Unserved("AX960", message, "Name the audience of the provider's API for it.")
        return config


class SignIn:
    """Sign-ins with one provider."""

    def __init__(
        self,
        config: OidcConfig,
        folder: str | Path,
        *,
        taken: Iterable[str] = (),
        provider: Provider | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        """Store the settings.

        Args:
            folder: of the sessions.
            taken: names of callers with tokens, which are not given to people who sign in.
            provider: None: the one that the settings name.
        """
        self._config, self._taken = config, frozenset(taken)
        self._provider = provider or Provider(config.issuer, leeway_seconds=config.leeway_seconds)
        self.sessions = sessions or Sessions(folder)
        parts = urlsplit(config.url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        """Of the server's own pages: what a session asks has to come from there."""
        self.host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        self._is_secure = parts.scheme == "https"
        below = parts.path.rstrip("/")
        self._url, self._path = f"{self.origin}{below}", below or "/"
        # a cookie of the whole host alone may have the first one
        prefix = ("__Secure-" if below else "__Host-") if self._is_secure else ""
        self._cookie, self._login_cookie = f"{prefix}axil-session", f"{prefix}axil-login"
        self._secret = ""
        if config.client_secret is not None:
            self._secret = config.client_secret.resolve(
                where="client_secret", permitted=True
            ).get_secret_value()

    # ------------------------------------------------------------------------------ callers

    async def caller(self, token: str, cookies: str) -> Caller | None:
        """Return the caller with a token of the provider, else with a session; None: none."""
        if token:
            return await self._of_token(token)
        secret = _cookie_in(cookies, self._cookie)
        return await asyncio.to_thread(self._of_session, secret)

    def _of_session(self, secret: str) -> Caller | None:
        found = self.sessions.get(secret)
        if found is None or "caller" not in found:
            return None
        kept: Mapping[str, Any] = found["caller"]
        return Caller(
            name=kept["name"],
            rights=frozenset(cast("list[Right]", kept["rights"])),
            sees_all=kept["sees_all"],
            way="session",
            has_lapsed=lambda: self.sessions.get(secret) is None,
        )

    async def _of_token(self, token: str) -> Caller | None:
        if not self._config.audience or token.count(".") != 2:
            return None
        try:
            claims = await self._provider.claims(token, self._config.audience)
            until = float(claims["exp"]) + self._config.leeway_seconds
            return self._granted(claims, way="jwt", has_lapsed=lambda: self.sessions.now() >= until)
        except (NotSignedIn, NotAllowed):
            return None

    def _granted(
        self, claims: Mapping[str, Any], *, way: str, has_lapsed: Callable[[], bool] | None = None
    ) -> Caller:
        """Return the caller of claims. Raises: NotAllowed (AX962): no group of theirs may enter."""
        config = self._config
        groups = _groups(claims, config.groups)
        rules = [rule for group, rule in config.rights.items() if group == "*" or group in groups]
        given: Any = claims.get(config.name)
        if config.name == "email" and claims.get("email_verified") is not True:
            given = None
        if not isinstance(given, str) or not given:
            message = f'the provider says no "{config.name}" that names a person.'
            raise NotAllowed("AX962", message, "Ask who runs the server.")
        name = given if is_name(given) else f"id-{hashlib.sha256(given.encode()).hexdigest()[:32]}"
        if not rules or name in self._taken:
            message = f'"{name}" is in no group that may use this server.'
            raise NotAllowed("AX962", message, "Ask who runs the server.")
        lapsing: dict[str, Any] = {} if has_lapsed is None else {"has_lapsed": has_lapsed}
        return Caller(
            name=name,
            rights=frozenset(right for rule in rules for right in rule.rights),
            sees_all=any(rule.look == "all" for rule in rules),
            way=way,
            **lapsing,
        )

    # ------------------------------------------------------------------------------- routes

    @staticmethod
    def is_public(path: str) -> bool:
        """Return whether a path is served without a caller: who asks there signs in or out."""
        return path in (LOGIN, CALLBACK, LOGOUT)

    def routes(self, service: RunService) -> Iterable[BaseRoute]:
        """Return the routes by which browsers sign in and out."""

        async def login(request: Request) -> Response:
            return await self._sent_away(request)

        async def callback(request: Request) -> Response:
            try:
                return await self._returned(request, service)
            except (NotSignedIn, NotAllowed) as error:
                return self._failed(error)

        async def logout(request: Request) -> Response:
            return await self._signed_out(request, service)

        return [
            Route(LOGIN, login, methods=["GET"]),
            Route(CALLBACK, callback, methods=["GET"]),
            Route(LOGOUT, logout, methods=["POST"]),
        ]

    async def _sent_away(self, request: Request) -> Response:
        """Send a browser to the provider."""
        config = self._config
        try:
            facts = await self._provider.facts()
        except NotSignedIn as error:
            return self._failed(error, 502)
        browser, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        kept = {
            "browser": _digest(browser),
            "nonce": nonce,
            "verifier": verifier,
            "next": _next(request.query_params.get("next", "")),
        }
        state = await asyncio.to_thread(self.sessions.put, {"login": kept}, _LOGIN_SECONDS)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": config.client_id,
            "redirect_uri": self._url + CALLBACK,
            "scope": " ".join(config.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge.rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = str(facts["authorization_endpoint"])
        joined = f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"
        answer = RedirectResponse(joined, 303, {"cache-control": "no-store"})
        # lax: the browser comes back from another site
        self._give(answer, self._login_cookie, browser, int(_LOGIN_SECONDS), "lax")
        return answer

    async def _returned(self, request: Request, service: RunService) -> Response:
        """Give a session to a browser that comes back from the provider.

        Raises: NotSignedIn (AX961); NotAllowed (AX962).
        """
        query, config = request.query_params, self._config
        found = await asyncio.to_thread(self.sessions.take, query.get("state", ""))
        browser = _cookie_in(request.headers.get("cookie", ""), self._login_cookie)
        if found is None or "login" not in found:
            raise NotSignedIn("AX961", "this sign-in is over, or was used.", "Sign in again.")
        kept: Mapping[str, str] = found["login"]
        if not browser or not hmac.compare_digest(_digest(browser), kept["browser"]):
            message = "this sign-in was begun in another browser."
            raise NotSignedIn("AX961", message, "Sign in again.")
        facts = await self._provider.facts()
        names_issuer = facts.get("authorization_response_iss_parameter_supported") is True
        if query.get("iss", "" if names_issuer else config.issuer) != config.issuer:
            raise NotSignedIn("AX961", "another provider answered.", "Sign in again.")
        if not (code := query.get("code", "")):
            raise NotSignedIn("AX961", "the provider refused the sign-in.", "Sign in again.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._url + CALLBACK,
            "code_verifier": kept["verifier"],
        }
        tokens = await self._provider.tokens(form, config.client_id, self._secret)
        claims = await self._provider.claims(str(tokens.get("id_token", "")), [config.client_id])
        audience: Any = claims["aud"]
        is_shared = isinstance(audience, list) and len(cast("list[Any]", audience)) > 1
        party = claims.get("azp", None if is_shared else config.client_id)
        if claims.get("nonce") != kept["nonce"] or party != config.client_id:
            raise NotSignedIn("AX961", "the token is of another sign-in.", "Sign in again.")
        caller = self._granted(claims, way="session")
        # the session of before is not the browser's any more, and its cookie never a new one's
        before = _cookie_in(request.headers.get("cookie", ""), self._cookie)
        await asyncio.to_thread(self.sessions.remove, before)
        data = {
            "name": caller.name,
            "rights": sorted(caller.rights),
            "sees_all": caller.sees_all,
        }
        await service.note(_placed(caller, request), "sign in")
        secret = await asyncio.to_thread(
            self.sessions.put, {"caller": data}, config.session_seconds
        )
        answer = RedirectResponse(f"{self._url}/{kept['next']}", 303, {"cache-control": "no-store"})
        self._give(answer, self._cookie, secret, int(config.session_seconds), "strict")
        self._take(answer, self._login_cookie)
        return answer

    async def _signed_out(self, request: Request, service: RunService) -> Response:
        """End a session, and say where the provider's own is ended."""
        if request.headers.get("origin", "") != self.origin:
            data = error_data("AX963", "web pages of this origin may not use this server.")
            return JSONResponse(data, 403)
        secret = _cookie_in(request.headers.get("cookie", ""), self._cookie)
        caller = await asyncio.to_thread(self._of_session, secret)
        if caller is not None:
            await service.note(_placed(caller, request), "sign out")
            await asyncio.to_thread(self.sessions.remove, secret)
        place, end = f"{self._url}/", cast("Any", None)
        with suppress(NotSignedIn):
            end = (await self._provider.facts()).get("end_session_endpoint")
        if isinstance(end, str) and _is_web(end):
            query = {"client_id": self._config.client_id, "post_logout_redirect_uri": place}
            place = f"{end}{'&' if '?' in end else '?'}{urlencode(query)}"
        answer = JSONResponse({"location": place}, headers={"cache-control": "no-store"})
        self._take(answer, self._cookie)
        return answer

    def _give(
        self, answer: Response, name: str, value: str, seconds: int, same: Literal["lax", "strict"]
    ) -> None:
        answer.set_cookie(
            name,
            value,
            max_age=seconds,
            path=self._path,
            secure=self._is_secure,
            httponly=True,
            samesite=same,
        )

    def _take(self, answer: Response, name: str) -> None:
        answer.delete_cookie(name, path=self._path, secure=self._is_secure, httponly=True)

    def _failed(self, error: NotSignedIn | NotAllowed, status: int = 0) -> Response:
        """Return a page that says why a sign-in failed; nothing of the request is in it."""
        import html

        text, again = html.escape(str(error)), html.escape(self._url + LOGIN)
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>axil</title>'
            f'<h1>Not signed in</h1><p>{text}</p><p><a href="{again}">Sign in again</a></p></html>'
        )
        status = status or (403 if isinstance(error, NotAllowed) else 401)
        return HTMLResponse(page, status, {"cache-control": "no-store"})


def _placed(caller: Caller, request: Request) -> Caller:
    return replace(caller, place=request.client.host if request.client else "")


def _groups(claims: Mapping[str, Any], path: str) -> frozenset[str]:
    """Return the groups that claims name; a single one may be a text.

    >>> sorted(_groups({"realm": {"roles": ["a", 1]}}, "realm.roles")), _groups({}, "groups")
    (['a'], frozenset())
    """
    found: Any = claims
    for part in [path] if path in claims else path.split("."):
        found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    return frozenset(each for each in listed if isinstance(each, str))


def _next(given: str) -> str:
    """Return where a browser goes when it is signed in: a part of the page, never another place,
    and never one with a token.

    >>> _next("#run=r1"), _next("https://evil.example"), _next("#token=x"), _next("//evil.example")
    ('#run=r1', '', '', '')
    """
    is_part = given.startswith("#") and given.isprintable() and len(given) <= _LONGEST_NEXT
    return given if is_part and "token" not in given.casefold() else ""


def _is_web(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def _cookie_in(header: str, name: str) -> str:
    """Return a cookie that a request has once; empty: it has none, or several."""
    values = [
        value.strip()
        for each in header.split(";")
        for key, _, value in [each.partition("=")]
        if key.strip() == name
    ]
    return values[0] if len(values) == 1 else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


__all__ = ["Granted", "OidcConfig", "SignIn"]
