"""``Swarm``: agents that hand a conversation over to one another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from pydantic import model_validator

from evofabric.core.agent import AgentNode
from evofabric.core.factory import BaseComponent, safe_get_attr
from evofabric.core.graph import GraphBuilder, GraphEngine
from evofabric.core.tool import ToolManager
from evofabric.core.typing import AssistantMessage


class Swarm(BaseComponent):
    """Agents with a tool ``handoff``, by which each passes the conversation on to another.

    One that neither hands over nor says ``termination_pattern`` is asked again.
    """

    agents: dict[str, AgentNode]
    state_schema: Any
    entry_point_agent: str
    edges: list[tuple[str, str]] | None = None
    """Pairs of agents, the one of which may hand over to the other; None: each to all others."""
    max_turns: int = 20
    termination_pattern: str = "FINISHED"

    @model_validator(mode="after")
    def _begins_somewhere(self) -> Swarm:
        if self.entry_point_agent not in self.agents:
            raise ValueError(
                f"entry_point_agent: found {self.entry_point_agent!r}, expected one of "
                f"{list(self.agents)}."
            )
        return self

    def add_agent(self, name: str, agent: AgentNode) -> None:
        """Add an agent for the next ``build``. Raises: ValueError: the name is taken."""
        if name in self.agents:
            raise ValueError(f"Agent named {name!r} already exists. Choose another name.")
        self.agents[name] = agent

    def remove_agent(self, name: str) -> None:
        """Take an agent out. Raises: ValueError: it is not there, or the conversation begins with
        it.
        """
        if name not in self.agents:
            raise ValueError(f"Agent named {name!r} does not exist.")
        if name == self.entry_point_agent:
            raise ValueError(f"{name!r} is the entry_point_agent. Set another one first.")
        del self.agents[name]

    def build(self) -> GraphEngine:
        """Give the graph that runs. Raises: ValueError: an edge names no agent."""
        for name in {each for edge in self.edges or () for each in edge}:
            if name not in self.agents:
                raise ValueError(f"edges: found {name!r}, expected one of {list(self.agents)}.")
        graph = GraphBuilder(state_schema=self.state_schema)
        for name, agent in self.agents.items():
            graph.add_node(name, self._with_handoff(name, agent), action_mode="any")
        for name in self.agents:
            graph.add_condition_edge(name, self._router(name), [*self.agents, "end"])
        graph.set_entry_point(self.entry_point_agent)
        return graph.build(max_turn=self.max_turns)

    def _with_handoff(self, name: str, agent: AgentNode) -> AgentNode:
        """Give an agent that has the tool, beside its own."""
        edges = self.edges
        if edges is None:
            targets = [each for each in self.agents if each != name]
        else:
            targets = list(dict.fromkeys(target for source, target in edges if source == name))
        if not targets:
            return agent
        one_of = Literal[tuple(targets)]  # pyright: ignore[reportInvalidTypeForm]  # made here

        def handoff(target_agent: Any, info: str) -> str:
            """Hand the task over to another agent.

            Args:
                target_agent: the agent.
                info: the task, with all that it needs.
            """
            return f"Task is ready to be handed off to {target_agent} with information: {info}"

        handoff.__annotations__["target_agent"] = one_of
        tools = [*agent.tool_manager, ToolManager(tools=[handoff])]
        return agent.model_copy(update={"tool_manager": tools})

    def _router(self, name: str) -> Callable[[Any], str]:
        def chosen(state: Any) -> str:
            said = [
                each
                for each in safe_get_attr(state, "messages")
                if isinstance(each, AssistantMessage)
            ]
            if not said or self.termination_pattern in str(said[-1].content):
                return "end"
            for call in said[-1].tool_calls or ():
                if call.function.name == "handoff":
                    try:
                        target = json.loads(call.function.arguments).get("target_agent")
                    except (ValueError, AttributeError):
                        continue
                    if target in self.agents:
                        return target
            return name

        return chosen
