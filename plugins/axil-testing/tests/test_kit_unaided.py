"""Kits without a line of code: what a model or a provider says of itself is enough, and models that
are wrong on purpose are caught.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from axil_agent import Scripted
from axil_models import ContextBlock, Line, Reply, Request
from axil_testing.kit import AnswerKit, TalkKit, check
from axil_testing.kit.unaided import model_kit, provider_lines


class Backwards:
    """Says what it heard, backwards."""

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        text = self.answer(str(request.messages[-1]["content"]))
        await asyncio.sleep(0)
        emit({"kind": "text", "text": text})
        return Reply(text=text, finish="stop")

    def answer(self, heard: str) -> str:
        return heard[::-1] or "(nothing)"

    async def close(self) -> None:
        """Nothing was opened."""


def kit(model: type) -> type[AnswerKit]:
    return type(model.__name__, (AnswerKit,), {"component": model})


def test_a_sound_model_passes():
    assert check(kit(Backwards)).failures == ()


class Mute(Backwards):
    def answer(self, heard: str) -> str:
        return ""


class ShowsAnother(Backwards):
    async def reply(self, request: Any, emit: Any, /) -> Reply:
        return await super().reply(request, lambda chunk: emit({**chunk, "text": "something else"}))


class Breaks(Backwards):
    def answer(self, heard: str) -> str:
        heard.encode("utf-8")
        return super().answer(heard)


class Overhears(Backwards):
    heard = ""

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        self.heard = str(request.messages[-1]["content"])
        await asyncio.sleep(0)
        return Reply(text=self.answer(self.heard))


class Meddles(Backwards):
    async def reply(self, request: Any, emit: Any, /) -> Reply:
        request.messages.append({"role": "assistant", "content": "mine"})
        return Reply(text="done")


class Swallows(Backwards):
    async def reply(self, request: Any, emit: Any, /) -> Reply:
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return Reply(text="as if nothing had happened")
        return Reply(text="fine")


class Bound(Backwards):
    def __init__(self) -> None:
        self.lock: Any = None

    async def reply(self, request: Any, emit: Any, /) -> Reply:
        loop = asyncio.get_running_loop()
        if self.lock is None:
            self.lock = loop.create_future()
            loop.call_soon(self.lock.set_result, None)
        await self.lock
        if self.lock.get_loop() is not loop:
            raise RuntimeError("it is bound to another event loop")
        return await super().reply(request, emit)


class NoReply(Backwards):
    async def reply(self, request: Any, emit: Any, /) -> Any:
        return "text"


class Strange(Backwards):
    async def reply(self, request: Any, emit: Any, /) -> Reply:
        return Reply(text="x", extra={"what": object()})


@pytest.mark.parametrize(
    ("model", "law"),
    [
        (Mute, "it answers with a reply"),
        (NoReply, "it answers with a reply"),
        (ShowsAnother, "what it shows is what it says"),
        (Strange, "its reply is plain data"),
        (Breaks, "any text is only text"),
        (Overhears, "calls side by side do not disturb each other"),
        (Meddles, "it leaves the request alone"),
        (Swallows, "a cancelled call is cancelled"),
        (Bound, "it survives event loops"),
    ],
)
def test_a_model_that_breaks_a_law_is_caught(model, law):
    assert [outcome.law for outcome in check(kit(model), law).failures] == [law]


def test_a_model_says_by_itself_how_it_is_tested():
    class Settings(BaseModel):
        name: str = ""
        base_url: str = ""
        api_key: str = ""

    def kit_of(*capabilities: str, Config: Any = Settings) -> Any:
        component = type(
            "Model",
            (),
            {"capabilities": capabilities, "Config": Config, "__init__": lambda self, config: None},
        )
        base, more, why = model_kit(component, {})
        return base.__name__, more.get("dialect"), why

    assert kit_of("offline") == ("AnswerKit", None, "")
    assert kit_of("speaks_chat") == ("ModelKit", "chat", "")
    assert kit_of("speaks_realtime") == ("TalkKit", None, "")
    assert kit_of()[2].startswith("it says neither what its service speaks")
    assert kit_of("speaks_volapük")[2].startswith('the stub does not speak "volapük"')
    assert kit_of("speaks_chat", Config=None)[2].startswith("its Config has no base_url")
    assert check(model_kit(Scripted, {})[0]).kit == "AnswerKit"


def test_a_provider_without_the_argument_is_asked_for_its_own_texts(tmp_path):
    class Kept:
        def __init__(self, path: str, notes: Any = ()) -> None:
            self.path = path

        def get_blocks(self, query: Any, top_k: int = 8) -> list[ContextBlock]:
            return []

    class Reported(Kept):
        def put(self, blocks: Any) -> None:
            """Take a turn."""

    config = {"path": "notes", "notes": ["The cat is called Ada.", "word"]}
    lines = provider_lines(Kept, config)
    assert lines["texts"] == ("The cat is called Ada.",)
    assert "texts" not in provider_lines(Reported, config)
    assert lines["make"](type("Test", (), {"folder": tmp_path})()).path == str(tmp_path / "notes")


class Rude:
    """A model that talks, and hears nothing, never stops and calls no tools."""

    def __init__(self, server: Any) -> None:
        self.server = server

    @asynccontextmanager
    async def talking(self, line: Line) -> AsyncGenerator[Rude]:
        yield self

    async def listen(self, request: Request, emit: Any) -> bool:
        return True

    async def reply(self, request: Request, emit: Any) -> Reply:
        return Reply(text="Good day.", finish="stop")


def test_a_model_that_talks_and_breaks_laws_is_caught():
    class TestRude(TalkKit):
        def make(self, server: Any = None) -> Any:
            return Rude(server)

    found = {outcome.law for outcome in check(TestRude).failures}
    assert {
        "a reply is spoken and its text is shown",
        "what is heard is a part of the reply and the end is no turn",
        "an interruption ends a reply with the words that were played",
        "tools are called and their results go back",
        "a lost connection is made anew",
        "a refusal of the service is an error without the key",
        "hanging up ends what is awaited",
    } <= found
