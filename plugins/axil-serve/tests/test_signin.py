"""Laws of signing in with OpenID Connect, held against a provider that lies where it should."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import uvicorn
from joserfc import jwt
from joserfc.jwk import OctKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from axil import ConfigError
from axil_journals import MemoryJournal
from axil_serve import RunService, app_of
from axil_serve.audit import Audit
from axil_serve.errors import Unserved
from axil_serve.provider import Provider
from axil_serve.sessions import Sessions
from axil_serve.signin import OidcConfig, SignIn

from .conftest import ADA, EVE, PROTOCOLS, access, as_caller, greeting, refund
from .provider_stub import CLIENT, ISSUER, KEYS, ProviderStub
from .site import chromium_path

URL = "https://axil.example"
OWN = {"origin": URL}
SETTINGS: dict[str, Any] = {
    "issuer": ISSUER,
    "client_id": CLIENT,
    "url": URL,
    "audience": ["axil-api"],
    "rights": {
        "staff": {"rights": ["look", "run"]},
        "leads": {"rights": ["look", "answer", "audit"], "look": "all"},
    },
}


@dataclass
class Desk:
    """A server, its provider, and the clock of both."""

    folder: Path
    stub: ProviderStub = field(default_factory=ProviderStub)
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    ahead: float = 0.0
    """Seconds by which the clock of the server has gone on."""
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def now(self) -> float:
        return time.time() + self.ahead

    def app(self) -> Any:
        """Return the server as an application."""
        config = OidcConfig.from_data({**SETTINGS, **self.settings}, "oidc.json")
        transport = httpx.ASGITransport(self.stub.app())
        provider = Provider(ISSUER, transport=transport, now=self.now)
        sign_in = SignIn(
            config,
            self.folder,
            taken=access().names,
            provider=provider,
            sessions=Sessions(self.folder / "sessions", now=self.now),
        )
        service = RunService(
            self.journal,
            {"greeting": greeting(), "refund": refund()},
            poll_seconds=0.01,
            audit=Audit(self.folder / "audit.jsonl"),
        )
        return app_of(service, access(), protocols=PROTOCOLS, sign_in=sign_in)

    @contextmanager
    def served(self) -> Iterator[TestClient]:
        with TestClient(self.app(), base_url=URL, follow_redirects=False) as client:
            yield client

    def signed_in(self, client: httpx.Client | TestClient, next: str = "") -> httpx.Response:
        """Sign in, and return the last answer."""
        sent = client.get("/login", params={"next": next} if next else {})
        query = self.stub.authorized(sent.headers["location"])
        return client.get(f"/login/callback?{query}")


@contextmanager
def listening(app: Any, listener: socket.socket) -> Iterator[None]:
    """Serve an application to other programs of this machine."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(60)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, ProviderStub(claims={"sub": "una", "groups": ["staff"]}))


def test_a_person_signs_in_works_and_signs_out(desk):
    with desk.served() as client:
        assert client.get("/v1/me").status_code == 401
        assert b'name="sign-in"' in client.get("/").content
        sent = client.get("/login", params={"next": "#run=r"})
        asked = parse_qs(urlsplit(sent.headers["location"]).query)
        assert asked["redirect_uri"] == [f"{URL}/login/callback"]
        assert sent.headers["location"].startswith(f"{ISSUER}/authorize?")
        done = client.get(f"/login/callback?{desk.stub.authorized(sent.headers['location'])}")
        assert (done.status_code, done.headers["location"]) == (303, f"{URL}/#run=r")
        cookie = next(
            each for each in done.headers.get_list("set-cookie") if "axil-session=" in each
        )
        for word in ("__Host-", "HttpOnly", "Secure", "SameSite=strict", "Path=/", "Max-Age=28800"):
            assert word in cookie
        assert "Domain" not in cookie
        me = client.get("/v1/me").json()
        assert (me["name"], me["rights"], me["look"]) == ("una", ["look", "run"], "own")
        body = {"workflow": "greeting", "input": {"name": "x"}}
        started = client.post("/v1/runs", json=body, headers=OWN)
        assert started.status_code == 201
        answers = {"answers": {"a": 1}}
        path = f"/v1/runs/{started.json()['run_id']}/answers"
        assert client.post(path, json=answers, headers=OWN).status_code == 403
        out = client.post("/logout", headers=OWN)
        assert out.json()["location"].startswith(f"{ISSUER}/logout?client_id=axil")
        assert client.get("/v1/me").status_code == 401
    acts = [each["action"] for each in Audit(desk.folder / "audit.jsonl").read()[0]]
    assert acts == ["sign out", "refused", "start", "sign in"]


def test_a_cookie_that_was_signed_out_is_worth_nothing(desk):
    with desk.served() as client:
        desk.signed_in(client)
        kept = dict(client.cookies)
        client.post("/logout", headers=OWN)
        cookie = "; ".join(f"{name}={value}" for name, value in kept.items())
        assert client.get("/v1/me", headers={"cookie": cookie}).status_code == 401


@pytest.mark.parametrize("origin", ["", "https://evil.example", "null", "http://axil.example"])
def test_a_page_of_another_place_changes_nothing_by_a_cookie(desk, origin):
    with desk.served() as client:
        desk.signed_in(client)
        headers = {"origin": origin} if origin else {}
        body = {"workflow": "greeting", "input": {"name": "x"}}
        assert client.post("/v1/runs", json=body, headers=headers).status_code == 403
        assert client.post("/logout", headers=headers).status_code == 403
        assert client.get("/v1/me").status_code == 200


def test_a_session_is_over_in_time_and_outlives_a_restart_and_a_server(desk):
    with desk.served() as client:
        desk.signed_in(client)
        cookies = dict(client.cookies)
    with desk.served() as client, desk.served() as other:
        for each in (client, other):
            each.cookies.update(cookies)
            assert each.get("/v1/me").json()["name"] == "una"
        desk.ahead = 8 * 3600 + 1
        assert [each.get("/v1/me").status_code for each in (client, other)] == [401, 401]
    assert not list((desk.folder / "sessions").iterdir())


def test_no_cookie_is_kept(desk):
    with desk.served() as client:
        desk.signed_in(client)
        values = list(client.cookies.values())
    files = [*(desk.folder / "sessions").iterdir()]
    assert files
    for file in files:
        text = file.name + file.read_text("utf-8")
        assert not any(value in text for value in values)
        assert file.stat().st_mode & 0o077 == 0


def test_a_cookie_that_was_planted_never_becomes_a_session(desk):
    with desk.served() as client:
        client.cookies.set("__Host-axil-session", "planted", domain="axil.example")
        desk.signed_in(client)
        new = [each for each in client.cookies.jar if each.name == "__Host-axil-session"]
        assert "planted" not in [each.value for each in new if each.domain != "axil.example"]
        assert client.get("/v1/me", headers={"cookie": "__Host-axil-session=planted"}).is_error


def test_a_new_sign_in_ends_the_session_of_before(desk):
    with desk.served() as client:
        desk.signed_in(client)
        before = client.cookies["__Host-axil-session"]
        desk.signed_in(client)
        assert client.get("/v1/me").status_code == 200
        client.cookies.clear()
        headers = {"cookie": f"__Host-axil-session={before}"}
        assert client.get("/v1/me", headers=headers).status_code == 401


def returned(desk: Desk, client: TestClient, **other: str) -> httpx.Response:
    """Come back from the provider with something else in the query."""
    query = desk.stub.authorized(client.get("/login").headers["location"])
    given = {name: each[0] for name, each in parse_qs(query).items()} | other
    return client.get("/login/callback", params={n: v for n, v in given.items() if v})


def test_a_state_is_used_once_and_in_its_own_browser(desk):
    with desk.served() as client:
        query = desk.stub.authorized(client.get("/login").headers["location"])
        cookies = dict(client.cookies)
        assert client.get(f"/login/callback?{query}").status_code == 303
        client.cookies.update(cookies)
        assert client.get(f"/login/callback?{query}").status_code == 401
        victim = desk.stub.authorized(client.get("/login").headers["location"])
        client.cookies.clear()  # somebody else is led to the address
        assert client.get(f"/login/callback?{victim}").status_code == 401
        assert returned(desk, client, state="made up").status_code == 401
        assert returned(desk, client, state="").status_code == 401
        assert returned(desk, client, code="").status_code == 401
        assert returned(desk, client, code="stolen").status_code == 401
        assert returned(desk, client, iss="https://evil.example").status_code == 401
        desk.stub.facts["authorization_response_iss_parameter_supported"] = True
    with desk.served() as client:
        assert returned(desk, client).status_code == 401  # it has to name itself now
        assert returned(desk, client, iss=ISSUER).status_code == 303


def test_a_sign_in_is_over_after_ten_minutes(desk):
    with desk.served() as client:
        query = desk.stub.authorized(client.get("/login").headers["location"])
        desk.ahead = 601
        assert client.get(f"/login/callback?{query}").status_code == 401


def unsigned(claims: dict[str, Any]) -> str:
    parts = [{"alg": "none"}, claims]
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode()
           for each in parts), ""]
    )  # fmt: skip


def shared(claims: dict[str, Any]) -> str:
    """Sign with what everybody knows: a key of the list that is no public one."""
    key = OctKey.import_key("a secret that signs and is shown")
    return jwt.encode({"alg": "HS256", "kid": "shared"}, claims, key)


def public_as_secret(claims: dict[str, Any]) -> str:
    key = OctKey.import_key(KEYS[0].as_pem(private=False))
    return jwt.encode({"alg": "HS256", "kid": "a"}, claims, key, algorithms=["HS256"])


def own_key(claims: dict[str, Any]) -> str:
    header = {"alg": "ES256", "kid": "a", "jwk": KEYS[1].as_dict(private=False)}
    return jwt.encode(header, claims, KEYS[1])


LIES = {
    "none": unsigned,
    "shared key": shared,
    "public key as a secret": public_as_secret,
    "own key": own_key,
    "other audience": lambda claims: claims.update(aud="another"),
    "no audience": lambda claims: claims.pop("aud") and None,
    "two audiences": lambda claims: claims.update(aud=[CLIENT, "another"]),
    "other party": lambda claims: claims.update(azp="another"),
    "other issuer": lambda claims: claims.update(iss="https://evil.example"),
    "other nonce": lambda claims: claims.update(nonce="x"),
    "no nonce": lambda claims: claims.pop("nonce") and None,
    "over": lambda claims: claims.update(exp=int(time.time()) - 61),
    "no end": lambda claims: claims.pop("exp") and None,
    "not yet": lambda claims: claims.update(nbf=int(time.time()) + 90),
    "no subject": lambda claims: claims.pop("sub") and None,
    "numbered subject": lambda claims: claims.update(sub=7),
    "no token": lambda claims: "x",
    "long": lambda claims: "x" * 100_000,
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_is_not_the_providers_for_this_sign_in_is_refused(desk, lie):
    desk.stub.spoil = LIES[lie]
    with desk.served() as client:
        assert desk.signed_in(client).status_code == 401
        assert "__Host-axil-session" not in client.cookies
        assert client.get("/v1/me").status_code == 401


def test_clocks_may_differ_by_a_minute(desk):
    desk.stub.spoil = lambda claims: claims.update(exp=int(time.time()) - 30)
    with desk.served() as client:
        assert desk.signed_in(client).status_code == 303


@pytest.mark.parametrize(
    "facts",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
    ],
)
def test_a_provider_that_is_another_one_is_not_asked(desk, facts):
    desk.stub.facts = facts
    with desk.served() as client:
        assert client.get("/login").status_code == 502
        assert client.get("/v1/me", headers=as_caller(desk.stub.token())).status_code == 401


@pytest.mark.parametrize(
    "next", ["https://evil.example", "//evil.example", "/\\evil.example", "#token=x", "#\r\nx"]
)
def test_a_sign_in_leads_to_this_page_alone(desk, next):
    with desk.served() as client:
        assert desk.signed_in(client, next).headers["location"] == f"{URL}/"


def test_keys_change_and_are_looked_for_once(desk, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("axil_serve.provider.time.monotonic", lambda: clock[0])
    with desk.served() as client:
        assert client.get("/v1/me", headers=as_caller(desk.stub.token())).status_code == 200
        desk.stub.signs_with, desk.stub.shows = 1, [0, 1]
        new = as_caller(desk.stub.token())
        assert client.get("/v1/me", headers=new).status_code == 401  # just looked
        clock[0] += 31
        assert client.get("/v1/me", headers=new).status_code == 200
        for _ in range(5):
            assert client.get("/v1/me", headers=as_caller("a.b.c")).status_code == 401
        assert desk.stub.asked["jwks"] == 2
        desk.stub.shows = [1]
        desk.stub.signs_with = 0
        clock[0] += 3601
        old = as_caller(desk.stub.token())
        assert client.get("/v1/me", headers=old).status_code == 401  # a key that was taken back


def test_a_program_comes_with_a_token_of_the_provider(desk):
    with desk.served() as client:
        headers = as_caller(desk.stub.token(groups=["staff", "leads"]))
        me = client.get("/v1/me", headers=headers).json()
        assert (me["look"], me["way"]) == ("all", "jwt")
        assert me["rights"] == ["answer", "audit", "look", "run"]
        body = {"workflow": "greeting", "input": {"name": "x"}}
        assert client.post("/v1/runs", json=body, headers=headers).status_code == 201
        for wrong in (
            desk.stub.token(aud=CLIENT),  # that of a sign-in
            desk.stub.token(groups=["others"]),
            desk.stub.token(exp=int(time.time()) - 61),
            desk.stub.token(iss="https://evil.example"),
            desk.stub.token(sub="ada"),  # the name of a caller with a token
            unsigned({"iss": ISSUER, "aud": "axil-api", "sub": "x", "exp": time.time() + 60}),
        ):
            assert client.get("/v1/me", headers=as_caller(wrong)).status_code == 401
        assert client.get("/v1/me", headers=as_caller(ADA)).json()["way"] == "token"


def test_a_stream_ends_with_the_session_and_with_the_token(desk):
    with socket.create_server(("127.0.0.1", 0)) as here, ExitStack() as stack:
        own = f"http://127.0.0.1:{here.getsockname()[1]}"
        desk.settings = {"url": own}
        stack.enter_context(listening(desk.app(), here))
        client = stack.enter_context(httpx.Client(base_url=own, trust_env=False, timeout=60))
        assert desk.signed_in(client).status_code == 303
        body = {"workflow": "refund", "input": {"amount": 1}}
        run_id = client.post("/v1/runs", json=body, headers={"origin": own}).json()["run_id"]
        for headers, seconds in ((None, 8 * 3600 + 1), (as_caller(desk.stub.token()), 700)):
            desk.ahead = 0
            with client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as stream:
                assert stream.status_code == 200
                lines = stream.iter_lines()
                assert next(lines).startswith("id: ")
                desk.ahead = seconds
                rest = "\n".join(lines)
            assert "event: error" in rest
            assert "AX961" in rest
            assert "event: end" not in rest


def test_an_odd_name_is_one_callers_and_a_free_one_is_nobodys(desk):
    desk.settings = {"name": "email"}
    desk.stub.claims = {"sub": "una", "email": "una|x", "groups": "staff"}
    with desk.served() as client:
        assert desk.signed_in(client).status_code == 403  # not verified
        desk.stub.claims["email_verified"] = True
        assert desk.signed_in(client).status_code == 303
        assert client.get("/v1/me").json()["name"].startswith("id-")


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example"},
        {"url": "http://axil.example"},
        {"url": "https://axil.example/below/../other"},
        {"url": "https://axil.example//other"},
        {"url": "https://axil.example/below;a"},
        {"url": "https://user@axil.example"},
        {"scopes": ["profile"]},
        {"audience": [CLIENT]},
        {"rights": {}},
        {"rights": {"staff": {"rights": ["all"]}}},
        {"client_secret": 3},
        {"more": 1},
    ],
)
def test_the_settings_are_read_strictly(wrong):
    with pytest.raises((Unserved, ConfigError)):
        OidcConfig.from_data({**SETTINGS, **wrong}, "oidc.json")


def test_a_caller_with_few_rights_is_not_let_in_by_a_cookie_of_another(desk):
    with desk.served() as client:
        desk.signed_in(client)
        assert client.get("/v1/me", headers=as_caller(EVE)).json()["name"] == "eve"
        assert client.get("/v1/me", headers=as_caller("unknown-token-here")).status_code == 401


def below(path: str, app: Any) -> Any:
    """Return an application at a path, which it does not see, as a proxy shows it."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        if "path" in scope:
            assert scope["path"].startswith(f"{path}/"), scope["path"]
            inner = scope["path"].removeprefix(path)
            scope = {**scope, "path": inner, "raw_path": inner.encode()}
        await app(scope, receive, send)

    return proxied


def test_below_a_path_a_person_signs_in_and_out_there(desk):
    desk.settings = {"url": f"{URL}/tools/axil/"}
    there = f"{URL}/tools/axil"
    app = below("/tools/axil", desk.app())
    with TestClient(app, base_url=there, follow_redirects=False) as client:
        assert b'<meta name="sign-in" content="login">' in client.get(f"{there}/").content
        sent = client.get(f"{there}/login", params={"next": "#run=r"})
        asked = parse_qs(urlsplit(sent.headers["location"]).query)
        assert asked["redirect_uri"] == [f"{there}/login/callback"]
        query = desk.stub.authorized(sent.headers["location"])
        done = client.get(f"{there}/login/callback?{query}")
        assert (done.status_code, done.headers["location"]) == (303, f"{there}/#run=r")
        for cookie in (*sent.headers.get_list("set-cookie"), *done.headers.get_list("set-cookie")):
            assert "Path=/tools/axil;" in f"{cookie};"
            assert cookie.startswith("__Secure-axil-")
        assert client.get(f"{there}/v1/me").json()["name"] == "una"
        started = client.post(
            f"{there}/v1/runs", json={"workflow": "greeting", "input": {"name": "x"}}, headers=OWN
        )
        assert started.status_code == 201
        failed = client.get(f"{there}/login/callback?state=none")
        assert f'href="{there}/login"' in failed.text
        out = client.post(f"{there}/logout", headers=OWN)
        back = parse_qs(urlsplit(out.json()["location"]).query)["post_logout_redirect_uri"]
        assert back == [f"{there}/"]
        assert client.get(f"{there}/v1/me").status_code == 401
        assert not client.cookies


@pytest.mark.parametrize("path", ["", "/tools/axil"])
def test_in_a_browser_a_person_signs_in_and_out(desk, path):
    api = pytest.importorskip("playwright.sync_api")
    if not (chromium := chromium_path()):
        pytest.skip("no Chromium is installed, and AXIL_BROWSER names none")

    async def authorize(request: Request) -> Response:
        back = request.query_params["redirect_uri"]
        return RedirectResponse(f"{back}?{desk.stub.authorized(str(request.url))}", 303)

    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        socket.create_server(("127.0.0.1", 0)) as here,
        ExitStack() as stack,
    ):
        provider, own = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (there, here))
        # the provider has no page of its own at which a session there is ended
        addresses = {"authorization_endpoint": f"{provider}/authorize"}
        desk.stub.facts = {**addresses, "end_session_endpoint": None}
        own += path
        desk.settings = {"url": own}
        stack.enter_context(listening(Starlette(routes=[Route("/authorize", authorize)]), there))
        stack.enter_context(listening(below(path, desk.app()), here))
        playwright = stack.enter_context(api.sync_playwright())
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        stack.callback(browser.close)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{own}/#workflows")
        page.get_by_role("link", name="Sign in").click()
        page.get_by_role("heading", name="Workflows", exact=True).wait_for()
        assert page.url == f"{own}/#workflows"
        [cookie] = page.context.cookies()
        assert (cookie["httpOnly"], cookie["path"]) == (True, path or "/")
        page.get_by_role("button", name="Sign out una").click()
        page.get_by_role("link", name="Sign in").wait_for()
        assert page.context.cookies() == []
        assert faults == []
