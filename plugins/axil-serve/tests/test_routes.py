"""Laws of all routes, walked as they are: those of the API, of the page and of all protocols."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from axil_journals import MemoryJournal
from axil_serve import Limits, RunService, app_of
from axil_serve.files import RunFiles

from .conftest import ADA, BEN, EVE, PROTOCOLS, access, as_caller, greeting, refund

OPEN = {"/", "/page/{name}"}
"""The routes without a token: static files of the page."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
VALUES: list[Any] = [None, [None], "x", {"x": []}, [{}], 1e400]
_SENT = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{}]}}
_SAID = [{"role": "user", "content": "x"}]
BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/runs": ({"workflow": "greeting"}, "workflow input attributes session metadata files"),
    "/v1/sessions/messages": (
        {"session": "s", "workflow": "greeting", "text": "x"},
        "session workflow text files",
    ),
    "/v1/runs/{run_id}/answers": ({}, "answers"),
    "/v1/runs/{run_id}/fork": ({}, "at input state output"),
    "/v1/chat/completions": (
        {"model": "greeting", "messages": _SAID},
        "model messages metadata stream stream_options input",
    ),
    "/v1/responses": (
        {"model": "greeting", "input": "x"},
        "model input previous_response_id conversation metadata instructions background",
    ),
    "/ag-ui/{workflow}": ({"messages": _SAID}, "messages forwardedProps resume threadId"),
    "/a2a/{workflow}/message:send": (_SENT, "message configuration metadata"),
    "/a2a/{workflow}": ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage"}, "id method params"),
}
"""A body that a route takes, and the names that it reads."""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    workflows = {"greeting": greeting(), "refund": refund()}
    files = RunFiles(tmp_path)
    service = RunService(MemoryJournal(), workflows, files=files, poll_seconds=0.01)
    limits = Limits(requests_per_minute=1e9, burst=10**6)
    app = app_of(service, access(), protocols=PROTOCOLS, limits=limits)
    with TestClient(
        app, base_url="http://127.0.0.1", follow_redirects=False, raise_server_exceptions=False
    ) as client:
        yield client


def routes_of(client: Any) -> dict[str, set[str]]:
    """Return the methods of each path; there are no other kinds of routes."""
    found: dict[str, set[str]] = {}
    for route in client.app._app.routes:  # behind the guard
        found.setdefault(route.path, set()).update(route.methods)
    return found


def filled(path: str, run_id: str = "r") -> str:
    for name, value in (
        ("run_id", run_id),
        ("id", run_id),
        ("push_id", "p"),
        ("file_id", "0" * 32),
        ("workflow", "refund"),
        ("name", "app.js"),
    ):
        path = path.replace(f"{{{name}}}", value)
    return path


def test_nothing_but_the_page_is_had_without_a_token(client):
    walked = [*routes_of(client), "/nothing", "/v1", "/.well-known/agent-card.json", "/v1/"]
    without = ({}, as_caller("wrong" * 8), {"authorization": f"Basic {ADA}"})
    asked = [(method, path, {}) for path in walked for method in METHODS]
    asked += [
        (m, path, headers)
        for path, ms in routes_of(client).items()
        for m in ms - {"HEAD"}
        for headers in without
    ]
    for method, path, headers in asked:
        answer = client.request(method, filled(path), headers=headers)
        if path in OPEN:
            assert answer.status_code == (200 if method == "GET" else 405), (method, path)
        else:
            assert answer.status_code == 401, (method, path)
            assert set(answer.json()["error"]) == {"id", "message", "type", "code", "param"}
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/v1/runs"):
        pass


def test_a_run_of_another_caller_does_not_exist_on_any_route(client):
    body = {"workflow": "refund", "input": {"amount": 1}}
    headers = as_caller(ADA)
    run_id = client.post("/v1/runs", json=body, headers=headers).json()["run_id"]
    bodies = {"answers": {"answers": {"a": 1}}, "cancel": {}, "resume": {}, "fork": {}}
    walked = 0
    for path, methods in routes_of(client).items():
        if "{run_id}" not in path:
            continue
        for method in methods - {"HEAD"}:
            walked += 1
            sent = bodies.get(path.rpartition("/")[2], {})
            found = [
                client.request(
                    method,
                    filled(path, id),
                    json=sent if method == "POST" else None,
                    headers=as_caller(BEN),
                )
                for id in (run_id, "none")
            ]
            assert [each.status_code for each in found] == [404, 404], (method, path)
            assert found[0].text.replace(run_id, "none") == found[1].text
    assert walked >= 12
    for path in ("/v1/runs", "/v1/sessions", "/v1/files"):
        assert run_id not in client.get(path, headers=as_caller(BEN)).text
    interrupts = [{"interruptId": f"{run_id}:q", "status": "resolved", "payload": 1}]
    for path, sent in (
        ("/ag-ui/refund", {"resume": interrupts}),
        (
            "/v1/chat/completions",
            {"model": "refund", "metadata": {"run_id": run_id}, "messages": [{"role": "user"}]},
        ),
        ("/v1/responses", {"model": "refund", "previous_response_id": run_id, "input": "x"}),
    ):
        answer = client.post(path, json=sent, headers=as_caller(BEN))
        assert (answer.status_code, "amount" in answer.text) == (404, False), path


def test_a_token_that_may_look_changes_nothing_on_any_route(client):
    body = {"workflow": "refund", "input": {"amount": 1}}
    run_id = client.post("/v1/runs", json=body, headers=as_caller(ADA)).json()["run_id"]
    asks = {
        "/v1/chat/completions": {"model": "refund", "messages": [{"role": "user"}]},
        "/v1/responses": {"model": "refund", "input": "x"},
        "/v1/runs": body,
        "/ag-ui/{workflow}": {"messages": [{"role": "user", "content": "x"}]},
        "/v1/runs/{run_id}/answers": {"answers": {"a": 1}},
        "/a2a/{workflow}": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "SendMessage",
            "params": _SENT,
        },
        "/a2a/{workflow}/message:send": _SENT,
        "/a2a/{workflow}/message:stream": _SENT,
    }
    headers = {**as_caller(EVE), "a2a-version": "1.0"}
    for path, methods in routes_of(client).items():
        for method in () if path.endswith(":subscribe") else methods & {"POST", "DELETE"}:
            answer = client.request(
                method, filled(path, run_id), json=asks.get(path, {}), headers=headers
            )
            only_reads = path == "/v1/evaluations/compare"  # of what is sent; nothing is kept
            expected = 409 if only_reads else 403
            assert answer.status_code == expected, (method, path, answer.text)
    assert client.get("/v1/runs", headers=headers).json()["runs"] == []


def test_no_body_breaks_a_route(client):
    headers = {**as_caller(ADA), "content-type": "application/json", "a2a-version": "1.0"}
    for path, methods in routes_of(client).items():
        if "POST" not in methods:
            continue
        right, names = BODIES.get(path, ({}, ""))
        changed = [{**right, name: value} for name in names.split() for value in VALUES]
        for body in (*VALUES, *changed):
            answer = client.post(filled(path), content=json.dumps(body), headers=headers)
            # a run may fail of its input; nothing else does
            is_known = answer.status_code < 500 or "AX968" in answer.text
            assert is_known, (path, body, answer.status_code, answer.text)
            assert "Traceback" not in answer.text


def test_the_document_is_valid_and_names_every_route_of_the_api(client):
    document = client.get("/v1/openapi.json", headers=as_caller(ADA)).json()
    validate(document)
    described = {
        (path, method.upper()) for path, each in document["paths"].items() for method in each
    }
    of_protocols = {
        route.path
        for protocol in PROTOCOLS.values()
        for route in protocol.routes(RunService(MemoryJournal()))
    }
    served = {
        (path, method)
        for path, methods in routes_of(client).items()
        if path not in {*of_protocols, *OPEN, "/v1/openapi.json"}
        for method in methods - {"HEAD"}
    }
    assert described == served
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids)


def test_streams_are_limited_for_all_callers_and_for_each(client):
    service = client.app._app.routes[0].endpoint.__self__.service
    service.max_streams_each = 0
    body = {"workflow": "refund", "input": {"amount": 1}}
    run_id = client.post("/v1/runs", json=body, headers=as_caller(ADA)).json()["run_id"]
    busy = [
        client.get(f"/v1/runs/{run_id}/events", headers=as_caller(ADA)),
        client.post("/v1/responses", json={"model": "refund"}, headers=as_caller(ADA)),
        client.post("/v1/chat/completions", json={"model": "refund"}, headers=as_caller(ADA)),
        client.post("/ag-ui/refund", json={}, headers=as_caller(ADA)),
    ]
    assert [each.status_code for each in busy] == [503] * 4
    assert all("AX964" in each.text for each in busy)


_TEXT = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/runs", {"workflow": "greeting", "input": {"nmae": "Ada"}}),
        ("/v1/runs", {"workflow": "greeting"}),
        ("/v1/chat/completions", {"model": "greeting", "messages": _SAID}),
        ("/v1/chat/completions", {"model": "greeting", "messages": _SAID, "stream": True}),
        ("/v1/responses", {"model": "greeting", "input": "x"}),
        ("/ag-ui/greeting", {"messages": _SAID}),
        ("/hooks/greeting", {"text": "x"}),
        ("/a2a/greeting/message:send", {"message": _TEXT}),
        (
            "/a2a/greeting",
            {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": _TEXT}},
        ),
    ],
)
def test_an_input_without_the_fields_of_the_graph_is_the_clients_mistake(client, path, body):
    headers = {**as_caller(ADA), **({"A2A-Version": "1.0"} if path.startswith("/a2a") else {})}
    answer = client.post(path, json=body, headers=headers)
    is_rpc = "jsonrpc" in body
    assert answer.status_code == (200 if is_rpc else 400), answer.text
    assert "AX120" in answer.text
    assert "the input lacks name; it has" in answer.text
    assert client.get("/v1/runs", headers=headers).json()["runs"] == []
