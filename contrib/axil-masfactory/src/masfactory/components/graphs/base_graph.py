"""``BaseGraph``: what graphs and loops have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast, overload

from masfactory.components.graphs.internal_nodes import InternalGraphNode
from masfactory.core.edge import Edge
from masfactory.core.hooked import Hooked, is_hooked
from masfactory.core.multimodal import descriptions
from masfactory.core.node import Keys, Node, inner_of
from masfactory.core.node_template import NodeTemplate
from masfactory.errors import Unsupported
from masfactory.utils.hook import masf_hook
from masfactory.utils.selector import Selector, build_selector

N = TypeVar("N", bound=Node)


def the_graphs_own(method: Any) -> Any:
    """Mark a ``_forward`` that axil runs without calling it."""
    method.is_the_graphs_own = True
    return method


class BaseGraph(Node):
    """A node that is made of nodes and edges."""

    ends: ClassVar[Mapping[str, str]] = {}
    """The words for its ends, and which end each means."""

    def __init__(
        self,
        name: str,
        pull_keys: Keys | None = None,
        push_keys: Keys | None = None,
        attributes: Mapping[str, Any] | None = None,
        build_func: Callable[[Any], Any] | None = None,
        *,
        edges: Sequence[Sequence[Any]] | None = None,
        nodes: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        """Take the graph.

        Args:
            name: its name.
            pull_keys, push_keys, attributes: as of a ``Node``.
            build_func: called with the graph when it is built.
            edges: ``(sender, receiver)`` or ``(sender, receiver, keys)`` each, by name.
            nodes: ``(name, class or template, …)`` each; made when the graph is built.
        """
        super().__init__(name, pull_keys, push_keys, attributes)
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        self._declared: tuple[list[Sequence[Any]], list[Sequence[Any]]] = (
            list(nodes or ()),
            list(edges or ()),
        )
        self._build_func = build_func
        self._hook_rules: list[_HookRule] = []
        self._internal = {
            role: InternalGraphNode(self, role) for role in dict.fromkeys(self.ends.values())
        }

    @property
    def outer_in(self) -> dict[str, Any]:
        """The keys of the edges that lead to it; ``message`` where there are none."""
        return self.input_keys if self.in_edges else {"message": ""}

    @property
    def outer_out(self) -> dict[str, Any]:
        """The keys of the edges that begin at it; ``message`` where there are none."""
        return self.output_keys if self.out_edges else {"message": ""}

    @property
    def is_around_a_graph(self) -> bool:  # type: ignore[override]  # a constant of other nodes
        """True if a subclass has a ``_forward`` of its own."""
        return not getattr(type(self)._forward, "is_the_graphs_own", False)

    @the_graphs_own
    def _forward(self, input: dict[str, Any]) -> Any:  # MASFactory's name
        """Run what is inside; called by the ``_forward`` of a subclass."""
        run = inner_of(self)
        if run is None:
            raise Unsupported(f"{type(self).__name__}._forward outside a run", "Call invoke.")
        return run(input)

    @property
    def internal_nodes(self) -> list[InternalGraphNode]:
        """Its ends."""
        return list(self._internal.values())

    # -- making

    @property
    def nodes(self) -> list[Node]:
        """Its nodes, in the order in which they were made."""
        return list(self._nodes.values())

    @property
    def edges(self) -> list[Edge]:
        """Its edges, in the order in which they were made."""
        return list(self._edges)

    @overload
    def create_node(self, cls: type[N], *args: Any, **kwargs: Any) -> N: ...
    @overload
    def create_node(self, cls: NodeTemplate[Any], *args: Any, **kwargs: Any) -> Any: ...
    def create_node(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Make a node of a class or a template, and add it.

        Raises: TypeError: the class is none of nodes; ValueError: the name is taken or reserved,
        or the node cannot be inside a graph.
        """
        name, rest = kwargs.pop("name", None), args
        if name is None and args and isinstance(args[0], str):
            name, rest = args[0], args[1:]
        template = cast("NodeTemplate[Any]", cls) if isinstance(cls, NodeTemplate) else None
        made = cast("Any", cls if template is None else template.node_cls)
        if not (isinstance(made, type) and issubclass(made, Node)):
            raise TypeError(
                f'graph "{self.name}": found {made!r:.80}, expected a class of nodes. '
                "Give a subclass of Node, or a NodeTemplate."
            )
        if name is None:
            raise ValueError(f'graph "{self.name}": the node has no name. Give name="…".')
        self._free(str(name), made)
        if template is not None:
            node: Node = template.make(str(name), *rest, path=(*self.path, str(name)), **kwargs)
        else:
            node = made(name, *rest, **kwargs)
        node.owner = self
        self._nodes[node.name] = node
        self._is_built = False
        self.changed()
        return node

    def _free(self, name: str, cls: type[Node]) -> None:
        if cls.root_only:
            raise ValueError(
                f'graph "{self.name}": a {cls.__name__} cannot be inside a graph. '
                "Use a Graph, or an Agent."
            )
        if name.lower() in self.ends:
            raise ValueError(
                f'graph "{self.name}": the name "{name}" is reserved, as are '
                f"{', '.join(self.ends)}. Choose another name."
            )
        if name in self._nodes:
            raise ValueError(
                f'graph "{self.name}": a node "{name}" exists already. Choose another name.'
            )

    def create_edge(self, sender: Any, receiver: Any, keys: Keys | None = None) -> Edge:
        """Connect two nodes.

        Raises: ValueError: one of them is not of this graph, or they are connected already.
        """
        ends = self._end(sender, "sender"), self._end(receiver, "receiver")
        if any((edge.sender, edge.receiver) == ends for edge in self._edges):
            raise ValueError(
                f'graph "{self.name}": an edge from {ends[0].name} to {ends[1].name} exists '
                "already. Put all fields on one edge."
            )
        circle = self._circle(*ends)
        if circle:
            raise ValueError(
                f'graph "{self.name}": the edge would close a cycle: {" -> ".join(circle)}. '
                "Use a Loop."
            )
        edge = Edge(*ends, keys)
        self._edges.append(edge)
        edge.sender.out_edges.append(edge)
        edge.receiver.in_edges.append(edge)
        self.changed()
        return edge

    def create_edges(self, edges_info: Iterable[Sequence[Any]]) -> list[Edge]:
        """Make several edges: ``(sender, receiver)`` or ``(sender, receiver, keys)`` each."""
        return [self.create_edge(*edge) for edge in edges_info]

    def _end(self, given: Any, role: str) -> Node:
        if isinstance(given, str):
            found = self._nodes.get(given) or self._internal.get(self.ends.get(given.lower(), ""))
            if found is None:
                raise ValueError(
                    f'graph "{self.name}": there is no node "{given}" for the {role}; there are '
                    f"{', '.join([*self._nodes, *self.ends])}."
                )
            return found
        if not (given in self._internal.values() or self._nodes.get(given.name) is given):
            raise ValueError(
                f'graph "{self.name}": the {role} "{given.name}" is not a node of this graph. '
                "Connect nodes that this graph made."
            )
        return cast("Node", given)

    def _circle(self, sender: Node, receiver: Node) -> list[str]:
        """Return the names along a cycle that an edge would close, if it closes one."""
        if isinstance(sender, InternalGraphNode) or isinstance(receiver, InternalGraphNode):
            return []
        way: dict[int, Node] = {}
        seen, waiting = {id(receiver)}, [receiver]
        while waiting:
            node = waiting.pop()
            if node is sender:
                names = [node.name]
                while id(node) in way:
                    node = way[id(node)]
                    names.append(node.name)
                return [sender.name, *reversed(names)]
            if isinstance(node, InternalGraphNode):
                continue
            for edge in node.out_edges:
                if id(edge.receiver) not in seen:
                    seen.add(id(edge.receiver))
                    way[id(edge.receiver)] = node
                    waiting.append(edge.receiver)
        return []

    # -- building

    @masf_hook(Node.Hook.BUILD)
    def build(self) -> None:
        """Make what was declared, and build the nodes."""
        if self._build_func is not None:
            build, self._build_func = self._build_func, None
            build(self)
        (nodes, edges), self._declared = self._declared, ([], [])
        for name, cls, *rest in nodes:
            self.create_node(cls, name, *rest)
        self.create_edges(edges)
        for node in self.nodes:
            if not node._is_built:
                node.build()
        self._is_built = True

    def reset(self) -> None:
        """Go back to the first attributes, here and inside."""
        super().reset()
        for node in self.nodes:
            node.reset()

    def hook_register(
        self,
        hook_key: Any,
        func: Callable[..., Any],
        recursion: bool = False,
        target_type: Any = None,
        target_names: Any = None,
        target_filter: Callable[[Any], bool] | None = None,
        selector: Selector | None = None,
    ) -> None:
        """Add a hook to the graph, and with ``recursion`` to all that is inside, if it is chosen.

        Nodes that were declared are made by ``build``; a hook that is added before it is theirs,
        too.
        """
        chosen = build_selector(selector, type_filter=target_type, name_filter=target_names)
        rule = _HookRule(hook_key, func, chosen, target_filter)
        rule.given_to(self)
        if recursion:
            self._hook_rules.append(rule)
        self.changed()

    def hooked(self, outer: Sequence[_HookRule] = ()) -> None:
        """Give hooks to all that is inside."""
        rules = [*outer, *self._hook_rules]
        for each in (*self.nodes, *self._internal.values(), *self._edges):
            for rule in rules:
                rule.given_to(each)
        for node in self.nodes:
            if isinstance(node, BaseGraph):
                node.hooked(rules)

    # -- for axil

    def component(self) -> Any:
        """Give the graph of axil that works in its place."""
        raise NotImplementedError

    def assembled(self) -> Any:
        """Give the graph of axil with all nodes and edges."""
        made = self.component()
        parts: dict[int, Any] = {}
        for node in self.nodes:
            inner = node.assembled() if isinstance(node, BaseGraph) else node.component()
            node.refuse_scheduling()
            rules: dict[str, Any] = {}
            if not node.keeps_attributes:
                rules = {"attributes": node.attributes or None}
            parts[id(node)] = made.create_node(
                inner,
                name=node.name,
                pull_keys=node.pulled,
                push_keys=node.pushed,
                wrappers=[Hooked(node)] if is_hooked(node) else (),
                **rules,
            )
        for edge in self._edges:
            ends = [
                each.role if isinstance(each, InternalGraphNode) else parts[id(each)]
                for each in (edge.sender, edge.receiver)
            ]
            made.create_edge(*ends, descriptions(edge.keys), process=edge.carried())
        return made


class _HookRule:
    """A hook for all that is chosen inside a graph."""

    def __init__(
        self,
        key: Any,
        func: Callable[..., Any],
        selector: Selector,
        target_filter: Callable[[Any], bool] | None,
    ) -> None:
        self.key, self.func = key, func
        self.selector, self.target_filter = selector, target_filter
        self.done: set[int] = set()

    def given_to(self, each: Any) -> None:
        """Register the hook with a node or an edge, once."""
        if id(each) in self.done or not self.selector.match(each):
            return
        if self.target_filter is not None and not self.target_filter(each):
            return
        self.done.add(id(each))
        each.hooks.register(self.key, self.func)
