"""The kit of model adapters: one written by hand keeps its laws, and each slip is found by a law
that names it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from axil_models import (
    ModelError,
    Reply,
    Request,
    Retry,
    Showing,
    ToolCall,
    Usage,
    check_modalities,
    content_text,
    persevere,
    read_arguments,
    retry_after_seconds,
)
from axil_testing.kit import ModelKit, check
from axil_testing.stub import Act, Stub


class Broken(Exception):
    pass


class Tiny:
    """Chat Completions on a bare socket: a connection for each call, closed with it."""

    modalities = frozenset({"text"})
    is_wary = True
    """True if it expects replies of another form than the API's."""

    def __init__(self, server: Any) -> None:
        self._url, self._key = urlsplit(server.url), server.key

    def __repr__(self) -> str:
        return f"Tiny({self._url.hostname!r})"

    async def __aenter__(self) -> Tiny:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def reply(self, request: Request, emit: Any, /) -> Reply:
        check_modalities(request.messages, self.modalities, "Tiny")
        return await persevere(
            lambda show: self.attempt(request, show), Retry(max_tries=4), emit, self.meaning_of
        )

    def meaning_of(self, error: Exception) -> ModelError | None:
        if isinstance(error, ModelError):
            return error
        if isinstance(
            error,
            (OSError, Broken, TimeoutError, json.JSONDecodeError, asyncio.IncompleteReadError),
        ) or (isinstance(error, TypeError) and self.is_wary):
            return ModelError(type(error).__name__, transient=True)
        return None

    def body(self, request: Request) -> dict[str, Any]:
        settings = {
            name: value for name, value in request.settings.items() if name != "timeout_seconds"
        }
        shape = (
            {} if request.output is None else {"response_format": {"schema": request.output.schema}}
        )
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
        messages = [
            {**m, "content": content_text(m["content"]).encode("utf-8", "replace").decode()}
            for m in request.messages
        ]
        return {
            "messages": messages,
            "tools": tools,
            "stream_options": {"include_usage": True},
            **settings,
            **shape,
        }

    async def attempt(self, request: Request, show: Showing) -> Reply:
        patience = request.settings.get("timeout_seconds", 10)
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port)
        try:
            data = json.dumps(self.body(request)).encode()
            head = (
                f"POST {self._url.path}/chat HTTP/1.1\r\nauthorization: Bearer "
                f"{self._key}\r\ncontent-length: {len(data)}\r\n\r\n"
            )
            writer.write(head.encode() + data)
            first, *lines = (
                (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), patience))
                .decode()
                .split("\r\n")
            )
            headers = {
                name: value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            status = int(first.split()[1])
            if status != 200:
                message = json.loads(await reader.readexactly(int(headers["content-length"])))[
                    "error"
                ]["message"]
                meaning = f"{status}: {message.replace(self._key, '***')}"
                raise ModelError(
                    meaning, status=status, retry_after_seconds=retry_after_seconds(headers)
                )
            return await self.read(self.pieces(reader, patience), show)
        finally:
            writer.close()
            await asyncio.wait([asyncio.ensure_future(writer.wait_closed())])

    async def pieces(self, reader: asyncio.StreamReader, patience: float) -> AsyncIterator[Any]:
        while line := await asyncio.wait_for(reader.readline(), patience):
            size = int(line, 16)
            if not size:
                return
            data = (await reader.readexactly(size + 2)).decode().strip().removeprefix("data: ")
            if data != "[DONE]":
                yield json.loads(data)
        raise Broken

    async def read(self, chunks: AsyncIterator[Any], show: Showing) -> Reply:
        text, finish, refusal, calls, used, model = "", "", "", {}, {}, ""
        async for chunk in chunks:
            used, model = chunk.get("usage") or used, chunk["model"]
            for choice in chunk["choices"]:
                delta, finish = choice["delta"], choice["finish_reason"] or finish
                if delta.get("content"):
                    text += delta["content"]
                    show({"kind": "text", "text": delta["content"]})
                refusal += delta.get("refusal") or ""
                if delta.get("reasoning_content"):
                    show({"kind": "reasoning", "text": delta["reasoning_content"]})
                for piece in delta.get("tool_calls") or ():
                    call = calls.setdefault(
                        piece["index"],
                        {
                            "id": piece.get("id"),
                            "name": piece["function"].get("name"),
                            "arguments": "",
                        },
                    )
                    call["arguments"] += piece["function"]["arguments"]
                    show(
                        {
                            "kind": "tool_call_delta",
                            "index": piece["index"],
                            **call,
                            "arguments": piece["function"]["arguments"],
                        }
                    )
        if not finish:
            raise Broken
        made = []
        for call in calls.values():
            arguments, fault = read_arguments(call["arguments"])
            made.append(
                ToolCall(id=call["id"], name=call["name"], arguments=arguments, fault=fault)
            )
        ended = (
            "refusal"
            if refusal
            else {"tool_calls": "tools", "content_filter": "filter"}.get(finish, finish)
        )
        usage = Usage(
            input_tokens=used.get("prompt_tokens", 0),
            output_tokens=used.get("completion_tokens", 0),
            cached_tokens=used.get("prompt_tokens_details", {}).get("cached_tokens", 0),
            reasoning_tokens=used.get("completion_tokens_details", {}).get("reasoning_tokens", 0),
        )
        return Reply(
            text=text or refusal, tool_calls=tuple(made), usage=usage, finish=ended, model=model
        )


class TestTiny(ModelKit):
    dialect, has_connections = "chat", False

    def make(self, server):
        return Tiny(server)


# -- slips


class Mute(Tiny):
    async def reply(self, request, emit):
        return await super().reply(request, lambda chunk: None)


class Stubborn(Tiny):
    def meaning_of(self, error):
        made = super().meaning_of(error)
        return (
            ModelError(str(error), status=getattr(error, "status", None), transient=True)
            if made
            else None
        )


class Hasty(Tiny):
    def meaning_of(self, error):
        made = super().meaning_of(error)
        return made and ModelError(made.message, status=made.status, transient=made.transient)


class Resigned(Tiny):
    async def reply(self, request, emit):
        return await persevere(
            lambda show: self.attempt(request, show), Retry(max_tries=1), emit, self.meaning_of
        )


class Chatty(Tiny):
    def __repr__(self):
        return f"Chatty({self._key})"


class Trusting(Tiny):
    async def reply(self, request, emit):
        return await persevere(
            lambda show: self.attempt(request, show), Retry(max_tries=4), emit, self.meaning_of
        )


class Forgetful(Tiny):
    def body(self, request):
        return {**super().body(request), "messages": []}


class Deaf(Tiny):
    def meaning_of(self, error):
        return error if isinstance(error, ModelError) else None


class Hungry(Tiny):
    async def reply(self, request, emit):
        self.left = asyncio.ensure_future(asyncio.sleep(60))
        return await super().reply(request, emit)


class Sure(Tiny):
    is_wary = False


SLIPS = {
    Sure: "a reply of another form is asked for again",
    Mute: "an answer is streamed and whole",
    Stubborn: "a mistake is never repeated",
    Hasty: "a busy service is asked again when it says",
    Resigned: "a failing service is asked again within bounds",
    Chatty: "the key is seen by the service alone",
    Trusting: "a part that it cannot take is an error before anything is sent",
    Forgetful: "all roles and settings reach the service",
    Deaf: "a reply that breaks off is asked for again",
    Hungry: "an answer is streamed and whole",
}


@pytest.mark.parametrize(("slip", "law"), SLIPS.items(), ids=[slip.__name__ for slip in SLIPS])
def test_each_slip_is_found_by_the_law_that_it_breaks(slip, law):
    kit = type(
        "Kit",
        (ModelKit,),
        {"dialect": "chat", "has_connections": False, "make": lambda self, server: slip(server)},
    )
    name = "test_" + law.replace(" ", "_")
    for other in [each for each in dir(kit) if each.startswith("test_") and each != name]:
        setattr(kit, other, None)
    (outcome,) = check(kit).outcomes
    assert (outcome.law, outcome.verdict) == (law, "failed")


# -- the stub


def test_a_stub_plays_its_acts_in_order_and_keeps_what_it_was_asked():
    with Stub() as server:
        server.say("one", Act(status=404), {"text": "three"})
        answers = []
        for word in ("a", "b", "c", "d"):
            try:
                request = Request(messages=[{"role": "user", "content": word}])
                answers.append(asyncio.run(Tiny(server).reply(request, lambda chunk: None)).text)
            except ModelError as error:
                answers.append(error.status)
        assert answers == ["one", 404, "three", "OK"]
        assert [each.body["messages"][0]["content"] for each in server.requests] == [
            "a",
            "b",
            "c",
            "d",
        ]
        assert (server.connections, server.open_connections(), server.left_early) == (4, 0, 0)


def test_a_stub_sees_that_a_connection_was_reset():
    """Closing a connection before all was read resets it: it does not end then, it breaks."""
    with Stub() as server:
        server.say(Act(text="never", delay_seconds=60.0))
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port)) as line:
            line.sendall(b"POST /v1/chat HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            until = time.monotonic() + 60
            while not server.requests and time.monotonic() < until:
                time.sleep(0.005)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert server.open_connections(patience_seconds=60) == 0
        assert server.left_early == 1


def test_acts_that_are_done_together_wait_for_one_another_however_late_the_last_one_comes():
    with Stub() as server:
        server.say(*[Act(text="now", together=2)] * 2)

        async def both() -> list[str]:
            model, request = Tiny(server), Request(messages=[{"role": "user", "content": "?"}])
            first = asyncio.ensure_future(model.reply(request, lambda chunk: None))
            while not server.requests:
                await asyncio.wait({first}, timeout=0.01)
            assert not (await asyncio.wait({first}, timeout=0.1))[0]
            replies = await asyncio.gather(first, model.reply(request, lambda chunk: None))
            return [reply.text for reply in replies]

        assert asyncio.run(asyncio.wait_for(both(), 60)) == ["now", "now"]
        assert server.most_at_once == 2
