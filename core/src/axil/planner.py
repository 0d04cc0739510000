"""Spec → plan: components resolved and configured, bodies adapted and wrapped, edges compiled, cycles folded.

All problems of a graph, and of the graphs inside it, are gathered and raised at once. Nested graphs are compiled from an
explicit stack, innermost first, so that depth costs no recursion.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from axil.bodies import Rules, adapt, first_of, is_async, parameters
from axil.check import check
from axil.collector import put_off
from axil.composite import Nested, Subgraph
from axil.config import make
from axil.edges import EdgeParts, OfState, Seen, carry_of, filtered
from axil.errors import AxilError, PluginContract, Problem, RouteError, SpecError, did_you_mean, listed
from axil.fold import fold
from axil.plan import Body, Edge, Graph, Plan, Router, Vertex
from axil.spec import EdgeSpec, GraphSpec, NodeSpec, Place, RouterSpec, Use, is_version_0
from axil.state import Schema, State
from axil.tokens import ENTRY, EXIT, Join
from axil.values import isolate
from axil.views import StateView

if TYPE_CHECKING:
    import pluggy

    from axil.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What plans are made with."""

    registry: Registry | None = None
    """None: the process's own, when something has to be resolved."""
    hooks: pluggy.PluginManager | None = None
    folder: str = ""
    """The folder that relative paths in a file are resolved in."""
    including: tuple[str, ...] = ()
    """Files being included, outermost first: none may include itself."""
    environment: Mapping[str, str] | None = None
    """Where included files look up names that are no variables; None: the process's environment."""
    allow_code: bool = False
    """Whether included files may name code by import path."""
    extras: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Those of the graph that is being compiled: for nodes with graphs of their own, where it was read and with what."""
    place: Place | None = None
    """Where a file has the node that is given this: for what is wrong with its settings."""

    def components(self) -> Registry:
        """The registry that names are looked up in, with what hook plugins add to it."""
        from axil import registry

        found = registry.default() if self.registry is None else self.registry
        if self.hooks is not None:
            from axil.hooks import introduce

            introduce(self.hooks, found)
        return found

    def resolve(self, kind: str, name: str, where: str, *, requires: Iterable[str] = ()) -> Any:
        """The component; see ``Registry.resolve``. An import path, ``module:Name``, only where code is allowed."""
        if ":" in name:
            return self.imported(name, where)
        return self.components().resolve(kind, name, where, requires=requires)

    def imported(self, path: str, where: str) -> Any:
        """What ``module:Name`` is. Raises: SpecError (AX148): code is not allowed, or there is no such thing."""
        if not self.allow_code:
            raise SpecError(Problem("AX148", where, f'"{path}" is an import path.', "Use a component's name, or allow code for this run."))
        module, _, name = path.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise SpecError(Problem("AX148", where, f'"{path}" cannot be imported: {error}.', "Is its folder on PYTHONPATH?")) from error


@dataclass(frozen=True, slots=True)
class OutEdge:
    """One out-edge, as a node that binds to its edges sees it."""

    sender: str
    receiver: str
    keys: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInfo:
    """What a wrapper may know of the node it wraps."""

    name: str
    vertex: Vertex
    spec: NodeSpec
    rules: Rules
    schema: Schema
    payload: str
    setting: Setting = field(default_factory=Setting)
    edges: Sequence[OutEdge] = ()
    """Those that start at it."""

    @property
    def where(self) -> str:
        """Its place in a file, or its name: for messages."""
        return _where(self.spec.place, f'node "{self.name}"')

    def single(self) -> Plan:
        """A plan with just this node, as it is below the wrapper, between ``@entry`` and ``@exit``."""
        payload: Any = self.payload if self.payload != "state" else "fields"
        edges = (
            Edge(id=0, name=f"{ENTRY}->{self.name}", source=-1, target=0, target_name=self.name),
            Edge(id=1, name=f"{self.name}->{EXIT}", source=0, target=-1, target_name=EXIT),
        )
        vertex = replace(self.vertex, join="gate", merge=None, routers=(), lane=None)
        spec = GraphSpec(id=self.name, payload=payload, end=(self.name,))
        return fold(Graph(spec=spec, vertices=(vertex,), edges=edges, schema=self.schema, start={}, touching=((0, 1),)))


def compile(spec: GraphSpec, setting: Setting | None = None) -> Plan:  # the field's word
    """The plan of a graph.

    Raises: SpecError: everything that is wrong with it and with the graphs inside it.
    """
    return Planner(setting or Setting()).compile(spec)


class Planner:
    """One compilation: gathers problems and components over a graph and all graphs inside it."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.problems: list[Problem] = []
        self.components: list[Any] = []

    def compile(self, spec: GraphSpec) -> Plan:
        with put_off():  # all that is made here is kept: looking through it again and again finds nothing
            return self._compile(spec)

    def _compile(self, spec: GraphSpec) -> Plan:
        order: list[tuple[_Draft, _Draft | None, str]] = []
        stack: list[tuple[GraphSpec, _Draft | None, str, Nested | None]] = [(spec, None, "", None)]
        while stack:
            inner, parent, node, nested = stack.pop()
            draft = _Draft(self, inner, nested)
            order.append((draft, parent, node))
            stack.extend((kid.spec, draft, name, kid) for name, kid in draft.nested.items())
        self._refuse()
        plan: Plan | None = None
        for draft, parent, node in reversed(order):
            graph = draft.graph(whole=parent is None)
            self._refuse()  # wrappers are made only now
            plan = fold(graph)
            if parent is not None:
                assert draft.as_nested is not None
                parent.bodies[node] = Subgraph(draft.as_nested, plan, parent.spec.payload)
        assert plan is not None
        if self.setting.hooks is not None:
            self.setting.hooks.hook.plan_compiled(plan=plan)
        return plan

    def _refuse(self) -> None:
        errors = [problem for problem in self.problems if problem.severity == "error"]
        if errors:
            raise SpecError(errors)

    def attempt(self, where: str, make_it: Callable[[], Any]) -> Any:
        """What ``make_it`` gives; its errors become problems and the answer None."""
        try:
            return make_it()
        except SpecError as error:
            self.problems.extend(error.problems)
        except AxilError as error:
            own = getattr(error, "problems", None) or (getattr(error, "problem", None),)
            self.problems.extend(p if p.where else replace(p, where=where) for p in own if p is not None)
        return None


class _Draft:
    """One graph being compiled."""

    def __init__(self, planner: Planner, spec: GraphSpec, as_nested: Nested | None) -> None:
        self.planner, self.spec, self.as_nested = planner, spec, as_nested
        self.setting = replace(planner.setting, extras=spec.extras)
        self.bodies: dict[str, Any] = {}
        self.kinds: dict[str, Any] = {}
        self.rules: dict[str, Rules] = {}
        self.nested: dict[str, Nested] = {}
        self._leading: dict[str, list[OutEdge]] | None = None  # for nodes that ask for their out-edges
        self._routers: dict[str, list[tuple[str, RouterSpec]]] = {}
        for name, router in spec.routers.items():
            self._routers.setdefault(router.source, []).append((name, router))
        self.schema = spec.whole_schema()
        if spec.migrations:
            self.spec = replace(spec, migrations=planner.attempt(_where(spec.place, f'graph "{spec.id}"'), self._migrations) or {})
        found = check(spec)
        if planner.setting.hooks is not None:
            found = [*found, *(p for told in planner.setting.hooks.hook.check(spec=spec) for p in told or ())]
        planner.problems.extend(found)
        self.start = planner.attempt(_where(spec.place, f'graph "{spec.id}"'), lambda: self.schema.check(spec.attributes, whole=True))
        for node in spec.nodes:
            planner.attempt(_where(node.place, f'node "{node.id}"'), lambda node=node: self._node(node))
        self.edges = [self._edge(edge) for edge in spec.edges]

    def _migrations(self) -> dict[int, Any]:
        """From versions to functions. Raises: SpecError: AX527 one is none, or begins where nothing is to come; AX148 its path."""
        found: dict[int, Any] = {}
        for version, given in self.spec.migrations.items():
            where = f"migrations.{version}"
            step = self.setting.imported(given, where) if isinstance(given, str) else given
            if type(version) is not int or not 0 < version < self.spec.state_version or not callable(step):
                told = f"expected functions by versions from 1 to {self.spec.state_version - 1}, found {given!r:.80} for {version!r}."
                raise SpecError(Problem("AX527", where, told, "state_version is the version that the last of them leads to."))
            found[version] = step
        return found

    # -- nodes

    def _node(self, node: NodeSpec) -> None:
        component = node.body
        if node.use is not None:
            component = self._component("nodes", node.use, _where(node.place, f'node "{node.id}"'))
        elif not callable(component) and (hasattr(component, "provision") or hasattr(component, "close")):
            self.planner.components.append(component)
        self.kinds[node.id] = component
        if component is None:
            return
        bind = getattr(component, "bind", None)
        if bind is not None and not isinstance(component, type):
            edges = self._out_edges(node.id)
            bind(edges, replace(self.setting, place=node.place)) if len(parameters(bind)) > 1 else bind(edges)
        scope = getattr(component, "scope", None)
        for key in ("lane", "effects"):
            if scope is not None and getattr(node, key) is not None:
                where = _where(node.place, f'node "{node.id}"')
                told = f'a graph has no "{key}"; its nodes have.'
                self.planner.problems.append(Problem("AX165", where, told, f'Put "{key}" on the nodes inside.'))
        if scope is not None:
            try:
                nested = scope(node.id, self.setting)
            except SpecError as error:  # what is said of the node is said of its place in the file
                raise SpecError(
                    replace(p, where=_where(node.place, p.where)) if p.where == f'node "{node.id}"' else p for p in error.problems
                ) from error
            self.nested[node.id] = self._ruled(node, nested)
        else:
            self.bodies[node.id] = self._body(node, component)

    def _out_edges(self, node: str) -> list[OutEdge]:
        if self._leading is None:
            self._leading = {}
            for edge in self.spec.edges:
                self._leading.setdefault(edge.source, []).append(OutEdge(edge.source, edge.target, edge.keys))
        return self._leading.get(node, [])

    def _ruled(self, node: NodeSpec, nested: Nested) -> Nested:
        """A graph by name, with the pull and push rules that its node states."""
        if node.use is None or (node.pull is None and node.push is None):
            return nested
        return replace(nested, pull=node.pull, push=node.push)

    def _component(self, kind: str, use: Use, otherwise: str) -> Any:
        """A component, made. ``otherwise``: what it belongs to, for one that no file names."""
        made = use.made
        if made is None:
            found = self.planner.setting.resolve(kind, use.type, _where(use.place, otherwise), requires=self.spec.requires)
            where = otherwise if use.place is None else use.place.at("config")
            made = make(found, use.config, where, lenient=is_version_0(self.spec.extras.get("version")))
        if (hasattr(made, "provision") or hasattr(made, "close")) and not any(made is known for known in self.planner.components):
            self.planner.components.append(made)
        return made

    def _body(self, node: NodeSpec, component: Any) -> Body:
        loose = node.use is not None or not (callable(component) or getattr(component, "strict", False))
        component = cast("Any", component)
        given: dict[str, Any] = {"node": component, "config": getattr(component, "config", None), **getattr(component, "given", {})}
        typed = self.spec.payload == "state"
        rules = Rules(
            node=node.id,
            payload="state" if typed and not loose else "messages" if loose or self.spec.payload == "messages" else "fields",
            pull=node.pull,
            push=node.push,
            own=node.attributes,
            view=self.schema.view,
            given=given,
            is_free=not (self.schema.closed or self.schema.fields),
        )
        self.rules[node.id] = rules
        if hasattr(component, "adapted"):
            return component.adapted(rules)
        call = component.run if hasattr(component, "run") else component
        if not callable(call):
            name = node.use.type if node.use else type(component).__name__
            told = f'"{name}" is no node: it has neither run nor adapted, nor can it be called.'
            raise PluginContract(told, where=_where(node.place, f'node "{node.id}"'))
        inline = getattr(component, "inline", getattr(call, "inline", None))
        return adapt(call, rules, inline=bool(inline) and not is_async(call))

    def _wrapped(self, node: NodeSpec, vertex: Vertex) -> Vertex:
        where = _where(node.place, f'node "{node.id}"')
        rules = self.rules.get(node.id) or Rules(node=node.id, payload=self.spec.payload)
        for use in reversed(node.wrappers):
            wrapper = self.planner.attempt(where, lambda use=use: self._component("wrappers", use, where))
            if wrapper is not None:
                info = NodeInfo(
                    name=node.id,
                    vertex=vertex,
                    spec=node,
                    rules=rules,
                    schema=self.schema,
                    payload=self.spec.payload,
                    setting=self.setting,
                    edges=self._out_edges(node.id),
                )
                vertex = replace(vertex, body=wrapper.wrap(vertex.body, info))
        if self.planner.setting.hooks is not None:
            for hook in reversed(self.planner.setting.hooks.hook.wrap_body.get_hookimpls()):
                chosen = {n: v for n, v in (("spec", node), ("body", vertex.body)) if n in hook.argnames}
                vertex = replace(vertex, body=hook.function(**chosen) or vertex.body)
        return vertex

    def _vertex(self, node: NodeSpec) -> Vertex:
        component = self.kinds.get(node.id)
        join: Join = node.join or getattr(component, "join", None) or "gate"
        routers = tuple(_router(router, self.schema) for _, router in self._routers.get(node.id, ()))
        kind = (
            node.use.type
            if node.use
            else type(component).__name__
            if not callable(component)
            else getattr(component, "__name__", "function")
        )
        lane = node.lane or getattr(component, "lane", None)
        vertex = Vertex(
            name=node.id,
            body=self.bodies[node.id],
            join=join,
            merge=node.merge,
            routers=routers,
            lane=lane,
            effects=node.effects or getattr(component, "effects", None) or "idempotent",
            type=kind,
            own=self.bodies[node.id],
        )
        return self._wrapped(node, vertex)

    # -- edges

    def _edge(self, edge: EdgeSpec) -> EdgeParts:
        where = _where(edge.place, f"edge {edge.source}->{edge.target}")
        for asked in (edge.condition, edge.process, edge.filter):
            if callable(asked) and is_async(asked):
                told = "a function on the edge is async; what an edge asks answers at once."
                self.planner.problems.append(Problem("AX166", where, told, "Let a node do what waits, and the edge ask for its result."))

        def part(kind: str, given: Any) -> Any:
            if given is None or (callable(given) and not isinstance(given, Use)):
                return _asked_by_name(given, self.schema.view, typed=self.spec.payload == "state") if given is not None else None
            use = given if isinstance(given, Use) else Use(type=str(given))
            return self.planner.attempt(where, lambda: _edge_function(self._component(kind, use, where)))

        return EdgeParts(
            spec=edge, condition=part("conditions", edge.condition), process=part("processors", edge.process), view=self.schema.view
        )

    def graph(self, *, whole: bool) -> Graph:
        """Everything resolved, as a graph ready to be folded; the ``whole`` one holds the components of all."""
        spec = self.spec
        number = {node.id: i for i, node in enumerate(spec.nodes)} | {ENTRY: -1, EXIT: -1}
        router_at: dict[str, int] = {}
        for routers in self._routers.values():
            router_at.update((name, i) for i, (name, _) in enumerate(routers))
        seen: dict[tuple[str, str], int] = {}
        edges: list[Edge] = []
        touching: list[list[int]] = [[] for _ in spec.nodes]
        for id, parts in enumerate(self.edges):
            edge = parts.spec
            pair = (edge.source, edge.target)
            nth = seen[pair] = seen.get(pair, -1) + 1
            source, target = number[edge.source], number[edge.target]
            for end in {source, target} - {-1}:
                touching[end].append(id)
            edges.append(
                Edge(
                    id=id,
                    name=f"{edge.source}->{edge.target}" + (f"#{nth}" if nth else ""),
                    source=source,
                    target=target,
                    target_name=edge.target,
                    carry=carry_of(parts),
                    trigger=edge.trigger,
                    group=edge.group,
                    router=-1 if edge.router is None else router_at[edge.router],
                )
            )
        return Graph(
            spec=spec,
            vertices=tuple(self._vertex(node) for node in spec.nodes),
            edges=tuple(edges),
            schema=self.schema,
            start=self.start or {},
            touching=tuple(tuple(ids) for ids in touching),
            loose=tuple(e.id for e in edges if e.source < 0 and e.target < 0),
            components=tuple(self.planner.components) if whole else (),
        )


def _where(place: Any, otherwise: str) -> str:
    return str(place) if place is not None else otherwise


def _edge_function(component: Any) -> Any:
    """A condition or processor as a function of ``Seen``; plain functions are asked for the text."""
    if not inspect.isfunction(component):
        return component
    function = cast("Callable[[str], Any]", component)

    def asked(seen: Seen) -> Any:
        return function(seen.text)

    return asked


def _asked_by_name(function: Callable[..., Any], view: Callable[[State], Any] | None, *, typed: bool) -> Callable[[Seen], Any]:
    """A Python callable on an edge, which may ask for ``payload`` (``output``), ``state``, ``text`` or ``fields`` by name.

    Asked by none of these names, it is given the payload; in a typed graph, where edges carry nothing, the state.
    """
    names = parameters(function)
    ways: Mapping[str, Callable[[Seen], Any]] = {
        "payload": lambda seen: isolate(seen.payload),
        "output": lambda seen: isolate(seen.payload),
        "message": lambda seen: isolate(seen.payload),
        "state": OfState(view or StateView),
        "attributes": OfState(StateView),
        "text": lambda seen: seen.text,
        "fields": lambda seen: seen.fields,
        "seen": lambda seen: seen,
    }
    known = [name for name in names if name in ways]
    if (len(known) == 1 and first_of(function) in known) or (typed and not known and len(names) == 1):
        (only,) = known or ("state",)
        way = ways[only]
        return way.then(function) if isinstance(way, OfState) else lambda seen: function(way(seen))
    if known or not names:
        return lambda seen: function(**{name: ways[name](seen) for name in known})
    if len(names) >= 2:
        return lambda seen: function(ways["payload"](seen), ways["state"](seen))
    return lambda seen: function(isolate(seen.payload))


def _router(spec: RouterSpec, schema: Schema) -> Router:
    """A router's function: whatever form its answer has, as a mapping of targets to filters."""

    def route(output: Any, state: State) -> Mapping[str, Any]:
        view = schema.view(state) if schema.view else StateView(state)
        answer = spec.ask(view)
        if answer is None:
            raise RouteError(
                f'the router of "{spec.source}" gave None; expected one or more of {listed(spec.targets)}.',
                hint="Return [] to send nothing.",
            )
        taken: dict[str, Any] = {}
        for one in _answers(answer):
            name, keep = cast("tuple[Any, Any]", one) if isinstance(one, tuple) else (one, None)
            if name not in spec.targets:
                hint = did_you_mean(str(name), spec.targets)
                raise RouteError(f'the router of "{spec.source}" gave {name!r}; its targets are {listed(spec.targets)}.', hint=hint)
            taken[EXIT if name == "end" and "end" not in spec.targets else name] = _seeing(keep, schema)
        return taken

    return route


def _answers(answer: Any) -> Iterable[Any]:
    if isinstance(answer, str):
        return (answer,)
    if isinstance(answer, tuple):
        pair = cast("tuple[Any, ...]", answer)
        if len(pair) == 2 and isinstance(pair[0], str) and (callable(pair[1]) or pair[1] is None):
            return (pair,)
        return pair
    if isinstance(answer, (list, set, frozenset)):
        several = cast("Sequence[Any]", answer)
        return several if isinstance(answer, list) else sorted(several)
    raise RouteError(f"a router gave {type(answer).__name__}; expected names of targets.")


def _seeing(keep: Any, schema: Schema) -> Any:
    if keep is None:
        return None

    def values(state: State) -> Mapping[str, Any]:
        return filtered(keep(schema.view(state) if schema.view else state))

    return values
