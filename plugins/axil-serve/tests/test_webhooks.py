"""Laws of webhooks: a delivery is the input of a run, and repeated it is the same run."""

from __future__ import annotations

import time
from typing import Any

from .conftest import as_caller, served


def output(client: Any, run_id: str) -> Any:
    """Return the output of a run, when it is done."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        seen = client.get(f"/v1/runs/{run_id}").json()
        if seen["status"] == "done":
            return seen["output"]
    raise TimeoutError(run_id)


def test_a_delivery_that_is_repeated_at_another_server_starts_one_run(journal):
    with served(journal) as first, served(journal) as second:
        sent = {"json": {"name": "ada"}, "headers": {"webhook-id": "d1"}}
        replies = [client.post("/hooks/greeting", **sent) for client in (first, second, first)]
        assert {reply.status_code for reply in replies} == {202}
        (run_id,) = {reply.json()["run_id"] for reply in replies}
        assert output(first, run_id) == {"text": "Hello Ada"}
        other = first.post("/hooks/greeting", json={"name": "ben"}, headers={"webhook-id": "d2"})
        assert output(first, other.json()["run_id"]) == {"text": "Hello Ben"}
        assert len(journal.runs()) == 2


def test_a_delivery_needs_a_token_a_workflow_and_an_input_that_fits(client):
    assert client.post("/hooks/none", json={}).status_code == 404
    sent = {"json": {"name": "ada"}, "headers": as_caller("wrong")}
    assert client.post("/hooks/greeting", **sent).status_code == 401
    bad = client.post(
        "/hooks/greeting", content=b"[1]", headers={"content-type": "application/json"}
    )
    assert bad.status_code == 400
    assert client.post("/hooks/greeting", content=b"\xff").status_code == 400
