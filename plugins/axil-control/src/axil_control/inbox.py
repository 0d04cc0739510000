"""``inbox``: what a node remembers of its messages, around any body.

Theory of operation
-------------------
Messages that a firing leaves behind wait in the node's own state, under ``inbox``. At the next
firing they come first, then what arrived, edge by edge. Three marks are obeyed: a message with
``keep`` survives every window; ``clear`` on what an edge brings empties the inbox before it
(``"context"``: but for kept messages, ``"kept"``: of these alone, ``"all"``: of both); ``empty``
carries marks and is no message. The body sees the list as if it all had come on one edge.
Afterwards the window decides what stays. The node's own outputs wait under ``said``: what it sent
along an edge to itself comes before them, and cannot clear them.

An edge clears once per firing, before the first of its messages. (DevAll clears before each, so
that of several messages on such an edge only the last is left.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from axil import Context, Out, Token
from axil.plugin import Body, Changes, Message, Mode, NodeInfo, Task, as_messages, local_field


def received(waiting: Sequence[Message], tokens: Sequence[Token]) -> list[Message]:
    """Return the input of a firing: waiting and new messages, with their marks obeyed."""
    seen = list(waiting)
    for token in tokens:
        came = as_messages(token.payload)
        cleared = {m.get("clear") for m in came}
        if cleared & {"all", "context"}:
            seen = [] if cleared & {"all", "kept"} else [m for m in seen if m.get("keep")]
        elif "kept" in cleared:
            seen = [m for m in seen if not m.get("keep")]
        seen.extend(
            {name: value for name, value in m.items() if name != "clear"}
            for m in came
            if not m.get("empty")
        )
    return seen


def remembered(local: Mapping[str, Any], tokens: Sequence[Token], node: str) -> list[Message]:
    """Return the input of a firing of a node whose own state is ``local``."""
    waiting, said = local.get("inbox", ()), local.get("said", ())
    if not said:
        return received(waiting, tokens)
    back: list[Token] = []
    rest: list[Token] = []
    for token in tokens:
        is_back = all(m.get("source") == node for m in as_messages(token.payload))
        (back if is_back else rest).append(token)
    return received([*received(waiting, back), *said], rest)


def windowed(messages: Sequence[Message], window: int) -> list[Message]:
    """Return the messages that stay: all (-1), kept ones only (0), or the newest ``window``, of
    which kept ones are counted and never dropped.

    >>> windowed([{"content": 1, "keep": True}, {"content": 2}, {"content": 3}], 2)
    [{'content': 1, 'keep': True}, {'content': 3}]
    """
    if window < 0:
        return list(messages)
    kept = sum(1 for m in messages if m.get("keep"))
    dropped = len(messages) - kept - max(0, window - kept)
    stays: list[Message] = []
    for m in messages:
        if not m.get("keep"):
            dropped -= 1
            if dropped >= 0:
                continue
        stays.append(m)
    return stays


def own(messages: Sequence[Message], node: str) -> list[Message]:
    """Return the node's own messages, as it will read them later: as an assistant's, unless they
    keep their role.
    """
    return [
        {**m, "role": m["role"] if m.get("preserve_role") else "assistant", "source": node}
        for m in messages
    ]


class Inbox:
    """``inbox``: keeps messages for the next firing of a node."""

    class Config(BaseModel, extra="forbid", frozen=True):
        """The messages that stay after a firing."""

        window: int = Field(
            default=0,
            ge=-1,
            description="0: kept messages only; N: the newest N, kept ones counted; -1: all. "
            "Unless 0, the node's own outputs too.",
        )

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or self.Config()

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        return _Remembering(body, node, self.config.window)


class _Remembering:
    """The wrapped body, called in its own mode; a scope as a run of its own."""

    wants_ctx = True

    def __init__(self, body: Body, node: NodeInfo, window: int) -> None:
        self._body, self._node, self._window = body, node, window
        self.mode: Mode = "async" if body.mode in ("async", "scope") else body.mode
        self._single = node.single() if body.mode == "scope" else None

    def __call__(self, task: Task, ctx: Context, /) -> object:
        messages = remembered(ctx.local, task.tokens, self._node.name)
        if self.mode == "async":
            return self._awaited(task, ctx, messages)
        return self._kept(self._body(_reading(task, messages), ctx), ctx, messages)

    async def _awaited(self, task: Task, ctx: Context, messages: list[Message]) -> Out:
        if self._single is None:
            return self._kept(await self._body(_reading(task, messages), ctx), ctx, messages)
        returned = await ctx.run(self._single, messages, name=0)
        nothing = returned.output is None
        return self._kept(
            Out(
                [] if nothing else returned.output,
                returned.changes,
                frozenset() if nothing else None,
            ),
            ctx,
            messages,
        )

    def _kept(self, out: Out, ctx: Context, messages: list[Message]) -> Out:
        stays = {"inbox": windowed(messages, self._window)}
        if self._window:
            stays["said"] = own(as_messages(out.output), self._node.name)
        field = local_field(ctx.activation.node)
        written: Mapping[str, object] = out.delta.get(field) or {}
        delta = {**out.delta, field: {**ctx.local, **written, **stays}}
        return Out(out.output, Changes(delta) if type(out.delta) is Changes else delta, out.to)


def _reading(task: Task, messages: list[Message]) -> Task:
    """Return the task as if all messages had come on one edge."""
    first = task.tokens[0] if task.tokens else Token(-1, None, task.state)
    token = Token(first.edge, messages, first.state, first.ordinal)
    return task.with_tokens((token,))
