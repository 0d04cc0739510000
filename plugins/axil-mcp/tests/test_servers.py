"""The two servers of the tests: what a client reads of one it reads of the other.

So that the tests of the client may use the one that starts at once.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from .kit import PLAIN, SDK

META = "io.modelcontextprotocol/"
ABLE = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}}
TEXT = {"type": "text", "text": "ghost"}
ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"size": 7}},
    "roots/list": {"roots": [{"uri": "file:///here"}]},
    "sampling/createMessage": {"role": "assistant", "content": TEXT, "model": "m"},
}
REQUESTS = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "advice", "arguments": {"topic": "x"}}),
    *(
        ("resources/read", {"uri": uri})
        for uri in ("docs://axils", "docs://roots", "private://keys", "pictures://pixel")
    ),
    ("resources/read", {"uri": "search://a%20b"}),
    ("no/such", {}),
    *(
        ("tools/call", {"name": name, "arguments": arguments})
        for name, arguments in (
            ("add", {"a": 2, "b": 3}),
            ("slow", {"seconds": 0, "mark": "a"}),
            ("together", {"n": 1}),
            ("fail", {"why": "tired"}),
            ("wipe", {}),
            ("big", {"kilobytes": 1}),
            ("steps", {"n": 2}),
            ("picture", {}),
            ("environment", {}),
            ("dotted.name/x", {}),
            ("repeat", {}),
            ("where", {}),
            ("order", {"what": "shoes"}),
            ("speak", {"text": "hello"}),
        )
    ),
]


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
def test_the_server_without_the_sdk_says_what_the_sdks_says(protocol):
    plain, sdk = said(PLAIN, protocol), said(SDK, protocol)
    assert len(plain) > len(REQUESTS)
    for one, other in zip(plain, sdk, strict=True):
        assert one == other


def said(command: list[str], protocol: str) -> list[Any]:
    """Return what a server answers, asks and reports in a conversation."""
    heard: list[Any] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"LANG": "C.UTF-8", "TASKS": "wipe"},
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        number = 0

        def send(message: dict[str, Any]) -> None:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        def ask(method: str, params: dict[str, Any]) -> None:
            nonlocal number
            number += 1
            meta: dict[str, Any] = {"progressToken": number}
            if protocol == "2026-07-28":
                meta[f"{META}protocolVersion"] = protocol
                meta[f"{META}clientInfo"] = {"name": "test", "version": "1"}
                meta[f"{META}clientCapabilities"] = ABLE
                meta[f"{META}logLevel"] = "info"
            send({"id": number, "method": method, "params": {**params, "_meta": meta}})
            while True:
                message = json.loads(server.stdout.readline())
                shown = plainly(message)
                heard.append(shown)
                if "method" in message and "id" in message:
                    send({"id": message["id"], "result": ANSWERS[message["method"]]})
                elif "id" in message:
                    break
            result = message.get("result", {})
            if "inputRequests" in result:
                given = {
                    name: ANSWERS[asked["method"]]
                    for name, asked in result["inputRequests"].items()
                }
                state = result["requestState"]
                ask(method, {**params, "inputResponses": given, "requestState": state})

        if protocol == "2026-07-28":
            ask("server/discover", {})
        else:
            client = {"name": "test", "version": "1"}
            ask(
                "initialize",
                {"protocolVersion": protocol, "capabilities": ABLE, "clientInfo": client},
            )
            send({"method": "notifications/initialized"})
        for method, params in REQUESTS:
            ask(method, params)
        server.stdin.close()
        assert server.wait(60) == 0
    return heard


def plainly(message: dict[str, Any]) -> Any:
    """Return a message without the names that a server gives to what it asks."""
    message = json.loads(json.dumps(message))
    result = message.get("result", {})
    result.pop("requestState", "")
    asked = list(result.pop("inputRequests", {}).values())
    for each in (*asked, message):
        each.get("params", {}).get("requestedSchema", {}).pop("title", "")
    return [message, *asked]
