"""An MCP server with the standard library alone: it starts at once, and answers one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

META = "io.modelcontextprotocol/"


def look_up(word: str) -> str:
    return {"axil": "the angle between a stem and a leaf"}.get(word, "nothing is noted")


def forget(word: str) -> str:
    return f"{word} is forgotten"


def send(text: str) -> str:
    """Sends a letter, and does not say so before its client has gone."""
    with open("sent", "a", encoding="utf-8") as file:
        file.write(text)
    sys.stdin.read()
    sys.exit()


TOOLS: dict[str, Callable[[str], str]] = {each.__name__: each for each in (look_up, forget, send)}


def answer(method: str, params: dict) -> dict[str, object]:
    if method == "server/discover":
        return {"capabilities": {"tools": {}}, "supportedVersions": ["2026-07-28"]}
    if method == "tools/list":
        shape = {"type": "object", "additionalProperties": {"type": "string"}}
        return {"tools": [{"name": name, "inputSchema": shape} for name in sys.argv[1:]]}
    assert method == "tools/call", method
    text = TOOLS[params["name"]](**params["arguments"])
    return {"content": [{"type": "text", "text": text}], "isError": False}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = {
                **answer(asked["method"], asked["params"]),
                "resultType": "complete",
                "_meta": {f"{META}serverInfo": {"name": "notes", "version": "1"}},
            }
            if asked["method"] != "tools/call":
                result |= {"cacheScope": "private", "ttlMs": 0}
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
            sys.stdout.write("\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
