"""``Loop``: a graph that runs its body again and again, controlled by one node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

from axil import (
    Context,
    CycleLimit,
    EdgeSpec,
    Graph,
    GraphSpec,
    NodeSpec,
    Out,
    Problem,
    SpecError,
)
from axil.plugin import (
    ENTRY,
    EXIT,
    Attributes,
    CompileOptions,
    EdgeHandle,
    Field,
    SubgraphOptions,
    SubgraphSpec,
    arranged,
    default_registry,
    is_async,
    isolate,
    make_component,
)
from axil_control.switches import Router, Switch

if TYPE_CHECKING:
    from axil.plugin import EdgeOptions, GraphOptions

Keys = Mapping[str, str] | Sequence[str] | None

NOT_SET = "(not set yet)"
"""The value of a field that is fed back, in the first round of a loop."""


class LoopOptions(SubgraphOptions, total=False):
    """The settings of a loop, and the options of a node."""

    max_iterations: int | None
    terminate_condition_function: Callable[..., object] | None
    model: object
    terminate_condition_prompt: str | None
    judge: object
    initial_messages: Mapping[str, object] | None
    memories: object
    tools: object
    retrievers: object


class NotSetYet(KeyError):
    """A stop function read a field that is fed back, or an attribute that the body pushes, before
    it was set.
    """


class _StopFields(dict[str, object]):
    """The fields as a stop function sees them: ``[name]`` of one that is not set yet raises
    ``NotSetYet``, and ``get`` gives its default.
    """

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        if isinstance(value, str) and value == NOT_SET:
            raise NotSetYet(name)
        return value

    # the usual signature
    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        try:
            return self[name]
        except KeyError:
            return default


class _StopAttributes(Attributes):
    """The attributes as a stop function sees them: one that the body has not pushed yet raises
    ``NotSetYet``.
    """

    __slots__ = ("_unset",)

    def __init__(self, known: Attributes, unset: frozenset[str]) -> None:
        super().__init__(known)
        self.written, self.assigned, self._unset = known.written, known.assigned, unset

    def __missing__(self, name: str) -> object:
        raise NotSetYet(name) if name in self._unset else KeyError(name)


class Loop(Graph):
    """A graph that runs its body again and again, controlled by one node, the controller.

    Each round begins at the controller: it counts, asks whether to stop, and sends the fields into
    the body or out of the loop. Fields that come back are kept; a field that is fed back but not
    yet set holds ``"(not set yet)"`` in the first round. A message at the terminate node leaves the
    loop at once and is its output. A stop function that reads a field, or an attribute of the body,
    that is not set yet counts as no; ``get`` of one gives None, or its default.

    With typed state, its own or that of the graph around it, edges carry nothing, and the stop
    function is given the state, from the second round on.
    """

    examples = (
        {
            "max_iterations": 2,
            "nodes": [{"id": "same", "type": "passthrough"}],
            "edges": [
                {"from": "controller", "to": "same"},
                {"from": "same", "to": "controller"},
            ],
        },
    )
    reserved_names = ("entry", "exit", "controller", "terminate")
    is_built_in_python = True
    counts_rounds = True

    def __init__(
        self,
        name: str = "",
        max_iterations: int | None = 10,
        *,
        state: object = None,
        terminate_condition_function: Callable[..., object] | None = None,
        model: object = None,
        terminate_condition_prompt: str | None = None,
        judge: object = None,
        initial_messages: Mapping[str, object] | None = None,
        memories: object = None,
        tools: object = None,
        retrievers: object = None,
        **options: Unpack[GraphOptions],
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
        bounded = isinstance(max_iterations, int) and max_iterations > 0
        if model is not None and terminate_condition_prompt is not None:
            self._judge = make_component(
                default_registry().resolve("judges", "judge", f'loop "{name}"'),
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
        settings: GraphOptions = {"cycles": "allow", **options}
        super().__init__(name, state=state, **settings)

    if TYPE_CHECKING:

        @classmethod
        def create_in(  # type: ignore[override]  # its settings are its own
            cls, graph: Graph, /, *args: object, **options: Unpack[LoopOptions]
        ) -> Self: ...

    def set_initial_messages(self, messages: Mapping[str, object]) -> None:
        """Set the fields that the controller holds before the first input."""
        self.check_open()
        self._first = dict(messages)

    def edge_from_controller(
        self, receiver: object, keys: Keys = None, **more: Unpack[EdgeOptions]
    ) -> EdgeHandle:
        """Return an edge from the controller into the body."""
        return self.create_edge("controller", receiver, keys, **more)

    def edge_to_controller(
        self, sender: object, keys: Keys = None, **more: Unpack[EdgeOptions]
    ) -> EdgeHandle:
        """Return an edge back to the controller: the next round."""
        return self.create_edge(sender, "controller", keys, **more)

    def edge_to_terminate_node(
        self, sender: object, keys: Keys = None, **more: Unpack[EdgeOptions]
    ) -> EdgeHandle:
        """Return an edge that leaves the loop at once; what it carries is the loop's output."""
        return self.create_edge(sender, "terminate", keys, **more)

    def end(self, given: object, role: str) -> str:
        if isinstance(given, str) and given not in self.nodes:
            token = {"entry": "controller", ENTRY: "controller", "terminate": EXIT}.get(
                given.lower(), given.lower()
            )
            if token == "exit":
                token = "controller"
            if token in ("controller", EXIT):
                return token
        return super().end(given, role)

    def add_edge(self, edge: EdgeSpec, sender: object, receiver: object) -> EdgeHandle:
        if edge.source == edge.target == "controller":
            raise SpecError(
                Problem(
                    "AX111",
                    self.place,
                    "the controller cannot be connected to itself.",
                    "Put a node between.",
                )
            )
        if "controller" not in (edge.source, edge.target):
            message = "the edge would close a cycle beside the controller"
            self.refuse_cycle(edge, message, "Lead it through the controller, or nest a Loop.")
        return super().add_edge(edge, sender, receiver)

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """This loop as a node's body: it writes back what a graph does and, without rules of its
        own, its counters, where there is a place for them.
        """
        counters = frozenset({"current_iteration", "max_iterations"})
        return replace(
            super().scope(node, setting),
            offered=counters if self.push_keys is None and not self.is_in_loop else frozenset(),
            hidden=counters if self.is_in_loop else frozenset(),
        )

    def to_spec(self) -> GraphSpec:
        spec = super().to_spec()
        self._check_body(spec)
        schema = spec.schema
        if schema is not None:
            counters = {name: Field(name) for name in _COUNTERS}
            schema = replace(schema, fields={**counters, **schema.fields})
        targets = [e.target for e in spec.edges if e.source == "controller" and e.target != EXIT]
        fed_back = dict.fromkeys(
            key for e in spec.edges if e.target == "controller" for key in e.keys or ()
        )
        pushed = {
            name
            for node in spec.nodes
            for name in (node.pull if node.push is None else node.push) or ()
        }
        controller = Controller(
            most=self.max_iterations,
            stop=self._stop,
            judge=self._judge,
            first=self._first,
            fed_back=list(fed_back),
            targets=targets,
            given=self._given,
            pushed=pushed,
            is_typed=schema is not None and schema.closed,
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
            schema=schema,
            attributes={**spec.attributes, **own},
            cycles="allow",
            loop="controller",
            cycle_limits={**spec.cycle_limits, "controller": CycleLimit(rounds=None)},
            extras={
                **spec.extras,
                "warnings": (*spec.extras.get("warnings", ()), *self._overruled(spec)),
            },
        )

    def _check_body(self, spec: GraphSpec) -> None:
        """Raises: SpecError (AX129): its body is never run, or leads neither back nor out."""
        onward: dict[str, list[str]] = {}
        for edge in spec.edges:
            if edge.trigger:
                onward.setdefault(edge.source, []).append(edge.target)
        reached, stack = set[str](), ["controller"]
        while stack:
            fresh = [name for name in onward.get(stack.pop(), ()) if name not in reached]
            reached.update(fresh)
            stack.extend(name for name in fresh if name not in ("controller", EXIT))
        message = hint = ""
        if not spec.nodes:
            message, hint = "it has no nodes", "Create the nodes of its body in it"
        elif not onward.get("controller"):
            message = "no edge leads from its controller into its body"
            hint = "Begin its body with edge_from_controller(node, [fields])"
        elif reached.isdisjoint(("controller", EXIT)):
            message = "no edge leads back to its controller, and none to its terminate node"
            hint = "End its body with edge_to_controller(node, [fields])"
        if message:
            raise SpecError(Problem("AX129", f'loop "{self.name}"', f"{message}.", f"{hint}."))

    def _overruled(self, spec: GraphSpec) -> Iterator[Problem]:
        """Yield a warning (AX173) for each node that a switch refuses, and the controller fires."""
        triggers = [edge for edge in spec.edges if edge.trigger and edge.condition is None]
        always = {(e.target, e.group) for e in triggers if e.source == "controller"}
        undecided = {node.id for node in spec.nodes if node.join is None}
        for edge in spec.edges:
            is_asked = edge.trigger and _is_switch(self.nodes.get(edge.source))
            if is_asked and edge.target in undecided and (edge.target, edge.group) in always:
                yield Problem(
                    "AX173",
                    f'{self.place}, node "{edge.target}"',
                    f'it fires in each round, also where the switch "{edge.source}" says no: an '
                    "edge of the controller triggers it, too.",
                    'Give the node join="all", or that edge trigger=False; join="gate" if it is '
                    "meant.",
                    severity="warning",
                )


def _is_switch(component: object) -> bool:
    return hasattr(component, "condition_binding") or isinstance(component, (Switch, Router))


_COUNTERS = ("current_iteration", "max_iterations")
_NAMES = ("inputs", "attributes", "controller", "memories", "tools", "retrievers")


class Controller:
    """The node at which every round of a ``Loop`` begins."""

    def __init__(
        self,
        *,
        most: int | None,
        stop: Callable[..., Any] | None,
        judge: Any,
        first: Mapping[str, object],
        fed_back: Sequence[str],
        targets: Sequence[str],
        given: Sequence[object] = (),
        pushed: Collection[str] = (),
        is_typed: bool = False,
    ) -> None:
        """``given``: memories, tools and retrievers, for a stop function that takes them by
        position; ``pushed``: the attributes that the body's nodes write; ``is_typed``: the loop
        has typed state.

        Raises: SpecError: the stop function cannot be called.
        """
        self.most, self.stop, self.judge = most, stop, judge
        self.first, self.fed_back, self.targets = dict(first), tuple(fed_back), frozenset(targets)
        self._given, self._pushed = tuple(given), frozenset(pushed)
        self.inline = judge is None and not is_async(stop)
        self.run = self._begin_inline if self.inline else self._begin_async
        if is_typed:
            self.inline, self.run = False, self._begin_in_state
        if stop is not None:
            known, where = (*_NAMES, "input", "message"), "terminate_condition_function"
            same = {"input": "inputs", "message": "inputs"}
            self._stop, self._wanted = arranged(stop, known, _NAMES, where, same)

    def _begin_inline(
        self, inputs: dict[str, Any], attributes: Attributes, local: dict[str, Any]
    ) -> Out:
        fields = self._counted(inputs, attributes, local)
        asked, attributes = _StopFields(fields), self._view(attributes)
        try:
            is_met = bool(self._ask_to_stop(asked, attributes))
        except NotSetYet:
            is_met = False
        return self._end(dict(asked.items()), attributes, is_met=is_met)

    async def _begin_async(
        self, inputs: dict[str, object], attributes: Attributes, ctx: Context
    ) -> Out:
        fields = self._counted(inputs, attributes, ctx.local)
        is_met = False
        if self.judge is not None:
            is_met = bool(await self.judge.decide(fields, attributes, ctx))
        if self.stop is not None:
            asked, attributes = _StopFields(fields), self._view(attributes)
            try:
                answer = self._ask_to_stop(asked, attributes)
                is_met = bool(await answer if hasattr(answer, "__await__") else answer) or is_met
            except NotSetYet:
                pass
            fields = dict(asked.items())
        return self._end(fields, attributes, is_met=is_met)

    async def _begin_in_state(
        self, inputs: dict[str, object], state: object, attributes: Attributes, ctx: Context
    ) -> Out:
        fields = self._counted(inputs, attributes, ctx.local)
        is_met = False
        if int(ctx.local["count"]) > 1:
            if self.judge is not None:
                known = {n: value for n, value in attributes.items() if n not in _COUNTERS}
                is_met = bool(await self.judge.decide(known, attributes, ctx))
            answer = self._ask_to_stop(state, attributes)
            is_met = bool(await answer if hasattr(answer, "__await__") else answer) or is_met
        return self._end(fields, attributes, is_met=is_met)

    def _counted(
        self, inputs: dict[str, Any], attributes: Attributes, local: dict[str, Any]
    ) -> dict[str, Any]:
        """Count the round, and return the fields that it begins with."""
        if "count" not in local:
            local["count"] = 0
            local["cache"] = {**dict.fromkeys(self.fed_back, NOT_SET), **self.first}
        local["cache"] = {**local["cache"], **inputs}
        local["count"] = count = int(local["count"]) + 1
        attributes["current_iteration"] = count
        attributes["max_iterations"] = self.most
        return isolate(dict(local["cache"]))

    def _view(self, attributes: Attributes) -> Attributes:
        """Return the attributes as the stop function sees them."""
        unset = self._pushed.difference(attributes)
        return _StopAttributes(attributes, unset) if unset else attributes

    def _ask_to_stop(self, fields: Any, attributes: Attributes) -> Any:
        """Return the stop function's answer, or something to await; False: there is none."""
        if self.stop is None:
            return False
        memories, tools, retrievers = (*self._given, None, None, None)[:3]
        ways: dict[str, object] = {
            "inputs": fields,
            "input": fields,
            "message": fields,
            "attributes": attributes,
            "controller": self,
            "memories": memories,
            "tools": tools,
            "retrievers": retrievers,
        }
        return self._stop(**{name: ways[way] for name, way in self._wanted.items()})

    def _end(self, fields: dict[str, object], attributes: Attributes, *, is_met: bool) -> Out:
        """Send the fields into the body, or out of the loop."""
        most, count = self.most, attributes["current_iteration"]
        is_spent = most is not None and most > 0 and count > most
        if is_spent:
            attributes["current_iteration"] = most
        to = frozenset({EXIT}) if is_spent or is_met else self.targets
        return Out(fields, attributes.written, to)
