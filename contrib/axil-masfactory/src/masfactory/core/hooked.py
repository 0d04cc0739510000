"""The wrapper of axil that calls MASFactory's hooks around what a node does, and the ``_forward``
of a graph's subclass.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from axil import Context, Out
from axil.plugin import Body, Mode, NodeInfo, Task, inputs_of
from masfactory.core.node import Node, inside

STAGES = (
    Node.Hook.EXECUTE,
    Node.Hook.FORWARD,
    Node.Hook.MESSAGE_AGGREGATE_IN,
    Node.Hook.MESSAGE_DISPATCH_OUT,
)


def is_hooked(node: Node) -> bool:
    """Say whether a node has hooks of a stage of a run, or a ``_forward`` around a whole graph."""
    return node.is_around_a_graph or any(
        node.hooks.has_any(stage.BEFORE, stage.AFTER, stage.ERROR) for stage in STAGES
    )


class Hooked:
    """The wrapper: one for each node that has hooks."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def wrap(self, body: Body, node: NodeInfo) -> Body:
        """Give the body with the hooks around it."""
        return _HookedBody(self.node, body, node)


class _HookedBody:
    mode: Mode = "async"
    wants_ctx = True

    def __init__(self, node: Node, body: Body, info: NodeInfo) -> None:
        self.node, self.inside = node, body
        self._plan = info.single() if body.mode == "scope" else None

    def __call__(self, task: Task, ctx: Context, /) -> Any:
        return self.run(task, ctx)

    async def run(self, task: Task, ctx: Context) -> Out:
        """Fire once: what a hook changes in the input is what the body gets."""
        node, hook, call = self.node, Node.Hook, self.node.hooks.dispatch
        outer = {name: task.state[name] for name in task.state if not name.startswith("@")}
        call(hook.EXECUTE.BEFORE, node, outer)
        try:
            call(hook.MESSAGE_AGGREGATE_IN.BEFORE, node)
            fields = inputs_of(task)
            call(hook.MESSAGE_AGGREGATE_IN.AFTER, node, fields)
            out = await self._forward(fields, task, ctx)
            sent: Any = out.output
            call(hook.MESSAGE_DISPATCH_OUT.BEFORE, node, sent)
            call(hook.MESSAGE_DISPATCH_OUT.AFTER, node, None, sent)
        except Exception as error:
            call(hook.EXECUTE.ERROR, node, error, outer)
            raise
        call(hook.EXECUTE.AFTER, node, None, outer)
        return out

    async def _forward(self, fields: dict[str, Any], task: Task, ctx: Context) -> Out:
        node, stage = self.node, Node.Hook.FORWARD
        if node.calls_its_own(stage.name):
            return await self._fired(fields, task, ctx)
        node.hooks.dispatch(stage.BEFORE, node, fields)
        try:
            out = await self._fired(fields, task, ctx)
        except Exception as error:
            node.hooks.dispatch(stage.ERROR, node, error, fields)
            raise
        node.hooks.dispatch(stage.AFTER, node, out.output, fields)
        return out

    async def _fired(self, fields: dict[str, Any], task: Task, ctx: Context) -> Out:
        if not self.node.is_around_a_graph:
            return await self._inside(fields, task, ctx)
        node, loop = self.node, asyncio.get_running_loop()
        seen = {n: v for n, v in task.state.items() if not n.startswith("@")}
        pulled = node.pull_keys
        view = seen if pulled is None else {n: v for n, v in seen.items() if n in pulled}
        before, delta = dict(view), dict[str, Any]()
        with node.seeing(view) as store:

            def inner(given: dict[str, Any]) -> dict[str, Any]:
                new = {n: v for n, v in store.items() if n not in before or v is not before[n]}
                begun = Task(
                    task.frame,
                    task.node,
                    task.ordinal,
                    task.tokens,
                    task.state.apply(new),
                    task.owner,
                )
                run = self._inside(given, begun, ctx)
                out = asyncio.run_coroutine_threadsafe(run, loop).result()
                delta.update(out.delta)
                store.update(out.delta)
                return dict(cast("dict[str, Any]", out.output or {}))

            with inside(node, inner):
                output = await asyncio.to_thread(lambda: node.forwarded(fields))
        delta |= {n: v for n, v in view.items() if n not in before or v is not before[n]}
        return Out(output, delta)

    async def _inside(self, fields: dict[str, Any], task: Task, ctx: Context) -> Out:
        first, *others = task.tokens
        tokens = (
            first._replace(payload=fields),
            *(token._replace(payload=cast("dict[str, Any]", {})) for token in others),
        )
        changed = task.with_tokens(tokens)
        if self._plan is None:
            return await ctx.execute(self.inside, changed)
        returned = await ctx.run(self._plan, fields, name="#hooked", state=task.state)
        return Out(
            returned.output, returned.changes, frozenset() if returned.output is None else None
        )
