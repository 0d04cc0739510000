"""Facts about the nodes and edges of one graph, as their components and functions say them.

A component may have these attributes; one that is missing says nothing, and nothing follows:

================ ===================================================================================
``says``         of a condition: when it holds, as a formula (``logic``)
``ways``         of a node: by target, when it sends there, as a formula; others get nothing
``gives``        of a node: the fields of its output; a mapping has their JSON Schemas
``gives_one``    of a node: whether it gives one message at a time
``always``       of a node: whether each firing sends on each edge that has no condition
``forwards``     of a node: whether its output is what came in
``needs``        of a node: fields of its input without which it fails
``uses``         of a node: all fields of its input that it looks at
``pulls_named``  of a node: whether it sees those fields of the state only that its ``pull`` names
``writes``       of a node or a wrapper: all fields of the state that it may write
``text``         of a node: the only text that it gives
``sends_at``     of a node: the firing before which it sends nothing
``model_calls``  of a node: how often it may ask a model in one firing; None: unknown
``fires_others`` of a node: whether its model may fire agents and other nodes
``repeats``      of a wrapper: how often it may run what is inside; None: unknown
``seconds``      of a wrapper: the longest time that it allows
``sets``         of a wrapper: constants that it writes to the state, unless what is inside does
================ ===================================================================================
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import Any, cast

from axil import EdgeSpec, GraphSpec, NodeSpec
from axil.driver import ResolvedGraph
from axil.plugin import ENTRY, EXIT, CycleBody, ResolvedNode, SubgraphBody, SubgraphSpec
from axil_journals.analysis.functions import Access, FunctionFacts, function_facts
from axil_journals.analysis.logic import Domain, Formula, Path, renamed

OF_MESSAGES = frozenset(["message", "role", "content", "name", "source", "extra", "citations"])
"""Fields that messages have, whatever their node says that it gives."""
_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_NOTHING: Mapping[str, Any] = {}
_NAMED = frozenset(
    [
        "inputs",
        "state",
        "attributes",
        "messages",
        "payloads",
        "ctx",
        "config",
        "node",
        "task",
        "local",
    ]
)


@dataclass(slots=True, eq=False)
class NodeFacts:
    """Facts that are known about one node."""

    spec: NodeSpec
    where: str
    component: object
    is_strict: bool
    """Its output is fields, not messages."""
    ways: Mapping[str, Formula] | None = None
    gives: frozenset[str] | None = None
    types: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """JSON Schemas of fields that it gives."""
    always: bool = False
    """Each firing sends on each edge that has no condition."""
    has: frozenset[str] = frozenset()
    """Fields that each output has."""
    forwards: bool = False
    needs: frozenset[str] = frozenset()
    uses: frozenset[str] | None = None
    state_needs: frozenset[str] = frozenset()
    state_uses: frozenset[str] | None = None
    state_named: frozenset[str] = frozenset()
    """Fields of the state that its function reads or assigns by name."""
    writes: frozenset[str] | None = None
    sets: Mapping[str, Sequence[object]] = field(default_factory=lambda: _NOTHING)
    """All values that a field of the state may have behind it."""
    text: str | None = None


class GraphFacts:
    """Facts that are known about a graph; made once, in time linear in its nodes and edges."""

    def __init__(self, graph: ResolvedGraph, around: SubgraphSpec | None = None) -> None:
        """``around``: the rules by which it meets the graph around it; None: there is none."""
        self.graph, self.is_root = graph, around is None
        self.pulled: frozenset[str] | None = frozenset() if around is None else _names(around.pull)
        """The fields that it may take from the state around it; None: any."""
        self.spec: GraphSpec = graph.spec
        self.is_typed = self.spec.payload == "state"
        self.incoming: list[list[int]] = [[] for _ in graph.vertices]
        self.outgoing: list[list[int]] = [[] for _ in graph.vertices]
        for edge in graph.edges:
            if edge.target >= 0:
                self.incoming[edge.target].append(edge.id)
            if edge.source >= 0:
                self.outgoing[edge.source].append(edge.id)
        self.nodes = [
            self._node(vertex, spec)
            for vertex, spec in zip(graph.vertices, self.spec.nodes, strict=True)
        ]
        self._brought: dict[int, frozenset[str] | None] = {}
        self._forms: dict[int, Formula] = {}
        self._ones: dict[int, bool] = {}

    def edge(self, id: int) -> EdgeSpec:
        """Return an edge as it was written."""
        return self.spec.edges[id]

    def where(self, id: int) -> str:
        """Return the place of an edge."""
        edge = self.edge(id)
        return edge.where if edge.place is not None else self._inside(edge.where)

    def _inside(self, where: str) -> str:
        return f'graph "{self.spec.id}", {where}' if self.spec.id else where

    def name(self, vertex: int) -> str:
        """Return the name of a node; of what is outside ``@entry``."""
        return self.graph.vertices[vertex].name if vertex >= 0 else ENTRY

    # -- nodes

    def _node(self, vertex: ResolvedNode, spec: NodeSpec) -> NodeFacts:
        component = vertex.component
        get = getattr
        is_strict = spec.use is None and bool(
            callable(component) or get(component, "strict", False)
        )
        where = spec.where if spec.place is not None else self._inside(spec.where)
        facts = NodeFacts(spec, where, component, is_strict)
        if isinstance(vertex.own, SubgraphBody):
            self._of_graph(facts, vertex.own.plan.graph.spec)
        if isinstance(vertex.own, (SubgraphBody, CycleBody)) or hasattr(component, "scope"):
            if vertex.wrappers:
                self._wrapped(facts, vertex.wrappers)
            return facts
        facts.ways = get(component, "ways", None)
        facts.forwards = bool(get(component, "forwards", False))
        facts.text = get(component, "text", None)
        facts.needs = _names(get(component, "needs", ())) or frozenset()
        facts.uses = _names(get(component, "uses", None))
        facts.writes = _names(get(component, "writes", None))
        given = get(component, "gives", None)
        facts.gives = _names(given)
        if isinstance(given, Mapping):
            facts.types = cast("Mapping[str, Any]", given)
        facts.always = bool(get(component, "always", False))
        facts.has = facts.gives or frozenset()
        if facts.writes is not None and spec.push is not None:
            facts.writes |= frozenset(spec.push)
        if spec.pull and hasattr(component, "pull_default"):
            facts.state_needs = facts.needs.intersection(spec.pull)
        function = get(component, "function", None)
        if spec.use is None and function is not None:
            if (own := function_facts(function)) is not None:
                self._of_function(facts, own, function)
            else:
                facts.gives, facts.types, facts.has = _returned(function)
        if vertex.wrappers:
            self._wrapped(facts, vertex.wrappers)
        if spec.attributes:
            facts.state_uses = None
        return facts

    def _of_graph(self, facts: NodeFacts, inner: GraphSpec) -> None:
        """Note the fields that edges at the ends of a graph inside a node carry."""
        if self.spec.payload != "fields" or inner.payload != "fields":
            return
        taken = [e for e in inner.edges if e.source == ENTRY]
        given = [e for e in inner.edges if e.target == EXIT]
        if all(e.keys is not None and e.process is None for e in given):
            facts.gives = frozenset(key for e in given for key in e.keys or ())
        if all(e.keys is not None and e.condition is None for e in taken):
            facts.uses = frozenset(key for e in taken for key in e.keys or ())
        facts.needs = frozenset(
            key for e in taken if e.condition is None and e.carry_data for key in e.keys or ()
        )

    def _of_function(self, facts: NodeFacts, own: FunctionFacts, function: object) -> None:
        is_named = bool(_NAMED.intersection(own.names)) or not own.names
        places = ("state",) if self.is_typed else ("inputs", "attributes")
        roles = (
            {name: name for name in own.names}
            if is_named
            else dict(zip(places, own.names, strict=False))
        )
        nothing = Access()
        inputs = own.access[roles["inputs"]] if "inputs" in roles else nothing
        views = [own.access[roles[r]] for r in ("state", "attributes") if r in roles]
        if {"messages", "payloads", "task", "ctx", "node", "local"} & roles.keys():
            inputs, views = Access(inputs.needs, None, None), [Access(frozenset(), None, None)]
        if self.spec.payload == "messages":
            return
        facts.needs, facts.uses = inputs.needs, inputs.uses
        if "inputs" in roles and self.is_typed:
            facts.needs = frozenset()
        facts.state_needs = frozenset[str]().union(*(view.needs for view in views))
        facts.state_uses = _union(view.uses for view in views)
        facts.state_named = frozenset[str]().union(*(view.named for view in views))
        assigned = _union(view.writes for view in views)
        gives, types = own.gives, dict[str, Any]()
        if gives is None:
            gives, types, facts.has = _returned(function)
        else:
            facts.has = own.always
            facts.always = True
        enums = {name: {"enum": list(values)} for name, values in own.constants.items()}
        facts.gives, facts.types = gives, {**types, **enums}
        facts.writes = self._written(facts.spec, gives, assigned)
        for name in (facts.writes or frozenset()) & own.always - (assigned or frozenset()):
            self._sets(facts, name, own.constants.get(name))

    def _sets(self, facts: NodeFacts, name: str, values: Sequence[object] | None) -> None:
        """Note the values that a node writes to a field, where the field takes them as they are."""
        schema = self.graph.schema
        if values is None or (schema.closed and name not in schema.fields):
            return
        if schema.of(name).reducer.name != "overwrite":
            return
        kind: Any = self.state_types.get(name)
        if schema.closed or kind is not None:
            taken = _JSON_TYPES.get(str(kind and kind.get("type")), ())
            if not all(type(value) in taken for value in values):
                return
        facts.sets = {**facts.sets, name: values}

    def _written(
        self, spec: NodeSpec, gives: frozenset[str] | None, assigned: frozenset[str] | None
    ) -> frozenset[str] | None:
        if assigned is None:
            return None
        rules = spec.pull if spec.push is None else spec.push
        if rules is not None and not self.is_typed:
            return frozenset(rules) | assigned
        return None if gives is None else gives | assigned

    def _wrapped(self, facts: NodeFacts, wrappers: Sequence[object]) -> None:
        """Forget what a wrapper may change."""
        for wrapper in wrappers:
            writes = getattr(wrapper, "writes", None)
            if writes is None:  # it may do anything with the output
                facts.ways = facts.gives = facts.uses = facts.writes = facts.text = None
                facts.always, facts.needs, facts.has = False, frozenset(), frozenset()
                facts.forwards, facts.sets = False, {}
                facts.types = {}
                return
            if facts.writes is not None:
                for name, value in getattr(wrapper, "sets", {}).items():
                    if name not in facts.writes:
                        self._sets(facts, name, [value])
                facts.writes |= frozenset(writes)

    # -- fields

    def brought(self, vertex: int) -> frozenset[str] | None:
        """Return all fields that may come to a node; None: unknown."""
        if vertex not in self._brought:
            self._brought[vertex] = None  # of a circle nothing is known
            fields = [self.carried(id) for id in self.incoming[vertex]]
            self._brought[vertex] = _union(fields)
        return self._brought[vertex]

    def carried(self, id: int) -> frozenset[str] | None:
        """Return the fields that an edge carries; None: unknown."""
        edge, graph = self.edge(id), self.graph
        if edge.process is not None or self.spec.payload == "messages":
            return None
        if edge.keys is not None:
            return frozenset(edge.keys)
        source = graph.edges[id].source
        return None if source < 0 else self.nodes[source].gives

    def given(self, vertex: int) -> frozenset[str] | None:
        """Return the fields that a node gives, forwarded ones included; None: unknown."""
        node = self.nodes[vertex]
        if self.is_typed and getattr(node.component, "function", None) is not None:
            return frozenset() if node.gives is not None else None  # it writes to the state
        return self.brought(vertex) if node.forwards else node.gives

    @cached_property
    def state_types(self) -> Mapping[str, Any]:
        """JSON Schemas of the fields of the state."""
        found: dict[str, Any] = {}
        for name, each in self.graph.schema.fields.items():
            if (asked := getattr(each.validate, "json_schema", None)) is not None:
                try:
                    found[name] = asked()
                except Exception:  # noqa: BLE001  # pydantic has no schema for some types
                    continue
        return found

    @cached_property
    def state_names(self) -> frozenset[str]:
        """The names that a body finds in the state: fields, and what else its model has."""
        view = self.graph.schema.view
        is_made = isinstance(view, FunctionType)  # for a model
        kind: object = inspect.getclosurevars(view).nonlocals.get("model") if is_made else view
        return frozenset(dir(kind)).union(self.graph.schema.fields)

    @cached_property
    def first(self) -> frozenset[str]:
        """Fields that the state has from the beginning."""
        fields = self.graph.schema.fields.items()
        return frozenset(self.spec.attributes).union(
            name for name, each in fields if each.default is not None
        )

    # -- conditions

    def formula(self, id: int) -> Formula:
        """Return when an edge is taken, where its source has fired."""
        found = self._forms.get(id)
        if found is None:
            found = self._forms[id] = self._formula(id)
        return found

    def _formula(self, id: int) -> Formula:
        edge, spec = self.graph.edges[id], self.edge(id)
        source = self.nodes[edge.source] if edge.source >= 0 else None
        parts: list[Formula] = []
        if source is not None and source.ways is not None:
            way = source.ways.get(edge.target_name, False)
            came = {"message": "came", "text": "came text", "state": "before"}
            parts.append(renamed(way, came, " before"))
        if edge.router >= 0:
            parts.append(self._routed(id))
        if edge.condition is not None:
            says = getattr(edge.condition, "says", ("?", f"condition {id}"))
            if self.is_whole(id):
                parts.append(says)
            else:  # it is asked of each message
                own = {"message": f"message {id}", "text": f"text {id}"}
                parts.append(renamed(says, own, f" {id}"))
        if spec.process is not None:
            parts.append(("?", f"process {id}"))
        return True if not parts else parts[0] if len(parts) == 1 else ("and", *parts)

    def _routed(self, id: int) -> Formula:
        spec = self.edge(id)
        router = self.spec.routers[str(spec.router)]
        path: Path = (f"router {spec.router}",)
        names = {spec.target, "exit", "end"} if spec.target == "@exit" else {spec.target}
        return ("names", path, tuple(sorted(names)), router.ask)

    def is_whole(self, id: int) -> bool:
        """Return whether a condition of an edge sees all that its source gives: fields, or one
        message.
        """
        source = self.graph.edges[id].source
        return self.edge(id).keys is not None or (source >= 0 and self._gives_one(source))

    def _gives_one(self, vertex: int) -> bool:
        """Return whether a node gives fields, or one message at a time."""
        way: list[int] = []
        at, found = vertex, self._ones.get(vertex)
        while found is None:
            way.append(at)
            self._ones[at] = False  # on a circle of nodes that forward
            node, incoming = self.nodes[at], self.incoming[at]
            if node.is_strict or getattr(node.component, "gives_one", False):
                found = True
            elif not node.forwards or len(incoming) != 1 or not self.fires_once(at):
                found = node.forwards and self.spec.payload != "messages"
            elif (at := self.graph.edges[incoming[0]].source) < 0:
                found = self.spec.payload != "messages"
            else:
                found = self._ones.get(at) if self.fires_once(at) else False
        self._ones.update(dict.fromkeys(way, found))
        return found

    def fires_once(self, vertex: int) -> bool:
        """Return whether a node fires at most once in a round."""
        if vertex < 0:
            return True
        incoming = [self.graph.edges[id] for id in self.incoming[vertex]]
        join = self.graph.vertices[vertex].join
        return not join.per_token and len({edge.group for edge in incoming}) < 2

    def domains(self, source: int) -> typing.Callable[[Path], Domain | None]:
        """Return what is known of the values of paths on the edges of a node."""

        def domain(path: Path) -> Domain | None:
            root = str(path[0])
            if root.startswith("router "):
                return _answers(self.spec.routers[root[7:]].ask)
            if path[0] == "len" or len(path) != 2 or not isinstance(path[1], str):
                if path in (("text",), ("came text",)) or root.startswith("text "):
                    return self._text(source, path)
                return None
            name, schema = path[1], None
            node = self.nodes[source] if source >= 0 else None
            if root == "state" and node is not None and name in node.sets:
                schema = {"enum": node.sets[name]}
            elif root in ("state", "before"):
                schema = self.state_types.get(name)
            elif root == "came":
                schema = self.type_of_brought(source, name)
            elif node is not None and root.startswith("message"):
                schema = node.types.get(name)
                if node.gives is not None and name not in node.gives | OF_MESSAGES:
                    return Domain(values=())  # it is never there
            return domain_of(schema)

        return domain

    def _text(self, source: int, path: Path) -> Domain | None:
        text = self.nodes[source].text if source >= 0 and path[0] != "came text" else None
        return None if text is None else Domain("string", (text,))

    def type_of_brought(self, vertex: int, field: str) -> Any:
        """Return the schema of a field that comes to a node, if all its edges say the same."""
        found: list[Any] = []
        for id in self.incoming[vertex]:
            source = self.graph.edges[id].source
            if source < 0 or self.edge(id).process is not None:
                return None
            found.append(self.nodes[source].types.get(field))
        return found[0] if found and all(each == found[0] for each in found) else None

    def is_misread(self, id: int) -> bool:
        """Return whether what decides about an edge, its condition or its source, reads a field
        that components do not declare: AX158 says so.
        """
        edge = self.graph.edges[id]
        sources = [self.graph.edges[e].source for e in self.incoming[edge.source]]
        asked = (edge.condition, [edge.source]), (self.nodes[edge.source].component, sources)
        for asks, vertices in asked:
            reads = [name for root, name in getattr(asks, "reads", ()) if root == "message"]
            given = [
                _names(getattr(self.nodes[v].component, "gives", None) if v >= 0 else None)
                for v in vertices
            ]
            known = _union(given)
            if known is not None and not (known | OF_MESSAGES).issuperset(reads):
                return True
        return False


def domain_of(schema: Any) -> Domain | None:
    """Return the values that a JSON Schema allows, as far as it lists them."""
    if not isinstance(schema, Mapping):
        return None
    known = cast("Mapping[str, Any]", schema)
    kind = known.get("type")
    values = known.get("enum")
    if "const" in known:
        values = [known["const"]]
    kind = kind if isinstance(kind, str) else ""
    if values is None:
        return Domain(kind) if kind else None
    kinds = {type(each) for each in cast("list[object]", values)}
    found = (name for name, types in _JSON_TYPES.items() if kinds <= {*types})
    return Domain(kind or next(found, ""), tuple(values))


def _answers(ask: object) -> Domain | None:
    """Return the names that a router may give, as its annotation says."""
    try:
        returned = typing.get_type_hints(ask).get("return")
    except (NameError, TypeError):
        return None
    if returned is str:
        return Domain("string")
    if typing.get_origin(returned) is typing.Literal:
        return Domain("string", typing.get_args(returned))
    return None


Returned = tuple[frozenset[str] | None, dict[str, Any], frozenset[str]]


def _returned(function: object) -> Returned:
    """Return the fields that a function's annotation says it returns, their schemas, and those that
    are always there.
    """
    try:
        kind = typing.get_type_hints(function).get("return")
        if not typing.is_typeddict(kind):
            return None, {}, frozenset()
        hints = typing.get_type_hints(kind)
    except (NameError, TypeError):
        return None, {}, frozenset()
    from pydantic import TypeAdapter

    types: dict[str, Any] = {}
    for name, hint in hints.items():
        try:
            types[name] = TypeAdapter(hint).json_schema()
        except Exception:  # noqa: BLE001  # pydantic has no schema for some types
            continue
    return frozenset(hints), types, frozenset(getattr(kind, "__required_keys__", ()))


def _names(given: object) -> frozenset[str] | None:
    return None if given is None else frozenset(cast("Collection[str]", given))


def _union(several: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found = set[str]()
    for each in several:
        if each is None:
            return None
        found |= each
    return frozenset(found)
