"""``HubGraph``: an agent that hands over to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masfactory.adapters.memory import HistoryMemory
from masfactory.components.composed_graph.mesh_graph import member
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node, count_of
from masfactory.core.node_template import NodeTemplate
from masfactory.utils.hook import masf_hook


class HubGraph(Loop):
    """An agent, the hub, with a tool for each of the others that hands over to it.

    Who was handed over to answers in the next round, and then the hub again. It ends where the hub
    answers without handing over. The turn is kept in this object: one run at a time.
    """

    def __init__(
        self,
        name: str,
        hub: NodeTemplate[Any],
        spokes: Sequence[NodeTemplate[Any]],
        model: Any,
        graph_instructions: str = "",
        max_iterations: int = 20,
        shared_memory: HistoryMemory | None = None,
        handoff_tool_prefix: str = "transfer_to_",
        terminate_condition_function: Callable[..., Any] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name, max_iterations, None, None, self._ends, pull_keys, push_keys, attributes
        )
        self._templates, self._asked = [hub, *spokes], model
        self.graph_instructions, self.handoff_tool_prefix = graph_instructions, handoff_tool_prefix
        self.shared_memory = shared_memory or HistoryMemory()
        self._own_end = terminate_condition_function
        self._members: list[Node] = []
        self._next, self._handoff = "", ""

    @property
    def hub_name(self) -> str:
        """The name of the hub; after ``build``."""
        return self._members[0].name

    @property
    def spoke_names(self) -> list[str]:
        """The names of the others; after ``build``."""
        return [node.name for node in self._members[1:]]

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the agents, the tools and the switch."""
        if not self._members:
            hub, *spokes = self._templates
            others = [
                self._member(template, f"{self.name}_spoke_{number}", ())
                for number, template in enumerate(spokes)
            ]
            tools = [self._tool(node.name) for node in others]
            self._members = [self._member(hub, f"{self.name}_hub", tools), *others]
            routes = {node.name: self._turn(node.name) for node in self._members}
            router = self.create_node(LogicSwitch, name=f"{self.name}_router", routes=routes)
            self.edge_from_controller(router)
            for node in self._members:
                self.create_edge(router, node)
                self.edge_to_controller(node)
        super().build()

    def _member(self, template: NodeTemplate[Any], name: str, tools: Sequence[Any]) -> Node:
        return member(
            self,
            template,
            name,
            model=self._asked,
            instructions=self.graph_instructions,
            memory=self.shared_memory,
            tools=tools,
        )

    def _tool(self, name: str) -> Callable[..., str]:
        def transfer(reason: str = "") -> str:
            del reason
            self._handoff = name
            return f"{name} answers next. Say what it is to do."

        transfer.__name__ = f"{self.handoff_tool_prefix}{name}".replace("-", "_")
        transfer.__doc__ = f"Hand over to {name}."
        return transfer

    def _turn(self, name: str) -> Callable[..., bool]:
        def is_next(message: Any, attributes: Any) -> bool:
            return self._next == name

        return is_next

    def _ends(self, message: dict[str, Any], attributes: dict[str, Any]) -> bool:
        hub = self.hub_name
        if int(attributes["current_iteration"]) == 1:
            self._next, self._handoff = hub, ""
            return False
        if self._own_end is not None:
            count = count_of(self._own_end, 2, f'loop "{self.name}"', "message, attributes")
            if self._own_end(*(message, attributes)[:count]):
                return True
        if self._next != hub:
            self._next = hub
        elif not self._handoff:
            return self._own_end is None
        else:
            self._next, self._handoff = self._handoff, ""
        return False
