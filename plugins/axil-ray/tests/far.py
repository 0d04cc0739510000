"""Bodies that the tests have executed in a cluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any


def where(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"n": inputs["n"] * 2, "pid": os.getpid()}


def sees(inputs: Mapping[str, Any], attributes: Mapping[str, Any], ctx: Any) -> dict[str, Any]:
    return {"sees": sorted(attributes), "whole": sorted(dict(ctx.state))}


async def talks(inputs: Mapping[str, Any], ctx: Any) -> dict[str, Any]:
    """Use all that a body has of its run: chunks, amounts, steps, questions."""
    ctx.emit("a chunk")

    async def look() -> int:
        return os.getpid()

    pid = await ctx.step("look", look)
    answer = await ctx.ask("how many?", name="m")
    return {"n": inputs["n"] + answer, "pid": pid, "key": ctx.key()}


def fails(inputs: Mapping[str, Any]) -> dict[str, Any]:
    raise ValueError("not there")


def ends(inputs: Mapping[str, Any]) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def waits(inputs: Mapping[str, Any]) -> dict[str, Any]:
    with open(inputs["file"], "a") as file:
        file.write(f"{os.getpid()}\n")
    while not os.path.exists(inputs["file"] + ".go"):
        time.sleep(0.01)
    return {"pid": os.getpid()}
