"""Agents as tools of others: a call is a sub-run, so its steps are seen, recorded and counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, Field, field_validator

from axil import ComponentRef, EdgeSpec, GraphSpec, NodeSpec, Workflow
from axil.plugin import (
    ENTRY,
    EXIT,
    SURROUNDINGS,
    CompileOptions,
    Message,
    Place,
    compile_spec,
    message,
    refers_to,
    text_of,
)
from axil_agent.agent import Agent
from axil_agent.template import joined
from axil_models import Tool, call_async

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
        wrappers: Sequence[object] = (),
    ) -> None:
        """Set how the agent is offered.

        Args:
            name: the tool's name; empty: the agent's ``name`` or ``role_name``.
            description: what the model is sent about it; empty: the agent's instructions.
            wrappers: around each call, as of a node: ``{"type": "budget", …}``, ``"retry"``.
        """
        self.agent: Agent | None = agent
        name = name or agent.name or agent.role_name
        self._describe(name, description or agent.style.instructions, wrappers)

    def _describe(self, name: str, description: str, wrappers: Sequence[object]) -> None:
        self.name = re.sub(r"\W+", "_", name) or "agent"
        self.description = description
        self._wrappers = tuple(ComponentRef.of(wrapper) for wrapper in wrappers)
        self._plan: Any = None

    def node(self) -> NodeSpec:
        """Return the node that a call runs."""
        return NodeSpec(id=self.name, body=self.agent, wrappers=self._wrappers, pull={}, push={})

    def bind(self, setting: CompileOptions | None) -> None:
        """Make the plan of a call, once. Raises: as ``compile_spec``."""
        if self._plan is not None:
            return
        ends = EdgeSpec(source=ENTRY, target=self.name), EdgeSpec(source=self.name, target=EXIT)
        around = dict[str, Any]() if setting is None else setting.extras
        spec = GraphSpec(
            id=self.name,
            nodes=(self.node(),),
            edges=ends,
            payload="messages",
            extras={name: around[name] for name in SURROUNDINGS if name in around},
        )
        self._spec, self._setting = spec, setting
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
        """Return the agent's reply."""
        task = [message(str(given.get("message") or ""))]
        if not hasattr(ctx, "run"):
            return await self._asked_alone(task, ctx)
        plan = self._plan
        state = plan.graph.schema.start(plan.graph.start)
        ended = await ctx.run(plan, task, name=self.name, state=state)
        return text_of(ended.output)

    async def _asked_alone(self, task: list[Message], ctx: Any) -> str:
        """Return the agent's reply to an agent outside a run: in a run of its own.

        Raises: RunPaused: it asks a question.
        """
        result = await Workflow(self._spec, self._setting).run(
            task, deps=ctx.deps, workspace=ctx.workspace, observers=[_Shown(ctx.emit)]
        )
        for question in result.questions:
            await ctx.ask(question)
        return text_of(result.output)

    async def close(self) -> None:
        """Close what was opened for the agent."""
        for component in reversed(self._plan.graph.components if self._plan else ()):
            if hasattr(component, "close"):
                await call_async(component.close)


class _Shown:
    """An observer that shows the chunks of a run."""

    def __init__(self, emit: Callable[[object], None]) -> None:
        self._emit = emit

    def chunk(self, activation: object, chunk: object) -> None:
        """Show a chunk."""
        self._emit(chunk)


class NodeTool(AgentTool):
    """``agent``: a node of a file, mostly an agent, as a tool: it is sent one message."""

    examples: tuple[dict[str, Any], ...] = (
        {
            "name": "clerk",
            "description": "Counts things.",
            "agent": {
                "type": "agent",
                "config": {"model": {"type": "scripted", "config": {"rules": []}}},
            },
        },
    )

    class Config(BaseModel, extra="forbid", frozen=True):
        """The node, and its name and description for the model."""

        name: str = Field(min_length=1, description="The name of the tool.")
        description: str = Field(
            default="", description="The text for the model; empty: the agent's instructions."
        )
        agent: dict[str, Any] = Field(
            description="The node that a call runs: {type, config}.",
            json_schema_extra=refers_to("graph"),
        )
        wrappers: list[str | dict[str, Any]] = Field(
            default_factory=list[str | dict[str, Any]],
            description="Around each call: budget, retry …",
            json_schema_extra=refers_to("wrappers"),
        )

        @field_validator("agent")
        @classmethod
        def _is_a_node(cls, agent: dict[str, Any]) -> dict[str, Any]:
            inner: object = agent.get("config") or {}
            is_node = isinstance(agent.get("type"), str) and isinstance(inner, dict)
            if not is_node or not agent.keys() <= {"type", "config"}:
                raise ValueError("expected a node {type, config}.")
            return agent

    place: Place | None = None
    """The place of its settings in the file."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.agent = None
        inner: dict[str, object] = config.agent.get("config") or {}
        about = config.description or joined(inner.get("instructions") or "")
        self._describe(config.name, about, config.wrappers)

    def node(self) -> NodeSpec:
        """Return the node that a call runs."""
        place = self.place and self.place.at("agent")
        given = self.config.agent
        return NodeSpec(
            id=self.name,
            use=ComponentRef(type=given["type"], config=given.get("config") or {}, place=place),
            wrappers=self._wrappers,
            pull={},
            push={},
            place=place,
        )
