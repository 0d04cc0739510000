"""Answers of services and pages that differ from what they ought to be, from numbers.

``python servers.py SEED COUNT``: so many of them, from SEED on, each to an adapter of a model, or
to the reader of pages. Each finding is a line of JSON on standard output, as in ``worker``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import traceback
from pathlib import Path
from typing import Any

from axil import AxilError
from axil_anthropic import AnthropicModel
from axil_gemini import GeminiModel
from axil_models import Reply, Request
from axil_openai import OpenAIModel, OpenAIResponsesModel
from axil_testing.stub import DIALECTS, Act, Call

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from mutants import mutant
from shares import begin, limit
from tests.internals import internal

MODELS: dict[str, Any] = {
    "chat": OpenAIModel,
    "responses": OpenAIResponsesModel,
    "messages": AnthropicModel,
    "generate": GeminiModel,
}
KINDS = (*MODELS, "page")
ACTS = (
    Act(text="Ferns grow in the shade.", thought="What is a fern?"),
    Act(text="Wait.", calls=(Call(name="look", arguments={"at": "fern"}), Call(name="count"))),
    Act(refusal="No."),
)
PAGE = """<!doctype html><html><head><title>Ferns &amp; co</title><script>if (a < b) {}</script>
<meta charset="utf-8"></head><body><h1 class='a "b"'>Ferns</h1><p>One &#8212; two<br/>three</p>
<!-- a comment --><ul><li><a href="/x?y=1&z">A link</a></li><li>B</li></ul>
<pre>x = 1\n  y</pre><table><tr><td>1</td><td>2</td></tr></table><svg><path d="M0"/></svg>
<textarea><b></textarea><template><p>unseen</p></template></body></html>"""


def answer(kind: str, number: int) -> tuple[int, bytes]:
    """Return the status and the body of an answer."""
    chance = random.Random(number)
    act, dialect = chance.choice(ACTS), DIALECTS[kind]
    if chance.random() < 0.1:
        body = json.dumps(dialect.error(act))
        return chance.choice([400, 401, 404, 422]), encoded(mutant(body, number, is_json=True))
    pieces = dialect.stream(act, {"stream_options": {"include_usage": True}})
    stream = b"".join(pieces).decode()
    if chance.random() < 0.2:
        return 200, encoded(mutant(stream, number, is_json=False))
    events = [_event(each) for each in stream.split("\n\n") if each]
    text = mutant(json.dumps([data for _, data in events]), number, is_json=True)
    try:
        data = json.loads(text)
    except ValueError:
        return 200, encoded(f"data: {text}\n\n")
    said = [
        (events[min(at, len(events) - 1)][0], each)
        for at, each in enumerate(data if isinstance(data, list) else [data])
    ]
    return 200, b"".join(_said(data, name) for name, data in said)


def _said(data: Any, name: str) -> bytes:
    head = f"event: {name}\n" if name else ""
    return encoded(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n")


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _event(text: str) -> tuple[str, Any]:
    fields = dict(line.split(": ", 1) for line in text.splitlines())
    try:
        return fields.get("event", ""), json.loads(fields["data"])
    except ValueError:
        return fields.get("event", ""), fields["data"]


class Server:
    """A service that gives one answer after another."""

    def __init__(self) -> None:
        self.next: tuple[int, bytes] = (200, b"")
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *error: Any) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = head.partition("content-length:")[2].partition("\r\n")[0].strip()
        await reader.readexactly(int(length or 0))
        status, body = self.next
        kind = "text/event-stream" if status == 200 else "application/json"
        lines = (f"HTTP/1.1 {status} x", f"content-type: {kind}", "connection: close", "", "")
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()
        writer.close()


async def main_of_servers(seed: int, count: int) -> None:
    server = Server()
    async with server as url:
        for number in range(seed, seed + count):
            kind = KINDS[number % len(KINDS)]
            begin(kind, number)
            fault = ""
            try:
                if kind == "page":
                    internal("page").text_of_page(mutant(PAGE, number, is_json=False))
                    continue
                server.next = answer(kind, number)
                fault = await asked(kind, url)
            except AxilError:
                continue
            except Exception:  # noqa: BLE001  # any other one is a finding
                fault = traceback.format_exc()
            if fault:
                found = {"file": kind, "number": number, "command": "reply", "fault": fault[-1500:]}
                sys.stdout.write(json.dumps(found) + "\n")


async def asked(kind: str, url: str) -> str:
    """Return what is wrong with what a model makes of the server's answer; empty: nothing."""
    shown: list[Any] = []
    model = MODELS[kind]("m", "a-key", url + DIALECTS[kind].base, retry={"max_tries": 1})
    try:
        reply = await model.reply(
            Request(messages=[{"role": "user", "content": "?"}]), shown.append
        )
    finally:
        await model.close()
    if not isinstance(reply, Reply):
        return f"the reply is {reply!r}"
    if Reply.read(json.loads(json.dumps(reply.plain()))) != reply:
        return f"the journal changes {reply!r}"
    return ""


if __name__ == "__main__":
    os.environ.clear()
    limit()
    asyncio.run(main_of_servers(int(sys.argv[1]), int(sys.argv[2])))
