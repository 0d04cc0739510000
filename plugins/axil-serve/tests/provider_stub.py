"""A provider of OpenID Connect in this process, which lies where a law wants it."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ISSUER = "https://login.example"
CLIENT = "axil"
KEYS = [ECKey.generate_key("P-256", {"kid": kid, "alg": "ES256", "use": "sig"}) for kid in "ab"]


@dataclass
class ProviderStub:
    """The words of a provider, and the tokens that it gives."""

    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "groups": ["staff"]})
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    signs_with: int = 0
    shows: list[int] = field(default_factory=lambda: [0])
    """The keys that it signs with, and that it shows."""
    spoil: Callable[[dict[str, Any]], str | None] = lambda claims: None
    """Changes the claims of an id token, or returns another token in its place."""
    asked: dict[str, int] = field(default_factory=dict[str, int])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._configuration),
                Route("/jwks", self._jwks),
                Route("/token", self._token, methods=["POST"]),
            ]
        )

    def authorized(self, address: str) -> str:
        """Let a person in who was sent to an address; return the query they come back with."""
        asked = {name: each[0] for name, each in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return f"code={code}&state={asked['state']}"

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        key = KEYS[self.signs_with]
        return jwt.encode({"alg": "ES256", "kid": key.kid, **header}, claims, key)

    def token(self, **claims: Any) -> str:
        """Return a token of an API of the provider."""
        now = int(time.time())
        own = {"iss": ISSUER, "aud": "axil-api", "iat": now, "exp": now + 600}
        return self.signed({**own, **self.claims, **claims})

    def _count(self, name: str) -> None:
        self.asked[name] = self.asked.get(name, 0) + 1

    async def _configuration(self, request: Request) -> Response:
        self._count("configuration")
        own = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/jwks",
            "end_session_endpoint": f"{ISSUER}/logout",
        }
        return JSONResponse({**own, **self.facts})

    async def _jwks(self, request: Request) -> Response:
        self._count("jwks")
        keys = KeySet([KEYS[each] for each in self.shows]).as_dict(private=False)
        shared = OctKey.import_key("a secret that signs and is shown").as_dict()
        return JSONResponse({"keys": [*keys["keys"], {**shared, "kid": "shared"}]})

    async def _token(self, request: Request) -> Response:
        self._count("token")
        form = {name: each[0] for name, each in parse_qs((await request.body()).decode()).items()}
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if (
            asked is None
            or proof != asked["code_challenge"]
            or form.get("redirect_uri") != asked["redirect_uri"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": CLIENT, "iat": now, "exp": now + 600}
        claims |= {"nonce": asked["nonce"], **self.claims}
        other = self.spoil(claims)
        return JSONResponse({"id_token": other or self.signed(claims), "access_token": "x"})
