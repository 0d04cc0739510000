"""A provider of OpenID Connect: what it says of itself, its keys, and the tokens that it issued.

Its answers are bounded, come from the addresses that it names itself, which are of https but on
this machine, and are never redirects. Signatures and claims are checked by joserfc.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from axil_serve.errors import NotSignedIn, Unserved

log = logging.getLogger("axil_serve")

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
    "ES512", "Ed25519", "EdDSA")  # fmt: skip
"""Signatures with a key of the provider's own; never ``none``, and none with a shared secret."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_SECONDS: Final = 10.0
_FRESH: Final = 3600.0
"""The time that what a provider says of itself is used for."""
_AGAIN: Final = 30.0
"""The time between two looks for a key that is not known."""
_MOST_BYTES: Final = 1_000_000
_LONGEST: Final = 16_000
"""Characters of a token."""


class Provider:
    """A provider, by the address of its issuer."""

    def __init__(
        self,
        issuer: str,
        *,
        leeway_seconds: float = 60.0,
        transport: httpx.AsyncBaseTransport | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Store the settings; nothing is asked before it is needed.

        Args:
            leeway_seconds: by how much clocks may differ.
            transport: None: the network.
        """
        check_address(issuer, "issuer")
        self.issuer, self._leeway = issuer, leeway_seconds
        self._transport, self._now = transport, now
        self._lock = asyncio.Lock()
        self._facts: Mapping[str, Any] = {}
        self._keys: KeySet | None = None
        self._read_at = self._keys_at = float("-inf")

    async def facts(self) -> Mapping[str, Any]:
        """Return what the provider says of itself.

        Raises: NotSignedIn (AX961): it cannot be asked, or is another issuer.
        """
        async with self._lock:
            return await self._known()

    async def _known(self) -> Mapping[str, Any]:
        if time.monotonic() - self._read_at < _FRESH:
            return self._facts
        url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        facts = await self._asked("GET", url)
        if facts.get("issuer") != self.issuer:
            raise self._fault("it says that it is another issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            self._check(facts.get(name))
        self._facts, self._read_at = facts, time.monotonic()
        return facts

    def _check(self, address: Any) -> None:
        """Check an address that the provider names. Raises: NotSignedIn (AX961)."""
        try:
            check_address(str(address), "provider")
        except Unserved as error:
            raise self._fault("one of its addresses is not of https") from error

    async def tokens(self, form: Mapping[str, str], client: str, secret: str) -> Mapping[str, Any]:
        """Return what the provider gives for a code. Raises: NotSignedIn (AX961).

        Args:
            form: the fields of the request.
            client, secret: the client's name, and its secret; empty: it has none.
        """
        facts = await self.facts()
        ways: Any = facts.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        fields, auth = {**form, "client_id": client}, None
        if secret and "client_secret_basic" in ways:
            auth = httpx.BasicAuth(quote(client, safe=""), quote(secret, safe=""))
        elif secret:
            fields["client_secret"] = secret
        return await self._asked("POST", str(facts["token_endpoint"]), data=fields, auth=auth)

    async def claims(self, token: str, audience: Collection[str]) -> dict[str, Any]:
        """Return the claims of a token that this provider issued for one of the audiences.

        Raises: NotSignedIn (AX961): it did not, or the token is over, or not valid yet.
        """
        if len(token) > _LONGEST:
            raise self._fault("the token is too long")
        try:
            found = jwt.decode(token, await self._key_set(), algorithms=ALGORITHMS)
        except (JoseError, ValueError) as first:
            # it may have begun to sign with another key
            keys = await self._key_set(unlike=True)
            if keys is None:
                raise self._fault("the token is not signed by it") from first
            try:
                found = jwt.decode(token, keys, algorithms=ALGORITHMS)
            except (JoseError, ValueError) as error:
                raise self._fault("the token is not signed by it") from error
        registry = jwt.JWTClaimsRegistry(
            int(self._now()),
            int(self._leeway),
            iss={"essential": True, "value": self.issuer},
            sub={"essential": True},
            exp={"essential": True},
        )
        try:
            registry.validate(found.claims)
        except (JoseError, ValueError, TypeError) as error:
            raise self._fault(f"a claim does not hold ({type(error).__name__})") from error
        given: Any = found.claims.get("aud")
        listed = cast("list[Any]", given) if isinstance(given, list) else [given]
        if not any(isinstance(each, str) and each in audience for each in listed):
            raise self._fault("the token is for another audience")
        if not isinstance(found.claims["sub"], str):
            raise self._fault("a claim does not hold (sub)")
        return dict(found.claims)

    async def _key_set(self, *, unlike: bool = False) -> Any:
        """Return the keys; ``unlike``: read again, None: they were just read."""
        async with self._lock:
            age = time.monotonic() - self._keys_at
            if unlike and age < _AGAIN:
                return None
            if self._keys is None or unlike or age > _FRESH:
                facts = await self._known()
                self._keys_at = time.monotonic()  # also where it fails: not at once again
                found: Any = await self._asked("GET", str(facts["jwks_uri"]))
                try:
                    listed: Any = found["keys"]
                    # what signs is public: a shared secret in the list is none of its keys
                    keys = [each for each in listed if each.get("kty") in ("RSA", "EC", "OKP")]
                    self._keys = KeySet.import_key_set({"keys": keys})
                except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
                    raise self._fault("its keys cannot be read") from error
            return self._keys

    async def _asked(self, method: str, url: str, **given: Any) -> Mapping[str, Any]:
        """Return the JSON object of an answer. Raises: NotSignedIn (AX961)."""
        body = b""
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx.AsyncClient(transport=self._transport, timeout=_SECONDS) as client,
                client.stream(method, url, headers={"accept": "application/json"}, **given) as got,
            ):
                async for part in got.aiter_bytes():
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise self._fault("its answer is too long")
            found: Any = httpx.Response(got.status_code, content=body).json()
        # what these say may hold the address or a secret
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError, RecursionError) as error:
            raise self._fault(f"it did not answer ({type(error).__name__})") from error
        if got.status_code != 200 or not isinstance(found, dict):
            raise self._fault(f"it answered with the status {got.status_code}")
        return cast("dict[str, Any]", found)

    def _fault(self, why: str) -> NotSignedIn:
        log.warning("a sign-in with %s failed: %s", self.issuer, why)
        return NotSignedIn("AX961", f"the sign-in failed: {why}.", "Sign in again.")


def check_address(address: str, where: str) -> None:
    """Check an address of a provider or of this server. Raises: Unserved (AX960)."""
    try:
        parts = urlsplit(address)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
        is_whole = parts.hostname and not parts.username and not parts.fragment
    except ValueError:
        is_safe = is_whole = False
    if not (is_safe and is_whole) or "\\" in address or not address.isprintable():
        message = f"{where}: expected an address of https, found {address[:200]!r}."
        raise Unserved("AX960", message, "http will do on this machine only.")


__all__ = ["ALGORITHMS", "LOOPBACK", "Provider", "check_address"]
