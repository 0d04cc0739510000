"""Spec → plan: components resolved, bodies adapted and wrapped, edges compiled, cycles folded.

All problems of a graph and of the graphs inside it are raised at once. Nested graphs are compiled
from an explicit stack, innermost first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from axil.compiler.bodies import (
    BodyRules,
    bind,
    body_of,
    is_async,
)
from axil.compiler.declared import brought, misread
from axil.compiler.edges import KINDS, EdgeParts, carry_of
from axil.compiler.folding import fold
from axil.compiler.functions import asked_by_name, edge_function, merge_of, router_of
from axil.compiler.migrations import checked_migrations
from axil.compiler.subgraphs import Projection
from axil.contract.node import NodeContract
from axil.errors import (
    AxilError,
    PluginContract,
    Problem,
    SpecError,
    did_you_mean,
    one_line,
)
from axil.kernel.joins import GATE, JOINS, Join
from axil.kernel.plan import Body, Edge, Plan, ResolvedGraph, ResolvedNode, Router
from axil.kernel.scopes import SubgraphBody
from axil.kernel.state import Schema
from axil.kernel.tokens import ENTRY, EXIT, new_tuple
from axil.registry.components import make_component
from axil.settings.grants import current_grants, granted
from axil.spec.check import check, check_exit
from axil.spec.graph import (
    READ,
    SURROUNDINGS,
    ComponentRef,
    EdgeSpec,
    GraphSpec,
    NodeSpec,
    Place,
    RouterSpec,
    SubgraphSpec,
)

if TYPE_CHECKING:
    import pluggy

    from axil.registry.registry import Registry
    from axil.settings.grants import Grants
    from axil.settings.wants import Gathering


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CompileOptions:
    """The components and settings with which plans are made."""

    registry: Registry | None = None
    """None: the process's own, when something is resolved."""
    hooks: pluggy.PluginManager | None = None
    folder: str = ""
    """The folder of relative paths in a file."""
    environment: Mapping[str, str] | None = None
    """Values for names in included files that are no variables; None: the process's environment."""
    allow_code: bool = False
    """True if included files may name code by import path."""
    grants: Grants | None = None
    """The grants of included files; None: none."""
    extras: Mapping[str, Any] = field(default_factory=dict[str, object])
    """Facts about the graph that is compiled, for nodes with graphs of their own."""
    place: Place | None = None
    """The node's place in a file, for errors in its settings."""
    state: Schema | None = None
    """The typed state of the compiled graph, which graphs in nodes may share."""
    warned: Callable[[Problem], None] | None = None
    """Called with each warning of the check, once the plan is made."""

    def components(self) -> Registry:
        """Return the registry, with what hook plugins add to it."""
        from axil.registry.registry import default_registry

        found = default_registry() if self.registry is None else self.registry
        if self.hooks is not None:
            from axil.contract.hooks import introduce

            with granted(None):
                introduce(self.hooks, found)
        return found

    def resolve(
        self, kind: str, name: str, where: str, *, requires: Mapping[str, str] | None = None
    ) -> Any:
        """Return a component (see ``Registry.resolve``); with ``module:Name``, where code is
        allowed, the object at that path.
        """
        if ":" in name:
            return self.imported(name, where)
        return self.components().resolve(kind, name, where, requires=requires)

    def may_import(self, path: str) -> bool:
        """Return whether a file may name code by this import path."""
        return self.allow_code or (self.grants is not None and self.grants.allows(_import(path)))

    def imported(self, path: str, where: str) -> object:
        """Return the object at ``module:Name``.

        Raises: SpecError (AX148): code is not allowed, or there is no such object.
        """
        problem = None
        if not self.may_import(path):
            hint = f"Use a component's name, or allow it: --allow {_import(path)}"
            problem = Problem("AX148", where, f'"{path}" is an import path.', hint)
        if (grants := current_grants()) is not None:
            grants.note(_import(path), where, problem)
        if problem is not None:
            raise SpecError(problem)
        module, _, name = path.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise SpecError(
                Problem(
                    "AX148",
                    where,
                    f'"{path}" cannot be imported: {error}.',
                    "Is its folder on PYTHONPATH?",
                )
            ) from error


def _import(path: str) -> str:
    return f"import:{one_line(path.partition(':')[0])}"


class OutEdge(NamedTuple):
    """One out-edge, for nodes that bind to their edges."""

    sender: str
    receiver: str
    keys: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NodeInfo:
    """The facts about a wrapped node that a wrapper may use."""

    name: str
    vertex: ResolvedNode
    spec: NodeSpec
    rules: BodyRules
    schema: Schema
    payload: str
    setting: CompileOptions = field(default_factory=CompileOptions)
    edges: Sequence[OutEdge] = ()
    """The edges that start at it."""
    brought: Callable[[], frozenset[str] | None] = lambda: None
    """The function that returns the fields of its in-edges; None: unknown."""
    stored: frozenset[str] | None = None
    """The fields of the state; None: unknown."""
    report: Callable[[Problem], None] = lambda problem: None
    """The function for a wrapper's warnings; errors are raised."""

    @property
    def where(self) -> str:
        """Its place in a file, or its name: for messages."""
        return self.spec.where

    def single(self) -> Plan:
        """Return a plan with just this node, below the wrapper, from ``@entry`` to ``@exit``."""
        payload: Any = self.payload if self.payload != "state" else "fields"
        edges = (
            Edge(id=0, name=f"{ENTRY}->{self.name}", source=-1, target=0, target_name=self.name),
            Edge(id=1, name=f"{self.name}->{EXIT}", source=0, target=-1, target_name=EXIT),
        )
        vertex = replace(self.vertex, join=GATE, merge=None, routers=(), lane=None)
        spec = GraphSpec(id=self.name, payload=payload, end=(self.name,))
        kind = KINDS[payload]
        return fold(
            ResolvedGraph(
                spec=spec,
                vertices=(vertex,),
                edges=edges,
                schema=self.schema,
                payloads=kind,
                start={},
                end=spec.end,
            )
        )


_CONFINED = SURROUNDINGS - READ - {"warnings"}
"""Keys of ``extras`` that come from the file around a graph."""


def is_conversation(schema: Schema) -> bool:
    """Return whether states of a schema hold a conversation, in ``messages``."""
    messages = schema.fields.get("messages")
    return messages is not None and messages.reducer.name == "append_messages"


def compile_spec(spec: GraphSpec, setting: CompileOptions | None = None) -> Plan:
    """Return the plan of a graph.

    Raises: SpecError: all that is wrong with it and the graphs inside it.
    """
    return Compiler(setting or CompileOptions()).compile(spec)


class Compiler:
    """One compilation: problems and components of a graph and all graphs inside it."""

    def __init__(self, setting: CompileOptions) -> None:
        self.setting = setting
        self.problems: list[Problem] = []
        self.components: list[object] = []
        self._wants: Gathering | None = None
        """The wants of files, of all that has been made so far; None: there is no file."""

    def compile(self, spec: GraphSpec) -> Plan:
        """Return the plan of a graph. Raises: SpecError."""
        grants: Grants | None = spec.extras.get("grants")
        with nullcontext() if grants is None else grants.gathering() as self._wants:
            return self._compile(spec)

    def _compile(self, spec: GraphSpec) -> Plan:
        order: list[tuple[_Draft, _Draft | None, str]] = []
        stack: list[tuple[GraphSpec, _Draft | None, str, SubgraphSpec | None]] = [
            (spec, None, "", None)
        ]
        while stack:
            inner, parent, node, nested = stack.pop()
            with granted(inner.extras.get("grants")):
                draft = _Draft(self, inner, nested)
            order.append((draft, parent, node))
            stack.extend((kid.spec, draft, name, kid) for name, kid in draft.nested.items())
        self._refuse()
        plan: Plan | None = None
        for draft, parent, node in reversed(order):
            with granted(draft.spec.extras.get("grants")):
                graph = draft.graph(whole=parent is None)
            self._refuse()  # wrappers are made only now
            plan = fold(graph)
            if parent is not None:
                assert draft.as_nested is not None
                project = Projection(node, draft.as_nested, graph)
                parent.bodies[node] = SubgraphBody(plan, project.pull, project.push)
        assert plan is not None
        if self.setting.warned is not None:
            for problem in self.problems:
                self.setting.warned(problem)
        if self.setting.hooks is not None:
            self.setting.hooks.hook.plan_compiled(plan=plan)
        return plan

    def _refuse(self) -> None:
        errors = [problem for problem in self.problems if problem.severity == "error"]
        if self._wants is not None:
            errors += [each for each in self._wants.refusals() if each not in errors]
        if errors:
            raise SpecError(errors)

    def attempt(self, where: str | NodeSpec, make_it: Callable[[], object]) -> Any:
        """Return the result of ``make_it``; None: it raised problems, which are recorded."""
        before = len(self._wants or ())
        found: list[Problem] = []
        try:
            return make_it()
        except AxilError as error:
            own = getattr(error, "problems", None) or (getattr(error, "problem", None),)
            at = _written(where)  # a place for messages is a text only where there is one
            found = [p if p.where else replace(p, where=at) for p in own if p is not None]
        finally:
            if self._wants is not None and len(self._wants) > before:
                found = self._wants.placed(before, _written(where), found)
            self.problems += found
        return None


def _written(where: str | NodeSpec) -> str:
    """Return a place, or that of a node, for messages."""
    return where if isinstance(where, str) else where.where


class _Draft:
    """One graph being compiled."""

    def __init__(self, planner: Compiler, spec: GraphSpec, as_nested: SubgraphSpec | None) -> None:
        self.planner, self.spec, self.as_nested = planner, spec, as_nested
        self.schema = spec.whole_schema()
        typed = self.schema if spec.payload == "state" and self.schema.closed else None
        self.setting = replace(planner.setting, extras=spec.extras, state=typed)
        self.bodies: dict[str, Any] = {}
        self.kinds: dict[str, NodeContract] = {}
        self.rules: dict[str, BodyRules] = {}
        self.made: dict[Any, Body] = {}
        self.nested: dict[str, SubgraphSpec] = {}
        # for nodes that ask for their out-edges
        self._leading: dict[str, list[OutEdge]] | None = None
        self._routers: dict[str, list[tuple[str, RouterSpec]]] = {}
        self._exits = {"exit", "end"} - {node.id for node in spec.nodes}
        for name, router in spec.routers.items():
            self._routers.setdefault(router.source, []).append((name, router))
        if spec.migrations:
            self.spec = replace(
                spec,
                migrations=planner.attempt(
                    spec.where, lambda: checked_migrations(spec, self.setting.imported)
                )
                or {},
            )
        found = [*check(spec)]
        found += spec.extras.get("warnings", ()) if as_nested else check_exit(spec)
        if planner.setting.hooks is not None:
            with granted(None):  # plugins are not the file's
                reports = planner.setting.hooks.hook.check(spec=spec)
            found = [*found, *(problem for report in reports for problem in report or ())]
        planner.problems.extend(found)
        is_chat = spec.payload == "state" and is_conversation(self.schema)
        self.chat = "messages" if is_chat else ""
        self.start = planner.attempt(
            spec.where,
            lambda: self.schema.check(spec.attributes, whole=True),
        )
        for node in spec.nodes:
            planner.attempt(node, lambda node=node: self._node(node))
        self.edges = [self._edge(edge) for edge in spec.edges]
        planner.problems.extend(
            misread(
                spec,
                self._known,
                [(parts.spec, parts.condition) for parts in self.edges],
                self.schema.fields if self.schema.closed else None,
            )
        )

    # -- nodes

    def _node(self, node: NodeSpec) -> None:
        component = node.body
        if node.use is not None:
            component = self._component("nodes", node.use, node)
        elif not callable(component) and (
            hasattr(component, "provision") or hasattr(component, "close")
        ):
            self.planner.components.append(component)
        if component is None:
            return
        kind = self.kinds[node.id] = NodeContract.of(component)
        if kind.bind is not None:
            bind(kind, self._out_edges(node.id), replace(self.setting, place=node.place))
        if kind.scope is None:
            self.bodies[node.id] = self._body(node, kind)
        else:
            nested = self._scope(node, kind.scope)
            if node.use is not None and (node.pull is not None or node.push is not None):
                nested = replace(nested, pull=node.pull, push=node.push)
            self.nested[node.id] = nested

    def _scope(self, node: NodeSpec, scope: Callable[[str, Any], Any]) -> SubgraphSpec:
        """Return the graph inside a node; what is wrong with the node has its place."""
        where = node.where
        for key in ("lane", "effects"):
            if getattr(node, key) is not None:
                message = f'a graph has no "{key}"; its nodes have.'
                self.planner.problems.append(
                    Problem("AX165", where, message, f'Put "{key}" on the nodes inside.')
                )
        try:
            nested: SubgraphSpec = scope(node.id, replace(self.setting, place=node.place))
        except SpecError as error:
            raise SpecError(
                replace(p, where=where) if p.where == f'node "{node.id}"' else p
                for p in error.problems
            ) from error
        around, own = self.spec.extras, nested.spec.extras
        if "grants" not in around or "grants" in own:
            return nested
        # made by a component that a file names: confined as the file is
        given = {key: around[key] for key in _CONFINED if key in around}
        return replace(nested, spec=replace(nested.spec, extras={**given, **own}))

    def _out_edges(self, node: str) -> list[OutEdge]:
        if self._leading is None:
            self._leading = {}
            for edge in self.spec.edges:
                self._leading.setdefault(edge.source, []).append(
                    OutEdge(edge.source, edge.target, edge.keys)
                )
        return self._leading.get(node, [])

    def _known(self, name: str) -> object:
        return self.kinds[name].component if name in self.kinds else None

    def _component(self, kind: str, use: ComponentRef, otherwise: str | NodeSpec) -> object:
        """Return a component, made. ``otherwise``: its owner's place, if it has none in a file."""
        made = use.made
        if made is None:
            found = self.planner.setting.resolve(
                kind, use.type, str(use.place or _written(otherwise)), requires=self.spec.requires
            )
            where = _written(otherwise) if use.place is None else use.place.at("config")
            own: Mapping[str, Any] = getattr(found, "__dict__", {})
            if own.get("is_built_in_python") and "nodes" not in (use.config or {}):
                message = f'a "{use.type}" gets its nodes in Python; none can be given here.'
                hint = (
                    "Write them among these nodes, for a loop with an edge back and a "
                    "loop_counter; or name a file that has them: type: subgraph."
                )
                raise SpecError(Problem("AX121", _written(otherwise), message, hint))
            lenient = bool(self.spec.extras.get("lenient"))
            made = make_component(found, use.config, where, lenient=lenient)
        if (hasattr(made, "provision") or hasattr(made, "close")) and not any(
            made is known for known in self.planner.components
        ):
            self.planner.components.append(made)
        return made

    def _body(self, node: NodeSpec, kind: NodeContract) -> Body:
        loose = node.use is not None or not kind.strict
        payload = "messages" if loose or self.spec.payload == "messages" else "fields"
        if self.spec.payload == "state" and not loose:
            payload = "state"
        rules = self.rules[node.id] = BodyRules(
            node=node.id,
            payload=payload,
            pull=node.pull,
            push=node.push,
            own=node.attributes,
            view=self.schema.view,
            given=kind.given,
            chat=self.chat,
            is_free=not (self.schema.closed or self.schema.fields),
            made=self.made,
        )
        reply: str = getattr(kind.component, "reply_name", "")
        if reply and self.spec.payload == "state" and not (self.chat or node.push):
            taken = any(edge.keys is None or edge.keys for edge in self._out_edges(node.id))
            if not taken:
                self.planner.problems.append(
                    Problem(
                        "AX157",
                        node.where,
                        f"{reply} is taken by no edge and no field of the state.",
                        "Declare messages as a list with append_messages, or name the fields that "
                        "it writes in push_keys.",
                        severity="warning",
                    )
                )
        if not kind.is_node:
            name = node.use.type if node.use else kind.type
            message = (
                f'"{name}" is not a node: it has no run and no adapted, and it cannot be called.'
            )
            raise PluginContract(message, where=node.where, hint="Give a class with run.")
        return body_of(kind, rules)

    def _wrapped(self, node: NodeSpec, vertex: ResolvedNode) -> ResolvedNode:
        if not node.wrappers and self.planner.setting.hooks is None:
            return vertex
        where = node.where
        rules = self.rules.get(node.id) or BodyRules(node=node.id, payload=self.spec.payload)
        is_known = self.schema.closed or self.as_nested is None
        edges = self.spec.edges
        for use in reversed(node.wrappers):
            at = str(use.place or where)
            wrapper = self.planner.attempt(
                where, lambda use=use: self._component("wrappers", use, where)
            )
            if wrapper is not None and not hasattr(wrapper, "wrap"):
                message = f'"{use.type}" is not a wrapper: it has no wrap.'
                raise PluginContract(message, where=at, hint="Give a class with wrap.")
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
                    brought=lambda: brought(
                        [edge for edge in edges if edge.target == node.id], self._known
                    ),
                    stored=frozenset([*self.schema.fields, *self.spec.attributes])
                    if is_known
                    else None,
                    report=lambda each, at=at: self.planner.problems.append(
                        replace(each, where=at)
                    ),
                )
                wrap = partial(wrapper.wrap, vertex.body, info)
                body = self.planner.attempt(at, wrap) or vertex.body
                vertex = replace(vertex, body=body, wrappers=(*vertex.wrappers, wrapper))
        if self.planner.setting.hooks is not None:
            for hook in reversed(self.planner.setting.hooks.hook.wrap_body.get_hookimpls()):
                chosen = {
                    n: v for n, v in (("spec", node), ("body", vertex.body)) if n in hook.argnames
                }
                vertex = replace(vertex, body=hook.function(**chosen) or vertex.body)
        return vertex

    def _vertex(self, node: NodeSpec) -> ResolvedNode:
        kind = self.kinds[node.id]
        merge = node.merge and {group: merge_of(merge) for group, merge in node.merge.items()}
        vertex = ResolvedNode(
            name=node.id,
            body=self.bodies[node.id],
            join=self._join(node, kind),
            merge=merge,
            routers=tuple(
                [
                    made
                    for _, router in self._routers.get(node.id, ())
                    if (made := self._router(router)) is not None
                ]
            ),
            lane=node.lane or kind.lane,
            effects=node.effects or kind.effects or "idempotent",
            type=node.use.type if node.use else kind.type,
            own=self.bodies[node.id],
            component=kind.component,
        )
        return self._wrapped(node, vertex)

    def _router(self, router: RouterSpec) -> Router | None:
        where = f'router of "{router.source}"'
        return self.planner.attempt(where, lambda: router_of(router, self.schema, self._exits))

    def _join(self, node: NodeSpec, kind: NodeContract) -> Join:
        """Return the join of a node: its own, its component's, or the default."""
        given = node.join or kind.join
        if given is None:
            return GATE
        if isinstance(given, str) and given in JOINS:
            return JOINS[given]
        where = node.where
        made = given
        if isinstance(given, (str, ComponentRef, Mapping)):
            use = ComponentRef.of(cast("Any", given))
            where = str(use.place or where)
            if not use.config and (meant := did_you_mean(use.type, JOINS)):
                raise SpecError(Problem("AX301", where, f'unknown join "{use.type}".', meant))
            made = self.planner.attempt(where, lambda: self._component("joins", use, where))
            if made is None:
                return GATE
        if not callable(getattr(made, "fires", None)):
            message = f"{made!r:.80} is no join: it has no method fires."
            raise PluginContract(message, where=where, hint="See axil.plugin.Join.")
        return cast("Join", made)

    # -- edges

    def _edge(self, edge: EdgeSpec) -> EdgeParts:
        if edge.condition is None and edge.process is None and edge.filter is None:
            return new_tuple(EdgeParts, (edge, None, None, self.schema.view))
        where = edge.where
        process = getattr(edge.process, "carry", edge.process)  # of an ``axil.Edge``
        for asked in (edge.condition, process, edge.filter):
            if callable(asked) and is_async(asked):
                message = "a function on the edge is async; functions of edges must be synchronous."
                self.planner.problems.append(
                    Problem(
                        "AX166",
                        where,
                        message,
                        "Await in a node, and test its output on the edge.",
                    )
                )

        def part(kind: str, given: object) -> Any:
            if given is None:
                return None
            if callable(given) and not isinstance(given, ComponentRef):
                typed = self.spec.payload == "state"
                return self.planner.attempt(
                    where, lambda: asked_by_name(given, self.schema.view, where, typed=typed)
                )
            use = given if isinstance(given, ComponentRef) else ComponentRef(type=str(given))
            return self.planner.attempt(
                where, lambda: edge_function(self._component(kind, use, where))
            )

        return EdgeParts(
            spec=edge,
            condition=part("conditions", edge.condition),
            process=part("processors", process),
            view=self.schema.view,
        )

    def graph(self, *, whole: bool) -> ResolvedGraph:
        """Return the resolved graph; the ``whole`` one holds the components of all."""
        spec = self.spec
        number = {node.id: i for i, node in enumerate(spec.nodes)} | {ENTRY: -1, EXIT: -1}
        router_at: dict[str, int] = {}
        for routers in self._routers.values():
            router_at.update((name, i) for i, (name, _) in enumerate(routers))
        seen: dict[tuple[str, str], int] = {}
        edges: list[Edge] = []
        for id, parts in enumerate(self.edges):
            edge = parts.spec
            pair = (edge.source, edge.target)
            nth = seen[pair] = seen.get(pair, -1) + 1
            edges.append(
                Edge(
                    id=id,
                    name=f"{edge.source}->{edge.target}" + (f"#{nth}" if nth else ""),
                    source=number[edge.source],
                    target=number[edge.target],
                    target_name=edge.target,
                    carry=carry_of(parts),
                    trigger=edge.trigger,
                    group=edge.group,
                    router=-1 if edge.router is None else router_at[edge.router],
                    condition=parts.condition,
                    process=parts.process,
                )
            )
        return ResolvedGraph(
            spec=spec,
            vertices=tuple([self._vertex(node) for node in spec.nodes]),
            edges=tuple(edges),
            schema=self.schema,
            payloads=KINDS[spec.payload],
            start=self.start or {},
            end=spec.end,
            loop=spec.loop,
            cycle_limits=spec.cycle_limits,
            components=tuple(self.planner.components) if whole else (),
        )
