"""The Python builder: ``Graph`` and ``RootGraph``.

A builder writes a ``GraphSpec`` and executes nothing. What is visibly wrong when it is added (a
name twice, a node of another graph, a forbidden cycle) is an error at once, the rest one of
``build``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from axil.builder.workflow import RunInput, Workflow
from axil.compiler.bodies import is_async
from axil.compiler.declared import undeclared
from axil.compiler.nodes import FunctionNode, takes_name_first
from axil.compiler.planner import CompileOptions, is_conversation
from axil.contract.node import Edge
from axil.errors import (
    ConfigError,
    GraphWarning,
    NotBuilt,
    Problem,
    SpecError,
    did_you_mean,
    format_names,
    naming_unknown,
    refused_setting,
    takes_no,
    with_article,
)
from axil.kernel.joins import Join
from axil.kernel.plan import CycleLimit
from axil.kernel.state import Schema
from axil.kernel.tokens import ENTRY, EXIT, Effects
from axil.kernel.values import type_of
from axil.spec.check import shortest_path
from axil.spec.graph import (
    ComponentRef,
    EdgeSpec,
    GraphSpec,
    Limits,
    NodeSpec,
    RouterSpec,
    SubgraphSpec,
    with_usual_wrappers,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from axil.builder.options import EdgeOptions, NodeOptions, RootOptions, SubgraphOptions
    from axil.compiler.migrations import Migration

    Taken = TypeVar("Taken", default=RunInput)
    Given = TypeVar("Given", default=dict[str, Any])
    Final = TypeVar("Final", default=dict[str, Any])
else:
    Taken, Given, Final = TypeVar("Taken"), TypeVar("Given"), TypeVar("Final")

P = ParamSpec("P")
N = TypeVar("N")
M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)


class Names(Protocol):
    """A sequence of names: what ``Sequence[str]`` is, and a ``str`` is not."""

    def __contains__(self, value: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...


Keys = Mapping[str, str] | Names | None
"""The fields that an edge carries, perhaps with descriptions."""
EdgeFunction = Callable[..., object] | ComponentRef | str | Mapping[str, object] | None
"""A condition or a processor: a callable, or the name of an installed one."""

_MESSAGE: Mapping[str, str] = {"message": ""}
"""The keys of an edge that names none; nothing in a typed graph."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_UNSET = object()
_SPECIAL = {"entry": ENTRY, "start": ENTRY, "exit": EXIT, "end": EXIT}


@dataclass(slots=True)
class EdgeHandle:
    """An edge, as ``create_edge`` returns it."""

    sender: object
    receiver: object
    spec: EdgeSpec

    @property
    def keys(self) -> dict[str, str]:
        """The fields that it carries, with descriptions."""
        return dict(self.spec.keys or {})


class Template(Protocol[M_co]):
    """A maker of nodes, with settings of its own, for ``Graph.create_node``."""

    @property
    def settings(self) -> Mapping[str, object]: ...
    def create_in(self, graph: Graph, /, *args: Any, **options: Any) -> M_co: ...


class NodeClass(Protocol[P, M_co]):
    """A class of nodes that says to type checkers what ``create_node`` takes for it: its settings,
    and the options of a node.
    """

    def create_in(self, graph: Graph, /, *args: P.args, **options: P.kwargs) -> M_co: ...


class Runs(Protocol):
    """A node with a method that is its body; the settings of its class are its own affair."""

    def run(self, *args: Any, **named: Any) -> object: ...


class Calls(Protocol):
    """A node that is called."""

    def __call__(self, *args: Any, **named: Any) -> object: ...


class Forwards(Protocol):
    """A node with a function that is its body, as ``CustomNode``."""

    @property
    def forward(self) -> object: ...


class Configured(Protocol):
    """A component that is made of a config."""

    @property
    def Config(self) -> object: ...  # what its class has


R = TypeVar("R", bound=Runs | Calls | Forwards | Configured)
"""A node whose class does not say what it takes: its settings are checked when it is made."""


class Graph:
    """A graph that can be a node of another; ``entry`` and ``exit`` are its ends.

    A subclass may extend ``end``, ``add_edge``, ``scope`` and ``to_spec``.
    """

    reserved_names: tuple[str, ...] = ("entry", "exit")
    """Names that no node of it may have."""
    is_built_in_python = True
    """True of a class whose nodes no file can give; not inherited."""
    counts_rounds = False
    """True if its nodes see ``current_iteration`` and ``max_iterations``."""

    @naming_unknown
    def __init__(
        self,
        name: str = "",
        *,
        pull_keys: Keys = None,
        push_keys: Keys = None,
        attributes: Mapping[str, object] | None = None,
        state: object = None,
        nodes: Sequence[object] | None = None,
        edges: Sequence[object] | None = None,
        build_func: Callable[[Any], object] | None = None,
        cycles: Literal["allow", "forbid"] = "forbid",
        limits: Limits | None = None,
        cycle_limits: Mapping[str, CycleLimit] | None = None,
        keep: bool = False,
        state_version: int = 1,
        migrations: Mapping[int, Migration] | None = None,
        node_wrappers: Mapping[Any, Sequence[object]] | Sequence[object] | None = None,
    ) -> None:
        """See ``GraphSpec`` for what the options mean.

        Args:
            state: a pydantic model, a TypedDict or a ``Schema``: typed state; ``"messages"``: a
                conversation. Without it a graph inside a typed one shares that state, unless it has
                attributes, or an edge of it names fields.
            node_wrappers: around each of its nodes, outside the node's own: a list, or lists by
                node type (a name, a class, ``"*"`` all).
        """
        self.name = _checked_name(name) if name else ""
        self._expect("attributes", attributes, Mapping, "a mapping of names to values")
        self._expect("limits", limits, Limits, "Limits, as Limits(firings=3)")
        if str(cycles) not in ("allow", "forbid"):
            raise self._unfit("cycles", cycles, '"allow" or "forbid"')
        self.pull_keys, self.push_keys = self._rules(pull_keys), self._rules(push_keys)
        self.keep = keep
        self._schema = _schema(state)
        self._attributes = dict(attributes or {})
        self._cycles: Literal["allow", "forbid"] = cycles
        by_type: Mapping[object, Sequence[object]] = (
            node_wrappers if isinstance(node_wrappers, Mapping) else {"*": node_wrappers or ()}
        )
        self._usual = [
            (kind, [ComponentRef.of(wrapper) for wrapper in wrappers])
            for kind, wrappers in by_type.items()
            if wrappers or kind != "*"
        ]
        self._fitting = set[int]()  # those of the usual that fit a node
        self._limits, self._cycle_limits = limits or Limits(), dict(cycle_limits or {})
        self._version: tuple[int, Mapping[int, object]] = state_version, dict(migrations or {})
        self._components: dict[str, object] = {}
        self._specs: dict[str, NodeSpec] = {}
        self._position: dict[str, int] = {}  # of each node in their order
        self._edges: list[EdgeSpec] = []
        self._names: dict[int, str] = {}  # of components, by identity
        self._edge_keys: set[tuple[object, ...]] = set()  # what tells edges apart
        self._routers: dict[str, RouterSpec] = {}
        self._after: dict[str, list[str]] = {}  # of each node: where its trigger edges lead
        self._entered = set[str]()  # the nodes that these lead to
        self._is_forward = True  # all of these lead from an earlier node to a later one
        self._build_func = build_func
        self._frozen = False
        self.owner: Graph | None = None
        """The graph that it is a node of."""
        self.is_in_loop = False
        """True for a node of a graph that counts rounds."""
        self._declare(nodes or (), edges or ())

    def __repr__(self) -> str:
        nodes, edges = (
            f"{n} {word}{'' if n == 1 else 's'}"
            for n, word in ((len(self._specs), "node"), (len(self._edges), "edge"))
        )
        return f'<{type(self).__name__} "{self.name}": {nodes}, {edges}>'

    if TYPE_CHECKING:

        @classmethod
        def create_in(
            cls, graph: Graph, /, *args: str, **options: Unpack[SubgraphOptions]
        ) -> Self: ...

    else:

        def __getattr__(self, name: str) -> Any:
            message = f'{type(self).__name__} "{self.__dict__.get("name")}" has no "{name}".'
            if name in ("run_sync", "execute", "call", "ainvoke"):
                message += " run is to be awaited; invoke runs it and waits."
            elif near := did_you_mean(name, (each for each in dir(self) if each[0] != "_")):
                message += f" {near}"
            if name in ("build", "invoke", "run", "start", "stream", "draw"):
                message += (
                    " A Graph is a node of another one: what is built and run is a RootGraph."
                )
            raise AttributeError(message, name=name, obj=self)

    # -- making

    @overload
    def create_node(
        self, kind: FunctionType | MethodType, **options: Unpack[NodeOptions]
    ) -> FunctionNode: ...
    @overload
    def create_node(self, kind: str, *, name: str, **options: object) -> str: ...
    @overload
    def create_node(self, kind: Template[N], *args: object, name: str, **options: object) -> N: ...
    @overload
    def create_node(self, kind: type[R], *args: object, **options: object) -> R: ...
    @overload
    def create_node(self, kind: Callable[P, N], *args: P.args, **options: P.kwargs) -> N: ...
    @overload
    def create_node(self, kind: NodeClass[P, N], *args: P.args, **options: P.kwargs) -> N: ...
    @overload
    def create_node(self, kind: N, **options: Unpack[NodeOptions]) -> N: ...
    def create_node(self, kind: Any, *args: Any, **options: Any) -> Any:
        """Add a node and return it.

        Args:
            kind: a node class, made with ``args`` and ``settings`` (by its ``Config``, if it has
                one); an instance; a function; the name of a node type; or a ``Template``.
            name: its name; without it, a text that comes first in ``args``.
            pull_keys, push_keys: attributes that it sees, and output fields that it writes back;
                see ``NodeSpec``.
            merge: how states that meet at it are merged: a callable, or one per edge group.
            resources: what its body needs of a machine, for executors: ``{"gpus": 1}``.
            wrappers: around its body, outermost first: objects, names, or ``{type: …, …}``.
            collect: fields that are lists however many edges bring them; ``"list"``: all.

        Raises: SpecError: the name is taken, reserved or malformed; the kind cannot be inside a
        graph.
        """
        make = getattr(kind, "create_in", None)
        return self._made(kind, *args, **options) if make is None else make(self, *args, **options)

    def _made(
        self,
        kind: object,
        *args: object,
        name: str = "",
        pull_keys: object = _UNSET,
        push_keys: object = _UNSET,
        attributes: Mapping[str, object] | None = None,
        join: str | ComponentRef | Join | Mapping[str, object] | None = None,
        merge: object = None,
        lane: str | None = None,
        resources: Mapping[str, float] | None = None,
        effects: Effects | None = None,
        inline: bool = False,
        wrappers: Sequence[object] = (),
        collect: str | Sequence[str] = (),
        **settings: object,
    ) -> object:
        self.check_open()
        if getattr(kind, "root_only", False):
            raise self.error(
                "AX121",
                f"{with_article(_title(kind))} cannot be inside a graph.",
                "Use a Graph, or an Agent.",
            )
        if kind is None:
            raise self._unfit("kind", kind, "an object, a function, a class or a name")
        if not name and args and isinstance(args[0], str) and not takes_name_first(kind):
            name, *args = args  # type: ignore[assignment]
        self._expect("resources", resources, Mapping, 'amounts by name: {"gpus": 1}')
        component, use = self._component(kind, args, settings)
        own_name = getattr(component, "name", None)
        name = _checked_name(name or own_name or "")
        if name.lower() in self.reserved_names:
            raise self.error(
                "AX122",
                f'the name "{name}" is reserved.',
                f"Reserved: {format_names(self.reserved_names)}.",
            )
        if name in self._specs:
            raise self.error("AX101", f'a node "{name}" exists already.', "Choose another name.")
        if component is not None and id(component) in self._names:
            message = f'the same object is the node "{self._names[id(component)]}" already.'
            raise self.error("AX167", message, "Create a new object for each node.")
        if isinstance(component, Graph):
            component.name, component.owner = name, self
            component.is_in_loop = self.counts_rounds
            component.pull_keys = component.pull_keys if pull_keys is _UNSET else pull_keys
            component.push_keys = component.push_keys if push_keys is _UNSET else push_keys
            component._attributes.update(attributes or {})
            attributes = None
        elif own_name == "" and component is not None:
            component.name = name
        if inline and component is not None:
            cast("Any", component).inline = True
        pull = getattr(component, "pull_default", None) if pull_keys is _UNSET else pull_keys
        push = getattr(component, "push_default", None) if push_keys is _UNSET else push_keys
        self._position[name] = len(self._position)
        self._components[name] = component
        if component is not None:
            self._names[id(component)] = name
        self._specs[name] = NodeSpec(
            id=name,
            use=use,
            body=component,
            join=ComponentRef.of(join) if isinstance(join, Mapping) else join,
            merge=None
            if merge is None
            else dict(cast("Mapping[str, Any]", merge))
            if isinstance(merge, Mapping)
            else {"": merge},
            lane=lane,
            effects=effects,
            wrappers=with_usual_wrappers(
                [*map(ComponentRef.of, self._listed("wrappers", wrappers)), *_collecting(collect)],
                self._usual_of(component, use),
            )
            if wrappers or collect or self._usual
            else (),
            pull=self._rules(pull),
            push=self._rules(push),
            attributes=attributes,
            extras={"resources": dict(resources)} if resources else {},
        )
        return component if component is not None else name

    def _component(
        self, kind: object, args: Sequence[object], settings: Mapping[str, object]
    ) -> tuple[Any, ComponentRef | None]:
        if isinstance(kind, str):
            return None, ComponentRef(type=kind, config=settings)
        if isinstance(kind, type):
            if hasattr(kind, "Config") and not args:
                from axil.registry.components import make_component

                return make_component(kind, settings, f"{kind.__name__}"), None
            try:
                return kind(*args, **settings), None
            except (TypeError, ConfigError) as error:
                if (stranger := refused_setting(kind, settings, error.__cause__ or error)) is None:
                    raise
                raise self.error("AX130", *takes_no(kind, *stranger)) from error
        if callable(kind) and not hasattr(kind, "run") and not isinstance(kind, Graph):
            return FunctionNode(kind), None
        return kind, None

    def _usual_of(self, component: object, use: ComponentRef | None) -> list[ComponentRef]:
        names = {"*"}
        if use is not None:
            names.add(use.type)
        else:
            kinds = [kind.__name__ for kind in type(component).__mro__[:-1]]
            names |= {*kinds, *(_CAPITAL.sub("_", kind).lower() for kind in kinds)}
        found: list[ComponentRef] = []
        for number, (kind, uses) in enumerate(self._usual):
            if isinstance(component, kind) if isinstance(kind, type) else kind in names:
                self._fitting.add(number)
                found += uses
        return found

    def _check_usual(self) -> None:
        """Raises: SpecError (AX170): a key of node_wrappers fits no node."""
        kinds = [kind for n, (kind, _) in enumerate(self._usual) if n not in self._fitting]
        strangers = [_title(kind) if isinstance(kind, type) else str(kind) for kind in kinds]
        strangers = [name for name in strangers if name != "*"]
        if strangers and self._specs:
            uses = {spec.use.type for spec in self._specs.values() if spec.use is not None}
            there = uses | {
                type(component).__name__
                for component in self._components.values()
                if component is not None
            }
            message = (
                f"node_wrappers names {format_names(strangers)}, which fits none of its nodes."
            )
            hint = did_you_mean(strangers[0], there) or f"Available: {format_names(sorted(there))}."
            raise self.error("AX170", message, hint)

    @naming_unknown
    def create_edge(
        self,
        sender: object,
        receiver: object,
        keys: Keys = None,
        *,
        when: EdgeFunction = None,
        trigger: bool = True,
        process: EdgeFunction = None,
        formatter: object = None,
        parser: object = None,
        carry: Edge | None = None,
        state_filter: Callable[..., object] | None = None,
        group: str = "",
    ) -> EdgeHandle:
        """Connect two nodes, given themselves or by name.

        Args:
            keys: fields to carry, with descriptions; None: ``message`` (nothing in a typed graph);
                ``{}``: trigger without data.
            when: whether it is taken: a callable (asked for ``payload``, ``state``, ``text`` by
                name), or an installed condition.
            process: what is carried instead: a callable on the payload, or an installed processor.
            formatter: what writes the carried fields as one ``message``: a formatter, its class, or
                the name of an installed one.
            parser: a formatter that reads ``keys`` from the ``message`` that comes.
            carry: an object that decides all of this: see ``axil.Edge``.
            state_filter: from the state to the values of the state that continues along this edge.

        Raises: SpecError: an unknown end, a duplicate, or a forbidden cycle.
        """
        self.check_open()
        source, target = self.end(sender, "sender"), self.end(receiver, "receiver")
        if (process is not None) + (formatter is not None) + (parser is not None) > 1:
            message = (
                f"the edge {source}->{target} has more than one of process, formatter, parser."
            )
            raise self.error("AX169", message, "Keep one of them.")
        if carry is not None and any(
            x is not None for x in (keys, when, process, formatter, parser)
        ):
            message = (
                f"the edge {source}->{target} has carry, and keys, when, process or formatter."
            )
            hint = "Leave the others out: carry decides all that an edge carries."
            raise self.error("AX169", message, hint)
        carried = None if carry is not None else self._keys(keys)
        if formatter is not None or parser is not None:
            from axil.compiler.formatted import on_edge

            setting = getattr(self, "setting", None) or CompileOptions()
            read = None if parser is None else list(carried or ())
            process = on_edge(formatter or parser, read, setting, self.place)
            carried = carried if parser is None else {"message": ""}
        return self.add_edge(
            EdgeSpec(
                source=source,
                target=target,
                trigger=trigger,
                group=group,
                condition=when,
                keys=carried,
                process=process or carry,
                filter=state_filter,
            ),
            sender,
            receiver,
        )

    def create_edges(self, edges: Iterable[Sequence[Any]]) -> list[EdgeHandle]:
        """Add several edges: ``(sender, receiver)`` or ``(sender, receiver, keys)`` each."""
        return [self.create_edge(*edge) for edge in edges]

    @naming_unknown
    def create_router(
        self,
        sender: object,
        ask: Callable[..., object],
        targets: Sequence[object],
        *,
        group: str = "",
    ) -> list[EdgeHandle]:
        """Let ``ask(state)`` choose among ``targets``, once per firing of ``sender``.

        ``ask`` returns a target's name, a list of names, ``(name, filter)`` or a list of those;
        ``[]`` sends nothing. ``"exit"`` and ``"end"`` are the graph's exit. Other edges of
        ``sender`` are not affected.
        """
        self.check_open()
        source = self.end(sender, "sender")
        if is_async(ask):
            message = f'the router of "{source}" is async; functions of edges must be synchronous.'
            raise self.error("AX166", message, "Await in a node, and route by its output.")
        ends = [
            EXIT if target == "end" and "end" not in self._specs else self.end(target, "target")
            for target in targets
        ]
        name = f"{source}?{sum(1 for r in self._routers.values() if r.source == source)}"
        self._routers[name] = RouterSpec(source=source, targets=tuple(ends), ask=ask)
        return [
            self.add_edge(
                EdgeSpec(
                    source=source, target=end, keys=self._keys(None), group=group, router=name
                ),
                sender,
                target,
            )
            for end, target in zip(ends, targets, strict=True)
        ]

    def edge_from_entry(
        self, receiver: object, keys: Keys = None, **more: Unpack[EdgeOptions]
    ) -> EdgeHandle:
        """Add an edge from the graph's entry."""
        return self.create_edge(ENTRY, receiver, keys, **more)

    def edge_to_exit(
        self, sender: object, keys: Keys = None, **more: Unpack[EdgeOptions]
    ) -> EdgeHandle:
        """Add an edge to the graph's exit."""
        return self.create_edge(sender, EXIT, keys, **more)

    @naming_unknown
    def set_cycle_limit(
        self, entry: object, rounds: int | None, at_limit: Literal["limited", "exit"] = "limited"
    ) -> None:
        """Limit the rounds of the cycle that is entered at ``entry``; see ``CycleLimit``."""
        self.check_open()
        self._expect("rounds", rounds, int, "a whole number, or None for no limit")
        self._cycle_limits[self.end(entry, "entry")] = CycleLimit(rounds=rounds, at_limit=at_limit)

    @property
    def nodes(self) -> Mapping[str, Any]:
        """The nodes, by name."""
        return self._components

    # -- as a node, and as data

    def scope(self, node: str, setting: CompileOptions) -> SubgraphSpec:
        """This graph as a node's body."""
        hidden = {"current_iteration", "max_iterations"} if self.is_in_loop else set[str]()
        pull, push = self.pull_keys, self.push_keys
        return SubgraphSpec(
            spec=self.to_spec(),
            pull=pull,
            push=push,
            keep=self.keep,
            hidden=frozenset(hidden - set(push or ())),
        )

    def to_spec(self) -> GraphSpec:
        """Return the graph as data."""
        if self._build_func is not None and not self._frozen:
            build, self._build_func = self._build_func, None
            build(self)
        self._check_usual()
        self._frozen = True
        schema = self.schema
        is_typed = schema is not None and schema.closed
        return GraphSpec(
            id=self.name or "graph",
            nodes=tuple(self._specs.values()),
            edges=tuple(
                replace(edge, keys={}) if is_typed and edge.keys is _MESSAGE else edge
                for edge in self._edges
            ),
            routers=self._routers,
            schema=schema,
            attributes=self._attributes,
            payload="state" if is_typed else "fields",
            cycles=self._cycles,
            cycle_limits=self._cycle_limits,
            state_version=self._version[0],
            migrations=self._version[1],
            limits=self._limits,
            extras={"warnings": found} if (found := self._doubts()) else {},
        )

    # -- for subclasses

    @property
    def place(self) -> str:
        """Return the place of a problem, for messages."""
        return f'graph "{self.name}"'

    def error(self, id: str, message: str, hint: str = "") -> SpecError:
        """Return the error of something that is wrong with the graph."""
        return SpecError(Problem(id, self.place, message, hint))

    def check_open(self) -> None:
        """Raises: NotBuilt (AX124): it is built, and cannot be changed."""
        if self._frozen:
            raise NotBuilt(
                Problem(
                    "AX124",
                    self.place,
                    "the graph is built and cannot be changed.",
                    "Make a new one.",
                )
            )

    @property
    def schema(self) -> Schema | None:
        """The schema of its state, or of the typed state that it shares; None: attributes."""
        graph = self
        while graph._schema is None and graph.owner is not None and not graph._apart:
            graph = graph.owner
        found = graph._schema
        return found if graph is self or (found is not None and found.closed) else None

    @property
    def _apart(self) -> str:
        """The reason for attributes of its own inside a typed graph; empty: none."""
        if self._attributes:
            return "it has attributes"
        naming = (edge for edge in self._edges if edge.keys and edge.keys is not _MESSAGE)
        edge = next(naming, None)
        return "" if edge is None else f"its edge {edge.source}->{edge.target} names fields"

    def _doubts(self) -> tuple[Problem, ...]:
        """Return a warning (AX174) where agents do not see the conversation around their graph."""
        around = None if self.owner is None else self.owner.schema
        if around is None or not is_conversation(around) or self._schema is not None:
            return ()
        names = [name for name, node in self._components.items() if hasattr(node, "reply_name")]
        if not names or not (reason := self._apart):
            return ()
        message = (
            f"its nodes {format_names(names)} take no part in the conversation of the graph "
            f"around it: {reason}."
        )
        hint = (
            "Declare these in the state of the graph around it, and let edges name none; or give "
            "it a state of its own, if it is meant."
        )
        return (Problem("AX174", self.place, message, hint, severity="warning"),)

    def _keys(self, keys: object) -> Mapping[str, str] | None:
        if keys is None:
            return {} if self._schema is not None and self._schema.closed else _MESSAGE
        # lists and dicts are known by their class; an abstract one is asked in Python
        if type_of(keys) is not list and isinstance(keys, (dict, Mapping)):
            return dict(cast("Mapping[str, str]", keys))
        return dict.fromkeys(self._listed("the fields of an edge", keys), "")

    def _rules(self, given: object) -> Mapping[str, Any] | None:
        if given is None or isinstance(given, (dict, Mapping)):
            return cast("Mapping[str, object] | None", given)
        return dict.fromkeys(self._listed("fields", given), "")

    def _expect(self, what: str, given: object, kind: type, expected: str) -> None:
        """Raises: SpecError (AX131): an argument is neither None nor of its class."""
        if given is not None and not isinstance(given, kind):
            raise self._unfit(what, given, expected)

    def _unfit(self, what: str, given: object, expected: str) -> SpecError:
        return self.error("AX131", f"{what}: expected {expected}, found {given!r:.80}.")

    def _listed(self, what: str, given: object) -> Any:
        """Return a list. Raises: SpecError (AX176): it is a text."""
        if isinstance(given, str):
            message = f'expected {what} as a list, found "{given}".'
            raise self.error("AX176", message, f'Write ["{given}"].')
        return given

    def end(self, given: object, role: str) -> str:
        """Return the name of the node that an edge begins or ends at; ``role``: its part there.

        Raises: SpecError (AX104, AX125): there is no such node.
        """
        if isinstance(given, str):
            name = given if given in self._specs else _SPECIAL.get(given.lower(), given)
            if name in self._specs or name in (ENTRY, EXIT):
                return name
            known = [*self._specs] or ["none yet"]
            hint = did_you_mean(given, known) or f"Nodes: {format_names(known)}."
            raise self.error("AX104", f'no node "{given}" ({role}).', hint)
        if id(given) in self._names:
            return self._names[id(given)]
        named = getattr(given, "name", None) or _title(given)
        same = " There is another node of that name." if named in self._specs else ""
        raise self.error(
            "AX125",
            f'the {role} "{named}" is not a node of this graph.{same}',
            "Connect nodes made by this graph.",
        )

    def add_edge(self, edge: EdgeSpec, sender: object, receiver: object) -> EdgeHandle:
        """Add an edge. Raises: SpecError: AX106 there is one; AX111 it closes a cycle."""
        key = (edge.source, edge.target, edge.group, edge.router, id(edge.condition))
        if key in self._edge_keys:
            raise self.error(
                "AX106",
                f"there is an edge from {edge.source} to {edge.target} already.",
                "Give it a group or a condition of its own.",
            )
        if self._cycles == "forbid" and edge.source != ENTRY:
            hint = 'Use a Loop, or make the graph with cycles="allow".'
            self.refuse_cycle(edge, "the edge would close a cycle", hint)
        self._edge_keys.add(key)
        self._edges.append(edge)
        return EdgeHandle(sender, receiver, edge)

    def refuse_cycle(self, edge: EdgeSpec, reason: str, hint: str) -> None:
        """Raises: SpecError (AX111): the edge closes a cycle with those asked about before."""
        if not edge.trigger or edge.target == EXIT:
            return
        source, target = edge.source, edge.target
        is_forward = self._position.get(source, -1) < self._position.get(target, -1)
        # edges in the order of nodes, or from a node that none leads to, close no cycle: nearly all
        # graphs are made without a search
        if not (is_forward and self._is_forward):
            path: Sequence[str] | None = [source] if source == target else None
            if source in self._entered and path is None:
                path = shortest_path(lambda node: self._after.get(node, ()), target, source)
            if path:
                raise self.error("AX111", f"{reason}: {' -> '.join([source, *path])}.", hint)
            self._is_forward = False
        self._after.setdefault(source, []).append(target)
        self._entered.add(target)

    # -- within

    def _declare(self, nodes: Sequence[Any], edges: Sequence[Any]) -> None:
        """Add nodes and edges given as tuples or as workflow files write them."""
        for node in nodes:
            if isinstance(node, Mapping):
                data = dict(cast("Mapping[str, Any]", node))
                if not data.keys() >= {"id", "type"}:
                    raise self._unfit("nodes", data, "id and type in each")
                self.create_node(data["type"], name=data["id"], **data.get("config", {}))
                continue
            if isinstance(node, str) or len(node) < 2:
                raise self._unfit("nodes", node, "(name, kind, …) or {id: …, type: …} each")
            name, kind, *rest = node
            settings = (
                dict(cast("Mapping[str, Any]", rest.pop()))
                if rest and isinstance(rest[-1], Mapping)
                else {}
            )
            self.create_node(kind, *rest, name=name, **settings)
        for edge in edges:
            if isinstance(edge, Mapping):
                data = dict(cast("Mapping[str, Any]", edge))
                if not data.keys() >= {"from", "to"}:
                    raise self._unfit("edges", data, "from and to in each")
                self.create_edge(data.pop("from"), data.pop("to"), **data)
            else:
                if isinstance(edge, str) or len(edge) < 2:
                    raise self._unfit("edges", edge, "(sender, receiver) or {from: …, to: …} each")
                self.create_edge(*edge)


class RootGraph(Graph, Workflow[Taken, Given, Final]):
    """A graph that can be run: ``build`` it, then ``invoke``, ``run`` or ``stream`` it, as often
    and as concurrently as you like.

    ``RootGraph[Topic, Brief]("brief")`` says what it takes and gives: to type checkers, which know
    it of a typed state, and to the check, which holds the keys of edges against it.
    """

    root_only = True

    @overload
    def __init__(
        self: RootGraph[RunInput | M, M, M],
        name: str,
        *,
        state: type[M],
        **options: Unpack[RootOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        *,
        state: Literal["messages"] | None = ...,
        **options: Unpack[RootOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: RootGraph[Any, Any, Any], name: str, *, state: Schema, **options: Unpack[RootOptions]
    ) -> None: ...
    def __init__(self, name: str, **options: Any) -> None:
        """Take the ``options`` of ``Graph``, and ``hooks``, a pluggy manager, and ``registry``, the
        components that there are (None: those installed).
        """
        hooks, registry = options.pop("hooks", None), options.pop("registry", None)
        Workflow.__init__(self, None, CompileOptions(hooks=hooks, registry=registry))
        Graph.__init__(self, name, **options)

    def _doubts(self) -> tuple[Problem, ...]:
        """Return warnings (AX983) of edges that do not fit the types of inputs and outputs."""
        types = getattr(getattr(self, "__orig_class__", None), "__args__", ())
        if not types or (self.schema is not None and self.schema.closed):
            return ()
        return tuple(undeclared(self._edges, types[0], types[1] if len(types) > 1 else None))

    def build(self) -> Self:
        """Compile the graph and return it; what the check warns of is a ``GraphWarning``.

        Raises: SpecError: all that is wrong with it.
        """
        setting = self.setting
        self._spec = self.to_spec()
        found: list[Problem] = [*self._spec.extras.get("warnings", ())]
        try:
            self._plan = None
            self.setting = replace(setting, warned=found.append)
            _ = self.plan
            for problem in found:
                warnings.warn(str(problem), GraphWarning, stacklevel=2)
        except BaseException:
            self._frozen, self._spec = False, None
            raise
        finally:
            self.setting = setting
        return self

    @property
    def spec(self) -> GraphSpec:
        if self._spec is None:
            raise NotBuilt(
                Problem("AX123", self.place, "the graph is not built yet.", "Call build() first.")
            )
        return self._spec


def _title(kind: object) -> str:
    return getattr(kind, "__name__", None) or type(kind).__name__


def _collecting(fields: str | Sequence[str]) -> list[ComponentRef]:
    """Return the wrapper that makes fields lists; ``list``: all fields."""
    named = [fields] if isinstance(fields, str) else list(fields)
    config = {} if named == ["list"] else {"fields": named}
    return [ComponentRef(type="collect", config=config)] if named else []


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SpecError(
            Problem(
                "AX102",
                "",
                f'"{name}" cannot be a name.',
                'Give one: name="…".'
                if name in ("", "<lambda>")
                else "Use letters, digits, - and _.",
            )
        )
    return name


def _schema(state: object) -> Schema | None:
    if state is None or isinstance(state, Schema):
        return state
    from axil.typed.schema import generate_state_schema, schema_of

    if state == "messages":
        return generate_state_schema((), "messages")
    return schema_of(state)
