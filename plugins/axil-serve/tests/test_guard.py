"""Laws of the guard: nothing is had without a token, from elsewhere, too large or too often."""

from __future__ import annotations

import json

import pytest

from axil_serve import Access, Limits
from axil_serve.app import PAGE
from axil_serve.errors import Unserved

from .conftest import ADA, BEN, EVE, as_caller, served

ROUTES = ("/v1/runs", "/v1/me", "/v1/workflows", "/v1/openapi.json", "/v1/models", "/nothing")


MALFORMED = (
    "127.0.0.1:1@x",
    "127.0.0.1:1@evil.example",
    "127.0.0.1:x",
    "127.0.0.1:1:2",
    "[::1]evil.example",
    "[::1]@x",
    "[::1",
    "localhost/x",
    "localhost, evil.example",
    "a@localhost",
    "local host",
    "http://localhost",
    "",
)


def test_without_a_token_there_is_only_the_page(client):
    for path in ROUTES:
        for headers in ({"authorization": ""}, as_caller(ADA + "x"), {"authorization": ADA}):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["error"]["id"]) == (401, "AX961"), path
    page = client.get("/", headers={"authorization": ""})
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert client.get("/page/../access.py", headers={"authorization": ""}).status_code == 401
    assert client.get("/page/__init__.py").status_code == 404


def test_a_run_of_another_caller_does_not_exist(client):
    body = {"workflow": "refund", "input": {"amount": 1}}
    run_id = client.post("/v1/runs", json=body).json()["run_id"]
    unknown = client.get("/v1/runs/nothing", headers=as_caller(BEN))
    for path in ("", "/steps", "/plan", "/layout", "/state?at=1-a", "/events"):
        answer = client.get(f"/v1/runs/{run_id}{path}", headers=as_caller(BEN))
        assert answer.status_code == 404, path
        assert answer.text.replace(run_id, "nothing") == unknown.text
    for path, sent in (
        ("answers", {"answers": {"a": 1}}),
        ("cancel", {}),
        ("resume", {}),
        ("fork", {}),
    ):
        answer = client.post(f"/v1/runs/{run_id}/{path}", json=sent, headers=as_caller(BEN))
        assert answer.status_code == 404, path
    assert client.get("/v1/runs", headers=as_caller(BEN)).json()["runs"] == []


def test_a_token_does_only_what_it_has_the_right_to(client):
    body = {"workflow": "greeting", "input": {"name": "x"}}
    refused = client.post("/v1/runs", json=body, headers=as_caller(EVE))
    assert (refused.status_code, refused.json()["error"]["id"]) == (403, "AX962")
    chat = {"model": "greeting", "messages": [{"role": "user", "content": "x"}]}
    assert client.post("/v1/chat/completions", json=chat, headers=as_caller(EVE)).status_code == 403
    assert client.get("/v1/workflows", headers=as_caller(EVE)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        *(({"host": host}, 400) for host in MALFORMED),
        ({"host": "127.0.0.1:8766"}, 200),
        ({"host": "[::1]:8766"}, 200),
        ({"host": "LocalHost:"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1"}, 200),
        ({"host": "axil.example"}, 200),
        ({"origin": "https://app.example"}, 200),
    ],
)
def test_names_and_origins_are_checked(journal, headers, status):
    with served(journal, hosts=["axil.example"], origins=["https://app.example"]) as client:
        assert client.get("/v1/me", headers=headers).status_code == status


def test_a_request_has_one_host(journal):
    with served(journal) as client:
        headers = [("host", "localhost"), ("host", "localhost")]
        assert client.get("/v1/me", headers=headers).status_code == 400


def test_a_body_that_is_too_large_is_refused_stated_or_not(journal):
    with served(journal, limits=Limits(body_bytes=100)) as client:
        large = json.dumps({"workflow": "x" * 200}).encode()
        headers = {"content-type": "application/json"}
        stated = client.post("/v1/runs", content=large, headers=headers)
        parts = (large[at : at + 50] for at in range(0, len(large), 50))
        unstated = client.post("/v1/runs", content=parts, headers=headers)
        assert (stated.status_code, unstated.status_code) == (413, 413)


def test_requests_beyond_the_rate_wait_and_each_token_has_its_own(journal):
    with served(journal, limits=Limits(requests_per_minute=0.001, burst=2)) as client:
        statuses = [client.get("/v1/me").status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert client.get("/v1/me", headers=as_caller(BEN)).status_code == 200


def test_the_files_of_the_page_count_as_one_request_together(journal):
    """A team behind one address opens the page many times; a flood of it is refused, too."""
    with served(journal, limits=Limits(requests_per_minute=0.001, burst=2)) as client:
        page = ["/", *(f"/page/{name}" for name in PAGE if name != "index.html")]
        for _ in range(2):
            assert {client.get(path).status_code for path in page} == {200}
        assert client.get("/").status_code == 429


def test_a_file_of_tokens_is_read_strictly(tmp_path):
    file = tmp_path / "tokens.json"

    def access(reported):
        file.write_text(json.dumps(reported), "utf-8")
        return Access.from_file(file, {"ADA": ADA, "SHORT": "short"})

    caller = access({"ada": {"env": "ADA", "rights": ["look"], "look": "all"}}).caller(ADA)
    assert (caller.name, caller.rights, caller.sees_all) == ("ada", {"look"}, True)
    for wrong in (
        {},
        {"a": {"env": "NONE"}},
        {"a": {"env": "SHORT"}},
        {"a": {"env": "ADA", "rights": ["all"]}},
        {"a": {"env": "ADA", "sha256": "00" * 32}},
        {"a": {"sha256": "zz"}},
        {"a/b": {"env": "ADA"}},
        {"a": {"env": "ADA"}, "b": {"env": "ADA"}},
    ):
        with pytest.raises(Unserved) as caught:
            access(wrong)
        assert caught.value.id == "AX960"
