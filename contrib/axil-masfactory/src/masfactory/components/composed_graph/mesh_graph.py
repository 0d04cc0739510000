"""``MeshGraph``: agents in turn, with one history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from masfactory.adapters.memory import HistoryMemory
from masfactory.components.controls.logic_switch import LogicSwitch
from masfactory.components.graphs.loop import Loop
from masfactory.core.node import Keys, Node
from masfactory.core.node_template import NodeTemplate, Shared
from masfactory.utils.hook import masf_hook


def member(
    graph: Loop,
    template: NodeTemplate[Any],
    usual_name: str,
    *,
    model: Any,
    instructions: str,
    memory: HistoryMemory,
    tools: Sequence[Any] = (),
) -> Node:
    """Make an agent of a group: its own settings, and those of the group."""
    own = template.settings
    said = own.get("instructions", "")
    reported = said if isinstance(said, str) else "\n".join(said)
    settings: dict[str, Any] = {
        "model": own.get("model", Shared(model)),
        "instructions": "\n".join(each for each in (instructions, reported) if each),
        "memories": [*(own.get("memories") or ()), Shared(memory)],
        "tools": [*(own.get("tools") or ()), *tools],
    }
    return graph.create_node(template, name=str(own.get("name") or usual_name), **settings)


class MeshGraph(Loop):
    """Agents in turn on one ``message``, with one history.

    It ends where the message holds ``FINAL ANSWER``, unless another function is given.
    """

    def __init__(
        self,
        name: str,
        agents: Sequence[NodeTemplate[Any]],
        model: Any,
        graph_instructions: str = "",
        max_iterations: int = 10,
        shared_memory: HistoryMemory | None = None,
        terminate_condition_function: Callable[..., Any] | None = None,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name,
            max_iterations,
            None,
            None,
            terminate_condition_function or _is_final,
            pull_keys,
            push_keys,
            attributes,
        )
        self._templates, self._asked = list(agents), model
        self.graph_instructions = graph_instructions
        self.shared_memory = shared_memory or HistoryMemory()
        self._members: list[Node] = []

    @property
    def agent_names(self) -> list[str]:
        """The names of the agents; after ``build``."""
        return [node.name for node in self._members]

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make the agents and the switch before them."""
        if not self._members:
            self._members = [
                member(
                    self,
                    template,
                    f"{self.name}_agent_{number}",
                    model=self._asked,
                    instructions=self.graph_instructions,
                    memory=self.shared_memory,
                )
                for number, template in enumerate(self._templates)
            ]
            routes = {node.name: self._turn(number) for number, node in enumerate(self._members)}
            router = self.create_node(LogicSwitch, name=f"{self.name}_router", routes=routes)
            self.edge_from_controller(router)
            for node in self._members:
                self.create_edge(router, node)
                self.edge_to_controller(node)
        super().build()

    def _turn(self, number: int) -> Callable[..., bool]:
        def is_due(message: Any, attributes: Mapping[str, Any]) -> bool:
            return (int(attributes["current_iteration"]) - 1) % len(self._members) == number

        return is_due


def _is_final(message: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    return int(attributes["current_iteration"]) > 1 and "FINAL ANSWER" in str(
        message.get("message", "")
    )
