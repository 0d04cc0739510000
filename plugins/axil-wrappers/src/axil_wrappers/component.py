"""Another component in a node's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from axil.bodies import adapt, is_async, parameters
from axil.composite import gathered_inputs
from axil.config import make
from axil.context import Context
from axil.plan import Body
from axil.planner import NodeInfo, compile
from axil.spec import EdgeSpec, GraphSpec, NodeSpec, Use
from axil.tokens import ENTRY, EXIT, Out, Task


class Stead:
    """What stands in a node's stead: a component of its own, bound to the node's edges and to what it sees of the state."""

    def __init__(self, use: Use, node: NodeInfo) -> None:
        """Raises: PluginError, ConfigError, SpecError: as for any node."""
        self.components: list[Any] = []
        """What has to be provisioned and closed."""
        self._plan: Any = None
        self._body: Body | None = None
        found: Any = use.made
        if found is None:
            found = make(node.setting.resolve("nodes", use.type, node.where), use.config, node.where)
        if hasattr(found, "scope"):
            self._plan = _alone(use, node)
            self.components += self._plan.graph.components
            return
        if hasattr(found, "provision") or hasattr(found, "close"):
            self.components.append(found)
        bind = getattr(found, "bind", None)
        if bind is not None and not isinstance(found, type):
            bind(node.edges, node.setting) if len(parameters(bind)) > 1 else bind(node.edges)
        given: Mapping[str, Any] = {"node": found, "config": getattr(found, "config", None), **getattr(found, "given", {})}
        rules = replace(node.rules, given=given)
        adapted = getattr(found, "adapted", None)
        if adapted is not None:
            self._body = adapted(rules)
            return
        call: Any = getattr(found, "run", found)
        inline = getattr(found, "inline", getattr(call, "inline", None))
        self._body = adapt(call, rules, inline=bool(inline) and not is_async(call))

    async def __call__(self, task: Task, ctx: Context) -> Out:
        """What it gives for the same task."""
        if self._body is not None:
            return await ctx.execute(self._body, task)
        returned = await ctx.run(self._plan, gathered_inputs(task, self._plan.graph), name="#instead", state=task.state)
        return Out(returned.output, returned.changes, frozenset() if returned.output is None else None)


def _alone(use: Use, node: NodeInfo) -> Any:
    payload: Any = node.payload if node.payload != "state" else "fields"
    spec = GraphSpec(
        id=node.name,
        nodes=(NodeSpec(id=node.name, use=use if use.made is None else None, body=use.made, pull=node.spec.pull, push=node.spec.push),),
        edges=(EdgeSpec(source=ENTRY, target=node.name), EdgeSpec(source=node.name, target=EXIT)),
        payload=payload,
        end=(node.name,),
        schema=node.schema if node.schema.closed else None,
        extras=node.setting.extras,
    )
    return compile(spec, node.setting)
