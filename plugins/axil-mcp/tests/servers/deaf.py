"""A server without the SDK: it closes its input when it has listed its tools, and stays."""

from __future__ import annotations

import json
import os
import sys
import time


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer: dict[str, object] = {"error": {"code": -32601, "message": "no such method"}}
        if asked["method"] == "initialize":
            reported = {"name": "deaf", "version": "1"}
            answer = {
                "result": {
                    "protocolVersion": asked["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": reported,
                }
            }
        elif asked["method"] == "tools/list":
            answer = {"result": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}}
            os.close(0)
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}) + "\n")
        sys.stdout.flush()
        if asked["method"] == "tools/list":
            while True:
                time.sleep(60)


if __name__ == "__main__":
    main()
