"""Bodies that tests run in a sandbox: it imports them from here."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

from axil import Context

KEPT: list[int] = []
"""The data that a firing leaves in its process."""


def looks(inputs: dict[str, Any]) -> dict[str, Any]:
    KEPT.append(1)
    return {
        "uid": os.getuid(),
        "kept": len(KEPT),
        "variables": sorted(os.environ),
        "home": os.path.exists(inputs["home"]),
        "n": inputs["n"],
    }


async def writes(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    assert ctx.workspace is not None
    (ctx.workspace / "made.txt").write_text("made")
    number = await ctx.step("one", _one)
    return {"n": number, "uid": os.getuid(), "there": os.listdir(ctx.workspace.parent)}


async def _one() -> int:
    return 1


def prints(inputs: dict[str, Any]) -> dict[str, Any]:
    for _ in range(200):
        os.write(1, b"x" * 65536)
    os.write(1, b"\n\x1b[31mred\n")
    return {"n": 0}


def sends(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    while True:
        ctx.emit("x" * 65536)


def spends(inputs: dict[str, Any], ctx: Context) -> dict[str, Any]:
    ctx.spend(cost=inputs["n"])
    return {"n": 0}


def forges(inputs: dict[str, Any]) -> dict[str, Any]:
    """Write to the pipe of its process, as a body that means harm."""
    for number in range(3, 50):
        try:
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                text = inputs["text"].encode()
                os.write(number, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
    time.sleep(60)
    return {}


def swells(inputs: dict[str, Any]) -> dict[str, Any]:
    """Take more memory in several processes than is given, and less in each."""
    for _ in range(5):
        if not os.fork():
            break
    kept = bytearray(40 << 20)
    time.sleep(60)
    return {"n": len(kept)}


def stays(inputs: dict[str, Any]) -> dict[str, Any]:
    Path(inputs["file"]).touch()
    if not os.fork():
        os.setsid()
    time.sleep(600)
    return {}
