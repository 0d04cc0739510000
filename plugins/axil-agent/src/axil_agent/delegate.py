"""Agents as tools of others: a call is a sub-run, so its steps are seen, recorded and counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from axil import ComponentRef, EdgeSpec, GraphSpec, NodeSpec
from axil.plugin import ENTRY, EXIT, CompileOptions, compile_spec, message, text_of
from axil_agent.agent import Agent
from axil_models import Tool, ToolError

_PARAMETERS = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What it is to do, in full."}},
    "required": ["message"],
}


class AgentTool:
    """An agent as a tool: it is sent one message, and its reply is the result.

    Each call begins afresh: the agent knows nothing of the conversation around it.
    """

    def __init__(
        self,
        agent: Agent,
        name: str = "",
        description: str = "",
        *,
        wrappers: Sequence[Any] = (),
    ) -> None:
        """Set how the agent is offered.

        Args:
            name: the tool's name; empty: the agent's ``name`` or ``role_name``.
            description: what the model is sent about it; empty: the agent's instructions.
            wrappers: around each call, as of a node: ``{"type": "budget", …}``, ``"retry"``.
        """
        self.agent = agent
        self.name = re.sub(r"\W+", "_", name or agent.name or agent.role_name) or "agent"
        self.description = description or agent.style.instructions
        self._wrappers = [ComponentRef.of(wrapper) for wrapper in wrappers]
        self._plan: Any = None

    def bind(self, setting: CompileOptions | None) -> None:
        """Make the plan of a call, once. Raises: as ``compile_spec``."""
        if self._plan is not None:
            return
        node = NodeSpec(
            id=self.name, body=self.agent, wrappers=tuple(self._wrappers), pull={}, push={}
        )
        ends = [EdgeSpec(source=ENTRY, target=self.name), EdgeSpec(source=self.name, target=EXIT)]
        spec = GraphSpec(id=self.name, nodes=(node,), edges=tuple(ends), payload="messages")
        self._plan = compile_spec(spec, setting)

    async def tools(self) -> Sequence[Tool]:
        """Return the tool."""
        tool = Tool(
            name=self.name,
            description=self.description,
            parameters=_PARAMETERS,
            call=self._ask,
            wants_ctx=True,
            recorded=False,  # its steps are recorded
        )
        return [tool]

    async def _ask(self, ctx: Any, **given: Any) -> str:
        """Return the agent's reply. Raises: ToolError (AX657): there is no run."""
        if not hasattr(ctx, "run"):
            raise ToolError(
                "AX657",
                f'the agent "{self.name}" is a tool of an agent that is in no graph.',
                "Put the agent that has the tool into a graph.",
            )
        plan = self._plan
        state = plan.graph.schema.start(plan.graph.start)
        task = [message(str(given.get("message") or ""))]
        ended = await ctx.run(plan, task, name=self.name, state=state)
        return text_of(ended.output)
