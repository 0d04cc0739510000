"""``Loop``: a graph that runs its body again and again, controlled by one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from axil.builder.graph import EdgeHandle, Graph
from axil.compiler.nodes import Controller
from axil.compiler.planner import CompileOptions
from axil.errors import Problem, SpecError
from axil.kernel.plan import CycleLimit
from axil.kernel.tokens import ENTRY, EXIT
from axil.spec.graph import EdgeSpec, GraphSpec, NodeSpec, SubgraphSpec


class Loop(Graph):
    """A graph that runs its body again and again, controlled by one node, the controller.

    Each round begins at the controller: it counts, asks whether to stop, and either sends on or
    lets the loop's output out. Fields that come back are kept; a field that is fed back but not yet
    set holds ``"(not set yet)"`` in the first round. A message at the terminate node leaves the
    loop at once and is its output.
    """

    _reserved = ("entry", "exit", "controller", "terminate")
    _counts_rounds = True

    def __init__(
        self,
        name: str = "",
        max_iterations: int | None = 10,
        *,
        terminate_condition_function: Callable[..., Any] | None = None,
        model: Any = None,
        terminate_condition_prompt: str | None = None,
        judge: Any = None,
        initial_messages: Mapping[str, Any] | None = None,
        memories: Any = None,
        tools: Any = None,
        retrievers: Any = None,
        **options: Any,
    ) -> None:
        """``judge``: has ``async decide(fields, attributes, ctx) -> bool``; ``model`` with a prompt
        makes one (axil-agent).

        Raises: SpecError: neither a positive ``max_iterations`` nor anything else that could end
        the loop.
        """
        self.max_iterations = max_iterations
        self._stop, self._judge = terminate_condition_function, judge
        self._first = dict(initial_messages or {})
        self._given = (memories, tools, retrievers)
        self._feedback: list[EdgeSpec] = []
        if options.get("state") is not None:
            raise SpecError(
                Problem(
                    "AX127",
                    f'loop "{name}"',
                    "a loop has attributes, not a typed state.",
                    'Use a Graph with cycles="allow".',
                )
            )
        bounded = max_iterations is not None and max_iterations > 0
        if model is not None and terminate_condition_prompt is not None:
            from axil.registry import registry
            from axil.registry.config import make_component

            self._judge = make_component(
                registry.default_registry().resolve("judges", "judge", f'loop "{name}"'),
                {"model": model, "prompt": terminate_condition_prompt},
                f'loop "{name}"',
            )
        if not bounded and self._stop is None and self._judge is None:
            raise SpecError(
                Problem(
                    "AX126",
                    f'loop "{name}"',
                    "nothing would end it.",
                    "Give a positive max_iterations, a terminate_condition_function, or a model "
                    "with a terminate_condition_prompt.",
                )
            )
        settings: dict[str, Any] = {"cycles": "allow", **options}
        super().__init__(name, **settings)

    def set_initial_messages(self, messages: Mapping[str, Any]) -> None:
        """Fields that the controller holds before anything came in."""
        self._changing()
        self._first = dict(messages)

    def edge_from_controller(self, receiver: Any, keys: Any = None, **more: Any) -> EdgeHandle:
        """An edge from the controller into the body."""
        return self.create_edge("controller", receiver, keys, **more)

    def edge_to_controller(self, sender: Any, keys: Any = None, **more: Any) -> EdgeHandle:
        """An edge back to the controller: the next round."""
        return self.create_edge(sender, "controller", keys, **more)

    def edge_to_terminate_node(self, sender: Any, keys: Any = None, **more: Any) -> EdgeHandle:
        """An edge that leaves the loop at once; what it carries is the loop's output."""
        return self.create_edge(sender, "terminate", keys, **more)

    def _end(self, given: Any, role: str) -> str:
        if isinstance(given, str) and given not in self._specs:
            token = {"entry": "controller", ENTRY: "controller", "terminate": EXIT}.get(
                given.lower(), given.lower()
            )
            if token == "exit":
                token = "controller"
            if token in ("controller", EXIT):
                return token
        return super()._end(given, role)

    def _add(self, edge: EdgeSpec, sender: Any, receiver: Any) -> EdgeHandle:
        if edge.source == edge.target == "controller":
            raise SpecError(
                Problem(
                    "AX111",
                    self._where,
                    "the controller cannot be connected to itself.",
                    "Put a node between.",
                )
            )
        if "controller" not in (edge.source, edge.target):
            self._between(edge)
        return super()._add(edge, sender, receiver)

    def _between(self, edge: EdgeSpec) -> None:
        if not edge.trigger or edge.target == EXIT:
            return
        circle = self._order.add(edge.source, edge.target)
        if circle:
            path = " -> ".join(circle)
            raise SpecError(
                Problem(
                    "AX111",
                    self._where,
                    f"the edge would close a cycle beside the controller: {path}.",
                    "Lead it through the controller, or nest a Loop.",
                )
            )

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """This loop as a node's body.

        It pushes what ``push_keys`` names, and its counters where there is a place for them.
        """
        counters = (
            {}
            if self._in_loop or self.push_keys == {}
            else {"current_iteration": "", "max_iterations": ""}
        )
        push = {**(self.push_keys or {}), **counters}
        return replace(
            super().scope(node, setting),
            push=push,
            offered=frozenset(counters) - (self.push_keys or {}).keys(),
            hidden=frozenset({"current_iteration", "max_iterations"})
            if self._in_loop
            else frozenset(),
        )

    def to_spec(self) -> GraphSpec:
        spec = super().to_spec()
        targets = [e.target for e in spec.edges if e.source == "controller" and e.target != EXIT]
        fed_back = dict.fromkeys(
            key for e in spec.edges if e.target == "controller" for key in e.keys or ()
        )
        controller = Controller(
            most=self.max_iterations,
            stop=self._stop,
            judge=self._judge,
            first=self._first,
            fed_back=list(fed_back),
            targets=targets,
            given=self._given,
        )
        head = NodeSpec(id="controller", body=controller)
        ends = (
            EdgeSpec(source=ENTRY, target="controller"),
            *spec.edges,
            EdgeSpec(source="controller", target=EXIT),
        )
        own = {"current_iteration": 0, "max_iterations": self.max_iterations}
        return replace(
            spec,
            nodes=(head, *spec.nodes),
            edges=ends,
            attributes={**spec.attributes, **own},
            cycles="allow",
            loop="controller",
            cycle_limits={**spec.cycle_limits, "controller": CycleLimit(rounds=None)},
        )
