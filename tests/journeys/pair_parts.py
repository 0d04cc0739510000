"""Nodes whose bodies are executed in each way, and come to each end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from axil import Out
from axil.plugin import text_of

LARGE = 100_000


class Config(BaseModel, extra="forbid"):
    happening: Literal[
        "done", "failed", "paused", "limited", "cancelled", "killed", "tiny", "large"
    ]


def mark(name: str) -> Path:
    """Return a file by which a body tells the test how far it is."""
    return Path(os.environ["PAIR_FOLDER"], name)


class Step:
    """The common part of all bodies: what they were given, in capitals."""

    Config = Config

    def __init__(self, config: Config) -> None:
        self.config = config

    def answer(self, payloads: list[Any]) -> Any:
        [given] = payloads
        is_fields = isinstance(given, dict) and "role" not in given
        text = given["message"] if is_fields else text_of(given[-1])
        if self.config.happening == "failed":
            raise ValueError("it broke")
        if self.config.happening == "killed" and not mark("killed").exists():
            mark("killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        said = text.upper() * (LARGE if self.config.happening == "large" else 1)
        said = "" if self.config.happening == "tiny" else said
        return Out({"message": said}) if is_fields else said


class Inline(Step):
    """A body on the event loop, which waits for nothing."""

    inline = True

    def run(self, payloads: list[Any]) -> Any:
        return self.answer(payloads)


class Thread(Step):
    """A body in a thread."""

    def run(self, payloads: list[Any]) -> Any:
        return self.answer(payloads)


class Async(Step):
    """A body that may wait."""

    async def run(self, payloads: list[Any], ctx: Any) -> Any:
        if self.config.happening == "paused":
            assert await ctx.ask("Go on?") == "yes"
        if self.config.happening == "cancelled":
            mark("begun").touch()
            await asyncio.Event().wait()
        return self.answer(payloads)
