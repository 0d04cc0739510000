"""Another component in a node's place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from axil import ComponentRef, Context, EdgeSpec, GraphSpec, NodeSpec, Out
from axil.plugin import (
    ENTRY,
    EXIT,
    Body,
    NodeContract,
    NodeInfo,
    Task,
    bind,
    body_of,
    compile_spec,
    make_component,
)
from axil_wrappers.inside import run_plan


class ReplacementNode:
    """A component in a node's place, bound to the node's edges and to its view of the state."""

    def __init__(self, use: ComponentRef, node: NodeInfo) -> None:
        """Raises: PluginError, ConfigError, SpecError: as for any node."""
        self.components: list[Any] = []
        """The components to provision and close."""
        self._plan: Any = None
        self._body: Body | None = None
        found: Any = use.made
        if found is None:
            found = make_component(
                node.setting.resolve("nodes", use.type, node.where), use.config, node.where
            )
        kind = NodeContract.of(found)
        if kind.scope is not None:
            self._plan = _single(use, node)
            self.components += self._plan.graph.components
            return
        if hasattr(found, "provision") or hasattr(found, "close"):
            self.components.append(found)
        bind(kind, node.edges, node.setting)
        self._body = body_of(kind, replace(node.rules, given=kind.given))

    async def __call__(self, task: Task, ctx: Context) -> Out:
        """Return the replacement's outcome for the same task."""
        if self._body is not None:
            return await ctx.execute(self._body, task)
        return await run_plan(self._plan, task, ctx, "#instead")


def _single(use: ComponentRef, node: NodeInfo) -> Any:
    payload: Any = node.payload if node.payload != "state" else "fields"
    spec = GraphSpec(
        id=node.name,
        nodes=(
            NodeSpec(
                id=node.name,
                use=use if use.made is None else None,
                body=use.made,
                pull=node.spec.pull,
                push=node.spec.push,
            ),
        ),
        edges=(EdgeSpec(source=ENTRY, target=node.name), EdgeSpec(source=node.name, target=EXIT)),
        payload=payload,
        end=(node.name,),
        schema=node.schema if node.schema.closed else None,
        extras=node.setting.extras,
    )
    return compile_spec(spec, node.setting)
