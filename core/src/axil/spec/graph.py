"""A graph as data, before anything is resolved.

What came from a file is plain data. Specs made in Python may hold live objects, and cannot be
written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast, dataclass_transform

from axil.errors import Problem, SpecError, did_you_mean, format_names
from axil.kernel.joins import Join
from axil.kernel.plan import CycleLimit
from axil.kernel.state import APPEND, Field, Schema
from axil.kernel.tokens import Effects

T = TypeVar("T")


class FromEnvironment(str):
    """A text from an environment variable; where specs are shown, hashed or written, ``template``
    stands for it.

    >>> key = FromEnvironment("sk-123", "${API_KEY}")
    >>> key == "sk-123", key, f"{key}"
    (True, ${API_KEY}, 'sk-123')
    """

    template: str

    def __new__(cls, value: str, template: str) -> FromEnvironment:
        self = super().__new__(cls, value)
        self.template = template
        return self

    def __reduce__(self) -> tuple[type[FromEnvironment], tuple[str, str]]:
        return FromEnvironment, (str(self), self.template)

    def __repr__(self) -> str:
        return self.template


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentRef:
    """A component reference: name and config, ``{type: keyword, config: {any: [x]}}``."""

    type: str
    config: Mapping[str, Any] = field(default_factory=lambda: {})
    made: Any = field(default=None, compare=False, repr=False)
    """The component, if it was made in Python; ``type`` and ``config`` then describe it."""
    place: Place | None = field(default=None, compare=False, repr=False)
    """The place of the reference in a file."""

    @staticmethod
    def of(given: Any) -> ComponentRef:
        """Return the reference to a component given by name, as ``{type: …, …}``, or itself.

        >>> ComponentRef.of("inbox"), ComponentRef.of({"type": "retry", "tries": 3}).config
        (ComponentRef(type='inbox', config={}), {'tries': 3})
        """
        if isinstance(given, ComponentRef):
            return given
        if isinstance(given, str):
            return ComponentRef(type=given)
        if isinstance(given, Mapping):
            data = dict(cast("Mapping[str, Any]", given))
            name, config = data.pop("type", None), data.pop("config", None)
            if not isinstance(name, str) or (config is not None and data):
                raise SpecError(
                    Problem(
                        "AX168",
                        "",
                        f"{given!r:.80} names no component.",
                        "Write {type: name, config: {…}}.",
                    )
                )
            return ComponentRef(type=name, config=data if config is None else config)
        described = (
            given.use()
            if callable(getattr(given, "use", None))
            else ComponentRef(type=type(given).__name__, config={"": given})
        )
        return replace(described, made=given)


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Place:
    """The place in a file where something was written; ``line`` counts from 1.

    Immutable, but not declared frozen, which would double its cost: a file has one for each of its
    nodes, edges and components.
    """

    file: str = ""
    line: int | None = None
    path: str = ""
    """``nodes[2].config.max_duration``"""
    keys: tuple[str | int, ...] = field(default=(), repr=False)
    """``("nodes", 2, "config", "max_duration")``"""
    lines: Mapping[tuple[str | int, ...], int] | None = field(
        default=None, compare=False, repr=False
    )
    """The lines of the whole file, by keys."""

    def at(self, *keys: str | int) -> Place:
        """Return the place of something inside: ``place.at("config", "max_duration")``; on the
        nearest known line.
        """
        path, whole, line = self.path, self.keys, self.line
        for key in keys:
            whole = (*whole, key)
            path = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
            if self.lines is not None:
                line = self.lines.get(whole, line)
        return Place(file=self.file, line=line, path=path, keys=whole, lines=self.lines)

    def __str__(self) -> str:
        file = f"{self.file}:{self.line}" if self.line else self.file
        return f"{file} {self.path}" if file and self.path else file or self.path


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def _data(cls: type[T]) -> type[T]:
    # frozen to type checkers alone: a graph has many, and frozen ones take three times as long; for
    # the same reason their defaults are {}: dict[str, object]() takes ten times as long
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


@_data
class NodeSpec:
    """One node: a name, and a body that is named (``use``) or given (``body``)."""

    id: str
    use: ComponentRef | None = None
    body: Any = None
    """A callable, or an instance of a node class; Python only."""
    join: str | ComponentRef | Join | None = None
    """By name or with settings; None: that of the node's class, else ``gate``."""
    merge: Mapping[str, Any] | None = None
    """Per edge group: a callable from the list of states to the values of the merged one."""
    lane: str | None = None
    effects: Effects | None = None
    """Of running the body once more; None: those of the node's class, else ``idempotent``."""
    wrappers: tuple[ComponentRef, ...] = ()
    """Outermost first."""
    pull: Mapping[str, str] | None = None
    """Attributes the body sees: None all, ``{}`` none, else these; values describe."""
    push: Mapping[str, str] | None = None
    """Output fields written back: None as ``pull`` says, ``{}`` none, else these."""
    attributes: Mapping[str, object] | None = None
    """The node's own attributes, with their first values."""
    description: str = ""
    extras: Mapping[str, Any] = field(default_factory=lambda: {})
    """Plain data that the kernel does not read: ``log_output``, ``input``, ``output``;
    ``resources``: what the body needs of a machine, for executors.
    """
    place: Place | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Its place in a file, or its name: for messages."""
        return str(self.place or f'node "{self.id}"')


def with_usual_wrappers(
    own: Sequence[ComponentRef], usual: Sequence[ComponentRef]
) -> tuple[ComponentRef, ...]:
    """Return a node's own wrappers, inside the usual ones of its graph of other types.

    >>> retry, timeout = ComponentRef(type="retry"), ComponentRef(type="timeout")
    >>> [use.type for use in with_usual_wrappers([retry], [timeout, retry])]
    ['timeout', 'retry']
    """
    stated = {use.type for use in own}
    return (*(use for use in usual if use.type not in stated), *own)


@_data
class EdgeSpec:
    """One edge: ``condition`` asks, ``keys`` select, ``process`` rewrites what it carries."""

    source: str
    target: str
    trigger: bool = True
    """False: never makes the target live."""
    group: str = ""
    condition: Any = None
    """A ``ComponentRef``, a callable ``(payload, state) -> bool``, or None: always."""
    keys: Mapping[str, str] | None = None
    """Fields to carry, with descriptions; ``{}``: only the trigger; None: the whole payload."""
    process: Any = None
    """A ``ComponentRef``, a callable ``payload -> payload | None``, or None."""
    filter: Callable[..., object] | None = None
    """From the state to the values of the state that goes on; Python only."""
    carry_data: bool = True
    """False: carries an empty payload."""
    marks: Mapping[str, Any] = field(default_factory=lambda: {})
    """Put on every message carried, for the receiving node to read: ``{"keep": True}``."""
    router: str | None = None
    """The name of the router that decides whether it is taken."""
    extras: Mapping[str, Any] = field(default_factory=lambda: {})
    """Plain data that the kernel does not read: ``description``."""
    place: Place | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Its place in a file, or its ends: for messages."""
        return str(self.place or f"edge {self.source}->{self.target}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSpec:
    """A function asked once per firing of ``source`` for the targets of its edges, among
    ``targets``: a name, a list of names, ``(name, filter)`` or a list of those.
    """

    source: str
    targets: tuple[str, ...]
    ask: Callable[..., object]


_NUMBERS = ("firings", "seconds", "concurrency", "tokens", "cost")
"""The limits that are numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The resources that a run may use; None: no limit.

    Reaching one is the status ``limited`` and a named error. Raises: SpecError (AX128).
    """

    firings: int | None = None
    seconds: float | None = None
    concurrency: int | None = None
    """Bodies at work at the same time."""
    lanes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same per lane; a lane that is not listed admits 1."""
    tokens: int | None = None
    """Model tokens of all kinds."""
    cost: float | None = None
    """Money, in the unit of the prices."""
    pricing: Any = None
    """The prices of models (``axil_models.Pricing``), for what they do not report."""
    estimate: Any = None
    """The estimate of a call (``axil_models.Estimator``)."""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            limit, least = getattr(self, name), 1 if name == "concurrency" else 0
            if limit is not None and (type(limit) not in (int, float) or not limit >= least):
                message = f"expected a number ≥ {least}, found {limit!r}."
                hint = "Leave it out for no limit."
                raise SpecError(Problem("AX128", f"limits.{name}", message, hint))
        for lane, room in self.lanes.items():
            if type(room) is not int or room < 1:
                message = f"expected a whole number ≥ 1, found {room!r}."
                raise SpecError(Problem("AX128", f"limits.lanes.{lane}", message))

    @property
    def need_ledger(self) -> bool:
        """True if model tokens or money are limited or estimated."""
        return any(
            each is not None for each in (self.tokens, self.cost, self.pricing, self.estimate)
        )

    def changed(self, given: Mapping[str, Any]) -> Limits:
        """Return these limits with other numbers, by their names; None is no limit.

        Raises: SpecError: AX128; AX130: there is no such limit.
        """
        for name in given:
            if name not in _NUMBERS:
                hint = did_you_mean(name, _NUMBERS) or f"It takes {format_names(_NUMBERS)}."
                raise SpecError(Problem("AX130", "limits", f'unknown limit "{name}".', hint))
        return replace(self, **given)

    def within(self, cost: float) -> Limits:
        """Return these limits, with at most so much money."""
        own = cost if self.cost is None else min(cost, self.cost)
        return replace(self, cost=max(0.0, own))


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSpec:
    """A graph; edges may start at ``@entry`` and end at ``@exit``."""

    id: str
    nodes: tuple[NodeSpec, ...] = ()
    edges: tuple[EdgeSpec, ...] = ()
    routers: Mapping[str, RouterSpec] = field(default_factory=dict[str, RouterSpec])
    schema: Schema | None = None
    """None: attributes, an open schema."""
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    """First values of the state."""
    payload: Literal["fields", "messages", "state"] = "fields"
    """The payload kind: fields of a message, lists of messages, or (typed state) nothing."""
    end: tuple[str, ...] = ()
    """Message graphs: whose output is the result, in order of preference."""
    cycles: Literal["allow", "forbid"] = "allow"
    cycle_limits: Mapping[str, CycleLimit] = field(default_factory=dict[str, CycleLimit])
    """By the name of the node at which the cycle is entered; ``""``: all others."""
    loop: str = ""
    """A loop's controller: every node that it reaches belongs to its cycle."""
    state_version: int = 1
    """Of the shape of the state; see ``migrations``."""
    migrations: Mapping[int, object] = field(default_factory=dict[int, object])
    """By the version it begins at: a function from what was written under it (plain data by field:
    a whole state, or what one node wrote) to the same under the next one; in files its import path.
    Used where an old run or a thread continues with this graph.
    """
    limits: Limits = field(default_factory=Limits)
    requires: Mapping[str, str] = field(default_factory=dict[str, str])
    """Distributions that it needs, with version specifiers."""
    description: str = ""
    extras: Mapping[str, Any] = field(default_factory=dict[str, object])
    """Plain data that the kernel does not read, but for ``READ``: ``memory``, ``log_level``; and
    ``SURROUNDINGS``.
    """
    place: Place | None = field(default=None, repr=False)

    @property
    def where(self) -> str:
        """Its place in a file, or its name: for messages."""
        return str(self.place or f'graph "{self.id}"')

    def whole_schema(self) -> Schema:
        """Return the schema of the state, with the fields that ``extras`` calls growing."""
        own = self.schema or Schema()
        named: Sequence[str] = self.extras.get("growing") or ()
        grown = {name: Field(name, APPEND) for name in named if name not in own.fields}
        return replace(own, fields={**own.fields, **grown}) if grown else own

    def digest(self) -> str:
        """Return a stable hash of all that a file could say; live objects count by qualified name.

        The place of the file and the environment do not count: a run resumes after a key was
        renewed.
        """
        from axil.spec.digests import digest_of

        return digest_of(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SubgraphSpec:
    """A graph inside a node: what a node class gives from ``scope()``."""

    spec: GraphSpec
    pull: Mapping[str, str] | None = None
    push: Mapping[str, str] | None = None
    hidden: frozenset[str] = frozenset()
    """Fields that are neither pulled nor pushed, whatever the rules say."""
    offered: frozenset[str] = frozenset()
    """Pushed fields that a graph around it need not have declared."""
    keep: bool = False
    """True if its nodes' own fields are kept until the next visit in the same run."""


READ = frozenset({"growing", "lenient"})
"""Keys of ``GraphSpec.extras`` that are read here; a file's reader sets them.

``growing``: names of fields to which items are appended, whatever the schema; ``lenient``: whether
settings may have unknown keys.
"""
_AROUND = "folder root trail texts included vars environment secrets warnings grants read"
SURROUNDINGS = READ | set(_AROUND.split())
"""Keys of ``GraphSpec.extras`` about where a file was read and with what."""


KEPT = "@kept/"
"""The beginning of names of fields that nodes keep between the runs of a thread."""


def local_field(node: str) -> str:
    """Return the name of the field in which a node keeps what is its own."""
    return f"@node/{node}"


def kept_field(node: str) -> str:
    """Return the name of the field in which a node keeps what the thread's next run begins with."""
    return f"{KEPT}{node}"
