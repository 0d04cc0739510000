"""``BaseSwitch``: what switches have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from axil_control import LogicSwitch as AxilSwitch
from masfactory.components.graphs.internal_nodes import InternalGraphNode
from masfactory.core.edge import Edge
from masfactory.core.node import Keys, Node
from masfactory.utils.hook import masf_hook

C = TypeVar("C")
ConditionType = C


class BaseSwitch(Node, Generic[C]):
    """A node that chooses among its out-edges; subclasses say by ``_evaluate_condition``.

    Every edge whose condition holds is taken; without any condition, all are.
    """

    def __init__(
        self,
        name: str,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        routes: Mapping[str, C] | None = None,
    ) -> None:
        """``routes``: the condition of each receiver, by its name."""
        super().__init__(name, pull_keys, push_keys, attributes)
        self._routes: dict[str, C] = dict(routes or {})
        self._bound: list[tuple[Edge, C]] = []

    def condition_binding(self, condition: C, out_edge: Edge) -> None:
        """Take ``out_edge`` where ``condition`` holds.

        Raises: ValueError: the edge begins elsewhere, or has a condition.
        """
        if out_edge.sender is not self:
            raise ValueError(
                f'switch "{self.name}": the edge {out_edge.name} does not begin here. '
                "Bind an edge that create_edge(switch, …) gave."
            )
        if any(edge is out_edge for edge, _ in self._bound):
            raise ValueError(
                f'switch "{self.name}": the edge {out_edge.name} has a condition already. '
                "Join the two in one."
            )
        self._bound.append((out_edge, condition))
        self.changed()

    def _evaluate_condition(self, condition: C, message: dict[str, Any]) -> bool:
        """Say whether a condition holds for a message."""
        raise NotImplementedError

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Check the routes. Raises: ValueError: they name no receiver, or leave one out."""
        super().build()
        self.conditions()

    def conditions(self) -> dict[str, C]:
        """Give the condition of each receiver. Raises: as ``build``."""
        names = {receiver_name(edge): edge for edge in self.out_edges}
        spoken = {edge.receiver.name: name for name, edge in names.items()}
        found = {spoken.get(name, name): condition for name, condition in self._routes.items()}
        unknown = sorted(found.keys() - names.keys())
        if unknown:
            raise ValueError(
                f"{self.name}: routes reference unknown receiver node names: {unknown}. "
                f"Its edges lead to {sorted(names)}."
            )
        found |= {receiver_name(edge): condition for edge, condition in self._bound}
        missing = sorted(names.keys() - found.keys())
        if self._routes and missing:
            raise ValueError(
                f"{self.name}: missing routes for receiver node names: {missing}. Add them."
            )
        return found

    def component(self) -> Any:
        conditions = self.conditions()
        if not conditions:
            return AxilSwitch()
        names = [receiver_name(edge) for edge in self.out_edges]
        return AxilSwitch({name: self._asking(conditions, name) for name in names})

    def _asking(self, conditions: Mapping[str, C], name: str) -> Callable[[Any, Any], bool]:
        if name not in conditions:
            return lambda message, attributes: False

        def ask(message: Any, attributes: Any) -> bool:
            with self.seeing(attributes):
                return bool(self._evaluate_condition(conditions[name], message))

        return ask


def receiver_name(edge: Edge) -> str:
    """Give the name by which axil's switches know where an edge leads."""
    receiver = edge.receiver
    return receiver.role if isinstance(receiver, InternalGraphNode) else receiver.name
