"""Breakpoints: a run pauses before the nodes that are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from axil import Activation, Out, Question, hookimpl
from axil.plugin import Body, Mode, Task, inputs_of, without_views


@dataclass(frozen=True, slots=True)
class Breakpoints:
    """A hook plugin that pauses a run before nodes: each firing asks a question named ``break``.

    The answer ``"go"`` runs the node; a mapping with ``output`` (and ``delta``) is its outcome
    instead. ``paths``: of nodes, ``*`` for all.
    """

    paths: frozenset[str]

    @hookimpl
    def wrap_body(self, body: Body) -> Body | None:
        return None if body.mode == "scope" else _BreakingBody(self.paths, body)


class _BreakingBody:
    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, paths: frozenset[str], body: Body) -> None:
        self.paths, self.body = paths, body

    async def __call__(self, task: Task, ctx: Any, /) -> Any:
        activation: Activation = ctx.activation
        if not self.paths.isdisjoint({"*", activation.path}):
            data = {"inputs": without_views(inputs_of(task))}
            text = f"{activation} is about to run."
            question = Question(text=text, kind="break", options=("go",), data=data)
            answer = await ctx.ask(question, name="break")
            if isinstance(answer, Mapping) and "output" in answer:
                given = cast("Mapping[str, Any]", answer)
                return Out(given["output"], dict(given.get("delta") or {}))
        if self.body.mode == "thread":
            import asyncio

            return await asyncio.to_thread(self.body, task, ctx)
        out = self.body(task, ctx)
        return await out if self.body.mode == "async" else out
